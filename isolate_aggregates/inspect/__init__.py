# SPDX-License-Identifier: Apache-2.0
"""Reads a cloud and tells what it finds; changes nothing."""
