# SPDX-License-Identifier: Apache-2.0
"""How many slots a project may have at the same time, as metadata of the pool.

All machines that change reservations read it there. ``reservation_limit`` is
for each project, ``reservation_limit:<project>`` for one.
"""

from collections.abc import Callable, Iterator
import datetime

from oslo_utils import uuidutils

from isolate_aggregates import text
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_reservations import errors, names
from isolate_aggregates_reservations.reservation import Reservation
from isolate_aggregates_reservations.state import ObservedState, pool_number
from isolate_aggregates_tools import shell

_MOST = 1_000_000


def limit_of(pool: Aggregate | None, project: str) -> int | None:
    """Return the most slots of a project at the same time; None for no limit.

    :raises PoolError: if the metadata is invalid, for any project: what has
        the name of a project would limit nothing.
    """
    for problem in of_nobody(pool, uuidutils.is_uuid_like):
        raise problem
    for key in (_key(project), names.LIMIT_KEY):
        limit = pool_number(pool, key, 'slots', _MOST, 10)
        if limit is not None:
            return limit
    return None


def of_nobody(
    pool: Aggregate | None, is_project: Callable[[str], bool]
) -> Iterator[errors.PoolError]:
    """Yield the limits that limit nothing, as no project has their id.

    :param is_project: Returns whether there may be a project with an id.
    """
    for key in sorted(pool.metadata if pool else ()):
        prefix, _, owner = key.partition(':')
        if (
            pool
            and prefix == names.LIMIT_KEY
            and owner
            and not is_project(owner)
        ):
            unset = shell.command(
                shell.Kind.AGGREGATE_UNSET,
                *shell.option('--property', key),
                names=[pool.name],
            )
            yield errors.PoolError(
                pool.name,
                f'has a limit {text.escaped(key)}, which must end with the id '
                f'of a project; run {unset}',
            )


def excess(
    state: ObservedState,
    before: Reservation,
    target: Reservation,
    now: datetime.datetime,
) -> str | None:
    """Return how a change exceeds the limit, as the predicate of a sentence.

    A limit may be lowered at any time. So what a reservation has already does
    not count, only what it asks for beyond it.

    :returns: None if it does not.
    """
    limit = limit_of(state.pool, target.project)
    if limit is None or not _asks_for_slots(before, target):
        return None
    slots = _most_slots(state, target, now)
    if slots <= limit:
        return None
    assert state.pool
    more = shell.command(
        shell.Kind.AGGREGATE_SET,
        *shell.option('--property', f'{_key(target.project)}=NUMBER'),
        names=[state.pool.name],
    )
    return (
        f'exceeds a limit: project {target.project} would have '
        f'{text.counted(slots, "slot")} at the same time, and its limit is '
        f'{limit}; ask for less, or run {more}'
    )


def _asks_for_slots(before: Reservation, target: Reservation) -> bool:
    return target.amount > before.amount or (
        before.end is not None
        and (target.end is None or target.end > before.end)
    )


def _most_slots(
    state: ObservedState, target: Reservation, now: datetime.datetime
) -> int:
    """Return the most slots of a project while a reservation lasts."""
    start = max(target.start, now)
    others = [
        reservation
        for reservation in state.reservations
        if reservation.id != target.id
        and reservation.project == target.project
    ]

    def slots_at(moment: datetime.datetime) -> int:
        return sum(
            max(other.amount, other.settled.amount)
            for other in others
            if other.start <= moment
            and (other.counted_until is None or other.counted_until > moment)
        )

    # The number changes only when one of them starts or ends.
    moments = [start] + [
        other.start
        for other in others
        if other.start > start
        and (target.end is None or other.start < target.end)
    ]
    return target.amount + max(map(slots_at, moments))


def _key(project: str) -> str:
    return f'{names.LIMIT_KEY}:{project}'
