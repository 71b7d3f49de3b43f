# SPDX-License-Identifier: Apache-2.0
"""Helpers for testing request filters, including your own.

* :mod:`~isolate_aggregates.testing.builders` creates aggregates, flavors,
  images and requests, with defaults for everything that a test does not depend
  on.
* :mod:`~isolate_aggregates.testing.decisions` runs filters for a request, and
  returns their reasons, or whether they allow an aggregate.

Whole clouds, their candidate hosts and a mock of Placement are in
``isolate_aggregates_tools.testing`` of the distribution
isolate-aggregates-tools.
"""

from isolate_aggregates.request.plain import PlainRequest
from isolate_aggregates.testing.builders import (
    make_aggregate,
    make_flavor,
    make_image,
    make_request,
)
from isolate_aggregates.testing.decisions import reasons_for

__all__ = [
    'PlainRequest',
    'make_aggregate',
    'make_flavor',
    'make_image',
    'make_request',
    'reasons_for',
]
