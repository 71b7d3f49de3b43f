# SPDX-License-Identifier: Apache-2.0
"""Creates, changes and ends reservations.

Each command has a desired state: what the record of a reservation should be,
given the state of the cloud. All are applied in the same way: read the state,
write the record if it is to change, and reconcile. If a command is
interrupted,
:func:`~isolate_aggregates_reservations.rounds.reconcile_all` completes it. If
another command interferes, it depends on what that did:

* It wrote the record after it was read, or took the id: read and apply again,
  at most ``_ATTEMPTS`` times.
* It asked for a change that is not granted yet: that is settled first. The end
  of a reservation withdraws it.
* It asked for something else after this command: this one asks again.
* It refused the change of this command: that is the error of this command, as
  if it had found out itself that the change does not fit.
* It ended the reservation: creating or changing it is refused; to end it is
  done.
* The record is older than the slots, as somebody restored a backup: commands
  that say when it ends, and one that creates it again, decide about the slots.
  All others are refused.
"""

from collections.abc import Callable, Collection, Mapping
import contextlib
import dataclasses
import datetime
from functools import partial

from isolate_aggregates import exception, text
from isolate_aggregates_reservations import (
    errors,
    execution,
    limits,
    planner,
    rounds,
)
from isolate_aggregates_reservations.parts import clause, tried
from isolate_aggregates_reservations.problems import find_reservation
from isolate_aggregates_reservations.reservation import (
    PendingChange,
    Reservation,
    check_amount,
    check_texts,
    check_warning,
    utc,
)
from isolate_aggregates_reservations.slots import retried
from isolate_aggregates_reservations.state import ObservedState
from isolate_aggregates_reservations.status import Kind, Phase, Problem, Status
from isolate_aggregates_reservations.store import ReservationStore
from isolate_aggregates_reservations.views import (
    differences,
    outlook,
    show,
    status_in,
)
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import shell

# How often a command retries because another one changed the reservation.
_ATTEMPTS = 10

# What to do instead of changing a reservation that is over.
_NEW = 'run reservation create for a new one'


@dataclasses.dataclass(frozen=True)
class _Desired:
    """What a command wants of a reservation, as it is at the time.

    :param present: The reservation; None if there is none.
    :param record: What it should be; its revision is that of ``present``.
    :param asked: The number of the change whose refusal is the error of this
        command; None if it asks for nothing that may not fit.
    """

    present: Reservation | None
    record: Reservation
    asked: int | None = None


# Returns what is wanted, given the state; None if something else must be
# settled first. It also takes the number of a later change than that of the
# record, for which the slots were found to be written; 0 if none was found.
# ServiceConflict means that the state is not current any more.
_GetDesired = Callable[[ObservedState, int], _Desired | None]

# Returns whether nobody has asked for something else meanwhile. An error means
# that the desired state cannot be reached any more.
_IsReached = Callable[[Status], bool]

# Returns the change of a reservation without a pending one.
_GetChange = Callable[[ObservedState, Reservation], PendingChange]


def _apply(
    store: ReservationStore,
    reservation: str,
    now: datetime.datetime,
    get_desired: _GetDesired,
    is_reached: _IsReached,
    decides: bool = False,
    may_be_gone: bool = False,
    complete: Callable[[ObservedState, Reservation], Status] | None = None,
) -> Status:
    """Carry out a command, again if other commands interfere.

    :param decides: Whether its user decides if the record is older than the
        slots.
    :param may_be_gone: Whether it is no error that there is no reservation any
        more.
    :param complete: Called after the record was written, if there is less to
        do than to reconcile.
    :raises ReservationError: if it does not fit, comes too late, or other
        commands keep changing the reservation.
    """
    slots = 0
    for _ in range(_ATTEMPTS):
        state = store.read()
        rounds.remove_strays(store, state, now)
        try:
            wanted = get_desired(state, slots)
            if wanted is None:
                # It may have been interrupted.
                with contextlib.suppress(tools_errors.NotFound):
                    execution.reconcile(store, reservation, now)
                continue
            state, record = _written(store, state, wanted, now)
            if complete and record != wanted.present:
                # Others may have written later ones before it.
                store.check_newest(record)
        except exception.ServiceConflict:
            continue
        if complete:
            return complete(state, record)
        try:
            status = execution.reconcile(
                store, record.id, now, state=state, asked=wanted.asked
            )
        except tools_errors.NotFound:
            if not may_be_gone:
                raise
            status = Status(record, Phase.ENDED)
        except errors.StaleRecord as exc:
            if not decides:
                raise
            slots = exc.slots
            continue
        if is_reached(status):
            return status
    raise errors.ReservationError(
        reservation,
        'was changed repeatedly by other commands; run this command again',
    )


