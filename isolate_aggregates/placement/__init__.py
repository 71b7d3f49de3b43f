# SPDX-License-Identifier: Apache-2.0
"""Placement's API: queries, responses, a simulator, and the real service."""
