# SPDX-License-Identifier: Apache-2.0
"""Makes the aggregate part of a query fit without changing what it means."""

from isolate_aggregates.shortening.members import (
    Members,
    PlacementMembers,
    SnapshotMembers,
)
from isolate_aggregates.shortening.shortener import Shortened, Shortener

__all__ = [
    'Members',
    'PlacementMembers',
    'Shortened',
    'Shortener',
    'SnapshotMembers',
]
