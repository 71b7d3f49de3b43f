# SPDX-License-Identifier: Apache-2.0
"""What Nova and Placement have of the reservations of Blazar.

Everything here can be repeated: it looks at what there is and does what is
missing. The flavor is made first and deleted last, and its description says
whose the reservation is and whether it is to end.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import datetime
from typing import Any

from novaclient import exceptions as nova_exceptions

from isolate_aggregates import exception
from isolate_aggregates.cloud.nova import NovaClient
from isolate_aggregates.placement import inventories
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.reservations import ending, names, slots
from isolate_aggregates.reservations.blazar import record
from isolate_aggregates.reservations.blazar.connection import Connections
from isolate_aggregates.reservations.record import Reservation, Shape
from isolate_aggregates.reservations.store import ReservationStore


class Backend:
    """Keeps reservations of one Blazar in Nova and Placement.

    :param pool: The name of the aggregate of the hosts for reservations.
    :param database: The id of the database of this Blazar.
    """

    def __init__(
        self, connections: Connections, pool: str, database: str
    ) -> None:
        self.database = database
        self._nova = NovaClient(connections.nova)
        self._placement = PlacementClient(
            connections.placement.adapter('placement')
        )
        self._store = ReservationStore(connections.nova, pool)
        # Blazar may use another kind of endpoint for it than for Nova.
        self._store.placement = self._placement

    def prepare(self, reservation: str, shape: Shape) -> None:
        """See that flavor and resource class are there."""
        extra_specs = {
            **shape.extra_specs,
            f'resources:{names.resource_class(reservation)}': '1',
        }
        found = self._flavor(reservation)
        if found is not None:
            self._own(reservation, found)
        if found is not None and _size(found) != _size_of(shape):
            # A flavor cannot be changed, and nobody may use it yet.
            self._store.compute.delete_record(_stub(reservation))
            found = None
        if found is None:
            found = self._create_flavor(reservation, shape)
        inventories.create_class(
            self._placement, names.resource_class(reservation)
        )
        has = dict(found.extra_specs)
        if any(has.get(key) != value for key, value in extra_specs.items()):
            with self._nova.translated(f'flavor {found.name}'):
                found.set_keys(extra_specs)

    def publish(
        self,
        reservation: str,
        numbers: Mapping[str, int],
        former: Iterable[str] = (),
    ) -> None:
        """Open slots on hosts, and close those on former hosts.

        :param numbers: How many slots it has, by hypervisor hostname.
        :param former: The hypervisor hostnames of hosts that may still have
            slots of it. Slots that have a server stay, closed.
        :raises NotFound: if Placement has no provider of a host.
        """
        # First, so that there are never more open than were reserved.
        for host in sorted(set(former) - set(numbers)):
            provider = self._provider(host)
            if provider:
                self._withdraw(reservation, provider)
        for host, number in sorted(numbers.items()):
            provider = self._provider(host) or self._create_provider(host)
            _put(
                self._placement,
                provider,
                names.resource_class(reservation),
                number,
            )

    def grant(self, reservation: str, project: str) -> None:
        """Let a project use the flavor of a reservation."""
        self._store.compute.grant(_stub(reservation, project))

    def mark_end(self, reservation: str, by: str) -> None:
        """Write down that a reservation is to end, unless it is already.

        :param by: Who or what ends it.
        :raises ReservationError: if it belongs to another Blazar.
        """
        flavor = self._flavor(reservation)
        if flavor is None:
            return
        found = self._own(reservation, flavor)
        if found.end is None:
            end = record.End(by, datetime.datetime.now(datetime.UTC))
            self.write(dataclasses.replace(found, end=end))

    def write(self, found: record.BlazarRecord) -> None:
        """Write what the flavor of a reservation says."""
        with self._nova.translated(
            f'flavor {names.flavor(found.reservation)}'
        ):
            self._nova.client.flavors.update(
                found.reservation, description=found.describe()
            )

    def finish(self, reservation: str, hosts: Iterable[str]) -> str | None:
        """End a reservation as far as it can be at the moment.

        :param hosts: The hypervisor hostnames of its hosts, as far as they
            are known.
        :returns: What is in the way of the rest, which the next call
            completes; None if nothing is left of it.
        """
        known = [self._provider(host) for host in sorted(set(hosts))]
        providers = [provider for provider in known if provider]
        try:
            return ending.finish(self._store, _stub(reservation), providers)
        except exception.ServiceConflict:
            # The class cannot go while any host has slots of it.
            providers = self._providers_with(reservation)
            return ending.finish(self._store, _stub(reservation), providers)

    def records(self) -> list[record.BlazarRecord]:
        """Return what the flavors say of reservations of any Blazar."""
        found = (
            record.parse(one.flavor.id, one.description)
            for one in self._store.compute.records()
        )
        return sorted(
            (one for one in found if one is not None),
            key=lambda one: one.reservation,
        )

    def hosts(self) -> dict[str, dict[str, int]]:
        """Return how many slots are on each host, by id of the reservation.

        Each reservation provider is read, so that this takes its time.
        """
        found: dict[str, dict[str, int]] = {}
        for host, provider in self._providers():
            for name, inventory in self._inventories(provider).items():
                reservation = names.reservation_of(name)
                if reservation is not None:
                    slots_of = found.setdefault(reservation, {})
                    slots_of[host] = inventory['total']
        return found

    def projects(self, reservation: str) -> list[str]:
        """Return the ids of the projects that may use a reservation."""
        return self._store.compute.projects(reservation)

    def servers(self, reservation: str) -> list[str]:
        """Return the ids of the servers of a reservation."""
        return self._store.compute.servers(_stub(reservation))

    def size(self, reservation: str) -> Shape:
        """Return the size of a slot, by the flavor of the reservation.

        :raises NotFound: if it has no flavor.
        """
        found = self._flavor(reservation)
        if found is None:
            raise exception.NotFound('flavor', reservation, 'Nova')
        return Shape(found.vcpus, found.ram, found.disk, found.ephemeral)

    def _flavor(self, reservation: str) -> Any | None:
        with self._nova.translated(f'flavor {names.flavor(reservation)}'):
            try:
                return self._nova.client.flavors.get(reservation)
            except nova_exceptions.NotFound:
                return None

    def _own(self, reservation: str, flavor: Any) -> record.BlazarRecord:
        """Return what a flavor of this Blazar says."""
        found = record.parse(reservation, flavor.description or '')
        if found is None or found.database != self.database:
            raise exception.ReservationError(
                reservation,
                'belongs to another Blazar, by what its flavor says; see '
                'reservation blazar list',
            )
        return found

    def _create_flavor(self, reservation: str, shape: Shape) -> Any:
        with self._nova.translated(f'flavor {names.flavor(reservation)}'):
            return self._nova.client.flavors.create(
                names.flavor(reservation),
                shape.ram,
                shape.vcpus,
                shape.disk,
                flavorid=reservation,
                ephemeral=shape.ephemeral,
                swap=shape.swap,
                is_public=False,
                description=record.BlazarRecord(
                    reservation, self.database
                ).describe(),
            )

    def _provider(self, host: str) -> str | None:
        """Return the uuid of the reservation provider of a host."""
        name = names.provider(host)
        for found in self._placement.resource_providers(name=name):
            return str(found['uuid'])
        return None

    def _create_provider(self, host: str) -> str:
        for root in self._placement.resource_providers(name=host):
            inventories.create_provider(
                self._placement,
                names.provider(host),
                names.provider_uuid(root['uuid']),
                root['uuid'],
            )
        provider = self._provider(host)
        if provider is None:
            raise exception.NotFound('resource provider', host, 'Placement')
        return provider

    def _providers(self) -> list[tuple[str, str]]:
        """Return hypervisor hostname and uuid of reservation providers."""
        everything = self._placement.resource_providers()
        by_uuid = {found['uuid']: found['name'] for found in everything}
        found = []
        for entry in everything:
            host = by_uuid.get(entry['parent_provider_uuid'])
            if host is not None and entry['name'] == names.provider(host):
                found.append((host, entry['uuid']))
        return found

    def _providers_with(self, reservation: str) -> list[str]:
        wanted = names.resource_class(reservation)
        return [
            provider
            for _, provider in self._providers()
            if wanted in self._inventories(provider)
        ]

    def _inventories(self, provider: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the inventories of a provider by resource class."""
        try:
            return inventories.read(self._placement, provider).by_class
        except exception.ServiceNotFound:
            return {}

    def _withdraw(self, reservation: str, provider: str) -> None:
        """Take slots away; those that have a server only close."""
        wanted = names.resource_class(reservation)
        slots.change(self._placement, provider, wanted, slots.closed)
        # Closed as it is, what is used now can only become less.
        try:
            _, used = inventories.usages(self._placement, provider)
        except exception.ServiceNotFound:
            return
        if not used.get(wanted):
            slots.change(self._placement, provider, wanted, slots.gone)


@slots.retried
def _put(
    placement: PlacementClient, provider: str, wanted: str, total: int
) -> None:
    """See that a provider has an inventory of open slots."""
    found = inventories.read(placement, provider)
    before = found.by_class.get(wanted, {})
    after = slots.inventory(total, total)
    if before == after:
        return
    inventories.write(
        placement,
        provider,
        inventories.Inventories(
            found.generation, {**found.by_class, wanted: after}
        ),
    )


def _stub(reservation: str, project: str = '') -> Reservation:
    """Return a reservation that is known by its id; Blazar has the rest."""
    return Reservation(
        id=reservation,
        project=project,
        start=datetime.datetime.min,
        end=None,
        amount=0,
        shape=Shape(0, 0),
    )


def _size(flavor: Any) -> tuple[int, ...]:
    return (
        flavor.vcpus,
        flavor.ram,
        flavor.disk,
        flavor.ephemeral,
        int(flavor.swap or 0),
    )


def _size_of(shape: Shape) -> tuple[int, ...]:
    return (
        shape.vcpus,
        shape.ram,
        shape.disk,
        shape.ephemeral,
        shape.swap,
    )
