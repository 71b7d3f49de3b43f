# SPDX-License-Identifier: Apache-2.0
"""Stores Blazar's reservations in Nova and Placement.

All operations are idempotent: they read the current state and do what is
missing, by the same actions as the commands. The flavor is created first and
deleted last. Its description records to which Blazar the reservation belongs
and whether it is to end.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import datetime

from isolate_aggregates.request import Flavor
from isolate_aggregates_reservations import errors, names, rounds
from isolate_aggregates_reservations.actions import (
    Action,
    SwitchSlots,
    WriteSlots,
)
from isolate_aggregates_reservations.blazar.record import (
    BlazarRecord,
    End,
    parse,
)
from isolate_aggregates_reservations.blazar.settings import Connections
from isolate_aggregates_reservations.executor import Executor
from isolate_aggregates_reservations.reservation import Shape
from isolate_aggregates_reservations.slots import retried
from isolate_aggregates_reservations.state import HostSlots, ObservedState
from isolate_aggregates_reservations.store import ReservationStore
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.compute.records import FlavorRecord
from isolate_aggregates_tools.placement import inventories
from isolate_aggregates_tools.placement.client import PlacementClient


class Backend:
    """The reservations of one Blazar in Nova and Placement.

    Methods raise ReservationError for a reservation of another Blazar.
    """

    def __init__(
        self, connections: Connections, pool: str, database: str
    ) -> None:
        self.database = database
        self._placement = PlacementClient.of(connections.placement)
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
                    reservation,
                    'has already been ended; delete its lease, and create '
                    'another',
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

    @retried
    def publish(
        self, reservation: str, numbers: Mapping[str, int]
    ) -> dict[str, int]:
        """Open slots on hosts, and remove those on all others.

        Slots with a server remain there, closed.

        :param numbers: The number of slots by hypervisor hostname.
        :returns: The number of slots that remain in addition to ``numbers``,
            by hypervisor hostname, present and former.
        :raises NotFound: if Placement has no provider of a host.
        """
        state = self._read()
        by_name = {}
        for host, number in sorted(numbers.items()):
            if _name(state, host) is None:
                state = self._with_provider(state, host)
            by_name[_name(state, host) or host] = number
        before = state.slots(reservation)
        executor = Executor(self._store, reservation)
        after = state
        for action in publishing(reservation, before, by_name):
            after = executor.carry_out(action, after)
        return {
            known_as: max(0, on.used - by_name.get(name, 0))
            for name, on in before.items()
            for known_as in (name, state.hosts[name].former_name)
        }

    def grant(self, reservation: str, project: str) -> None:
        self._nova.grant(reservation, project)

    def mark_end(self, reservation: str, by: str) -> None:
        """Record that a reservation is to end, unless that is recorded."""
        mark = self._mark(reservation)
        if mark and mark.end is None:
            end = End(by, datetime.datetime.now(datetime.UTC))
            self.write(dataclasses.replace(mark, end=end))

    def agree(self, reservation: str, until: datetime.datetime) -> None:
        mark = self._mark(reservation)
        if mark and mark.until != until:
            self.write(dataclasses.replace(mark, until=until))

    def until(self, reservation: str) -> datetime.datetime | None:
        """Return when the lease of a reservation ends, as agreed last.

        :returns: None if it is to end already, or nothing is recorded.
        """
        mark = self._mark(reservation)
        return mark.until if mark and not mark.end else None

    def write(self, mark: BlazarRecord) -> None:
        self._nova.describe_flavor(mark.reservation, mark.describe())

    def finish(self, reservation: str) -> str | None:
        """End a reservation as far as possible now; call again for the rest.

        :returns: What has to finish first, as a sentence; None if nothing is
            left.
        """
        providers = self._read().slot_providers(reservation)
        executor = Executor(self._store, reservation)
        waiting = executor.finish(providers)
        if waiting is None:
            self._nova.delete_flavor(reservation)
            return None
        return '; '.join([waiting.what, *executor.failed])

    def records(self) -> list[BlazarRecord]:
        marks = map(parse, self._nova.records())
        return sorted(
            (mark for mark in marks if mark is not None),
            key=lambda mark: mark.reservation,
        )

    def has_flavor(self, reservation: str) -> bool:
        return self._nova.record(reservation) is not None

    def slots(self, reservation: str) -> dict[str, int]:
        present = self._read().slots(reservation)
        return {name: on.total for name, on in present.items()}

    def _mark(self, reservation: str) -> BlazarRecord | None:
        record = self._nova.record(reservation)
        return self._own(record) if record else None

    def _own(self, record: FlavorRecord) -> BlazarRecord:
        """Parse a flavor of this Blazar.

        :raises ReservationError: if it belongs to another Blazar.
        """
        mark = parse(record)
        if mark is None or mark.database != self.database:
            raise errors.ReservationError(
                record.flavor.id,
                'belongs to another Blazar according to its flavor; start '
                'this one with the database that it was created with',
            )
        return mark

    def _read(self) -> ObservedState:
        """Read the state, and let all hosts be in one answer the next time."""
        state = self._store.read()
        rounds.mark_hosts(self._store, state)
        return state

    def _with_provider(self, state: ObservedState, host: str) -> ObservedState:
        """Create the reservation provider of a host; read the state again."""
        root = state.providers.get(host)
        if root is None:
            raise tools_errors.NotFound(
                'resource provider',
                host,
                'Placement',
                advice='it is there once its nova-compute runs; see '
                f'{shell.Kind.SERVICE_LIST}',
            )
        inventories.create_provider(
            self._placement,
            names.provider(host),
            names.provider_uuid(root),
            root,
        )
        return self._read()


def publishing(
    reservation: str,
    present: Mapping[str, HostSlots],
    numbers: Mapping[str, int],
) -> Iterator[Action]:
    """Yield what is to be done for a reservation to have open slots.

    Some are removed first, so that never more are open than reserved. Those
    with a server are closed, and removed later.
    """
    for host, on in sorted(present.items()):
        if host in numbers:
            continue
        if not on.used:
            yield WriteSlots(reservation, host, on, 0, 0)
        elif on.open:
            yield SwitchSlots(reservation, host, on, is_open=False)
    for host, number in sorted(numbers.items()):
        on = present.get(host, HostSlots(0, 0, 0))
        if (on.total, on.open) != (number, number):
            yield WriteSlots(reservation, host, on, number, number)


def _name(state: ObservedState, host: str) -> str | None:
    """Return the present name of a host with a reservation provider.

    :param host: Its hypervisor hostname, or an earlier one that its
        reservation provider has.
    """
    for known in state.hosts.values():
        if known.provider and host in (known.name, known.former_name):
            return known.name
    return None