def _written(
    store: ReservationStore,
    state: ObservedState,
    wanted: _Desired,
    now: datetime.datetime,
) -> tuple[ObservedState, Reservation]:
    """Write the record, and return it with the state after that.

    If its project has a limit, the state is read again, as of two commands at
    the same time the later one must know what the other one asks for.

    :raises ServiceConflict: if another command did.
    """
    record = wanted.record
    if record == wanted.present:
        return state, record
    if wanted.present is None:
        store.compute.create_record(record)
    else:
        record = store.compute.write_record(record, now)
    limit = record.pending and limits.limit_of(state.pool, record.project)
    if limit is not None:
        return store.read(state), record
    return state.with_reservation(record), record


@retried
def _planned(
    store: ReservationStore,
    now: datetime.datetime,
    get_desired: _GetDesired,
    labelled: Callable[[Reservation], Reservation] = lambda same: same,
) -> Status:
    state = store.read()
    wanted = get_desired(state, 0)
    assert wanted
    return outlook(store, state, wanted.present, labelled(wanted.record), now)


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
    new = dataclasses.replace(reservation, asked_by=store.user)

    def get_desired(state: ObservedState, slots: int) -> _Desired | None:
        if not slots:
            _check_new(state, new, now)
        present = state.records.reservations.get(new.id)
        if present is None and new.id in state.records.foreign:
            raise _taken(new.id)
        if present and present.was_refused and not dry_run:
            return None
        if present is None or present.was_refused:
            check_warning(new.warn_before, max(now, new.start), new.end)
            if present is None and state.slots(new.id):
                # Its flavor was deleted by hand. They stay if it does not fit.
                outlook(store, state, None, new, now)
            return _Desired(None, new, new.change)
        _check_same(present, new, now)
        if present.amount:
            # It has its own times, and is only completed.
            if slots > present.change:
                raise errors.StaleRecord(new.id, slots)
            return _Desired(present, present, new.change)
        if dry_run:
            return _Desired(None, present)
        if slots > present.change and present.incarnation != new.incarnation:
            raise errors.StaleRecord(new.id, slots)
        # Its first record may have been lost, and this one takes its place.
        number = max(present.change, slots)
        record = dataclasses.replace(present, change=number)
        return _Desired(present, record, number)

    def is_reached(status: Status) -> bool:
        if status.is_over:
            # Another run refused it, as it did not fit, or a command ended it.
            create(store, reservation, now, dry_run=True)
            raise errors.ReservationError(
                new.id,
                'was refused or ended by another command while it was '
                'created; run this command again',
            )
        return True

    if dry_run:
        return _planned(store, now, get_desired)
    return _apply(
        store,
        new.id,
        now,
        get_desired,
        is_reached,
        decides=True,
        may_be_gone=True,
    )


def _check_new(
    state: ObservedState, reservation: Reservation, now: datetime.datetime
) -> None:
    """Raise an error before a record without a plan is written."""
    if reservation.has_ended(now):
        raise tools_errors.InvalidRequest(
            f'A reservation cannot end at {reservation.end}, which is in the '
            'past.'
        )
    for name in reservation.only_on:
        if name not in state.hosts:
            raise errors.no_host(name)
    _ = state.cleaning_time
    limits.limit_of(state.pool, reservation.project)


def _taken(reservation_id: str) -> errors.ReservationError:
    return errors.ReservationError(
        reservation_id,
        'cannot be created, because another reservation or a flavor already '
        'has that id; run reservation create without --id, which makes a new '
        'one',
    )


