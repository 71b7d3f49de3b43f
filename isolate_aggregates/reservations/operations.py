# SPDX-License-Identifier: Apache-2.0
"""What can be done with reservations.

Each operation writes down what is asked for and then reconciles, so that
:func:`~isolate_aggregates.reservations.reconciler.reconcile_all` completes
what is interrupted. What it tells is what it read last.
"""

from collections.abc import Callable, Collection
import contextlib
import dataclasses
import datetime
import logging
import uuid

from isolate_aggregates import exception
from isolate_aggregates.reservations import host_capacity, names, reconciler
from isolate_aggregates.reservations.healing import every_host
from isolate_aggregates.reservations.observed import ObservedState, Slots
from isolate_aggregates.reservations.record import (
    PendingChange,
    Reservation,
    Shape,
)
from isolate_aggregates.reservations.status import Phase, Status, status_of
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.reservations.uncounted import uncounted

LOG = logging.getLogger(__name__)

# A command decides again as often as another one changes the reservation.
_ATTEMPTS = 10


class Unchanged:
    """Stands for an end that stays as it is."""


UNCHANGED = Unchanged()


def new(
    project: str,
    amount: int,
    shape: Shape,
    start: datetime.datetime,
    end: datetime.datetime | None = None,
    affinity: bool | None = None,
    reservation_id: str | None = None,
    allow_uncounted: bool = False,
) -> Reservation:
    """Return a reservation to create.

    :param end: When it ends; None for never.
    :param affinity: True for all slots on one host, False for no two on one
        host, None if it does not matter.
    :param reservation_id: The id it gets, a uuid; None for a new one.
    :param allow_uncounted: Whether its slots may need what cannot be counted,
        such as PCI devices; a slot is then no promise that it is there.
    :raises InvalidRequest: if it makes no sense, or needs what cannot be
        counted.
    """
    made = names.reservation_id(reservation_id or str(uuid.uuid4()))
    _check_amount(amount)
    _check_time('start', start)
    if end is not None:
        _check_time('end', end)
        if end <= start:
            raise exception.InvalidRequest(
                f'A reservation cannot end at {end.isoformat()}, as it '
                f'starts at {start.isoformat()}.'
            )
    if not project:
        raise exception.InvalidRequest('A reservation needs a project.')
    found = Reservation(
        id=made,
        project=project,
        start=start.astimezone(datetime.UTC),
        end=end and end.astimezone(datetime.UTC),
        amount=0,
        shape=shape,
        affinity=affinity,
        pending=PendingChange(amount, end and end.astimezone(datetime.UTC)),
        incarnation=uuid.uuid4().hex[:8],
    )
    if any(
        names.reservation_of(key.partition(':')[2])
        for key in shape.extra_specs
    ):
        raise exception.InvalidRequest(
            'The slots of a reservation cannot be taken from another one.'
        )
    unknown = [] if allow_uncounted else uncounted(shape.extra_specs)
    if unknown:
        raise exception.InvalidRequest(
            f'A slot cannot be planned with {", ".join(unknown)}, as '
            'Placement does not tell which hosts have room for that. Leave it '
            'out, or use --allow-uncounted: a server may then get no host '
            'although its reservation has a free slot.'
        )
    if not any(host_capacity.needs(found.flavor).values()):
        raise exception.InvalidRequest(
            'A slot of a reservation must need something.'
        )
    return found


