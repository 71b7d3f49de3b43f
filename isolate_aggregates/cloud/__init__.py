# SPDX-License-Identifier: Apache-2.0
"""Reads the state of a cloud, live or from a cloud file."""