def _check_same(
    present: Reservation, reservation: Reservation, now: datetime.datetime
) -> None:
    """Check that an earlier attempt with these values can be completed.

    The times are not compared: a repeated command may compute them from now.

    :raises ReservationError: if another reservation has the id.
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

    if fixed(present) != fixed(reservation):
        raise _taken(reservation.id)
    if present.settled.has_ended(now):
        raise errors.ReservationError(
            reservation.id,
            'cannot be created, because an earlier reservation with that id '
            'is still ending; run reservation reconcile until it is gone, and '
            'this command again',
        )


def _change(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    decide: _GetChange,
    is_done: _IsReached,
    names_end: bool = False,
    dry_run: bool = False,
    labelled: Callable[[Reservation], Reservation] = lambda same: same,
) -> Status:
    """Change what may not fit.

    :param names_end: Whether the change names the end, so that a record older
        than its slots does not matter.
    :param labelled: Adds to what a dry run shows.
    """

    def get_desired(state: ObservedState, _: int) -> _Desired | None:
        present = find_reservation(store, state, reservation_id)
        latest = present.change
        try:
            store.check_record(state, present)
        except errors.StaleRecord as exc:
            if not names_end:
                raise
            latest = exc.slots
        before = present.settled
        if latest == present.change:
            if present.pending and not dry_run:
                return None
            _check_changeable(before, now)
        change = decide(state, before)
        if change == _present(before) and latest == present.change:
            return _Desired(present, before)
        record = dataclasses.replace(
            before, pending=change, change=latest + 1, asked_by=store.user
        )
        return _Desired(present, record, record.change)

    def is_reached(status: Status) -> bool:
        if status.is_over:
            raise errors.ReservationError(
                status.reservation.id,
                f'has ended while it was changed; {_NEW}',
            )
        return is_done(status)

    if dry_run:
        return _planned(store, now, get_desired, labelled)
    return _apply(store, reservation_id, now, get_desired, is_reached)


def _present(reservation: Reservation) -> PendingChange:
    return PendingChange(
        reservation.amount, reservation.end, reservation.leaving
    )


def _check_changeable(
    reservation: Reservation, now: datetime.datetime
) -> None:
    if planner.is_ending(reservation, now):
        over = 'has ended' if reservation.has_ended(now) else 'is about to end'
        raise errors.ReservationError(
            reservation.id, f'cannot be changed, because it {over}; {_NEW}'
        )


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
        is_new = change != _present(reservation)
        first = max(now, reservation.start)
        if is_new and change.end is not None and change.end <= first:
            ending = shell.command(
                shell.Kind.RESERVATION_END, names=[reservation.id]
            )
            raise tools_errors.InvalidRequest(
                f'Reservation {reservation.id} cannot be changed to end at '
                f'{change.end.isoformat()}, which is in the past or before '
                f'its start; run {ending} to end it now.'
            )
        warning = reservation.warn_before
        if is_new or warn_before is not None:
            check_warning(
                warning if warn_before is None else warn_before,
                reservation.start,
                change.end,
            )
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
    names_end = not isinstance(end, Unchanged)
    if not has_labels or amount is not None or names_end:
        status = _change(
            store,
            reservation_id,
            now,
            decide,
            is_done,
            names_end,
            dry_run,
            labelled,
        )
        if dry_run or not has_labels:
            return status
    if dry_run:
        status = show(store, reservation_id, now)
        after = labelled(status.reservation)
        if warn_before is not None:
            check_warning(warn_before, after.start, after.end)
        planned = differences(status.reservation, after)
        return dataclasses.replace(
            status, reservation=after, planned=tuple(planned)
        )

    def get_desired(state: ObservedState, _: int) -> _Desired:
        present = find_reservation(store, state, reservation_id)
        record = labelled(present)
        if warn_before is not None:
            check_warning(warn_before, record.start, record.end)
        if record != present:
            _check_changeable(present, now)
        return _Desired(present, record)

    def complete(state: ObservedState, record: Reservation) -> Status:
        if not affects_flavor:
            return status_in(store, state, record, now)
        # Even if the record has the labels: that may have been interrupted.
        failed = tried(
            sorted({*unshare} - record.projects),
            partial(store.compute.revoke, record.id),
        )
        status = execution.reconcile(store, record.id, now, state=state)
        return _noted(status, 'project {} keeps access to its flavor', failed)

    return _apply(
        store,
        reservation_id,
        now,
        get_desired,
        lambda _: True,
        complete=complete,
    )


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
                see = shell.command(
                    shell.Kind.RESERVATION_SHOW, names=[reservation.id]
                )
                raise tools_errors.InvalidRequest(
                    f'Reservation {reservation.id} has no slots on {name}; '
                    f'see {see}.'
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

    status = _change(
        store, reservation_id, now, decide, is_done, dry_run=dry_run
    )
    if not evacuate:
        return status
    servers = _to_evacuate(store, status)
    if not dry_run:
        failed = tried(servers, store.compute.evacuate)
        return _noted(status, 'Nova does not evacuate server {}', failed)
    planned = [f'evacuate server {server}' for server in servers]
    return dataclasses.replace(status, planned=(*status.planned, *planned))


def _noted(
    status: Status,
    what: str,
    failed: Mapping[str, exception.IsolateAggregatesError],
) -> Status:
    """Return a status with the parts that failed among its problems."""
    noted = [
        Problem(Kind.OTHER, f'{what.format(part)}: {clause(error)}')
        for part, error in failed.items()
    ]
    return dataclasses.replace(status, found=(*noted, *status.found))


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

    def get_desired(state: ObservedState, slots: int) -> _Desired:
        present = find_reservation(store, state, reservation_id)
        if not present.pending and (
            present.has_ended(now) and slots <= present.change
        ):
            return _Desired(present, present)
        record = dataclasses.replace(
            present,
            end=now,
            pending=None,
            change=max(slots, present.change),
            asked_by=store.user,
        )
        return _Desired(present, record)

    return _apply(
        store,
        reservation_id,
        now,
        get_desired,
        lambda status: status.reservation.has_ended(now),
        decides=True,
        may_be_gone=True,
    )


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
