# SPDX-License-Identifier: Apache-2.0
"""The request filters, one file each, and what a filter is made of.

A filter is a class whose instances are called with the request and the
aggregates and yield constraints. It does no I/O and changes nothing. What it
may declare is in :mod:`~isolate_aggregates.filters.contract`. One line under
``isolate_aggregates.request_filters`` in ``setup.cfg`` makes the filter known
by name.
"""

from isolate_aggregates.filters.constraints import (
    Forbid,
    LazyForbid,
    Refuse,
    Require,
)
from isolate_aggregates.filters.contract import RequestFilter, ReservationKeys
from isolate_aggregates.filters.destination import Constraint, Destination

__all__ = [
    'Constraint',
    'Destination',
    'Forbid',
    'LazyForbid',
    'Refuse',
    'RequestFilter',
    'Require',
    'ReservationKeys',
]
