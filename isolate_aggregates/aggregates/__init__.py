# SPDX-License-Identifier: Apache-2.0
"""Host aggregates, and the index the request filters ask."""

from isolate_aggregates.aggregates.aggregate import Aggregate, grants
from isolate_aggregates.aggregates.index import (
    AggregateIndex,
    Closed,
    LockGroup,
)
from isolate_aggregates.aggregates.lock import Lock

__all__ = [
    'Aggregate',
    'AggregateIndex',
    'Closed',
    'Lock',
    'LockGroup',
    'grants',
]
