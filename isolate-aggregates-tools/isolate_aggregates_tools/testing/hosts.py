# SPDX-License-Identifier: Apache-2.0
"""Runs request filters for a request, and returns the candidates."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from isolate_aggregates.filters.contract import RequestFilter
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools import candidates
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.request import Request
from isolate_aggregates_tools.simulator import Simulator
from isolate_aggregates_tools.testing import builders

if TYPE_CHECKING:
    from keystoneauth1 import adapter

Filters = Mapping[str, RequestFilter]


def hosts_for(
    request: Request,
    snapshot: Snapshot,
    filters: Filters,
    placement: 'adapter.Adapter | None' = None,
    *,
    traits: Iterable[str] = (),
    resource_classes: Iterable[str] = (),
) -> list[str]:
    """Return the names of the candidate hosts for a request, sorted.

    :param request: The request.
    :param snapshot: The cloud.
    :param filters: Filters by name, in the order in which they run. They need
        not be installed.
    :param placement: A keystoneauth adapter for the Placement to query, for
        example that of a
        ``PlacementFixture``; None to compute the candidates in memory.
    :param traits: Further custom traits that exist, for those that no provider
        has. They do not affect ``placement``.
    :param resource_classes: Further custom resource classes that exist, for
        those without an inventory.
    :raises RequestRefused: if a filter refuses the request.
    :raises FilterError: if a filter fails or violates its contract.
    :raises BadQuery: if Placement would answer the query with 400, for example
        because a trait does not exist.
    :raises ValueError: if a trait or resource class is invalid.
    """
    snapshot = builders.declare(snapshot, traits, resource_classes)
    cloud = _SimulatedCloud(snapshot, placement)
    outcome = candidates.find(cloud, Pipeline(filters), request, limit=None)
    return [host.name for host in outcome.hosts]


class _SimulatedCloud(SnapshotCloud):
    """A snapshot with a simulated or given Placement."""

    def __init__(
        self, snapshot: Snapshot, placement: 'adapter.Adapter | None'
    ) -> None:
        super().__init__(snapshot)
        # Only allocation_candidates() of the client is used here, and the
        # simulator has a compatible method.
        self.placement = (
            PlacementClient(placement)
            if placement
            else cast(
                PlacementClient,
                Simulator(
                    snapshot.providers,
                    snapshot.traits,
                    snapshot.resource_classes,
                ),
            )
        )
