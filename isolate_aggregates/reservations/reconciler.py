# SPDX-License-Identifier: Apache-2.0
"""Reconciles reservations with Nova and Placement."""

from collections.abc import Collection, Iterable
import contextlib
import datetime
import logging

from isolate_aggregates import exception
from isolate_aggregates.placement import inventories
from isolate_aggregates.reservations import (
    conditions,
    host_capacity,
    names,
    slots,
)
from isolate_aggregates.reservations.healing import Move, no_host
from isolate_aggregates.reservations.observed import ObservedState
from isolate_aggregates.reservations.reconciliation import Reconciliation
from isolate_aggregates.reservations.record import Records
from isolate_aggregates.reservations.reservation import Reservation
from isolate_aggregates.reservations.status import Status
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.reservations.unreadable import (
    OnUnreadable,
    find_unreadable,
    log_unreadable,
)

LOG = logging.getLogger(__name__)


def reconcile(
    store: ReservationStore,
    reservation: str,
    now: datetime.datetime,
    move: Move = no_host,
) -> Status:
    """Bring a reservation to the state it should be in.

    :param move: Returns whether slots without a server may be moved off a host
        that is down, disabled, gone or too small.
    :returns: The resulting status, with what could not be done among its
        problems.
    :raises ReservationError: if a pending change does not fit. The change is
        then withdrawn; a new reservation is removed.
    """
    run = Reconciliation(store, reservation, now, move)
    observed = run.settle(None)
    if run.has_opened:
        # If it was ended meanwhile, its slots must be closed again.
        observed = run.settle(None)
    observed = observed or store.read()
    short = host_capacity.shortages(
        store, observed, now, observed.slots(reservation)
    )
    return run.status(observed, short)


def reconcile_all(
    store: ReservationStore,
    now: datetime.datetime,
    move: Move = no_host,
    on_unreadable: OnUnreadable = log_unreadable,
) -> list[Status]:
    """Bring all reservations to the state they should be in.

    If one reservation fails, the others are still reconciled. Reservations
    whose record cannot be read are skipped.

    :param move: Returns whether slots without a server may be moved off a host
        that is down, disabled, gone or too small.
    :returns: The resulting statuses, including reservations that ended, sorted
        by start. What could not be done is among their problems.
    """
    before = observed = store.read()
    for problem in find_unreadable(store, before):
        on_unreadable(problem)
    remove_strays(store, before)
    mark_hosts(store, before)
    runs = {
        reservation.id: Reconciliation(store, reservation.id, now, move)
        for reservation in before.reservations
    }
    due = list(runs.values())
    short = host_capacity.shortages(store, observed, now)
    lost = store.access.lost(_with_access(before.reservations, now))
    while due:
        leave = conditions.hosts_to_leave(observed.hosts.values(), move, short)
        changed = [run for run in due if run.attempt(observed, lost, leave)]
        lost = set()
        if changed:
            observed = store.read()
            short = host_capacity.shortages(store, observed, now)
        # If one was ended meanwhile, its slots must be closed again.
        due = [run for run in changed if run.has_opened]
    return [
        run.status(observed, short, before.reservation(name))
        for name, run in runs.items()
    ]


def unsettled(
    store: ReservationStore,
    observed: ObservedState,
    checked: Collection[Reservation],
    now: datetime.datetime,
    move: Move,
) -> set[str]:
    """Return the ids of the reservations that reconciling would change."""
    short = host_capacity.shortages(store, observed, now)
    leave = conditions.hosts_to_leave(observed.hosts.values(), move, short)
    lost = store.access.lost(_with_access(checked, now))
    return {
        reservation.id
        for reservation in checked
        if not conditions.is_settled(
            observed, reservation, now, reservation.id in lost, leave
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


def mark_hosts(store: ReservationStore, observed: ObservedState) -> None:
    """Give the marker class to reservation providers without it.

    Those are Blazar's, and those whose marker somebody deleted. Without it
    they must be read one by one.
    """
    for host in observed.hosts.values():
        if host.provider and not host.is_marked:
            try:
                slots.mark(store.placement, host.provider)
            except exception.IsolateAggregatesError as exc:
                # It works without, only slower.
                LOG.warning('Host %s was not marked: %s', host.name, exc)


def remove_strays(store: ReservationStore, observed: ObservedState) -> None:
    """Delete the revisions of reservations that are gone."""
    for stray in observed.records.strays:
        # Read the record again: flavors are listed page by page, and the
        # reservation may have been created between two pages.
        flavor = store.compute.record(stray.reservation)
        if flavor is None or stray.incarnation not in flavor.description:
            store.compute.delete_flavor(stray.flavor_id)
