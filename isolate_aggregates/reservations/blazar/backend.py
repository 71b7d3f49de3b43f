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
from isolate_aggregates.request import Flavor
from isolate_aggregates.reservations import ending, errors, names, slots
from isolate_aggregates.reservations.blazar.connection import Connections
from isolate_aggregates.reservations.blazar.record import (
    BlazarRecord,
    End,
    parse,
)
from isolate_aggregates.reservations.record import FlavorRecord
from isolate_aggregates.reservations.reservation import Shape
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.tools.placement import inventories
from isolate_aggregates.tools.placement.client import PlacementClient


class Backend:
    """The reservations of one Blazar in Nova and Placement.

    Methods raise ReservationError for a reservation of another Blazar.
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

    def prepare(
        self, reservation: str, shape: Shape, until: datetime.datetime
    ) -> None:
        """Create flavor and resource class, unless they exist.

        :param until: The end of the lease, for a new flavor. That of an
            existing one changes with :meth:`agree` only.
        :raises ReservationError: also if it has ended.
        """
        resource_class = names.resource_class(reservation)
        extra_specs = {**shape.extra_specs, f'resources:{resource_class}': '1'}
        record = self._nova.record(reservation)
        if record is not None:
            if self._own(record).end is not None:
                raise errors.ReservationError(
                    reservation, 'has already been ended'
                )
            size = Shape.like(record.flavor)
            if (
                dataclasses.replace(size, extra_specs=shape.extra_specs)
                != shape
            ):
                # A flavor cannot be resized. No project has access to it yet,
                # so it can be replaced.
                until = self._own(record).until or until
                self._nova.delete_flavor(reservation)
                record = None
        if record is None:
            mark = BlazarRecord(reservation, self.database, until=until)
            self._nova.create_flavor(reservation, shape, mark.describe())
        inventories.create_class(self._placement, resource_class)
        has = record.flavor.extra_specs if record else {}
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
            slots.put(
                self._placement,
                provider,
                names.resource_class(reservation),
                slots.opened(number),
            )
            if host in former:
                used = self._used(reservation, provider)
                stay[host] = max(0, used - number)
        return stay

    def grant(self, reservation: str, project: str) -> None:
        """Give a project access to the flavor of a reservation."""
        self._nova.grant(reservation, project)

    def mark_end(self, reservation: str, by: str) -> None:
        """Record that a reservation is to end, unless that is recorded."""
        record = self._nova.record(reservation)
        if record is None:
            return
        mark = self._own(record)
        if mark.end is None:
            end = End(by, datetime.datetime.now(datetime.UTC))
            self.write(dataclasses.replace(mark, end=end))

    def agree(self, reservation: str, until: datetime.datetime) -> None:
        """Record a new end of the lease of a reservation."""
        record = self._nova.record(reservation)
        if record is not None:
            mark = self._own(record)
            if mark.until != until:
                self.write(dataclasses.replace(mark, until=until))

    def until(self, reservation: str) -> datetime.datetime | None:
        """Return when the lease of a reservation ends, as agreed last.

        :returns: None if it is to end already, or nothing is recorded.
        """
        record = self._nova.record(reservation)
        if record is None:
            return None
        mark = self._own(record)
        return None if mark.end else mark.until

    def write(self, mark: BlazarRecord) -> None:
        """Write a record into the flavor of its reservation."""
        self._nova.describe_flavor(mark.reservation, mark.describe())

    def finish(self, reservation: str, hosts: Iterable[str]) -> str | None:
        """End a reservation as far as possible now; call again for the rest.

        :param hosts: The hypervisor hostnames of its known hosts.
        :returns: What has to finish first, as a sentence; None if nothing is
            left.
        """
        by_host = [self._provider(host) for host in sorted(set(hosts))]
        providers = [provider for provider in by_host if provider]
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
        marks = map(parse, self._nova.records())
        return sorted(
            (mark for mark in marks if mark is not None),
            key=lambda mark: mark.reservation,
        )

    def hosts(self) -> dict[str, dict[str, int]]:
        """Return the number of slots by reservation id and host.

        This is slow, as it reads every reservation provider.
        """
        by_reservation: dict[str, dict[str, int]] = {}
        for host, provider in self._providers():
            for name, inventory in self._inventories(provider).items():
                reservation = names.reservation_of(name)
                if reservation is not None:
                    slots_of = by_reservation.setdefault(reservation, {})
                    slots_of[host] = inventory['total']
        return by_reservation

    def _own(self, record: FlavorRecord) -> BlazarRecord:
        """Parse a flavor of this Blazar.

        :raises ReservationError: if it belongs to another Blazar.
        """
        mark = parse(record)
        if mark is None or mark.database != self.database:
            raise errors.ReservationError(
                record.flavor.id,
                'belongs to another Blazar according to its flavor',
            )
        return mark

    def _provider(self, host: str) -> str | None:
        """Return the uuid of the reservation provider of a host."""
        name = names.provider(host)
        for entry in self._placement.resource_providers(name=name):
            return str(entry['uuid'])
        # It has the former name of a host that was renamed.
        for root in self._placement.resource_providers(name=host):
            for entry in self._placement.resource_providers(
                in_tree=root['uuid']
            ):
                if entry['parent_provider_uuid'] == root[
                    'uuid'
                ] and names.is_provider(entry['name']):
                    return str(entry['uuid'])
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
        by_uuid = {entry['uuid']: entry['name'] for entry in everything}
        providers = []
        for entry in everything:
            host = by_uuid.get(entry['parent_provider_uuid'])
            if host is not None and names.is_provider(entry['name']):
                providers.append((host, entry['uuid']))
        return providers

    def _providers_with(self, reservation: str) -> list[str]:
        resource_class = names.resource_class(reservation)
        return [
            provider
            for _, provider in self._providers()
            if resource_class in self._inventories(provider)
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
        resource_class = names.resource_class(reservation)
        slots.change(self._placement, provider, resource_class, slots.closed)
        # With the slots closed, the usage can only decrease from here.
        used = self._used(reservation, provider)
        if not used:
            slots.change(self._placement, provider, resource_class, slots.gone)
        return used

    def _used(self, reservation: str, provider: str) -> int:
        """Return the number of slots with a server."""
        try:
            _, used = inventories.usages(self._placement, provider)
        except exception.ServiceNotFound:
            return 0
        return used.get(names.resource_class(reservation), 0)
