# SPDX-License-Identifier: Apache-2.0
"""Host aggregates, their index for request filters, and their sources."""

from isolate_aggregates.aggregates.aggregate import Aggregate
from isolate_aggregates.aggregates.contract import AggregateSource, Membership
from isolate_aggregates.aggregates.index import AggregateIndex
from isolate_aggregates.aggregates.lock import Lock

__all__ = [
    'Aggregate',
    'AggregateIndex',
    'AggregateSource',
    'Lock',
    'Membership',
]
