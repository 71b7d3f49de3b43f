# SPDX-License-Identifier: Apache-2.0
"""Makes a query fit without changing what it means."""

from isolate_aggregates.query_limit.cover import Shortened
from isolate_aggregates.query_limit.members import (
    Members,
    PlacementMembers,
    SnapshotMembers,
)
from isolate_aggregates.query_limit.probe import Limit, Verdict, measure
from isolate_aggregates.query_limit.shortener import Shortener
from isolate_aggregates.query_limit.verification import VerifiedMembers

__all__ = [
    'Limit',
    'Members',
    'PlacementMembers',
    'Shortened',
    'Shortener',
    'SnapshotMembers',
    'Verdict',
    'VerifiedMembers',
    'measure',
]
