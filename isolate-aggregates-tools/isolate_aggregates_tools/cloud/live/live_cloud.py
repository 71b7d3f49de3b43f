# SPDX-License-Identifier: Apache-2.0
"""A live cloud, read through its APIs."""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, sources
from isolate_aggregates.aggregates.rollups import rollups
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import ComputeHost, Flavor, Image
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_tools import domains as tools_domains
from isolate_aggregates_tools import errors, marks
from isolate_aggregates_tools.cloud.cloud import Survey, Track, untracked
from isolate_aggregates_tools.cloud.live import memberships, snapshots
from isolate_aggregates_tools.cloud.live.cyborg import CyborgClient
from isolate_aggregates_tools.cloud.live.glance import GlanceClient
from isolate_aggregates_tools.cloud.live.neutron import NeutronClient
from isolate_aggregates_tools.cloud.live.provider_memory import ProviderMemory
from isolate_aggregates_tools.cloud.snapshot import Snapshot, compute_host
from isolate_aggregates_tools.compute.client import NovaClient
from isolate_aggregates_tools.compute.servers import (
    ComputeService,
    Port,
    Server,
    Servers,
    may_have_shares,
)
from isolate_aggregates_tools.identity import Domain, KeystoneClient
from isolate_aggregates_tools.mirrored.compute_services import (
    CloudIndex,
    enabled_hosts,
)
from isolate_aggregates_tools.placement import edits
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.provider import Below, Provider
from isolate_aggregates_tools.request import ResourceGroup

if TYPE_CHECKING:
    from isolate_aggregates_tools.cloud.live.memory_file import MemoryFile

# The aggregate source that works only inside nova-scheduler.
_IN_SCHEDULER = 'nova'
_OWNER = 'OWNER_NOVA'


