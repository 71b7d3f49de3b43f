# SPDX-License-Identifier: Apache-2.0
"""Shortens queries to Placement without changing their meaning."""

from isolate_aggregates.query_limit.cover import Replacement
from isolate_aggregates.query_limit.members import (
    Members,
    PlacementMembers,
    SnapshotMembers,
)
from isolate_aggregates.query_limit.probe import Limit, LimitVerdict, measure
from isolate_aggregates.query_limit.required_aggregates import RequiredSubset
from isolate_aggregates.query_limit.shortener import OUR_HOST_FILTER, Shortener
from isolate_aggregates.query_limit.verification import VerifiedMembers

__all__ = [
    'OUR_HOST_FILTER',
    'Limit',
    'LimitVerdict',
    'Members',
    'PlacementMembers',
    'Replacement',
    'RequiredSubset',
    'Shortener',
    'SnapshotMembers',
    'VerifiedMembers',
    'measure',
]
