# SPDX-License-Identifier: Apache-2.0
"""The cloud a question is asked of.

A live one (``live.py``) and a saved one (``saved.py``) answer the same
questions, so a command need not know which it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.cloud.servers import Port, Server
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.cloud.survey import Survey
from isolate_aggregates.cloud.track import Track, untracked
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.placement.providers import Below
from isolate_aggregates.query_limit import Members
from isolate_aggregates.request import ComputeHost, Flavor, Image
from isolate_aggregates.request.spec import ResourceGroup


class Cloud(Protocol):
    """What a question needs of a cloud.

    Errors in reading are IsolateAggregatesErrors. Properties are read once;
    methods that do not look up one name read each time.
    """

    @property
    def index(self) -> AggregateIndex:
        """All host aggregates, from the source that is configured."""

    @property
    def placement(self) -> PlacementClient:
        """The Placement of the cloud."""

    @property
    def placement_at_hand(self) -> bool:
        """Whether Placement answers without having to be filled for long."""

    @property
    def provider_names(self) -> Mapping[str, str]:
        """Names of all resource providers, by uuid."""

    @property
    def compute_nodes(self) -> Mapping[str, str]:
        """Names of the compute services, by uuid of their compute nodes.

        None if Nova does not provide the uuids.
        """

    @property
    def snapshot(self) -> Snapshot:
        """The aggregates and resource providers as of one moment."""

    @property
    def flavors(self) -> tuple[Flavor, ...]:
        """All flavors, private ones too."""

    @property
    def images(self) -> tuple[Image, ...]:
        """All images that can be seen."""

    def aggregates(self) -> Sequence[Aggregate]:
        """Return all host aggregates as Nova has them now."""

    def roots(self, track: Track = untracked) -> tuple[Provider, ...]:
        """Return the root resource providers, without their resources."""

    def traits(self) -> frozenset[str]:
        """Return all traits that Placement knows."""

    def holders_below(self, traits: Iterable[str]) -> Below:
        """Return which providers below a root have some traits.

        :param traits: The names of traits that Placement knows.
        """

    def survey(
        self, servers: bool = False, track: Track = untracked
    ) -> Survey:
        """Return all that there is to know.

        :param servers: Whether to read the servers of all projects too, which
            a saved cloud does not have.
        """

    def members(self, max_length: int) -> Members:
        """Return who is a member of what.

        :param max_length: The most bytes of a query to Placement.
        """

    def flavor(self, name: str) -> Flavor:
        """Return the flavor of an id or, if there is none, of a name.

        :raises NotFound: if there is none.
        """

    def image(self, name: str) -> Image:
        """Return the image of an id or, if there is none, of a name.

        :raises NotFound: if there is none.
        :raises NotUnique: if several images have the name.
        """

    def requested_host(self, name: str) -> ComputeHost:
        """Return a host with its compute nodes, none if it is unknown.

        :param name: The name of a compute service or of a compute node.
        """

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id of the project of an id or a name.

        A saved cloud has no projects and takes what is given for the id.

        :param domain: Id or name of its domain; None for any.
        :raises NotFound: if there is none.
        :raises NotUnique: if projects of several domains have the name.
        """

    @property
    def nova_releases(self) -> tuple[int, ...]:
        """The releases of Nova that it may be; none if that is not known."""

    @property
    def owned_nodes(self) -> tuple[int, int]:
        """How many compute nodes have the trait OWNER_NOVA, and how many not.

        Nova requires the trait once all its compute services set it.
        """

    def ports(self, server_id: str) -> Sequence[Port]:
        """Return the ports of a server.

        :raises ServiceError: if Neutron cannot be asked.
        """

    def segment_aggregates(self, port: Port) -> Sequence[frozenset[str]]:
        """Return the aggregates of each segment that a port may be on.

        :raises ServiceError: if Neutron cannot be asked.
        """

    def device_groups(
        self, profile: str, owner: str = ''
    ) -> Sequence[ResourceGroup]:
        """Return what a device profile asks for.

        :param owner: Id of the port that names it; empty for a flavor.
        :raises NotFound: if there is none, as in every saved cloud.
        :raises ServiceError: if Cyborg cannot be asked.
        """

    def server(self, server_id: str) -> Server:
        """Return what an existing server was asked for with.

        :raises NotFound: if there is none, as in every saved cloud.
        """

    def close(self) -> None:
        """Give back whatever answering needed."""
