# SPDX-License-Identifier: Apache-2.0
"""Shortens queries to Placement without changing which hosts may be used."""

from isolate_aggregates.query_limit.probe import Limit, LimitVerdict, measure
from isolate_aggregates.query_limit.required_aggregates import RequiredSubset
from isolate_aggregates.query_limit.shortener import (
    OUR_HOST_FILTER,
    Replacement,
    Shortener,
)

__all__ = [
    'OUR_HOST_FILTER',
    'Limit',
    'LimitVerdict',
    'Replacement',
    'RequiredSubset',
    'Shortener',
    'measure',
]
