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
    """Return how a reservation would be with its pending change.

    :raises ReservationError: if it does not fit.
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
        # Slots with a server stay until it has left.
        | {
            name: dataclasses.replace(on, total=on.used)
            for name, on in present.items()
            if name in wanted.leaving and on.used
        },
    )


def find(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> Status:
    """Return how a reservation would be when it first fits; change nothing.

    :param reservation: What :func:`new` returned; it may start later, but not
        earlier, and is as long.
    :raises ReservationError: if it fits at no time.
    """
    observed = store.read()
    wanted = reservation.settled
    assignment = host_capacity.first_fit(store, observed, wanted, now)
    if assignment.missing:
        raise exception.ReservationError(
            wanted.id, f'fits at no time, as it {assignment.refusal}'
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
    """Return how a reservation is.

    :raises NotFound: if there is none.
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
    """Return how all reservations are, in the order of their starts.

    :param on_unreadable: Called for each whose record cannot be read, which
        is not in the list; without it they are logged.
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
    """The room on a host over some time.

    :param obstacle: Why it takes no slots, for a sentence; None if it does.
    :param capacity: What it has for reservations in all, by resource class.
    :param periods: Its room, in order; empty if it takes none.
    """

    host: str
    obstacle: str | None
    capacity: Mapping[str, int]
    periods: tuple[Period, ...]


def check_period(start: datetime.datetime, end: datetime.datetime) -> None:
    """Check the time that a calendar is about.

    :raises InvalidRequest: if it is invalid.
    """
    check_time('start', start)
    check_time('end', end)
    if end <= start:
        raise exception.InvalidRequest(
            f'A calendar cannot end at {end.isoformat()}, as it starts at '
            f'{start.isoformat()}.'
        )


def calendar(
    store: ReservationStore,
    now: datetime.datetime,
    start: datetime.datetime,
    end: datetime.datetime,
) -> list[HostCalendar]:
    """Return the room on each host for reservations over some time.

    :raises InvalidRequest: if the time is invalid.
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
