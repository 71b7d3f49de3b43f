# SPDX-License-Identifier: Apache-2.0
"""Reconciles and repairs all reservations, with a run for each that needs it.

A round also deletes what interrupted commands have left behind.
"""

from collections.abc import Iterable
import contextlib
import datetime
import logging

from isolate_aggregates import exception
from isolate_aggregates_reservations import (
    capacity,
    history,
    host_health,
    names,
    slots,
)
from isolate_aggregates_reservations.execution import (
    Run,
    not_complete,
    outcome,
    reconcile,
)
from isolate_aggregates_reservations.failed_hosts import (
    Move,
    every_host,
    no_host,
)
from isolate_aggregates_reservations.parts import tried
from isolate_aggregates_reservations.problems import find_unreadable
from isolate_aggregates_reservations.record import Records
from isolate_aggregates_reservations.reservation import Reservation
from isolate_aggregates_reservations.state import ObservedState
from isolate_aggregates_reservations.status import Status
from isolate_aggregates_reservations.store import (
    OnUnreadable,
    ReservationStore,
    Unreadable,
    log_unreadable,
)
from isolate_aggregates_tools.placement import inventories

LOG = logging.getLogger(__name__)

# How often a round reads the state again, as long as there is something to do.
_MOST_PASSES = 10


def reconcile_all(
    store: ReservationStore,
    now: datetime.datetime,
    move: Move = no_host,
    on_unreadable: OnUnreadable = log_unreadable,
) -> list[Status]:
    """Bring all reservations to the state they should be in.

    If one reservation fails, the others are still reconciled. Reservations
    whose record cannot be read are skipped.

    :returns: The resulting statuses, including reservations that ended, sorted
        by start. What could not be done is among their problems.
    """
    before, host_problems = host_health.mend_hosts(store, store.read(), now)
    state = before
    problems: list[Unreadable] = [
        *find_unreadable(store, before),
        *host_problems,
    ]
    for problem in problems:
        on_unreadable(problem)
    remove_strays(store, before, now)
    mark_hosts(store, before)
    history.remove_expired(store, before, now)
    runs = {
        reservation.id: Run(store, reservation.id, now, move)
        for reservation in before.reservations
    }
    due = list(runs.values())
    state = _with_access(store, state, before.reservations, now)
    access = state.access
    for _ in range(_MOST_PASSES):
        due = [run for run in due if run.attempt(state)]
        if not due:
            break
        # Another command may have ended one meanwhile.
        state = store.read()
    else:
        for run in due:
            if not run.is_over:
                run.note(not_complete(run.id))
    short = capacity.shortages(state, now)
    # What was granted meanwhile is not what should not be there.
    state = state.with_access(access)
    return [
        run.status(state, before.reservation(name), short)
        for name, run in runs.items()
    ]


def repair(
    store: ReservationStore,
    now: datetime.datetime,
    reservation_id: str | None = None,
    on_unreadable: OnUnreadable = log_unreadable,
) -> list[Status]:
    """Move slots without a server off hosts that cannot serve them.

    Such hosts are down, disabled or gone, or too small for their slots. If all
    reservations are repaired, what interrupted commands left behind is deleted
    as well.

    :returns: The resulting statuses, with what could not be done among their
        problems.
    """
    if reservation_id is None:
        classes = inventories.classes(store.placement)
        statuses = reconcile_all(store, now, every_host, on_unreadable)
        remove_orphans(store, classes)
        return statuses
    reservation = store.read().reservation(reservation_id)
    return [reconcile(store, reservation.id, now, move=every_host)]


def planned_repair(
    store: ReservationStore,
    statuses: Iterable[Status],
    now: datetime.datetime,
    is_of_all: bool,
) -> list[str]:
    """Return what :func:`repair` would do, in words.

    :param statuses: The reservations to repair, as they are.
    """
    # Read before the records, as in repair.
    classes = inventories.classes(store.placement)
    state = store.read()
    reservations = [
        state.records.reservations[status.reservation.id]
        for status in statuses
        if status.reservation.id in state.records.reservations
    ]
    state = _with_access(store, state, reservations, now)
    planned = []
    for name in [reservation.id for reservation in reservations]:
        _, actions = outcome(state, name, now, every_host)
        planned += [
            f'reservation {name}: {action.words}'
            for action in actions
            if action.words
        ]
    if is_of_all:
        remnants = [
            *orphans(state.records, classes),
            *(stray.flavor_id for stray in state.records.strays),
        ]
        planned += [
            f'delete {name} of an ended reservation' for name in remnants
        ]
    return planned


def _with_access(
    store: ReservationStore,
    state: ObservedState,
    reservations: Iterable[Reservation],
    now: datetime.datetime,
) -> ObservedState:
    """Read the access to a few active reservations that it was given to."""
    active = [
        reservation.id
        for reservation in reservations
        if reservation.has_access and not reservation.has_ended(now)
    ]
    return store.with_access(state, store.next_to_check(active))


def remove_orphans(store: ReservationStore, classes: Iterable[str]) -> None:
    """Delete the resource classes of reservations that no longer exist.

    Such a class remains if a run is interrupted after creating it for a
    reservation that another run is ending. Only classes of generated ids are
    deleted, because Blazar uses the same names and creates the class before
    the flavor.

    :param classes: The names of resource classes, read before the records.
    """
    for name in orphans(store.records(), classes):
        # Placement refuses to delete a class that still has inventories.
        with contextlib.suppress(exception.ServiceConflict):
            inventories.delete_class(store.placement, name)


def orphans(records: Records, classes: Iterable[str]) -> list[str]:
    reservations = {
        *records.reservations,
        *records.problems,
        *records.foreign,
    }
    return [
        name
        for name in classes
        if (reservation := names.reservation_of(name))
        and reservation not in reservations
        and names.is_made_here(reservation)
    ]


def mark_hosts(store: ReservationStore, state: ObservedState) -> None:
    """Give the marker class to reservation providers without it.

    Those are Blazar's, and those whose marker somebody deleted. Without it
    they must be read one by one.
    """
    for host in state.hosts.values():
        if host.provider and not host.is_marked:
            try:
                slots.mark(store.placement, host.provider)
            except exception.IsolateAggregatesError as exc:
                # It works without, only slower.
                LOG.warning('Host %s was not marked: %s', host.name, exc)


def remove_strays(
    store: ReservationStore, state: ObservedState, now: datetime.datetime
) -> None:
    """Delete the revisions of reservations that are gone.

    If its slots are still there and no later reservation has its id, they stay
    as all that is left of its record. Otherwise its history is kept first, as
    somebody may have deleted its flavor by hand.
    """
    kept = history.Remains(store, state.records, now)

    def remove(stray: names.Revision) -> None:
        is_alone = stray.reservation not in state.records.reservations
        if is_alone and state.slots(stray.reservation):
            return
        # Read the record again: flavors are listed page by page, and the
        # reservation may have been created between two pages.
        flavor = store.compute.record(stray.reservation)
        if flavor is None or stray.incarnation not in flavor.description:
            kept.archive(stray)
            store.compute.delete_flavor(stray.flavor_id)

    for stray, exc in tried(state.records.strays, remove).items():
        LOG.warning(
            'Flavor %s of an ended reservation was not deleted: %s',
            names.flavor(stray.flavor_id),
            exc,
        )
