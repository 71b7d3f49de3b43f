# SPDX-License-Identifier: Apache-2.0
"""Operations on existing reservations.

Each operation records the request and then reconciles. If it is interrupted,
:func:`~isolate_aggregates.reservations.reconciler.reconcile_all` completes it.
"""

from collections.abc import Collection
import dataclasses
import datetime

from isolate_aggregates import exception
from isolate_aggregates.placement import inventories
from isolate_aggregates.reservations import changes, conditions, reconciler
from isolate_aggregates.reservations.healing import every_host
from isolate_aggregates.reservations.observed import ObservedState
from isolate_aggregates.reservations.reservation import (
    PendingChange,
    Reservation,
    Terms,
)
from isolate_aggregates.reservations.status import Phase, Status
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.reservations.unreadable import (
    OnUnreadable,
    log_unreadable,
)
from isolate_aggregates.reservations.validation import check_amount, utc


class Unchanged:
    """Marks an argument whose current value is kept."""


UNCHANGED = Unchanged()


def update(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    amount: int | None = None,
    end: datetime.datetime | Unchanged | None = UNCHANGED,
    project: str | None = None,
    start: datetime.datetime | None = None,
    affinity: bool | Unchanged | None = UNCHANGED,
    dry_run: bool = False,
) -> Status:
    """Change a reservation, before or after its start.

    Project, start and affinity can be changed only before it.

    :param amount: The new number of slots; None to keep it.
    :param end: The new end, not in the past; None for no end, UNCHANGED to
        keep it.
    :param project: The id of the new project; None to keep it.
    :param start: The new start; None to keep it.
    :param affinity: As for :func:`new`; UNCHANGED to keep it.
    :raises ReservationError: if the change does not fit, there are more
        servers than slots, or it comes too late; nothing is changed then.
    """
    if amount is not None:
        check_amount(amount)
    if not isinstance(end, Unchanged):
        end = end and utc('end', end)
    start = start and utc('start', start)

    def terms_of(reservation: Reservation) -> Terms:
        return Terms(
            reservation.project if project is None else project,
            start or reservation.start,
            reservation.affinity
            if isinstance(affinity, Unchanged)
            else affinity,
        )

    def decide(
        observed: ObservedState, reservation: Reservation
    ) -> PendingChange:
        terms = terms_of(reservation)
        change = PendingChange(
            reservation.amount if amount is None else amount,
            reservation.end if isinstance(end, Unchanged) else end,
            reservation.leaving,
            terms if terms != reservation.terms else None,
        )
        if change.terms and conditions.has_begun(observed, reservation, now):
            raise exception.ReservationError(reservation.id, conditions.BEGUN)
        if change != changes.present(reservation):
            _check_end(reservation, terms.start, change, now)
        return change

    def is_done(status: Status) -> bool:
        reservation = status.reservation
        return (
            amount in (None, reservation.amount)
            and (isinstance(end, Unchanged) or reservation.end == end)
            and terms_of(reservation) == reservation.terms
        )

    if dry_run:
        return changes.preview(store, reservation_id, now, decide)
    return changes.make(store, reservation_id, now, decide, is_done)


def move(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    hosts: Collection[str] | None = None,
    dry_run: bool = False,
) -> Status:
    """Move a reservation to other hosts, together with its servers.

    It gets the same number of slots on other hosts in one step. Old slots with
    servers remain, closed to further servers, until their servers have been
    moved or deleted.

    :param hosts: The names of the hosts to leave; None for those that are
        down, disabled or gone; empty to cancel an earlier move.
    :raises ReservationError: if it does not fit elsewhere; nothing is changed
        then.
    """
    named = hosts

    def decide(
        observed: ObservedState, reservation: Reservation
    ) -> PendingChange:
        return dataclasses.replace(
            changes.present(reservation),
            leaving=_leaving(observed, reservation, named),
        )

    def is_done(status: Status) -> bool:
        leaving = status.reservation.leaving
        if not named:
            return named is None or not leaving
        return all(
            name in leaving or name not in status.hosts for name in named
        )

    if dry_run:
        return changes.preview(store, reservation_id, now, decide)
    return changes.make(store, reservation_id, now, decide, is_done)


