# SPDX-License-Identifier: Apache-2.0
"""Helpers for testing request filters, your own among them.

* :mod:`~isolate_aggregates.testing.builders` makes aggregates, flavors,
  images, requests, provider trees and whole clouds, with defaults for all that
  a test does not care about.
* :mod:`~isolate_aggregates.testing.hosts` runs filters over a request and
  returns the hosts that would be offered, or the reasons of the filters.
* :mod:`~isolate_aggregates.testing.placement` answers for Placement over HTTP.
  It needs requests-mock (extra ``testing``). Where something must be
  written, :mod:`~isolate_aggregates.placement.embedded` runs the real service
  (extra ``embedded``).
* :mod:`~isolate_aggregates.testing.plugin` is the same as a pytest fixture.
"""

from isolate_aggregates.placement.embedded import EmbeddedPlacement
from isolate_aggregates.testing.builders import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_provider,
    make_request,
    make_snapshot,
    make_tree,
)
from isolate_aggregates.testing.hosts import hosts_for, reasons_for
from isolate_aggregates.testing.placement import PlacementFixture

__all__ = [
    'EmbeddedPlacement',
    'PlacementFixture',
    'hosts_for',
    'make_aggregate',
    'make_compute_node',
    'make_flavor',
    'make_image',
    'make_provider',
    'make_request',
    'make_snapshot',
    'make_tree',
    'reasons_for',
]
