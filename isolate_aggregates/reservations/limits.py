# SPDX-License-Identifier: Apache-2.0
"""Limits of what a project may reserve, as metadata of the pool.

All machines that change reservations read them there. ``reservation_limit`` is
for all projects, ``reservation_limit:<project>`` for one. The value is a list
such as ``slots=10,days=30,days_ahead=90``; what it leaves out is not limited.
"""

import dataclasses
import datetime

from isolate_aggregates import exception, text
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.reservations import names
from isolate_aggregates.reservations.reservation import Reservation
from isolate_aggregates.reservations.state import ObservedState

_MOST = 1_000_000


@dataclasses.dataclass(frozen=True)
class ProjectLimits:
    """The limits of one project; None where there is none.

    :param slots: The most slots at the same time.
    :param days: The longest duration of a reservation.
    :param days_ahead: How many days from now a reservation may start.
    """

    slots: int | None = None
    days: int | None = None
    days_ahead: int | None = None


def limits_of(pool: Aggregate | None, project: str) -> ProjectLimits:
    """Return the limits of a project.

    Those of the project take precedence over those of all projects.

    :raises InvalidRequest: if the metadata is invalid.
    """
    if pool is None:
        return ProjectLimits()
    values: dict[str, int] = {}
    for key in (names.LIMIT_KEY, _key(project)):
        if key in pool.metadata:
            values |= _parse(pool, key)
    return ProjectLimits(**values)


def excess(
    state: ObservedState,
    before: Reservation | None,
    target: Reservation,
    now: datetime.datetime,
) -> str | None:
    """Return how a change exceeds a limit, as the predicate of a sentence.

    Limits may be lowered at any time. So what a reservation has already does
    not count, only what it asks for beyond it.

    :param before: The reservation before the change; None if it is new.
    :param target: The reservation after the change.
    :returns: None if it exceeds none.
    """
    limits = limits_of(state.pool, target.project)
    if before is not None and (
        before.was_refused
        or not before.amount
        or before.project != target.project
    ):
        before = None
    if (
        limits.slots is not None
        and _asks_for_slots(before, target)
        and (slots := _most_slots(state, target, now)) > limits.slots
    ):
        problem = f'have {text.counted(slots, "slot")} at the same time'
        return _exceeding(state, target, 'slots', limits.slots, problem)
    if (
        limits.days is not None
        and _is_longer(before, target)
        and (
            target.end is None
            or target.end - target.start > datetime.timedelta(limits.days)
        )
    ):
        problem = (
            'have a reservation without an end'
            if target.end is None
            else 'have a reservation for '
            f'{(target.end - target.start) / datetime.timedelta(1):g} days'
        )
        return _exceeding(state, target, 'days', limits.days, problem)
    if (
        limits.days_ahead is not None
        and (before is None or target.start > before.start)
        and target.start - now > datetime.timedelta(limits.days_ahead)
    ):
        start = target.start.isoformat(timespec='seconds')
        problem = f'have a reservation that starts at {start}'
        return _exceeding(
            state, target, 'days_ahead', limits.days_ahead, problem
        )
    return None


def _asks_for_slots(before: Reservation | None, target: Reservation) -> bool:
    return (
        before is None
        or target.amount > before.amount
        or target.start < before.start
        or _is_later(target.end, before.end)
    )


def _is_longer(before: Reservation | None, target: Reservation) -> bool:
    if before is None:
        return True
    if before.end is None or target.end is None:
        return _is_later(target.end, before.end)
    return target.end - target.start > before.end - before.start


def _is_later(
    end: datetime.datetime | None, other: datetime.datetime | None
) -> bool:
    """Return whether an end is later than another; None is never."""
    return other is not None and (end is None or end > other)


def _most_slots(
    state: ObservedState, target: Reservation, now: datetime.datetime
) -> int:
    """Return the most slots of a project while a reservation lasts."""
    start = max(target.start, now)
    others = [
        reservation
        for reservation in state.reservations
        if reservation.id != target.id
        and target.project
        in (reservation.project, reservation.settled.project)
    ]

    def slots_at(moment: datetime.datetime) -> int:
        return sum(
            max(other.amount, other.settled.amount)
            for other in others
            if other.counted_from <= moment
            and (other.counted_until is None or other.counted_until > moment)
        )

    # The number changes only when one of them starts or ends.
    moments = [start] + [
        other.counted_from
        for other in others
        if other.counted_from > start
        and (target.end is None or other.counted_from < target.end)
    ]
    return target.amount + max(map(slots_at, moments))


def _exceeding(
    state: ObservedState,
    target: Reservation,
    name: str,
    limit: int,
    problem: str,
) -> str:
    assert state.pool
    return (
        f'exceeds a limit: project {target.project} would {problem}, and its '
        f'limit is {name}={limit}; ask for less, or raise the limit with '
        f'"openstack aggregate set --property {_key(target.project)}='
        f'{name}=<number> {state.pool.name}"'
    )


def _key(project: str) -> str:
    return f'{names.LIMIT_KEY}:{project}'


def _parse(pool: Aggregate, key: str) -> dict[str, int]:
    value = pool.metadata[key]
    fields = {field.name for field in dataclasses.fields(ProjectLimits)}
    limits = {}
    for part in value.split(','):
        name, _, number = part.strip().partition('=')
        if (
            name not in fields
            or name in limits
            or not number.isdecimal()
            or int(number) > _MOST
        ):
            raise exception.InvalidRequest(
                f'Aggregate {pool.name}: {key} must be a list such as '
                'slots=10,days=30,days_ahead=90, not '
                f'"{text.escaped(value)}"; set it with "openstack aggregate '
                f'set --property {key}=slots=10 {pool.name}".'
            )
        limits[name] = int(number)
    return limits