def evacuate(store: ReservationStore, reservation_id: str) -> list[str]:
    """Evacuate servers from the failed hosts that a reservation is leaving.

    Nova evacuates them asynchronously; call again if some evacuations fail.

    :returns: The ids of the servers.
    """
    servers = to_evacuate(store, reservation_id)
    for server in servers:
        store.compute.evacuate(server)
    return servers


def to_evacuate(
    store: ReservationStore,
    reservation_id: str,
    leaving: Collection[str] | None = None,
) -> list[str]:
    """Return the servers on the failed hosts that a reservation is leaving.

    :param leaving: The names of these hosts; None for the recorded ones.
    """
    observed = store.read()
    reservation = observed.reservation(reservation_id)
    hosts = reservation.leaving if leaving is None else leaving
    failed = {
        host.service
        for host in observed.hosts.values()
        if host.name in hosts and host.has_failed and host.service
    }
    return [
        server
        for service in sorted(failed)
        for server in store.compute.servers_of(reservation.id, service)
    ]


def _leaving(
    observed: ObservedState,
    reservation: Reservation,
    named: Collection[str] | None,
) -> tuple[str, ...]:
    """Return the hosts to leave; see :func:`move` for ``named``."""
    slots = observed.slots(reservation.id)
    if named is None:
        named = [name for name in slots if observed.hosts[name].obstacle]
        if not named:
            raise exception.InvalidRequest(
                f'All hosts of reservation {reservation.id} work; specify the '
                'host to leave.'
            )
    elif not named:
        return ()
    for name in named:
        if name not in slots:
            raise exception.InvalidRequest(
                f'Reservation {reservation.id} has no slots on {name}.'
            )
    return tuple(sorted({*reservation.leaving, *named}))


def end(
    store: ReservationStore, reservation_id: str, now: datetime.datetime
) -> Status:
    """End a reservation now, whether or not it has started.

    Its servers are deleted. Until they are gone it is ``ending``; call again
    or reconcile to complete it.
    """
    for _ in range(changes.ATTEMPTS):
        observed = store.read()
        reconciler.remove_strays(store, observed)
        reservation = observed.reservation(reservation_id)
        if reservation.pending or not reservation.has_ended(now):
            reservation = dataclasses.replace(
                reservation, end=now, pending=None
            )
            try:
                store.compute.write_record(reservation)
            except exception.ServiceConflict:
                continue
        try:
            status = reconciler.reconcile(store, reservation.id, now)
        except exception.NotFound:
            # Another command completed it.
            return Status(reservation, Phase.ENDED)
        if status.reservation.has_ended(now):
            return status
    raise changes.contended(reservation_id)


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
        statuses = reconciler.reconcile_all(
            store, now, every_host, on_unreadable
        )
        reconciler.remove_orphans(store, classes)
        return statuses
    reservation = store.read().reservation(reservation_id)
    return [reconciler.reconcile(store, reservation.id, now, move=every_host)]


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
    observed = store.read()
    records = observed.records
    checked = list(observed.reservations)
    remnants: list[str] = []
    if reservation_id is None:
        remnants += reconciler.orphans(records, classes)
        remnants += [stray.flavor_id for stray in records.strays]
    else:
        checked = [observed.reservation(reservation_id)]
    due = reconciler.unsettled(store, observed, checked, now, every_host)
    return due, remnants


def _check_end(
    reservation: Reservation,
    start: datetime.datetime,
    change: PendingChange,
    now: datetime.datetime,
) -> None:
    if change.end is not None and change.end <= max(now, start):
        raise exception.InvalidRequest(
            f'Reservation {reservation.id} cannot be changed to end at '
            f'{change.end.isoformat()}, which is in the past or before its '
            'start.'
        )
