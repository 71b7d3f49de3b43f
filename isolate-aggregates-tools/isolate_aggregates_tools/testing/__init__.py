# SPDX-License-Identifier: Apache-2.0
"""Helpers for testing request filters in whole clouds.

They include those of :mod:`isolate_aggregates.testing`.

* :mod:`~isolate_aggregates_tools.testing.builders` creates provider trees,
  whole clouds, and requests with all that Nova derives.
* :mod:`~isolate_aggregates_tools.testing.hosts` runs filters for a request and
  returns the candidate hosts.
* :mod:`~isolate_aggregates_tools.testing.placement` mocks Placement's API. It
  needs requests-mock (extra ``testing``). For tests that write,
  :mod:`~isolate_aggregates_tools.embedded` runs the real Placement (extra
  ``embedded``).
* :mod:`~isolate_aggregates_tools.testing.rehearsal` runs playbooks and other
  tools against a copy of a cloud (extra ``embedded``).
* :mod:`~isolate_aggregates_tools.testing.plugin` has the mock and rehearsals
  as pytest fixtures.
"""

from isolate_aggregates.testing import (
    make_aggregate,
    make_flavor,
    make_image,
    reasons_for,
)
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import (
    ComputeService,
    Port,
    Server,
    ServerGroup,
    Servers,
)
from isolate_aggregates_tools.embedded import EmbeddedPlacement
from isolate_aggregates_tools.placement.provider import Inventory, Provider
from isolate_aggregates_tools.request import (
    Request,
    RequestedNetwork,
    ResourceGroup,
)
from isolate_aggregates_tools.testing.builders import (
    make_compute_node,
    make_provider,
    make_request,
    make_snapshot,
    make_tree,
)
from isolate_aggregates_tools.testing.hosts import hosts_for
from isolate_aggregates_tools.testing.placement import PlacementFixture
from isolate_aggregates_tools.testing.rehearsal import Rehearsal

__all__ = [
    'ComputeService',
    'EmbeddedPlacement',
    'Inventory',
    'PlacementFixture',
    'Port',
    'Provider',
    'Rehearsal',
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