def create(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> Status:
    """Create a reservation; again, if it was begun before.

    :param reservation: What :func:`new` returned.
    :raises ReservationError: if it does not fit, or there is another of that
        id; nothing is then left of it.
    """
    if reservation.has_ended(now):
        raise exception.InvalidRequest(
            f'A reservation cannot end at {reservation.end}, as that is over.'
        )
    _write_new(store, reservation, now)
    try:
        return reconciler.reconcile(store, reservation.id, now)
    except exception.NotFound:
        # Another command found that it does not fit, or ended it.
        preview(store, reservation, now)
        raise exception.ReservationError(
            reservation.id, 'was ended by another command while it was made'
        ) from None


def _write_new(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> None:
    """Write the record of a new reservation, unless it is there."""
    for _ in range(_ATTEMPTS):
        if store.compute.create_record(reservation):
            return
        records = store.read().records
        known = records.reservations.get(reservation.id)
        if known is not None and not known.amount and known.has_ended(now):
            # One that did not fit is being taken away.
            with contextlib.suppress(exception.NotFound):
                reconciler.reconcile(store, reservation.id, now)
        elif known is not None and _is_same(known, reservation):
            return
        elif known is not None or reservation.id in records.foreign:
            break
    raise exception.ReservationError(
        reservation.id,
        'cannot be made, as there is another one, or a flavor, of that id',
    )


def preview(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> Status:
    """Return how a reservation would be, and change nothing.

    :param reservation: What :func:`new` returned.
    :raises ReservationError: if it does not fit.
    """
    observed = store.read()
    wanted = reservation.settled
    assignment = host_capacity.assign(store, observed, wanted, now)
    if assignment.missing:
        raise exception.ReservationError(wanted.id, assignment.refusal)
    slots = {name: Slots(n, 0, 0) for name, n in assignment.slots.items()}
    return Status(wanted, Phase.PLANNED, slots)


def show(
    store: ReservationStore, reservation_id: str, now: datetime.datetime
) -> Status:
    """Return how a reservation is.

    :raises NotFound: if there is none.
    :raises ReservationError: if its record cannot be read.
    """
    observed = store.read()
    found = _get(observed, reservation_id)
    short = host_capacity.shortages(
        store, observed, now, observed.slots(found.id)
    )
    return status_of(observed, found, now, short)


def list_reservations(
    store: ReservationStore, now: datetime.datetime
) -> list[Status]:
    """Return how all reservations are, in the order of their starts.

    Those whose record cannot be read are logged.
    """
    observed = store.read()
    for problem in observed.records.problems.values():
        LOG.error('%s', problem)
    short = host_capacity.shortages(store, observed, now)
    return [
        status_of(observed, found, now, short)
        for found in observed.reservations
    ]


def update(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    amount: int | None = None,
    end: datetime.datetime | Unchanged | None = UNCHANGED,
) -> Status:
    """Change a reservation, before or after its start.

    :param amount: How many slots it gets; None for as many as it has.
    :param end: When it ends, not before now; None for never, UNCHANGED to
        leave it.
    :raises NotFound: if there is none.
    :raises InvalidRequest: if it makes no sense.
    :raises ReservationError: if it does not fit, or more slots have servers;
        it then stays as it was.
    """
    if amount is not None:
        _check_amount(amount)
    if not isinstance(end, Unchanged):
        end = _utc(end)

    def decide(_: ObservedState, found: Reservation) -> PendingChange:
        wanted = PendingChange(
            found.amount if amount is None else amount,
            found.end if isinstance(end, Unchanged) else end,
            found.leaving,
        )
        if wanted != _present(found):
            _check_end(found, wanted, now)
        return wanted

    def is_done(status: Status) -> bool:
        told = status.reservation
        return amount in (None, told.amount) and (
            isinstance(end, Unchanged) or told.end == end
        )

    return _change(store, reservation_id, now, decide, is_done)


def move(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    hosts: Collection[str] | None = None,
) -> Status:
    """Let a reservation leave hosts together with its servers.

    It gets as many slots elsewhere, at once. Those that have servers stay,
    closed to others, until the servers have left or are gone.

    :param hosts: The names of the hosts; None for those that are down,
        disabled or gone; empty to leave none any more.
    :raises NotFound: if there is no such reservation.
    :raises InvalidRequest: if it has no slots on these hosts.
    :raises ReservationError: if it does not fit elsewhere; it then stays as
        it was.
    """
    named = hosts

    def decide(observed: ObservedState, found: Reservation) -> PendingChange:
        return dataclasses.replace(
            _present(found), leaving=_leaving(observed, found, named)
        )

    def is_done(status: Status) -> bool:
        left = status.reservation.leaving
        if not named:
            return named is None or not left
        return all(name in left or name not in status.hosts for name in named)

    return _change(store, reservation_id, now, decide, is_done)


def evacuate(store: ReservationStore, reservation_id: str) -> list[str]:
    """Evacuate the servers from failed hosts that a reservation leaves.

    Nova does it one after the other; do it again for those that failed.

    :returns: The ids of the servers.
    :raises NotFound: if there is no such reservation.
    """
    observed = store.read()
    found = _get(observed, reservation_id)
    failed = {
        host.service
        for host in observed.hosts.values()
        if host.name in found.leaving and host.has_failed and host.service
    }
    servers = [
        server
        for service in sorted(failed)
        for server in store.compute.servers_of(found.id, service)
    ]
    for server in servers:
        store.compute.evacuate(server)
    return servers


def _leaving(
    observed: ObservedState, found: Reservation, named: Collection[str] | None
) -> tuple[str, ...]:
    """Return the hosts that a reservation is to leave."""
    slots = observed.slots(found.id)
    if named is None:
        named = [name for name in slots if observed.hosts[name].obstacle]
        if not named:
            raise exception.InvalidRequest(
                f'Each host of reservation {found.id} can serve it; name the '
                'one to leave.'
            )
    elif not named:
        return ()
    for name in named:
        if name not in slots:
            raise exception.InvalidRequest(
                f'Reservation {found.id} has no slots on {name}.'
            )
    return tuple(sorted({*found.leaving, *named}))


def _present(found: Reservation) -> PendingChange:
    """Return the change that changes nothing."""
    return PendingChange(found.amount, found.end, found.leaving)


def _change(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    decide: Callable[[ObservedState, Reservation], PendingChange],
    is_done: Callable[[Status], bool],
) -> Status:
    """Change a reservation, and see that no other command undid it.

    :param decide: Returns what it is to become; asked again whenever another
        command has changed it.
    """
    for _ in range(_ATTEMPTS):
        observed = store.read()
        found = _get(observed, reservation_id)
        if found.pending:
            # Of another command, which may have been interrupted. If it does
            # not fit, that is for that command to tell.
            with contextlib.suppress(exception.ReservationError):
                reconciler.reconcile(store, found.id, now)
            observed = store.read()
            found = _get(observed, reservation_id)
        if found.has_ended(now):
            raise exception.ReservationError(
                found.id, 'cannot be changed, as it has ended'
            )
        if found.pending:
            continue
        wanted = decide(observed, found)
        if wanted != _present(found):
            try:
                store.compute.write_record(
                    dataclasses.replace(found, pending=wanted)
                )
            except exception.ServiceConflict:
                continue
        status = reconciler.reconcile(store, found.id, now)
        if is_done(status):
            return status
        # Another command refused the change, or made another one.
    raise _contended(reservation_id)


def end(
    store: ReservationStore, reservation_id: str, now: datetime.datetime
) -> Status:
    """End a reservation now, whether it has started or not.

    Its servers are deleted. As long as some are there it is ``ending``: do it
    again, or reconcile.

    :raises NotFound: if there is none.
    :raises ReservationError: if its record cannot be read.
    """
    for _ in range(_ATTEMPTS):
        observed = store.read()
        reconciler.remove_strays(store, observed)
        found = _get(observed, reservation_id)
        if found.pending or not found.has_ended(now):
            found = dataclasses.replace(found, end=now, pending=None)
            try:
                store.compute.write_record(found)
            except exception.ServiceConflict:
                continue
        try:
            status = reconciler.reconcile(store, found.id, now)
        except exception.NotFound:
            # Another command took away what was left.
            return Status(found, Phase.ENDED)
        if status.reservation.has_ended(now):
            return status
    raise _contended(reservation_id)


def repair(
    store: ReservationStore,
    now: datetime.datetime,
    reservation_id: str | None = None,
) -> list[Status]:
    """Move slots without a server off hosts that cannot serve them.

    Those are down, disabled or gone, or have less than their slots need.

    :param reservation_id: The id of a reservation; None for all.
    :returns: How they are then; what could not be done is among their
        problems.
    :raises NotFound: if there is none.
    """
    if reservation_id is None:
        return reconciler.reconcile_all(store, now, move=every_host)
    found = _get(store.read(), reservation_id)
    return [reconciler.reconcile(store, found.id, now, move=every_host)]


def _contended(reservation_id: str) -> exception.ReservationError:
    return exception.ReservationError(
        reservation_id,
        'was changed by other commands again and again; run this one again',
    )


def _get(observed: ObservedState, reservation_id: str) -> Reservation:
    return observed.reservation(names.reservation_id(reservation_id))


def _is_same(known: Reservation, wanted: Reservation) -> bool:
    """Tell whether creating a reservation was begun with these values."""

    def fixed(reservation: Reservation) -> tuple[object, ...]:
        settled = reservation.settled
        return (
            settled.project,
            settled.amount,
            settled.shape,
            settled.affinity,
        )

    return fixed(known) == fixed(wanted)


def _check_end(
    found: Reservation, wanted: PendingChange, now: datetime.datetime
) -> None:
    if wanted.end is not None and wanted.end <= max(now, found.start):
        raise exception.InvalidRequest(
            f'Reservation {found.id} cannot be changed to end at '
            f'{wanted.end.isoformat()}, which is over or before its start.'
        )


def _check_amount(amount: int) -> None:
    if amount < 1:
        raise exception.InvalidRequest(
            f'A reservation has at least 1 slot, not {amount}.'
        )


def _check_time(what: str, time: datetime.datetime) -> None:
    if time.tzinfo is None:
        raise exception.InvalidRequest(
            f'The {what} {time.isoformat()} has no time zone.'
        )
    try:
        time.astimezone(datetime.UTC)
    except OverflowError:
        raise exception.InvalidRequest(
            f'The {what} {time.isoformat()} is not between the years 1 and '
            '9999 in UTC.'
        ) from None


def _utc(time: datetime.datetime | None) -> datetime.datetime | None:
    if time is None:
        return None
    _check_time('end', time)
    return time.astimezone(datetime.UTC)
