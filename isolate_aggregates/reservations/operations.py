# SPDX-License-Identifier: Apache-2.0
"""Creates, changes and ends reservations.

Each operation records the request and then reconciles. If it is interrupted,
:func:`~isolate_aggregates.reservations.rounds.reconcile_all` completes it.
"""

from collections.abc import Callable, Collection
import contextlib
import dataclasses
import datetime

from isolate_aggregates import exception, text
from isolate_aggregates.reservations import (
    errors,
    execution,
    limits,
    planner,
    rounds,
    stale,
)
from isolate_aggregates.reservations.problems import find_reservation
from isolate_aggregates.reservations.record import Records
from isolate_aggregates.reservations.reservation import (
    PendingChange,
    Reservation,
    check_amount,
    check_texts,
    utc,
)
from isolate_aggregates.reservations.slots import retried
from isolate_aggregates.reservations.state import ObservedState
from isolate_aggregates.reservations.status import Phase, Status
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.reservations.views import (
    differences,
    outlook,
    show,
    status_in,
)
from isolate_aggregates.tools import errors as tools_errors

# How often a command retries because another one changed the reservation.
_ATTEMPTS = 10


# Returns the change, given the current state.
_Decide = Callable[[ObservedState, Reservation], PendingChange]


def _present(reservation: Reservation) -> PendingChange:
    return PendingChange(
        reservation.amount, reservation.end, reservation.leaving
    )


@retried
def _planned_change(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    decide: _Decide,
    names_end: bool = False,
    labelled: Callable[[Reservation], Reservation] = lambda same: same,
) -> Status:
    state = store.read()
    found = find_reservation(store, state, reservation_id)
    # A pending change of another command is completed first.
    wanted = found.settled
    _last_change(store, state, wanted, now, names_end)
    change = decide(state, wanted)
    if change != _present(wanted):
        wanted = dataclasses.replace(wanted, pending=change)
    return outlook(store, state, found, labelled(wanted), now)


def _check_changeable(
    reservation: Reservation, now: datetime.datetime
) -> None:
    if planner.is_ending(reservation, now):
        over = 'has ended' if reservation.has_ended(now) else 'is about to end'
        raise errors.ReservationError(
            reservation.id, f'cannot be changed, because it {over}'
        )


def _last_change(
    store: ReservationStore,
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
    names_end: bool,
) -> int:
    """Return the number of the last change, by the record or by the slots.

    :raises StaleRecord: if the record is older and the command does not name
        the end.
    :raises ServiceConflict: if another command has changed it since it was
        read.
    :raises ReservationError: if the reservation is over.
    """
    try:
        stale.check_record(store, state, reservation)
    except errors.StaleRecord as exc:
        if not names_end:
            raise
        return exc.slots
    _check_changeable(reservation, now)
    return reservation.change


def _change(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    decide: _Decide,
    is_done: Callable[[Status], bool],
    names_end: bool = False,
) -> Status:
    """Change a reservation, and retry if another command interferes.

    :param decide: Called again after each change by another command.
    :param names_end: Whether the change names the end, so that a record older
        than its slots does not matter.
    :raises ReservationError: if the change does not fit, the reservation ends
        now, or other commands keep changing it.
    """
    for _ in range(_ATTEMPTS):
        state = store.read()
        reservation = find_reservation(store, state, reservation_id)
        if reservation.pending:
            # Complete the change of another command, which may have been
            # interrupted.
            with contextlib.suppress(errors.ReservationError):
                execution.reconcile(store, reservation.id, now)
            state = store.read()
            reservation = find_reservation(store, state, reservation_id)
        try:
            latest = _last_change(store, state, reservation, now, names_end)
        except exception.ServiceConflict:
            continue
        if latest > reservation.change:
            reservation = reservation.settled
        elif reservation.pending:
            continue
        change = decide(state, reservation)
        number = None
        if change != _present(reservation) or latest > reservation.change:
            number = latest + 1
            try:
                reservation = store.compute.write_record(
                    dataclasses.replace(
                        reservation,
                        pending=change,
                        change=number,
                        asked_by=store.user,
                    ),
                    now,
                )
            except exception.ServiceConflict:
                continue
            state = _after_record(store, state, reservation)
        status = execution.reconcile(
            store, reservation.id, now, state=state, asked=number
        )
        if status.is_over:
            raise errors.ReservationError(
                reservation.id, 'has ended while it was changed'
            )
        if is_done(status):
            return status
        # Another command refused this change or made a different one.
    raise _contended(reservation_id)


