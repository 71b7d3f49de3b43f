# SPDX-License-Identifier: Apache-2.0
"""The interface of a cloud, which is live or in a file."""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import dataclasses
from typing import Any, Protocol

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.request import ComputeHost, Flavor, Image
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import (
    ComputeService,
    Port,
    Server,
    Servers,
)
from isolate_aggregates_tools.domains import Projects
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.provider import Below, Provider
from isolate_aggregates_tools.request import ResourceGroup


@dataclasses.dataclass(frozen=True)
class Survey:
    """A snapshot with further data that is not in cloud files.

    :param nova: Nova's newest microversion; None if unknown.
    :param placement: Placement's newest microversion; None if unknown.
    :param traits: All traits in Placement; None if only the standard traits
        and those that a provider has are known.
    :param resource_classes: The names of all resource classes; None if only
        those that a provider has are known.
    :param nova_releases: The possible releases of Nova, oldest first; empty if
        unknown.
    """

    snapshot: Snapshot
    nova: str | None = None
    placement: str | None = None
    traits: frozenset[str] | None = None
    resource_classes: frozenset[str] | None = None
    servers: Servers | None = None
    nova_releases: tuple[int, ...] = ()


# Takes an iterator, the plural name of its items and their number if known;
# yields the items.
Track = Callable[[Iterator[Any], str, int | None], Iterable[Any]]


def untracked(
    items: Iterator[Any], what: str, total: int | None
) -> Iterable[Any]:
    """Show no progress."""
    return items


class Cloud(Protocol):
    """The data that commands read from a cloud.

    If reading fails, an IsolateAggregatesError is raised. Properties are read
    once and cached. Methods read each time, except those that look up a single
    name.
    """

    @property
    def index(self) -> AggregateIndex:
        """All host aggregates, from the configured source, and the hosts."""

    @property
    def placement(self) -> PlacementClient:
        """The Placement client of the cloud."""

    @property
    def provider_names(self) -> Mapping[str, str]:
        """The names of all resource providers, by uuid."""

    @property
    def compute_nodes(self) -> Mapping[str, str]:
        """The names of the compute services, by uuid of their compute nodes.

        Empty if Nova does not provide the uuids.
        """

    @property
    def services(self) -> tuple[ComputeService, ...] | None:
        """The compute services; None if unknown."""

    @property
    def snapshot(self) -> Snapshot:
        """A snapshot of the aggregates and resource providers."""

    def snapshot_for(
        self,
        aggregates: Collection[str],
        amounts: Mapping[str, Collection[int]] | None,
    ) -> Snapshot:
        """Return the same, as far as it decides about a request.

        Providers may have no other aggregates; inventories that are sufficient
        for all amounts may have no other amounts than the capacity.

        :param aggregates: The uuids of the aggregates that decide about it.
        :param amounts: The amounts by resource class; None for all.
        """

    @property
    def capacities(self) -> Snapshot:
        """The same, as far as capacity, usage and traits tell.

        The inventories may have no other amounts than the capacity, and
        providers no aggregates.
        """

    @property
    def flavors(self) -> tuple[Flavor, ...]:
        """All flavors, including private ones."""

    @property
    def images(self) -> tuple[Image, ...]:
        """All images that are visible to the user."""

    def aggregates(self) -> Sequence[Aggregate]:
        """Return all host aggregates in Nova now."""

    def roots(self, track: Track = untracked) -> tuple[Provider, ...]:
        """Return the root resource providers, without their inventories."""

    def traits(self) -> frozenset[str]:
        """Return all traits in Placement."""

    def holders_below(self, traits: Iterable[str]) -> Below:
        """Return the child and sharing providers that have some traits."""

    def survey(
        self, servers: bool = False, track: Track = untracked
    ) -> Survey:
        """Read everything that an audit needs.

        :param servers: Whether to include the servers of all projects.
        """

    def flavor(self, name: str) -> Flavor:
        """Return the flavor with an id or, if there is none, a name."""

    def image(self, name: str) -> Image:
        """Return the image with an id or, if there is none, a name."""

    def requested_host(self, name: str) -> ComputeHost:
        """Return a host with its compute nodes; no nodes if it is unknown.

        :param name: The name of a compute service or of a compute node.
        """

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id of the project with an id or name.

        A saved cloud has no projects and returns the argument.

        :param domain: The id or name of its domain; None for any.
        :raises NotUnique: if projects in several domains have the name.
        """

    def domain_projects(self, ids: Iterable[str]) -> Projects:
        """Return the projects of domains by id; None if there is none.

        A saved cloud leaves out those that it does not know.
        """

    @property
    def nova_releases(self) -> tuple[int, ...]:
        """The possible releases of Nova; empty if unknown."""

    @property
    def owned_nodes(self) -> tuple[int, int]:
        """The numbers of compute nodes with and without the trait OWNER_NOVA.

        Nova requires the trait once all its compute services set it.
        """

    def ports(self, server_id: str) -> Sequence[Port] | None:
        """Return the ports of a server; None if they are unknown."""

    def segment_aggregates(self, port: Port) -> Sequence[frozenset[str]]:
        """Return the aggregates of each segment that a port can be on."""

    def device_groups(
        self, profile: str, owner: str = ''
    ) -> Sequence[ResourceGroup]:
        """Return the request groups of a device profile.

        :param owner: The id of the port that names it; empty for a flavor.
        """

    def server(self, name: str) -> Server:
        """Return the request that an existing server was created with.

        :param name: Its id or, if there is none, its name in any project.
        :raises NotUnique: if several servers have the name.
        """

    def close(self) -> None:
        """Release all resources."""
