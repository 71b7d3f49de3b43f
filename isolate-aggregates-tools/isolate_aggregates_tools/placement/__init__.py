# SPDX-License-Identifier: Apache-2.0
"""Placement's API, as far as only commands use it."""