def _after_record(
    store: ReservationStore, state: ObservedState, written: Reservation
) -> ObservedState:
    """Return the state after a record was written.

    If its project has a limit, the state is read again, as of two commands at
    the same time the later one must know what the other one asks for.
    """
    if limits.limit_of(state.pool, written.project) is not None:
        return store.read(state)
    return state.with_reservation(written)


def _contended(reservation_id: str) -> errors.ReservationError:
    return errors.ReservationError(
        reservation_id,
        'was changed repeatedly by other commands; run this command again',
    )


def create(
    store: ReservationStore,
    reservation: Reservation,
    now: datetime.datetime,
    dry_run: bool = False,
) -> Status:
    """Create a reservation, or complete an interrupted attempt to.

    :param reservation: A reservation from :func:`new`.
    :raises ReservationError: if it does not fit, or the id is taken; nothing
        is left behind then.
    """
    if dry_run:
        return _planned_creation(store, reservation, now)
    before = store.read()
    _check_new(before, reservation, now)
    rounds.remove_strays(store, before)
    wanted = dataclasses.replace(reservation, asked_by=store.user)
    state = None
    if store.compute.create_record(wanted):
        first = reservation.change
        state = _after_record(store, before, wanted)
    else:
        first = _write_record(store, wanted, now)
    for _ in range(_ATTEMPTS):
        try:
            status = execution.reconcile(
                store, reservation.id, now, state=state, asked=first
            )
        except tools_errors.NotFound:
            break
        except errors.StaleRecord as exc:
            # Its first record was lost, and this one takes its place.
            first = _take_over(store, reservation, exc.slots, now)
            state = None
            continue
        if status.is_over:
            break
        return status
    # Another run refused it, because it did not fit, or a command ended it.
    _planned_creation(store, reservation, now)
    raise errors.ReservationError(
        reservation.id,
        'was refused or ended by another command while it was created; run '
        'this command again',
    )


def _take_over(
    store: ReservationStore,
    reservation: Reservation,
    change: int,
    now: datetime.datetime,
) -> int:
    """Let a new record decide about slots that are there already.

    :param change: The number of the change that the slots were written for.
    :returns: The number of the change that is to create the reservation.
    """
    present = store.read().reservation(reservation.id)
    if present.incarnation != reservation.incarnation or present.amount:
        raise errors.StaleRecord(reservation.id, change)
    with contextlib.suppress(exception.ServiceConflict):
        store.compute.write_record(
            dataclasses.replace(present, change=change), now
        )
    return change


