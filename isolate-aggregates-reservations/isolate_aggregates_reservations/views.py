# SPDX-License-Identifier: Apache-2.0
"""Read-only views of reservations."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import datetime

from oslo_utils import uuidutils

from isolate_aggregates import text
from isolate_aggregates.request import Flavor
from isolate_aggregates_reservations import (
    capacity,
    errors,
    execution,
    host_health,
    limits,
    plan,
)
from isolate_aggregates_reservations.actions import Refuse
from isolate_aggregates_reservations.plan import FreePeriod
from isolate_aggregates_reservations.problems import (
    find_reservation,
    find_unreadable,
    status_of,
)
from isolate_aggregates_reservations.reservation import (
    PendingChange,
    Reservation,
    utc,
)
from isolate_aggregates_reservations.state import ObservedState
from isolate_aggregates_reservations.status import (
    Status,
    phase_of,
    slots_by_host,
)
from isolate_aggregates_reservations.store import (
    OnUnreadable,
    ReservationStore,
    log_unreadable,
)
from isolate_aggregates_tools import errors as tools_errors


def outlook(
    store: ReservationStore,
    state: ObservedState,
    before: Reservation | None,
    wanted: Reservation,
    now: datetime.datetime,
) -> Status:
    """Return the status that a wanted reservation leads to, with the plan.

    :param before: The reservation as it is; None if there is none.
    :param wanted: The reservation with the change as its pending one.
    :returns: The present status if nothing is to be done.
    :raises ReservationError: if the change does not fit.
    """
    after, actions = execution.outcome(
        state.with_reservation(wanted), wanted.id, now
    )
    for action in actions:
        if isinstance(action, Refuse):
            raise errors.ReservationError(wanted.id, action.why)
    reached = after.reservation(wanted.id)
    planned = (
        *(
            differences(before, reached)
            if before
            else [_created(reached, after)]
        ),
        *(action.words for action in actions if action.words),
    )
    if before and not planned:
        return status_in(store, state, before, now)
    return Status(
        reached,
        phase_of(reached, now),
        after.slots(wanted.id),
        planned=tuple(planned),
    )


# What a change of a reservation may concern, as attributes of it.
_CHANGEABLE = [
    'end',
    'amount',
    'name',
    'note',
    'shared',
    'warn_before',
    'leaving',
]


def differences(before: Reservation, after: Reservation) -> list[str]:
    return [
        f'{key}: {_shown(old)} -> {_shown(new)}'
        for key in _CHANGEABLE
        if (old := getattr(before, key)) != (new := getattr(after, key))
    ]


def _shown(value: object) -> str:
    if value is None:
        return 'never'
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec='seconds')
    if isinstance(value, datetime.timedelta):
        return f'{value.total_seconds():.0f}s'
    if isinstance(value, tuple):
        value = ', '.join(value)
    return str(value) or 'none'


def _created(reservation: Reservation, state: ObservedState) -> str:
    hosts = slots_by_host(state.slots(reservation.id))
    end = reservation.end
    until = (
        f' until {_shown(end)}, when its servers are deleted,'
        if end
        else ', without an end,'
    )
    return (
        f'reserve {text.counted(reservation.amount, "slot")} for project '
        f'{reservation.project} from {_shown(reservation.start)}{until} on '
        f'{hosts}'
    )


def earliest(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> Reservation:
    """Return a new reservation, moved to the earliest time at which it fits.

    :param reservation: A reservation from :func:`new` with its earliest
        possible start. Its duration is kept.
    :raises ReservationError: if it never fits.
    """
    target = reservation.settled
    assignment = capacity.first_fit(store.read(), target, now)
    if assignment.missing:
        raise errors.ReservationError(
            target.id,
            f'does not fit at any time, because it {assignment.refusal}; '
            f'{assignment.advice}',
        )
    demand = assignment.demand
    return dataclasses.replace(
        reservation,
        start=demand.start,
        end=demand.end,
        pending=PendingChange(target.amount, demand.end),
    )


def show(
    store: ReservationStore, reservation_id: str, now: datetime.datetime
) -> Status:
    state = store.read()
    reservation = find_reservation(store, state, reservation_id)
    return status_in(store, state, reservation, now)


def status_in(
    store: ReservationStore,
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
) -> Status:
    [status] = _statuses(store, state, [reservation], now)
    return status


def _statuses(
    store: ReservationStore,
    state: ObservedState,
    reservations: Sequence[Reservation],
    now: datetime.datetime,
    is_thorough: bool = True,
) -> list[Status]:
    stale = {}
    if is_thorough:
        # What another command has just changed is not old.
        stale = {
            name: found.problem
            for name, found in store.stale_records(state, reservations).items()
            if isinstance(found, errors.StaleRecord)
        }
        unread = [r.id for r in reservations if r.id not in state.access]
        state = store.with_access(state, unread)
    hosts = {name for one in reservations for name in state.slots(one.id)}
    short = capacity.shortages(state, now, hosts)
    return [
        status_of(store, state, one, now, short, stale.get(one.id, ''))
        for one in reservations
    ]


def list_reservations(
    store: ReservationStore,
    now: datetime.datetime,
    on_unreadable: OnUnreadable = log_unreadable,
    is_thorough: bool = False,
    is_project: Callable[[str], bool] = uuidutils.is_uuid_like,
) -> list[Status]:
    """Return the statuses of all reservations, sorted by start.

    :param on_unreadable: Called for each reservation whose record cannot be
        read, and which is missing in the list, and for each problem of a host
        or of the pool. By default these are logged.
    :param is_thorough: Whether to find records that are older than their
        slots, and access of other projects, with calls for each host with
        slots and for each reservation.
    :param is_project: Returns whether there may be a project with an id.
    """
    state = store.read()
    for nobody in limits.of_nobody(state.pool, is_project):
        on_unreadable(nobody)
    for unreadable in find_unreadable(store, state):
        on_unreadable(unreadable)
    for problem in host_health.host_problems(store, state, now):
        on_unreadable(problem)
    return _statuses(store, state, state.reservations, now, is_thorough)


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
    """The free capacity of all hosts over time.

    :param start: The start, in UTC.
    :param end: The end, in UTC.
    """

    start: datetime.datetime
    end: datetime.datetime
    hosts: Sequence[HostCalendar]


def calendar(
    store: ReservationStore,
    now: datetime.datetime,
    start: datetime.datetime,
    end: datetime.datetime,
) -> Calendar:
    if utc('end', end) <= utc('start', start):
        raise tools_errors.InvalidRequest(
            f'A calendar cannot end at {end.isoformat()}, because it starts '
            f'at {start.isoformat()}.'
        )
    state = store.read()
    return Calendar(
        start,
        end,
        [
            HostCalendar(
                host.host,
                host.obstacle,
                plan.capacity(host),
                () if host.obstacle else tuple(plan.periods(host, start, end)),
            )
            for host in capacity.all_hosts(state, now)
        ],
    )