class LiveCloud:
    """A live :class:`~isolate_aggregates_tools.cloud.cloud.Cloud`.

    :param connect: Returns the connection to the cloud; called once, on first
        use.
    :param memory: What is known of its resource providers from earlier rounds
        of a service; it learns.
    :param remembers: Whether to use what earlier commands have read of them,
        unless it is switched off.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        connect: Callable[[], Connection],
        memory: ProviderMemory | None = None,
        remembers: bool = False,
    ) -> None:
        self._conf = conf
        self._connect = connect
        self._given_memory = memory
        self._remembers = remembers
        self._file: MemoryFile | None = None
        # Those that were read last; None if none were.
        self._aggregates: Sequence[Aggregate] | None = None

    @lazy_property
    def connection(self) -> Connection:
        """The connection to the cloud."""
        return self._connect()

    @lazy_property
    def nova(self) -> NovaClient:
        """Nova."""
        return NovaClient(self.connection)

    @lazy_property
    def glance(self) -> GlanceClient:
        """Glance."""
        return GlanceClient(self.connection)

    @lazy_property
    def neutron(self) -> NeutronClient:
        """Neutron."""
        return NeutronClient(self.connection)

    @lazy_property
    def placement(self) -> PlacementClient:
        """Placement."""
        return PlacementClient.of(self.connection)

    @lazy_property
    def _memory(self) -> ProviderMemory | None:
        if not (
            self._remembers and self._conf[ia_conf.GROUP].remember_providers
        ):
            return self._given_memory
        # Loaded only by commands that change nothing.
        from isolate_aggregates_tools.cloud.live.memory_file import MemoryFile

        self._file = MemoryFile.of(self.connection, self.placement.endpoint)
        return self._file.load()

    @lazy_property
    def index(self) -> AggregateIndex:
        """All host aggregates, from the configured source."""
        name = self._conf[ia_conf.GROUP].aggregate_source
        if name == _IN_SCHEDULER:
            # With the nova.conf of a scheduler: commands use the API, not the
            # database.
            name = 'novaclient'
        source = sources.load(self._conf, lambda: self.connection, name)
        return CloudIndex(
            source.aggregates(),
            lambda: self.services,
            lambda: enabled_hosts(
                ((host, True) for host in self.compute_nodes.values()),
                self.services,
            ),
        )

    @lazy_property
    def provider_names(self) -> Mapping[str, str]:
        """The names of all resource providers, by uuid."""
        return {
            provider['uuid']: provider['name']
            for provider in self.placement.resource_providers()
        }

    @lazy_property
    def compute_nodes(self) -> Mapping[str, str]:
        """The names of the compute services, by compute node uuid."""
        return {n.uuid: n.host for n in self.nova.compute_nodes() or ()}

    # Where aggregates are looked up, for messages.
    where = 'Nova'

    @property
    def own_project(self) -> str | None:
        """The id of the project that the credentials are for."""
        project: str | None = self.connection.session.get_project_id()
        return project

    @lazy_property
    def services(self) -> tuple[ComputeService, ...]:
        """The compute services."""
        return self.nova.compute_services()

    @lazy_property
    def snapshot(self) -> Snapshot:
        """The aggregates and resource providers."""
        names = snapshots.Names.read(self.placement)
        return self._places(
            self._deciding(self.index, names.traits), None, names
        )

    def snapshot_for(
        self,
        aggregates: Collection[str],
        amounts: Mapping[str, Collection[int]] | None,
    ) -> Snapshot:
        """Return the same, as far as it decides about a request."""
        return self._places(aggregates, amounts)

    def _places(
        self,
        aggregates: Collection[str],
        amounts: Mapping[str, Collection[int]] | None,
        names: snapshots.Names | None = None,
    ) -> Snapshot:
        return dataclasses.replace(
            snapshots.take_places(
                self.index,
                self.nova,
                self.placement,
                memory=self._memory,
                members_of=aggregates,
                amounts=amounts,
                names=names,
            ),
            services=self.services,
        )

    @lazy_property
    def capacities(self) -> Snapshot:
        """The aggregates, and what a few calls tell of the providers."""
        return Snapshot(
            origin='live cloud',
            aggregates=tuple(self.index),
            providers=snapshots.take_capacities(self.nova, self.placement),
            services=self.services,
        )

    @lazy_property
    def flavors(self) -> tuple[Flavor, ...]:
        """All flavors, including private ones."""
        return tuple(self.nova.flavors())

    @lazy_property
    def images(self) -> tuple[Image, ...]:
        """All images that are visible to the user."""
        return tuple(self.glance.images())

    def aggregates(self) -> list[Aggregate]:
        """Return all host aggregates in Nova now.

        The option ``[isolate_aggregates] aggregate_source`` is ignored.
        """
        self._aggregates = found = self.nova.aggregates()
        return found

    def roots(self, track: Track = untracked) -> tuple[Provider, ...]:
        """Return the root resource providers, without their inventories."""
        return snapshots.take_roots(
            self.nova,
            self.placement,
            track,
            self._memory,
            None
            if self._aggregates is None
            else self._deciding(
                AggregateIndex(self._aggregates), self.traits()
            ),
        )

    def _deciding(
        self, index: AggregateIndex, traits: Iterable[str]
    ) -> frozenset[str]:
        """Return the uuids of the aggregates that requests can name.

        :param traits: All traits in Placement.
        """
        locks = Pipeline(loading.load(self._conf)).locks(index)
        return marks.marked_rollups(traits).union(
            (aggregate.uuid for aggregate in index),
            (rollup.uuid for rollup in rollups(locks)),
        )

    def traits(self) -> frozenset[str]:
        """Return all traits in Placement."""
        return edits.known_traits(self.placement)

    def holders_below(self, traits: Iterable[str]) -> Below:
        """Return the child and sharing providers that have some traits."""
        return edits.holders_below(self.placement, traits)

    def survey(
        self, servers: bool = False, track: Track = untracked
    ) -> Survey:
        """Read everything that an audit needs; fail if a part is missing.

        An incomplete audit could report no problems where there are some.
        """
        aggregates = self.aggregates()
        names = snapshots.Names.read(self.placement)
        snapshot = snapshots.take(
            aggregates,
            self.nova,
            self.glance,
            self.placement,
            track=track,
            memory=self._memory,
            members_of=self._deciding(
                AggregateIndex(aggregates), names.traits
            ),
            names=names,
        )
        snapshot = dataclasses.replace(
            snapshot,
            providers=memberships.with_differing(
                self.placement, aggregates, snapshot.providers
            ),
        )
        names = names.seen_in(snapshot.providers)
        named = tools_domains.of_all(snapshot.aggregates)
        return Survey(
            dataclasses.replace(snapshot, domains=self.domain_projects(named)),
            nova=str(self.nova.newest.get_string()),
            placement=self.placement.read('/', _newest),
            traits=names.traits,
            resource_classes=names.classes,
            servers=self.servers(snapshot, track) if servers else None,
            nova_releases=self.nova_releases,
        )

    def servers(self, snapshot: Snapshot, track: Track) -> Servers:
        """Return the servers of all projects, and what belongs to them.

        :param snapshot: What is read already.
        """
        servers = tuple(track(self.nova.servers(), 'servers', None))
        images_by_id = {image.id: image for image in snapshot.images}
        other_ids = _used_images(servers) - images_by_id.keys()
        # Images may be newer than the list.
        for image_id in track(
            iter(sorted(other_ids)), 'images', len(other_ids)
        ):
            try:
                images_by_id[image_id] = self.glance.image(image_id)
            except errors.NotFound:
                continue
        return Servers(
            tuple(self._with_shares(servers, snapshot.providers)),
            images_by_id,
            self.nova.tells_hints,
            self.nova.server_groups(),
        )

    def _with_shares(
        self, servers: Iterable[Server], nodes: Iterable[Provider]
    ) -> Iterator[Server]:
        """Yield servers; of those that may have shares, whether they do.

        Nova lists the shares of one server at a time.
        """
        traits = {each.host: each.traits for each in nodes if each.host}
        for server in servers:
            known: bool | None = None
            if may_have_shares(server, traits.get(server.host or '', ())):
                with contextlib.suppress(exception.ServiceError):
                    known = self.nova.has_shares(server.id)
            yield dataclasses.replace(server, has_shares=known)

    def with_ports(self, servers: Servers) -> Servers:
        """Return servers with their ports, as far as Neutron shows them.

        :raises ServiceError: if Neutron does not.
        """
        ports = self.neutron.all_ports() if servers.placed else {}
        return dataclasses.replace(
            servers,
            placed=tuple(
                dataclasses.replace(
                    server, ports=tuple(ports.get(server.id, ()))
                )
                for server in servers.placed
            ),
        )

    def flavor(self, name: str) -> Flavor:
        """Return a flavor from Nova."""
        return self.nova.flavor(name)

    def image(self, name: str) -> Image:
        """Return an image from Glance."""
        return self.glance.image(name)

    def requested_host(self, name: str) -> ComputeHost:
        """Return a host with its compute nodes.

        If Nova is too old to return the uuids of compute nodes, Placement is
        used: the provider of a compute node has the same name.
        """
        nodes = self.nova.compute_nodes()
        if nodes is None:
            uuids = [
                provider['uuid']
                for provider in self.placement.resource_providers(name=name)
            ]
            return ComputeHost(name, tuple(uuids))
        return compute_host(
            name, [(node.uuid, node.host, node.name) for node in nodes]
        )

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id of a project from Keystone."""
        return KeystoneClient(self.connection).project(name, domain)

    def domain(self, name: str) -> Domain:
        """Return the domain with an id or name from Keystone."""
        return KeystoneClient(self.connection).domain(name)

    def domain_projects(
        self, ids: Iterable[str]
    ) -> dict[str, frozenset[str] | None]:
        """Return the projects of domains from Keystone, by id."""
        known = {
            each: KeystoneClient(self.connection).domain_of_id(each)
            for each in sorted(ids)
        }
        return {
            each: domain.projects if domain else None
            for each, domain in known.items()
        }

    @property
    def nova_releases(self) -> tuple[int, ...]:
        """The possible releases of Nova."""
        return self.nova.releases

    @lazy_property
    def owned_nodes(self) -> tuple[int, int]:
        """The numbers of compute nodes with and without OWNER_NOVA."""
        nodes = self.compute_nodes.keys()
        if _OWNER not in self.traits():
            return 0, len(nodes)
        providers = self.placement.resource_providers(required=[_OWNER])
        having = nodes & {provider['uuid'] for provider in providers}
        return len(having), len(nodes) - len(having)

    def ports(self, server_id: str) -> list[Port]:
        """Return the ports of a server from Neutron."""
        return self.neutron.ports(server_id)

    def segment_aggregates(self, port: Port) -> list[frozenset[str]]:
        """Return the aggregates of a port's segments, which are providers."""
        return [
            self._aggregates_of(segment)
            for segment in self.neutron.segments(port)
        ]

    def _aggregates_of(self, segment: str) -> frozenset[str]:
        try:
            return self.placement.aggregates(segment)
        except exception.ServiceNotFound:
            return frozenset()

    def device_groups(
        self, profile: str, owner: str = ''
    ) -> list[ResourceGroup]:
        """Return the request groups of a device profile, from Cyborg."""
        return CyborgClient(self.connection).groups(profile, owner)

    def server(self, name: str) -> Server:
        """Return the request that a server was created with."""
        return self.nova.server(name)

    def close(self) -> None:
        """Keep what is known of resource providers for the next command.

        Sessions need no closing.
        """
        if self._file and self._memory is not None:
            self._file.save(self._memory)


def _newest(document: Any) -> str:
    """Return the newest microversion that Placement supports."""
    return str(document['versions'][0]['max_version'])


def _used_images(servers: Iterable[Server]) -> set[str]:
    return {server.image_id for server in servers if server.image_id}
