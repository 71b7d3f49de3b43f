# SPDX-License-Identifier: Apache-2.0
"""Helpers for testing request filters, including your own.

* :mod:`~isolate_aggregates.testing.builders` creates aggregates, flavors,
  images, requests, provider trees and whole clouds, with defaults for
  everything that a test does not depend on.
* :mod:`~isolate_aggregates.testing.hosts` runs filters for a request and
  returns the candidate hosts, or the reasons of the filters.
* :mod:`~isolate_aggregates.testing.placement` mocks Placement's HTTP API. It
  needs requests-mock (extra ``testing``). For tests that write,
  :mod:`~isolate_aggregates.tools.embedded` runs the real Placement (extra
  ``embedded``).
* :mod:`~isolate_aggregates.testing.plugin` has the mock as a pytest fixture.
"""

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
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.compute.servers import (
    ComputeService,
    Port,
    Server,
    ServerGroup,
    Servers,
)
from isolate_aggregates.tools.embedded import EmbeddedPlacement
from isolate_aggregates.tools.placement.provider import Inventory, Provider
from isolate_aggregates.tools.request import (
    Request,
    RequestedNetwork,
    ResourceGroup,
)

__all__ = [
    'ComputeService',
    'EmbeddedPlacement',
    'Inventory',
    'PlacementFixture',
    'Port',
    'Provider',
    'Request',
    'RequestedNetwork',
    'ResourceGroup',
    'Server',
    'ServerGroup',
    'Servers',
    'Snapshot',
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
