# SPDX-License-Identifier: Apache-2.0
"""Calls an OpenStack API, and says plainly what went wrong."""
