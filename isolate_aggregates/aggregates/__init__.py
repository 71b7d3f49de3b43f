# SPDX-License-Identifier: Apache-2.0
"""Host aggregates, their index for request filters, and their sources."""

from isolate_aggregates.aggregates.aggregate import (
    Aggregate,
    AggregateSource,
    Lock,
    Membership,
)
from isolate_aggregates.aggregates.index import AggregateIndex

__all__ = [
    'Aggregate',
    'AggregateIndex',
    'AggregateSource',
    'Lock',
    'Membership',
]
