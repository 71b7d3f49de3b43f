# SPDX-License-Identifier: Apache-2.0
"""Filters that repeat what Nova itself adds, where there is no Nova."""
