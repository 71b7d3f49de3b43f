# SPDX-License-Identifier: Apache-2.0
"""Makes the aggregate part of a query fit without changing what it means."""

from isolate_aggregates.query_limit.members import (
    Members,
    PlacementMembers,
    SnapshotMembers,
)
from isolate_aggregates.query_limit.shortener import Shortened, Shortener

__all__ = [
    'Members',
    'PlacementMembers',
    'Shortened',
    'Shortener',
    'SnapshotMembers',
]