def _planned_creation(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> Status:
    state = store.read()
    _check_new(state, reservation, now)
    present = _created_before(state.records, reservation, now)
    if present is None:
        return outlook(store, state, None, reservation, now)
    # It would be completed, with its own times.
    before = present if present.amount else None
    return outlook(store, state, before, present, now)


def _check_new(
    state: ObservedState, reservation: Reservation, now: datetime.datetime
) -> None:
    """Raise InvalidRequest before a record without a plan is written."""
    if reservation.has_ended(now):
        raise tools_errors.InvalidRequest(
            f'A reservation cannot end at {reservation.end}, which is in the '
            'past.'
        )
    for name in reservation.only_on:
        if name not in state.hosts:
            raise tools_errors.InvalidRequest(
                f'{name} is not a host for reservations; see reservation host '
                'list.'
            )
    _ = state.cleaning_time
    limits.limit_of(state.pool, reservation.project)


def _write_record(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> int:
    """Write the record of a new reservation, unless it exists.

    :returns: The number of the change that is to create it.
    """
    for _ in range(_ATTEMPTS):
        if store.compute.create_record(reservation):
            return reservation.change
        records = store.read().records
        present = records.reservations.get(reservation.id)
        if present is not None and present.was_refused:
            with contextlib.suppress(tools_errors.NotFound):
                execution.reconcile(store, reservation.id, now)
        elif present := _created_before(records, reservation, now):
            return present.change if not present.amount else reservation.change
    raise _taken(reservation.id)


def _created_before(
    records: Records, reservation: Reservation, now: datetime.datetime
) -> Reservation | None:
    """Return what an earlier attempt to create a reservation has created.

    :raises ReservationError: if another reservation or flavor has the id.
    """
    present = records.reservations.get(reservation.id)
    if present is None and reservation.id in records.foreign:
        raise _taken(reservation.id)
    if present is None or present.was_refused:
        return None
    if not _is_same(present, reservation):
        raise _taken(reservation.id)
    if present.settled.has_ended(now):
        raise errors.ReservationError(
            reservation.id,
            'cannot be created, because an earlier reservation with that id '
            'is still ending; try again when reconcile has removed it',
        )
    return present


def _taken(reservation_id: str) -> errors.ReservationError:
    return errors.ReservationError(
        reservation_id,
        'cannot be created, because another reservation or a flavor already '
        'has that id',
    )


def _is_same(present: Reservation, reservation: Reservation) -> bool:
    """Return whether the existing reservation was created with these values.

    The times are not compared: a repeated command may compute them from now.
    """

    def fixed(either: Reservation) -> tuple[object, ...]:
        target = either.settled
        return (
            target.project,
            target.amount,
            target.shape,
            target.affinity,
            target.shared,
            target.only_on,
        )

    return fixed(present) == fixed(reservation)


class Unchanged:
    """Marks an argument whose current value is kept."""


UNCHANGED = Unchanged()


def update(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    amount: int | None = None,
    end: datetime.datetime | Unchanged | None = UNCHANGED,
    name: str | None = None,
    note: str | None = None,
    share: Collection[str] = (),
    unshare: Collection[str] = (),
    warn_before: datetime.timedelta | None = None,
    dry_run: bool = False,
) -> Status:
    """Change a reservation, before or after its start.

    What is None or UNCHANGED stays as it is. What needs no room
    is written last.

    :param share: The ids of projects that may use it, too, from now on.
    :param unshare: The ids of projects that may not any more.
    :param warn_before: How long before its end no more servers can be booted.
    :param end: The new end, not in the past; None for no end, UNCHANGED to
        keep it.
    :raises ReservationError: if the change does not fit, there are more
        servers than slots, or it comes too late; nothing is changed then.
    """
    if amount is not None:
        check_amount(amount)
    check_texts(name or '', note or '')
    if not isinstance(end, Unchanged):
        end = end and utc('end', end)

    def decide(
        state: ObservedState, reservation: Reservation
    ) -> PendingChange:
        change = PendingChange(
            reservation.amount if amount is None else amount,
            reservation.end if isinstance(end, Unchanged) else end,
            reservation.leaving,
        )
        if change != _present(reservation):
            _check_end(reservation, change, now)
        return change

    def is_done(status: Status) -> bool:
        reservation = status.reservation
        return amount in (None, reservation.amount) and (
            isinstance(end, Unchanged) or reservation.end == end
        )

    def labelled(reservation: Reservation) -> Reservation:
        shared = {*reservation.shared, *share} - {*unshare}
        return dataclasses.replace(
            reservation,
            shared=tuple(sorted(shared - {reservation.project})),
            warn_before=reservation.warn_before
            if warn_before is None
            else warn_before,
            name=reservation.name if name is None else name,
            note=reservation.note if note is None else note,
        )

    affects_flavor = bool(share or unshare or warn_before is not None)
    has_labels = affects_flavor or name is not None or note is not None
    needs_plan = (
        not has_labels or amount is not None or not isinstance(end, Unchanged)
    )
    names_end = not isinstance(end, Unchanged)
    if dry_run and needs_plan:
        return _planned_change(
            store, reservation_id, now, decide, names_end, labelled
        )
    if dry_run:
        status = show(store, reservation_id, now)
        after = labelled(status.reservation)
        planned = differences(status.reservation, after)
        return dataclasses.replace(
            status, reservation=after, planned=tuple(planned)
        )
    if needs_plan:
        status = _change(
            store, reservation_id, now, decide, is_done, names_end
        )
        if not has_labels:
            return status
    return _write(
        store, reservation_id, now, labelled, unshare, affects_flavor
    )


def _write(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    change: Callable[[Reservation], Reservation],
    unshare: Collection[str],
    affects_flavor: bool,
) -> Status:
    """Write a change that needs no room; retry if others interfere.

    :param unshare: The ids of projects to revoke access from.
    :param affects_flavor: Whether access or extra specs may have to be
        written, even if the record has the change: that may have been
        interrupted.
    """
    for _ in range(_ATTEMPTS):
        state = store.read()
        reservation = find_reservation(store, state, reservation_id)
        changed = change(reservation)
        if changed != reservation:
            _check_changeable(reservation, now)
            try:
                changed = store.compute.write_record(changed, now)
            except exception.ServiceConflict:
                continue
            state = state.with_reservation(changed)
        if not affects_flavor:
            return status_in(store, state, changed, now)
        for project in sorted({*unshare} - changed.projects):
            store.compute.revoke(changed.id, project)
        return execution.reconcile(store, changed.id, now, state=state)
    raise _contended(reservation_id)


def move(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    hosts: Collection[str],
    evacuate: bool = False,
    dry_run: bool = False,
) -> Status:
    """Move a reservation to other hosts, together with its servers.

    It gets the same number of slots on other hosts in one step. Old slots with
    servers remain, closed to further servers, until their servers have been
    moved or deleted.

    :param hosts: The names of the hosts to leave; empty to stay on all.
    :param evacuate: Whether to evacuate the servers of failed hosts that it is
        leaving. Nova does so asynchronously; call again if some fail.
    :raises ReservationError: if it does not fit elsewhere; nothing is changed
        then.
    """

    def decide(
        state: ObservedState, reservation: Reservation
    ) -> PendingChange:
        slots = state.slots(reservation.id)
        for name in hosts:
            if name not in slots:
                raise tools_errors.InvalidRequest(
                    f'Reservation {reservation.id} has no slots on {name}.'
                )
        leaving = {*reservation.leaving, *hosts} if hosts else ()
        return dataclasses.replace(
            _present(reservation), leaving=tuple(sorted(leaving))
        )

    def is_done(status: Status) -> bool:
        leaving = status.reservation.leaving
        if not hosts:
            return not leaving
        return all(
            name in leaving or name not in status.hosts for name in hosts
        )

    if not dry_run:
        status = _change(store, reservation_id, now, decide, is_done)
        if evacuate:
            for server in _to_evacuate(store, status):
                store.compute.evacuate(server)
        return status
    status = _planned_change(store, reservation_id, now, decide)
    if evacuate:
        planned = [
            f'evacuate server {server}'
            for server in _to_evacuate(store, status)
        ]
        status = dataclasses.replace(
            status, planned=(*status.planned, *planned)
        )
    return status


def _to_evacuate(store: ReservationStore, status: Status) -> list[str]:
    """Return the servers on the failed hosts that a reservation is leaving."""
    reservation = status.reservation
    services = {
        host.service
        for host in store.read().hosts.values()
        if host.name in reservation.leaving
        and host.has_failed
        and host.service
    }
    return [
        server
        for service in sorted(services)
        for server in store.compute.servers_of(reservation.id, service)
    ]


def end(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    dry_run: bool = False,
) -> Status:
    """End a reservation now, whether or not it has started.

    Its servers are deleted. Until they are gone it is ``ending``; call again
    or reconcile to complete it.
    """
    if dry_run:
        return _planned_end(store, reservation_id, now)
    change = 0
    for _ in range(_ATTEMPTS):
        state = store.read()
        rounds.remove_strays(store, state)
        reservation = find_reservation(store, state, reservation_id)
        if (
            reservation.pending
            or not reservation.has_ended(now)
            or change > reservation.change
        ):
            reservation = dataclasses.replace(
                reservation,
                end=now,
                pending=None,
                change=max(change, reservation.change),
                asked_by=store.user,
            )
            try:
                reservation = store.compute.write_record(reservation, now)
            except exception.ServiceConflict:
                continue
            state = state.with_reservation(reservation)
        try:
            status = execution.reconcile(
                store, reservation.id, now, state=state
            )
        except tools_errors.NotFound:
            # Another command completed it.
            return Status(reservation, Phase.ENDED)
        except errors.StaleRecord as exc:
            # The operator who runs this command decides.
            change = exc.slots
            continue
        if status.reservation.has_ended(now):
            return status
    raise _contended(reservation_id)


def _planned_end(
    store: ReservationStore, reservation_id: str, now: datetime.datetime
) -> Status:
    status = show(store, reservation_id, now)
    reservation = status.reservation
    servers = len(store.compute.servers_of(reservation.id))
    what = f'end reservation {reservation.id} of project {reservation.project}'
    if servers:
        what += ', and permanently delete its ' + text.counted(
            servers, 'server'
        )
    return dataclasses.replace(status, planned=(what,))


def _check_end(
    reservation: Reservation, change: PendingChange, now: datetime.datetime
) -> None:
    if change.end is not None and change.end <= max(now, reservation.start):
        raise tools_errors.InvalidRequest(
            f'Reservation {reservation.id} cannot be changed to end at '
            f'{change.end.isoformat()}, which is in the past or before its '
            'start.'
        )
