# SPDX-License-Identifier: Apache-2.0
"""Reconciles and repairs all reservations, with a run for each that needs it.

A round also deletes what interrupted commands have left behind.
"""

from collections.abc import Collection, Iterable
import contextlib
import datetime
import logging

from isolate_aggregates import exception
from isolate_aggregates.reservations import (
    conditions,
    history,
    host_capacity,
    hosts,
    names,
    slots,
)
from isolate_aggregates.reservations.conditions import (
    Move,
    every_host,
    no_host,
)
from isolate_aggregates.reservations.reconciliation import (
    Reconciliation,
    reconcile,
)
from isolate_aggregates.reservations.record import Records
from isolate_aggregates.reservations.reservation import Reservation
from isolate_aggregates.reservations.state import ObservedState, Status
from isolate_aggregates.reservations.store import (
    OnUnreadable,
    Problem,
    ReservationStore,
    find_unreadable,
    log_unreadable,
)
from isolate_aggregates.tools.placement import inventories

LOG = logging.getLogger(__name__)


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
    before, host_problems = hosts.mend_hosts(store, store.read(), now)
    state = before
    problems: list[Problem] = [
        *find_unreadable(store, before),
        *host_problems,
    ]
    for problem in problems:
        on_unreadable(problem)
    remove_strays(store, before)
    mark_hosts(store, before)
    history.remove_expired(store, before, now)
    runs = {
        reservation.id: Reconciliation(store, reservation.id, now, move)
        for reservation in before.reservations
    }
    due = list(runs.values())
    short = host_capacity.shortages(store, state, now)
    lost = store.access.lost(_with_access(before.reservations, now))
    while due:
        leave = conditions.hosts_to_leave(state.hosts.values(), move, short)
        active_runs = [run for run in due if run.attempt(state, lost, leave)]
        lost = set()
        if active_runs:
            state = store.read()
            short = host_capacity.shortages(store, state, now)
        # If one was ended meanwhile, its slots must be closed again.
        due = [run for run in active_runs if run.has_opened]
    return [
        run.status(state, short, before.reservation(name))
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
    reservations are repaired, resource classes and flavors that interrupted
    commands left behind are deleted as well.

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


def to_repair(
    store: ReservationStore,
    now: datetime.datetime,
    reservation_id: str | None = None,
) -> tuple[set[str], list[str]]:
    """Return what :func:`repair` would change.

    :returns: The ids of the reservations to repair, and the names of resource
        classes and flavors of reservations that no longer exist.
    """
    # Read before the records, as in repair.
    classes = inventories.classes(store.placement)
    state = store.read()
    records = state.records
    reservations = list(state.reservations)
    remnants: list[str] = []
    if reservation_id is None:
        remnants += orphans(records, classes)
        remnants += [stray.flavor_id for stray in records.strays]
    else:
        reservations = [state.reservation(reservation_id)]
    due = unsettled(store, state, reservations, now, every_host)
    return due, remnants


def unsettled(
    store: ReservationStore,
    state: ObservedState,
    reservations: Collection[Reservation],
    now: datetime.datetime,
    move: Move,
) -> set[str]:
    """Return the ids of the reservations that reconciling would change."""
    short = host_capacity.shortages(store, state, now)
    leave = conditions.hosts_to_leave(state.hosts.values(), move, short)
    lost = store.access.lost(_with_access(reservations, now))
    return {
        reservation.id
        for reservation in reservations
        if not conditions.is_settled(
            state,
            reservation,
            now,
            reservation.id in lost,
            {*leave, *conditions.closed_to_leave(state, reservation, move)},
        )
    }


def _with_access(
    reservations: Iterable[Reservation], now: datetime.datetime
) -> list[Reservation]:
    """Return the active reservations whose project was given access."""
    return [
        reservation
        for reservation in reservations
        if reservation.has_access and not reservation.has_ended(now)
    ]


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
    """Return the resource classes of reservations that are gone."""
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


def remove_strays(store: ReservationStore, state: ObservedState) -> None:
    """Delete the revisions of reservations that are gone.

    If its slots are still there and no later reservation has its id, they stay
    as all that is left of its record.
    """
    for stray in state.records.strays:
        is_alone = stray.reservation not in state.records.reservations
        if is_alone and state.slots(stray.reservation):
            continue
        # Read the record again: flavors are listed page by page, and the
        # reservation may have been created between two pages.
        flavor = store.compute.record(stray.reservation)
        if flavor is None or stray.incarnation not in flavor.description:
            store.compute.delete_flavor(stray.flavor_id)
