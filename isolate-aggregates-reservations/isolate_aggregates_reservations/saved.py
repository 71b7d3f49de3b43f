# SPDX-License-Identifier: Apache-2.0
"""Reads the reservations of a cloud file.

The parts of Nova that reservations read are taken from the snapshot, and those
of Placement from a real Placement that is loaded with it.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
import contextlib
import datetime

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import filter_sets
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_reservations import names
from isolate_aggregates_reservations.compute import Compute, Node
from isolate_aggregates_reservations.store import ReservationStore
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cli import base
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.compute import records
from isolate_aggregates_tools.compute.records import FlavorRecord
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.placement.provider import Provider


@contextlib.contextmanager
def opened(
    app: base.Program, args: argparse.Namespace
) -> Iterator['SavedStore']:
    """Open the reservations of the cloud file that the arguments name.

    :raises CloudFileError: if it cannot be read or is invalid.
    """
    with clouds.opened(app, args) as cloud:
        yield SavedStore(
            cloud,
            app.conf[ia_conf.BLAZAR].aggregate_freepool_name,
            owner_key=app.conf[ia_conf.BLAZAR].blazar_owner,
            pipeline=filter_sets.deciding(app.conf),
        )


class SavedCompute(Compute):
    """What reservations read of Nova, from a snapshot; nothing is written."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def aggregates(self) -> list[Aggregate]:
        """Return all host aggregates."""
        return list(self._snapshot.aggregates)

    def nodes(self) -> list[Node]:
        """Return the compute nodes; up unless their services are known."""
        saved = self._snapshot
        return [
            Node(
                uuid=provider.uuid,
                name=provider.name,
                service=provider.host,
                is_up=provider.host not in saved.down_hosts,
                is_enabled=provider.host not in saved.disabled_hosts,
            )
            for provider in saved.providers
            if provider.host
        ]

    def records(self, with_archives: bool = False) -> list[FlavorRecord]:
        """Return the flavors that hold records of reservations.

        :param with_archives: Ignored, as a file has all archives.
        :raises CloudFileError: if the file has no records but reservations.
        """
        known = self._snapshot.reservations
        if known is not None:
            return list(known.flavors)
        if any(
            flavor.name == records.NAME + flavor.id
            for flavor in self._snapshot.flavors
        ):
            raise tools_errors.CloudFileError(
                self._snapshot.origin,
                of_file='has flavors of reservations but not their records; '
                'save it again',
            )
        return []

    def record(self, flavor_id: str) -> FlavorRecord | None:
        """Return a flavor that holds a record; None if there is none."""
        return self._by_id.get(flavor_id)

    @lazy_property
    def _by_id(self) -> Mapping[str, FlavorRecord]:
        return {each.flavor.id: each for each in self.records()}

    def projects(self, flavor_id: str) -> list[str]:
        """Return the ids of the projects that may use a flavor."""
        known = self.record(flavor_id)
        return sorted(known.flavor.projects) if known else []

    def servers_of(
        self,
        flavor_id: str,
        service: str | None = None,
        all_projects: bool = True,
    ) -> list[str]:
        """Return the ids of the servers that use a flavor.

        :raises CloudFileError: if the servers were left out of the file.
        """
        return [
            server.id
            for server in self._snapshot.known_servers.placed
            if _uses(server, flavor_id) and service in (None, server.host)
        ]

    def has_server(self, server: str) -> bool:
        """Return whether there is a server with an id."""
        placed = self._snapshot.known_servers.placed
        return any(each.id == server for each in placed)


def _uses(server: Server, flavor_id: str) -> bool:
    # Nova shows the flavor of a server without its id.
    flavor = server.flavor
    return flavor is not None and flavor.name == names.flavor(flavor_id)


class SavedStore(ReservationStore):
    """The reservations of a cloud file, which can only be read.

    :param cloud: The cloud of the file, to be closed by the caller.
    """

    def __init__(
        self,
        cloud: Cloud,
        pool: str,
        owner_key: str,
        pipeline: Pipeline,
    ) -> None:
        self._cloud = cloud
        self._snapshot = cloud.snapshot
        self._keep(
            SavedCompute(cloud.snapshot),
            cloud.placement,
            pool,
            owner_key,
            pipeline,
        )

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id of a project; the argument if names are unknown."""
        return self._cloud.project(name, domain)

    @property
    def read_at(self) -> datetime.datetime | None:
        """When the records were read; None if there are none."""
        known = self._snapshot.reservations
        return known.read_at if known else None

    # A cloud file has what is used of a provider, but not by which consumer.

    def ordinary_usage(
        self, source: str, provider: str | None
    ) -> Mapping[str, int]:
        """Return what is used beyond what servers in slots need."""
        return self._beyond_slots[source]

    def ordinary_consumers(
        self, source: str, provider: str | None
    ) -> set[str]:
        """Return the servers on the host without a slot."""
        if not self._beyond_slots[source]:
            return set()
        slots = self._slots_on(provider)
        return {
            server.id
            for server in self._servers_on(source)
            if not any(_uses(server, reservation) for reservation in slots)
        }

    def holders(self, provider: str, resource_class: str) -> set[str]:
        """Return the servers in slots of a reservation on a host."""
        return {
            server.id
            for server in self._servers_on(provider)
            for reservation in self._slots_on(provider)
            if names.resource_class(reservation) == resource_class
            and _uses(server, reservation)
        }

    @lazy_property
    def _by_uuid(self) -> Mapping[str, Provider]:
        return {each.uuid: each for each in self._snapshot.providers}

    def _root(self, provider: Provider) -> Provider:
        while provider.parent:
            provider = self._by_uuid[provider.parent]
        return provider

    def _servers_on(self, provider: str) -> Iterable[Server]:
        host = self._root(self._by_uuid[provider]).host
        return self._snapshot.known_servers.by_host.get(host or '', ())

    def _slots_on(self, provider: str | None) -> Mapping[str, int]:
        """Return the slots that are in use, by id of their reservation."""
        found = {}
        if provider is not None:
            for name, used in self._by_uuid[provider].usages.items():
                reservation = names.reservation_of(name)
                if reservation and used:
                    found[reservation] = used
        return found

    @lazy_property
    def _beyond_slots(self) -> Mapping[str, Mapping[str, int]]:
        """What servers without a slot use, by uuid of the provider."""
        known = self.records()
        needs = {**known.foreign_needs, **known.needs}
        trees: dict[str, list[Provider]] = {}
        for provider in self._snapshot.providers:
            trees.setdefault(self._root(provider).uuid, []).append(provider)
        return dict(
            usage
            for tree in trees.values()
            for usage in self._ordinary_in(tree, needs)
        )

    def _ordinary_in(
        self, tree: Iterable[Provider], needs: Mapping[str, Mapping[str, int]]
    ) -> Iterator[tuple[str, Mapping[str, int]]]:
        tree = list(tree)
        in_slots: dict[str, int] = {}
        for provider in tree:
            for reservation, used in self._slots_on(provider.uuid).items():
                for name, amount in needs.get(reservation, {}).items():
                    in_slots[name] = in_slots.get(name, 0) + used * amount
        for provider in tree:
            left = {}
            for name, used in provider.usages.items():
                if names.reservation_of(name):
                    continue
                taken = min(used, in_slots.get(name, 0))
                in_slots[name] = in_slots.get(name, 0) - taken
                if used > taken:
                    left[name] = used - taken
            yield provider.uuid, left
