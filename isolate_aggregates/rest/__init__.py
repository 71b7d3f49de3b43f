# SPDX-License-Identifier: Apache-2.0
"""Calls OpenStack APIs, with clear error messages."""
