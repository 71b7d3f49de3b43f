# SPDX-License-Identifier: Apache-2.0
"""Stores Blazar's reservations in Nova and Placement.

All operations are idempotent: they read the current state and do what is
missing. The flavor is created first and deleted last. Its description records
to which Blazar the reservation belongs and whether it is to end.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import datetime
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.placement import inventories
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.request import Flavor
from isolate_aggregates.reservations import ending, names, slots
from isolate_aggregates.reservations.blazar.connection import Connections
from isolate_aggregates.reservations.blazar.record import (
    BlazarRecord,
    End,
    parse,
)
from isolate_aggregates.reservations.conflicts import retried
from isolate_aggregates.reservations.record import Record
from isolate_aggregates.reservations.reservation import Reservation, Shape
from isolate_aggregates.reservations.store import ReservationStore


class Backend:
    """The reservations of one Blazar in Nova and Placement.

    :param pool: The name of the aggregate of the hosts for reservations.
    :param database: The id of the database of this Blazar.
    """

    def __init__(
        self, connections: Connections, pool: str, database: str
    ) -> None:
        self.database = database
        self._placement = PlacementClient(
            connections.placement.adapter('placement')
        )
        self._store = ReservationStore(connections.nova, pool)
        # Blazar may use another endpoint type for Placement than for Nova.
        self._store.placement = self._placement
        self._nova = self._store.compute

    def prepare(self, reservation: str, shape: Shape) -> None:
        """Create flavor and resource class, unless they exist.

        :raises ReservationError: if the reservation belongs to another Blazar,
            or has ended.
        """
        resource_class = names.resource_class(reservation)
        extra_specs = {**shape.extra_specs, f'resources:{resource_class}': '1'}
        found = self._nova.record(reservation)
        if found is not None:
            if self._own(found).end is not None:
                raise exception.ReservationError(
                    reservation, 'has already been ended'
                )
            if _size(Shape.like(found.flavor)) != _size(shape):
                # A flavor cannot be resized. No project has access to it yet,
                # so it can be replaced.
                self._nova.delete_flavor(reservation)
                found = None
        if found is None:
            description = BlazarRecord(reservation, self.database).describe()
            self._nova.create_flavor(reservation, shape, description)
        inventories.create_class(self._placement, resource_class)
        has = found.flavor.extra_specs if found else {}
        if any(has.get(key) != value for key, value in extra_specs.items()):
            flavor = Flavor(name=names.flavor(reservation), id=reservation)
            self._nova.set_extra_specs(flavor, extra_specs)

    def publish(
        self,
        reservation: str,
        numbers: Mapping[str, int],
        former: Iterable[str] = (),
    ) -> dict[str, int]:
        """Open slots on hosts, and remove those on former hosts.

        :param numbers: The number of slots by hypervisor hostname.
        :param former: The hypervisor hostnames of hosts that may still have
            slots. Slots with a server remain there, closed.
        :returns: The number of slots that remain on each former host in
            addition to ``numbers``.
        :raises NotFound: if Placement has no provider of a host.
        """
        former = set(former)
        stay = dict.fromkeys(former, 0)
        # Remove first, so that never more slots are open than reserved.
        for host in sorted(former - set(numbers)):
            provider = self._provider(host)
            if provider:
                stay[host] = self._withdraw(reservation, provider)
        for host, number in sorted(numbers.items()):
            provider = self._provider(host) or self._create_provider(host)
            _put(
                self._placement,
                provider,
                names.resource_class(reservation),
                number,
            )
            if host in former:
                used = self._used(reservation, provider)
                stay[host] = max(0, used - number)
        return stay

    def grant(self, reservation: str, project: str) -> None:
        """Give a project access to the flavor of a reservation."""
        self._nova.grant(reservation, project)

    def mark_end(self, reservation: str, by: str) -> None:
        """Record that a reservation is to end, unless that is recorded.

        :param by: The user or event that ends it.
        :raises ReservationError: if it belongs to another Blazar.
        """
        flavor = self._nova.record(reservation)
        if flavor is None:
            return
        found = self._own(flavor)
        if found.end is None:
            end = End(by, datetime.datetime.now(datetime.UTC))
            self.write(dataclasses.replace(found, end=end))

    def write(self, found: BlazarRecord) -> None:
        """Write a record into the flavor of its reservation."""
        self._nova.describe_flavor(found.reservation, found.describe())

    def finish(self, reservation: str, hosts: Iterable[str]) -> str | None:
        """End a reservation as far as possible now; call again for the rest.

        :param hosts: The hypervisor hostnames of its known hosts.
        :returns: What has to finish first, as a sentence; None if nothing is
            left.
        """
        known = [self._provider(host) for host in sorted(set(hosts))]
        providers = [provider for provider in known if provider]
        try:
            waiting = ending.finish(self._store, reservation, providers)
        except exception.ServiceConflict:
            # The class cannot be deleted while any host has slots.
            providers = self._providers_with(reservation)
            waiting = ending.finish(self._store, reservation, providers)
        if waiting is None:
            self._nova.delete_flavor(reservation)
        return waiting

    def records(self) -> list[BlazarRecord]:
        """Return the records of all Blazars' reservations."""
        found = map(parse, self._nova.records())
        return sorted(
            (one for one in found if one is not None),
            key=lambda one: one.reservation,
        )

    def without_blazar(self, reservation: str) -> Reservation | None:
        """Return a reservation that is kept without Blazar.

        :raises ReservationError: if its record cannot be read.
        """
        observed = self._store.read()
        if reservation in observed.records.problems:
            raise observed.records.problems[reservation]
        return observed.records.reservations.get(reservation)

    def forget_record(self, made: Reservation) -> None:
        """Remove what a flavor has only because it was kept without Blazar."""
        # Hosts that are added to Blazar later do not have the trait.
        self._nova.unset_extra_spec(made.flavor, names.TRAIT_KEY)
        if made.revision:
            revision = names.Revision(made.id, made.incarnation, made.revision)
            self._nova.delete_flavor(revision.flavor_id)

    def hosts(self) -> dict[str, dict[str, int]]:
        """Return the number of slots by reservation id and host.

        This is slow, as it reads every reservation provider.
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
        """Return the ids of the projects with access to a reservation."""
        return self._nova.projects(reservation)

    def servers(self, reservation: str) -> list[str]:
        """Return the ids of the servers of a reservation."""
        return self._nova.servers_of(reservation)

    def shape(self, reservation: str) -> Shape:
        """Return the size of a slot, from the flavor of the reservation.

        :raises NotFound: if it has no flavor.
        """
        found = self._nova.record(reservation)
        if found is None:
            raise exception.NotFound('flavor', reservation, 'Nova')
        return Shape.like(found.flavor)

    def _own(self, flavor: Record) -> BlazarRecord:
        """Parse a flavor of this Blazar.

        :raises ReservationError: if it belongs to another Blazar.
        """
        found = parse(flavor)
        if found is None or found.database != self.database:
            raise exception.ReservationError(
                flavor.flavor.id,
                'belongs to another Blazar according to its flavor; see '
                'reservation blazar list',
            )
        return found

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
        """Return hypervisor hostname and uuid of all reservation providers."""
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

    def _withdraw(self, reservation: str, provider: str) -> int:
        """Remove slots; those with a server are only closed.

        :returns: The number of slots with a server.
        """
        wanted = names.resource_class(reservation)
        slots.change(self._placement, provider, wanted, slots.closed)
        # With the slots closed, the usage can only decrease from here.
        used = self._used(reservation, provider)
        if not used:
            slots.change(self._placement, provider, wanted, slots.gone)
        return used

    def _used(self, reservation: str, provider: str) -> int:
        """Return the number of slots with a server."""
        try:
            _, used = inventories.usages(self._placement, provider)
        except exception.ServiceNotFound:
            return 0
        return used.get(names.resource_class(reservation), 0)


@retried
def _put(
    placement: PlacementClient, provider: str, wanted: str, total: int
) -> None:
    """Give a provider an inventory of open slots, unless it has it."""
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


def _size(shape: Shape) -> tuple[int, ...]:
    """Return the size of a slot as far as Blazar's database has it.

    If Blazar adopted the reservation, only its flavor tells how much of the
    disk is ephemeral, and the swap.
    """
    return shape.vcpus, shape.ram, shape.disk + shape.ephemeral
