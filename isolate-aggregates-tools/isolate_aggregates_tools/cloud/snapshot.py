# SPDX-License-Identifier: Apache-2.0
"""The state of a cloud, as plain values."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
import dataclasses
from typing import Any, TypeVar

import os_resource_classes as orc
import os_traits

from isolate_aggregates.aggregates import Aggregate, AggregateIndex, tags
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import ComputeHost, Flavor, Image
from isolate_aggregates.suggestions import meant
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.compute.records import ReservationRecords
from isolate_aggregates_tools.compute.servers import (
    ComputeService,
    Server,
    Servers,
)
from isolate_aggregates_tools.domains import Keystone
from isolate_aggregates_tools.mirrored.compute_services import (
    CloudIndex,
    enabled_hosts,
)
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.simulator.index import ProviderIndex

_T = TypeVar('_T', Flavor, Image, Server)


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """All data that determines which hosts a request may use.

    :param origin: The source of the data, for messages.
    :param providers: All resource providers; parents before children.
    :param settings: Scheduler settings of the cloud, by ``(group, option)``.
    :param placement_aggregates: The names of aggregates that exist only in
        Placement, by uuid.
    :param traits: Further traits that exist, which no provider has.
    :param resource_classes: Further custom resource classes, of which no
        provider has an inventory.
    :param domains: The projects of domains that aggregates are reserved for,
        by id; None if a domain does not exist. A cloud file may not have all.
    :param servers: The servers of all projects; None if they were left out.
    :param services: The compute services; None if unknown.
    :param keystone: The names of projects and domains; None if unknown.
    :param reservations: The records of reservations; None if unknown.
    """

    origin: str
    aggregates: tuple[Aggregate, ...] = ()
    providers: tuple[Provider, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    images: tuple[Image, ...] = ()
    settings: Mapping[tuple[str, str], object] = dataclasses.field(
        default_factory=dict
    )
    placement_aggregates: Mapping[str, str] = dataclasses.field(
        default_factory=dict
    )
    traits: frozenset[str] = frozenset()
    resource_classes: frozenset[str] = frozenset()
    domains: Mapping[str, frozenset[str] | None] = dataclasses.field(
        default_factory=dict
    )
    servers: Servers | None = None
    services: tuple[ComputeService, ...] | None = None
    keystone: Keystone | None = None
    reservations: ReservationRecords | None = None

    @lazy_property
    def index(self) -> AggregateIndex:
        services, providers = self.services, self.providers
        # Neither keeps the snapshot: it is large, and would be in a cycle.
        return CloudIndex(
            self.aggregates,
            lambda: _dropped_services(services or (), providers),
            lambda: enabled_hosts(
                (
                    (node.host, not _is_disabled(node))
                    for node in providers
                    if node.host
                ),
                services or (),
            ),
        )

    @lazy_property
    def _provider_index(self) -> ProviderIndex:
        return ProviderIndex(self.providers)

    @lazy_property
    def _empty_index(self) -> ProviderIndex:
        return ProviderIndex(self.providers, in_use=False)

    @lazy_property
    def remembered(self) -> dict[Hashable, Any]:
        """What was computed for it, by a key that others do not use."""
        return {}

    def places(self, field: str) -> Mapping[str, Sequence[int]]:
        """Return the places of the objects in a list, by their key."""
        found: dict[str, list[int]] | None = self.remembered.get(field)
        if found is None:
            found = self.remembered[field] = {}
            for place, thing in enumerate(getattr(self, field)):
                found.setdefault(key_of(thing), []).append(place)
        return found

    @lazy_property
    def disabled_hosts(self) -> frozenset[str]:
        """The hosts whose compute service is disabled.

        nova-compute reports the trait, so it is late while the service is
        down.
        """
        return frozenset(
            node.host
            for node in self.providers
            if node.host and _is_disabled(node)
        ).union(s.host for s in self.services or () if not s.is_enabled)

    @property
    def spare_hosts(self) -> frozenset[str]:
        """The disabled hosts that wait for another one to fail."""
        return frozenset(s.host for s in self.services or () if s.is_spare)

    @lazy_property
    def down_hosts(self) -> frozenset[str]:
        """The hosts whose compute service is known to be down."""
        return frozenset(s.host for s in self.services or () if not s.is_up)

    @lazy_property
    def cells(self) -> Mapping[str, str]:
        """The cells of the hosts whose cell is known."""
        return {s.host: s.cell for s in self.services or () if s.cell}

    @lazy_property
    def required_by(self) -> Mapping[str, tuple[Aggregate, ...]]:
        """The aggregates that require each trait."""
        aggregates: dict[str, list[Aggregate]] = {}
        for aggregate in self.aggregates:
            for trait in sorted(tags.required_traits(aggregate)):
                aggregates.setdefault(trait, []).append(aggregate)
        return {trait: tuple(members) for trait, members in aggregates.items()}

    @lazy_property
    def provider_traits(self) -> frozenset[str]:
        """All traits that at least one provider has."""
        return frozenset().union(*(p.traits for p in self.providers))

    @lazy_property
    def all_traits(self) -> frozenset[str]:
        """All traits that exist, including the standard traits."""
        return self.traits.union(tags.standard_traits(), self.provider_traits)

    @lazy_property
    def all_resource_classes(self) -> frozenset[str]:
        """All resource classes that exist, including the standard ones."""
        return self.resource_classes.union(
            orc.STANDARDS, *(p.inventories for p in self.providers)
        )

    def flavor(self, name: str) -> Flavor:
        """Return the flavor with an id or, if there is none, a name."""
        return self._find('flavor', name, self.flavors)

    def image(self, name: str) -> Image:
        """Return the image with an id or, if there is none, a name."""
        return self._find('image', name, self.images)

    def server(self, name: str) -> Server:
        """Return the server with an id or, if there is none, a name."""
        return self._find('server', name, self.known_servers.placed)

    @property
    def known_servers(self) -> Servers:
        """The servers.

        :raises CloudFileError: if they were left out.
        """
        if self.servers is None:
            raise errors.CloudFileError(
                self.origin,
                of_file='has no servers; save it again without --no-servers',
            )
        return self.servers

    def requested_host(self, name: str) -> ComputeHost:
        """Return a host with its compute nodes; no nodes if it is unknown."""
        return compute_host(
            name,
            [(p.uuid, p.host, p.name) for p in self.providers if p.host],
        )

    def _find(self, kind: str, name: str, things: tuple[_T, ...]) -> _T:
        matches = [thing for thing in things if thing.id == name] or [
            thing for thing in things if thing.name == name
        ]
        if not matches:
            names = [thing.name for thing in things]
            raise errors.NotFound(kind, name, self.origin, names)
        if len(matches) > 1:
            raise errors.NotUnique(kind, name, [t.id for t in matches])
        return matches[0]


def key_of(thing: Any) -> str:
    """Return the id of an object or, if it has none, its name."""
    if isinstance(thing, Provider):
        return thing.uuid
    return thing.name if thing.id in (None, '') else str(thing.id)


def _dropped_services(
    services: Iterable[ComputeService], providers: Iterable[Provider]
) -> Iterator[ComputeService]:
    """Yield the services, but what Placement knows of them already."""
    nodes = [provider for provider in providers if provider.host]
    known = {node.host for node in nodes if _is_disabled(node)} - {
        node.host for node in nodes if not _is_disabled(node)
    }
    for service in services:
        if service.host in known:
            yield dataclasses.replace(service, is_enabled=True)
        else:
            yield service


def provider_index(snapshot: Snapshot, in_use: bool = True) -> ProviderIndex:
    """Return the providers, indexed for queries; not to be changed.

    :param in_use: Whether what is in use counts, or nothing is in use.
    """
    return snapshot._provider_index if in_use else snapshot._empty_index


def _is_disabled(node: Provider) -> bool:
    return os_traits.COMPUTE_STATUS_DISABLED in node.traits


def compute_host(
    name: str, nodes: Iterable[tuple[str, str, str]]
) -> ComputeHost:
    """Return a host with its compute nodes; no nodes if it is unknown.

    :param nodes: The uuid, compute service and name of each compute node.
    """
    nodes = tuple(nodes)
    uuids = [uuid for uuid, host, _ in nodes if host == name] or [
        uuid for uuid, _, node in nodes if node == name
    ]
    if uuids:
        return ComputeHost(name, tuple(uuids))
    names = {each for _, host, node in nodes for each in (host, node)}
    return ComputeHost(name, suggestion=meant(name, sorted(names)))
