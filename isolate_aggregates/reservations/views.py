# SPDX-License-Identifier: Apache-2.0
"""Read-only views of reservations."""

from collections.abc import Mapping, Sequence
import dataclasses
import datetime

from isolate_aggregates import exception
from isolate_aggregates.request import Flavor
from isolate_aggregates.reservations import (
    details,
    host_capacity,
    hosts,
    limits,
    plan,
)
from isolate_aggregates.reservations.plan import Assignment, FreePeriod
from isolate_aggregates.reservations.reservation import Reservation, utc
from isolate_aggregates.reservations.state import (
    HostSlots,
    ObservedState,
    Phase,
    Status,
    status_of,
)
from isolate_aggregates.reservations.store import (
    OnUnreadable,
    Problem,
    ReservationStore,
    find_unreadable,
    log_unreadable,
)


def would_be(
    store: ReservationStore,
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
) -> Status:
    """Return the status of a reservation with its pending change applied.

    :raises ReservationError: if the change does not fit.
    """
    target = reservation.settled
    before = state.records.reservations.get(target.id)
    if problem := limits.excess(state, before, target, now):
        raise exception.ReservationError(target.id, problem)
    assignment = host_capacity.assign(store, state, target, now)
    if assignment.missing:
        raise exception.ReservationError(
            target.id,
            host_capacity.refusal(
                store, state, before or reservation, assignment, now
            ),
        )
    present = state.slots(target.id)
    has_begun = present and target.has_started(now)
    hosts = _planned(target, assignment).hosts
    return Status(
        target,
        Phase.ACTIVE if has_begun else Phase.PLANNED,
        {
            name: dataclasses.replace(present.get(name, on), total=on.total)
            for name, on in hosts.items()
        }
        # Slots with a server remain until the server has left.
        | {
            name: dataclasses.replace(on, total=on.used)
            for name, on in present.items()
            if name in target.leaving and on.used
        },
    )


@dataclasses.dataclass(frozen=True)
class Fit:
    """When and where a reservation fits.

    :param status: The reservation at the earliest time at which it fits.
    :param offer: The most slots that fit at the time that was asked for.
    """

    status: Status
    offer: int


def find(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> Fit:
    """Find the earliest time at which a reservation fits; change nothing.

    :param reservation: A reservation from :func:`new` with its earliest
        possible start. Its duration is kept.
    :raises ReservationError: if it never fits.
    """
    state = store.read()
    target = reservation.settled
    assignment = host_capacity.first_fit(store, state, target, now)
    if assignment.missing:
        raise exception.ReservationError(
            target.id,
            f'does not fit at any time, because it {assignment.refusal}',
        )
    demand = assignment.demand
    return Fit(
        _planned(
            dataclasses.replace(target, start=demand.start, end=demand.end),
            assignment,
        ),
        host_capacity.assign(store, state, target, now).offer,
    )


def _planned(reservation: Reservation, assignment: Assignment) -> Status:
    slots = {name: HostSlots(n, 0, 0) for name, n in assignment.slots.items()}
    return Status(reservation, Phase.PLANNED, slots)


def show(
    store: ReservationStore, reservation_id: str, now: datetime.datetime
) -> Status:
    """Return the status of a reservation."""
    state = store.read()
    reservation = state.reservation(reservation_id)
    short = host_capacity.shortages(
        store, state, now, state.slots(reservation.id)
    )
    return status_of(
        state,
        reservation,
        now,
        short,
        details=details.read(
            store,
            state,
            reservation,
            now,
            details.stale_records(store, state, [reservation]),
        ),
    )


def list_reservations(
    store: ReservationStore,
    now: datetime.datetime,
    on_unreadable: OnUnreadable = log_unreadable,
    is_thorough: bool = False,
) -> list[Status]:
    """Return the statuses of all reservations, sorted by start.

    :param on_unreadable: Called for each reservation whose record cannot be
        read, and which is missing in the list. By default these are logged.
    :param is_thorough: Whether to find records that are older than their
        slots, for which the inventories of all hosts with slots are read.
    """
    state = store.read()
    problems: list[Problem] = [
        *find_unreadable(store, state),
        *hosts.host_problems(store, state, now),
    ]
    for problem in problems:
        on_unreadable(problem)
    short = host_capacity.shortages(store, state, now)
    stale = (
        details.stale_records(store, state, state.reservations)
        if is_thorough
        else {}
    )
    return [
        status_of(
            state,
            reservation,
            now,
            short,
            details=details.read(store, state, reservation, now, stale),
        )
        for reservation in state.reservations
    ]


@dataclasses.dataclass(frozen=True)
class OwnReservation:
    """What a member of a project can see of a reservation that has started.

    :param servers: The number of the project's servers with its flavor,
        shelved ones included.
    """

    flavor: Flavor
    servers: int


def list_own(store: ReservationStore) -> list[OwnReservation]:
    """Return the reservations whose flavors the own project may use.

    This needs only the rights of a member, and calls only Nova.
    """
    return [
        OwnReservation(
            entry.flavor,
            len(store.compute.servers_of(entry.flavor.id, all_projects=False)),
        )
        for entry in store.compute.own_records()
    ]


@dataclasses.dataclass(frozen=True)
class HostCalendar:
    """The free capacity of a host over time.

    :param obstacle: Why the host cannot take slots, as the predicate of a
        sentence; None if it can.
    :param capacity: Its total capacity for reservations, by resource class.
    :param periods: Its free capacity, in order; empty with an obstacle.
    """

    host: str
    obstacle: str | None
    capacity: Mapping[str, int]
    periods: tuple[FreePeriod, ...]


@dataclasses.dataclass(frozen=True)
class Calendar:
    """The free capacity of all hosts over time, for the report page.

    :param start: The start, in UTC.
    :param end: The end, in UTC.
    """

    start: datetime.datetime
    end: datetime.datetime
    hosts: Sequence[HostCalendar]


def check_period(start: datetime.datetime, end: datetime.datetime) -> None:
    """Check the period of a calendar."""
    if utc('end', end) <= utc('start', start):
        raise exception.InvalidRequest(
            f'A calendar cannot end at {end.isoformat()}, because it starts '
            f'at {start.isoformat()}.'
        )


def calendar(
    store: ReservationStore,
    now: datetime.datetime,
    start: datetime.datetime,
    end: datetime.datetime,
) -> list[HostCalendar]:
    """Return the free capacity of each host for reservations over a period."""
    check_period(start, end)
    return [
        HostCalendar(
            host.host,
            host.obstacle,
            plan.capacity(host),
            () if host.obstacle else tuple(plan.periods(host, start, end)),
        )
        for host in host_capacity.all_hosts(store, store.read(), now)
    ]
