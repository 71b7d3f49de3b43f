# SPDX-License-Identifier: Apache-2.0
"""Clouds to ask: a live one, or the picture of one in a cloud file."""
