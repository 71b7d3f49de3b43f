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
from isolate_aggregates.reservations.wanted import check_amount, utc


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
    :param dry_run: Only return the resulting status.
    :raises NotFound: if there is no such reservation.
    :raises InvalidRequest: if a new value is invalid.
    :raises ReservationError: if the change does not fit, there are more
        servers than slots, or it comes too late; nothing is changed then.
    """
    if amount is not None:
        check_amount(amount)
    if not isinstance(end, Unchanged):
        end = utc('end', end)
    start = utc('start', start)

    def terms_of(found: Reservation) -> Terms:
        return Terms(
            found.project if project is None else project,
            start or found.start,
            found.affinity if isinstance(affinity, Unchanged) else affinity,
        )

    def decide(observed: ObservedState, found: Reservation) -> PendingChange:
        terms = terms_of(found)
        wanted = PendingChange(
            found.amount if amount is None else amount,
            found.end if isinstance(end, Unchanged) else end,
            found.leaving,
            terms if terms != found.terms else None,
        )
        if wanted.terms and conditions.has_begun(observed, found, now):
            raise exception.ReservationError(found.id, conditions.BEGUN)
        if wanted != changes.present(found):
            _check_end(found, terms.start, wanted, now)
        return wanted

    def is_done(status: Status) -> bool:
        told = status.reservation
        return (
            amount in (None, told.amount)
            and (isinstance(end, Unchanged) or told.end == end)
            and terms_of(told) == told.terms
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
    :param dry_run: Only return the resulting status.
    :raises NotFound: if there is no such reservation.
    :raises InvalidRequest: if it has no slots on these hosts.
    :raises ReservationError: if it does not fit elsewhere; nothing is changed
        then.
    """
    named = hosts

    def decide(observed: ObservedState, found: Reservation) -> PendingChange:
        return dataclasses.replace(
            changes.present(found), leaving=_leaving(observed, found, named)
        )

    def is_done(status: Status) -> bool:
        left = status.reservation.leaving
        if not named:
            return named is None or not left
        return all(name in left or name not in status.hosts for name in named)

    if dry_run:
        return changes.preview(store, reservation_id, now, decide)
    return changes.make(store, reservation_id, now, decide, is_done)


def evacuate(store: ReservationStore, reservation_id: str) -> list[str]:
    """Evacuate servers from the failed hosts that a reservation is leaving.

    Nova evacuates them asynchronously; call again if some evacuations fail.

    :returns: The ids of the servers.
    :raises NotFound: if there is no such reservation.
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
    :returns: The ids of the servers.
    :raises NotFound: if there is no such reservation.
    """
    observed = store.read()
    found = observed.reservation(reservation_id)
    left = found.leaving if leaving is None else leaving
    failed = {
        host.service
        for host in observed.hosts.values()
        if host.name in left and host.has_failed and host.service
    }
    return [
        server
        for service in sorted(failed)
        for server in store.compute.servers_of(found.id, service)
    ]


def _leaving(
    observed: ObservedState, found: Reservation, named: Collection[str] | None
) -> tuple[str, ...]:
    """Return the hosts to leave; see :func:`move` for ``named``."""
    slots = observed.slots(found.id)
    if named is None:
        named = [name for name in slots if observed.hosts[name].obstacle]
        if not named:
            raise exception.InvalidRequest(
                f'All hosts of reservation {found.id} work; specify the host '
                'to leave.'
            )
    elif not named:
        return ()
    for name in named:
        if name not in slots:
            raise exception.InvalidRequest(
                f'Reservation {found.id} has no slots on {name}.'
            )
    return tuple(sorted({*found.leaving, *named}))


def end(
    store: ReservationStore, reservation_id: str, now: datetime.datetime
) -> Status:
    """End a reservation now, whether or not it has started.

    Its servers are deleted. Until they are gone it is ``ending``; call again
    or reconcile to complete it.

    :raises NotFound: if there is no such reservation.
    :raises ReservationError: if its record cannot be read.
    """
    for _ in range(changes.ATTEMPTS):
        observed = store.read()
        reconciler.remove_strays(store, observed)
        found = observed.reservation(reservation_id)
        if found.pending or not found.has_ended(now):
            found = dataclasses.replace(found, end=now, pending=None)
            try:
                store.compute.write_record(found)
            except exception.ServiceConflict:
                continue
        try:
            status = reconciler.reconcile(store, found.id, now)
        except exception.NotFound:
            # Another command completed it.
            return Status(found, Phase.ENDED)
        if status.reservation.has_ended(now):
            return status
    raise changes.contended(reservation_id)


def repair(
    store: ReservationStore,
    now: datetime.datetime,
    reservation_id: str | None = None,
) -> list[Status]:
    """Move slots without a server off hosts that cannot serve them.

    Such hosts are down, disabled or gone, or too small for their slots. If all
    reservations are repaired, resource classes and flavors that interrupted
    commands left behind are deleted as well.

    :param reservation_id: The id of a reservation; None for all.
    :returns: The resulting statuses, with what could not be done among their
        problems.
    :raises NotFound: if there is no such reservation.
    """
    if reservation_id is None:
        classes = inventories.classes(store.placement)
        statuses = reconciler.reconcile_all(store, now, move=every_host)
        reconciler.remove_orphans(store, classes)
        return statuses
    found = store.read().reservation(reservation_id)
    return [reconciler.reconcile(store, found.id, now, move=every_host)]


def to_repair(
    store: ReservationStore,
    now: datetime.datetime,
    reservation_id: str | None = None,
) -> tuple[set[str], list[str]]:
    """Return what :func:`repair` would change.

    :returns: The ids of the reservations to repair, and the names of resource
        classes and flavors of reservations that no longer exist.
    :raises NotFound: if there is no such reservation.
    """
    # Read before the records, as in repair.
    classes = inventories.classes(store.placement)
    observed = store.read()
    records = observed.records
    checked = list(observed.reservations)
    left: list[str] = []
    if reservation_id is None:
        left += reconciler.orphans(records, classes)
        left += [stray.flavor_id for stray in records.strays]
    else:
        checked = [observed.reservation(reservation_id)]
    due = reconciler.unsettled(store, observed, checked, now, every_host)
    return due, left


def _check_end(
    found: Reservation,
    start: datetime.datetime,
    wanted: PendingChange,
    now: datetime.datetime,
) -> None:
    if wanted.end is not None and wanted.end <= max(now, start):
        raise exception.InvalidRequest(
            f'Reservation {found.id} cannot be changed to end at '
            f'{wanted.end.isoformat()}, which is in the past or before its '
            'start.'
        )
