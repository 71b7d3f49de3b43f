# SPDX-License-Identifier: Apache-2.0
"""Read-only views of reservations."""

from collections.abc import Callable, Mapping
import dataclasses
import datetime
import logging

from isolate_aggregates import exception
from isolate_aggregates.reservations import host_capacity, names, room
from isolate_aggregates.reservations.observed import ObservedState, Slots
from isolate_aggregates.reservations.planner import Assignment
from isolate_aggregates.reservations.reservation import Reservation
from isolate_aggregates.reservations.room import Period
from isolate_aggregates.reservations.status import Phase, Status, status_of
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.reservations.wanted import check_time

LOG = logging.getLogger(__name__)


def would_be(
    store: ReservationStore,
    observed: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
) -> Status:
    """Return the status of a reservation with its pending change applied.

    :raises ReservationError: if the change does not fit.
    """
    wanted = reservation.settled
    assignment = host_capacity.assign(store, observed, wanted, now)
    if assignment.missing:
        raise exception.ReservationError(wanted.id, assignment.refusal)
    present = observed.slots(wanted.id)
    has_begun = present and wanted.has_started(now)
    planned = _planned(wanted, assignment).hosts
    return Status(
        wanted,
        Phase.ACTIVE if has_begun else Phase.PLANNED,
        {
            name: dataclasses.replace(present.get(name, on), total=on.total)
            for name, on in planned.items()
        }
        # Slots with a server remain until the server has left.
        | {
            name: dataclasses.replace(on, total=on.used)
            for name, on in present.items()
            if name in wanted.leaving and on.used
        },
    )


def find(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> Status:
    """Find the earliest time at which a reservation fits; change nothing.

    :param reservation: A reservation from :func:`new` with its earliest
        possible start. Its duration is kept.
    :param now: The current time.
    :returns: The status that it would have when created with that start.
    :raises ReservationError: if it never fits.
    """
    observed = store.read()
    wanted = reservation.settled
    assignment = host_capacity.first_fit(store, observed, wanted, now)
    if assignment.missing:
        raise exception.ReservationError(
            wanted.id,
            f'does not fit at any time, because it {assignment.refusal}',
        )
    demand = assignment.demand
    return _planned(
        dataclasses.replace(wanted, start=demand.start, end=demand.end),
        assignment,
    )


def _planned(wanted: Reservation, assignment: Assignment) -> Status:
    slots = {name: Slots(n, 0, 0) for name, n in assignment.slots.items()}
    return Status(wanted, Phase.PLANNED, slots)


def show(
    store: ReservationStore, reservation_id: str, now: datetime.datetime
) -> Status:
    """Return the status of a reservation.

    :raises NotFound: if there is no such reservation.
    :raises ReservationError: if its record cannot be read.
    """
    observed = store.read(only=names.reservation_id(reservation_id))
    found = observed.reservation(reservation_id)
    short = host_capacity.shortages(
        store, observed, now, observed.slots(found.id)
    )
    return status_of(observed, found, now, short)


def _log(problem: exception.ReservationError) -> None:
    LOG.error('%s', problem)


def list_reservations(
    store: ReservationStore,
    now: datetime.datetime,
    on_unreadable: Callable[[exception.ReservationError], None] = _log,
) -> list[Status]:
    """Return the statuses of all reservations, sorted by start.

    :param on_unreadable: Called for each reservation whose record cannot be
        read, and which is missing in the list. By default these are logged.
    """
    observed = store.read()
    for problem in observed.records.problems.values():
        on_unreadable(problem)
    short = host_capacity.shortages(store, observed, now)
    return [
        status_of(observed, found, now, short)
        for found in observed.reservations
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
    periods: tuple[Period, ...]


def check_period(start: datetime.datetime, end: datetime.datetime) -> None:
    """Check the period of a calendar.

    :raises InvalidRequest: if the period is invalid.
    """
    check_time('start', start)
    check_time('end', end)
    if end <= start:
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
    """Return the free capacity of each host for reservations over a period.

    :raises InvalidRequest: if the period is invalid.
    """
    check_period(start, end)
    return [
        HostCalendar(
            host.host,
            host.obstacle,
            room.capacity(host),
            () if host.obstacle else tuple(room.periods(host, start, end)),
        )
        for host in host_capacity.whole(store, store.read(), now)
    ]
