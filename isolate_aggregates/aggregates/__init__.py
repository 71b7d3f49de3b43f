# SPDX-License-Identifier: Apache-2.0
"""Host aggregates, and the index the request filters ask."""

from isolate_aggregates.aggregates.aggregate import Aggregate, grants
from isolate_aggregates.aggregates.index import AggregateIndex, LockGroup

__all__ = ['Aggregate', 'AggregateIndex', 'LockGroup', 'grants']
