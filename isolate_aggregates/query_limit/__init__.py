# SPDX-License-Identifier: Apache-2.0
"""Shortens queries to Placement without changing which hosts may be used.

nova-scheduler loads ``shortener.py`` with its first query that is too long.
"""

from isolate_aggregates.query_limit.replacement import (
    OUR_HOST_FILTER,
    Replacement,
)

__all__ = ['OUR_HOST_FILTER', 'Replacement']
