# SPDX-License-Identifier: Apache-2.0
"""The request filters, one module each, and their building blocks.

A filter is a class whose instances are called with a request and the
aggregates, and yield constraints. It does no I/O and has no side effects. See
:mod:`~isolate_aggregates.filters.contract` for what a filter can declare. It
is registered by an entry point in the group
``isolate_aggregates.request_filters`` in ``setup.cfg``.
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
