# SPDX-License-Identifier: Apache-2.0
"""The request filters, one module each, and their building blocks.

A filter is a subclass of :class:`RequestFilter`, registered by an entry point
in the group ``isolate_aggregates.request_filters`` in ``setup.cfg``.
"""

from isolate_aggregates.filters.constraints import (
    Cause,
    Conclusion,
    Constraint,
    Destination,
    Forbid,
    LazyForbid,
    Refuse,
    Require,
)
from isolate_aggregates.filters.contract import RequestFilter

__all__ = [
    'Cause',
    'Conclusion',
    'Constraint',
    'Destination',
    'Forbid',
    'LazyForbid',
    'Refuse',
    'RequestFilter',
    'Require',
]
