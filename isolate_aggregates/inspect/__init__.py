# SPDX-License-Identifier: Apache-2.0
"""Reads a cloud and reports on it; changes nothing."""
