# SPDX-License-Identifier: Apache-2.0
"""A saved cloud: a snapshot in place of a live cloud."""

from collections.abc import Iterable, Mapping
import contextlib

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cloud.cloud import Survey, Track, untracked
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import Port
from isolate_aggregates_tools.domains import Projects
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.provider import (
    Below,
    Provider,
    helpers,
)
from isolate_aggregates_tools.request import ResourceGroup


class SnapshotCloud:
    """A :class:`~isolate_aggregates_tools.cloud.cloud.Cloud` from a snapshot.

    An embedded Placement is created from the snapshot on first use.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = self.capacities = snapshot
        self._exit = contextlib.ExitStack()
        self.index = snapshot.index
        self.services = snapshot.services
        self.flavors = snapshot.flavors
        self.images = snapshot.images
        self.flavor = snapshot.flavor
        self.image = snapshot.image
        self.requested_host = snapshot.requested_host
        self.server = snapshot.server

    @lazy_property
    def placement(self) -> PlacementClient:
        """An embedded Placement, loaded with the snapshot."""
        # Imported late: they need keystoneauth and tenacity, which are slow to
        # import.
        from isolate_aggregates_tools.cloud.file import load
        from isolate_aggregates_tools.embedded import embedded_client

        placement = self._exit.enter_context(embedded_client())
        load.into_placement(self.snapshot, placement)
        return placement

    @lazy_property
    def provider_names(self) -> Mapping[str, str]:
        """The names of all resource providers, by uuid."""
        return {p.uuid: p.name for p in self.snapshot.providers}

    @lazy_property
    def compute_nodes(self) -> Mapping[str, str]:
        """The names of the compute services, by compute node uuid."""
        return {p.uuid: p.host for p in self.snapshot.providers if p.host}

    def snapshot_for(self, *_: object) -> Snapshot:
        """Return the snapshot."""
        return self.snapshot

    def aggregates(self) -> tuple[Aggregate, ...]:
        """Return all host aggregates."""
        return self.snapshot.aggregates

    def roots(self, track: Track = untracked) -> tuple[Provider, ...]:
        """Return the root resource providers."""
        return tuple(p for p in self.snapshot.providers if p.parent is None)

    def traits(self) -> frozenset[str]:
        """Return all traits in the snapshot."""
        return self.snapshot.all_traits

    def holders_below(self, traits: Iterable[str]) -> Below:
        """Return the child and sharing providers that have some traits."""
        names = frozenset(traits)
        holders: dict[str, dict[str, tuple[str, ...]]] = {}
        for root, some in helpers(self.snapshot.providers).items():
            for provider in some:
                for trait in names & provider.traits:
                    of_root = holders.setdefault(root, {})
                    of_root[trait] = (*of_root.get(trait, ()), provider.name)
        return holders

    def survey(
        self, servers: bool = False, track: Track = untracked
    ) -> Survey:
        """Return the snapshot as a survey."""
        known = self.snapshot.known_servers if servers else None
        return Survey(
            self.snapshot,
            traits=self.traits(),
            resource_classes=self.snapshot.all_resource_classes,
            servers=known,
        )

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id of a project; the argument if its name is unknown.

        :raises NotUnique: if several projects have the name.
        """
        known = self.snapshot.keystone
        return known.project(name, domain) if known else name

    def domain_projects(self, ids: Iterable[str]) -> Projects:
        """Return the projects of the domains that the snapshot has."""
        domains = self.snapshot.domains
        return {each: domains[each] for each in ids if each in domains}

    # Unknown: the settings in the file describe the behaviour of its Nova.
    nova_releases = ()

    @lazy_property
    def owned_nodes(self) -> tuple[int, int]:
        """The numbers of compute nodes with and without OWNER_NOVA."""
        nodes = [p for p in self.snapshot.providers if p.host]
        with_owner = sum('OWNER_NOVA' in node.traits for node in nodes)
        return with_owner, len(nodes) - with_owner

    def ports(self, server_id: str) -> tuple[Port, ...] | None:
        """Return the ports of a server; None if they were not saved."""
        if server_id not in self._ports:
            return self.snapshot.server(server_id).ports
        return self._ports[server_id]

    @lazy_property
    def _ports(self) -> Mapping[str, tuple[Port, ...] | None]:
        placed = self.snapshot.known_servers.placed
        return {server.id: server.ports for server in placed}

    def segment_aggregates(self, port: Port) -> tuple[frozenset[str], ...]:
        """Return the aggregates of a port's segments, which are providers."""
        providers = {p.uuid: p.aggregates for p in self.snapshot.providers}
        return tuple(
            providers.get(segment, frozenset())
            for segment in port.segments or ()
        )

    def device_groups(
        self, profile: str, owner: str = ''
    ) -> tuple[ResourceGroup, ...]:
        """Raise NotFound: a snapshot has no device profiles."""
        raise errors.NotFound('device profile', profile, self.snapshot.origin)

    def close(self) -> None:
        """Stop the embedded Placement."""
        self._exit.close()
