# SPDX-License-Identifier: Apache-2.0
"""Creates reservations, and completes interrupted attempts to."""

import contextlib
import datetime

from isolate_aggregates import exception
from isolate_aggregates.reservations import changes, reconciler
from isolate_aggregates.reservations.record import Records
from isolate_aggregates.reservations.reservation import Reservation
from isolate_aggregates.reservations.status import Status
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.reservations.views import would_be


def create(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> Status:
    """Create a reservation, or complete an interrupted attempt to.

    :param reservation: A reservation from :func:`new`.
    :param now: The current time.
    :raises InvalidRequest: if it has no project or ends in the past.
    :raises ReservationError: if it does not fit, or the id is taken; nothing
        is left behind then.
    """
    _check_new(reservation, now)
    _write_new(store, reservation, now)
    try:
        return reconciler.reconcile(store, reservation.id, now)
    except exception.NotFound:
        # Another command reconciled it and it did not fit, or it was ended.
        preview(store, reservation, now)
        raise exception.ReservationError(
            reservation.id, 'was ended by another command while it was created'
        ) from None


def preview(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> Status:
    """Return the status that creating would lead to; change nothing.

    :param reservation: A reservation from :func:`new`.
    :param now: The current time.
    :raises InvalidRequest: if it has no project or ends in the past.
    :raises ReservationError: if it does not fit, or the id is taken.
    """
    _check_new(reservation, now)
    observed = store.read()
    if _is_other(observed.records, reservation, now):
        raise _taken(reservation.id)
    known = observed.records.reservations.get(reservation.id)
    _check_not_ending(known, now)
    if known is not None and not _goes(known, now):
        # It would be completed, with its own times.
        reservation = known
    return would_be(store, observed, reservation, now)


def _check_new(reservation: Reservation, now: datetime.datetime) -> None:
    if not reservation.project:
        raise exception.InvalidRequest('A reservation needs a project.')
    if reservation.has_ended(now):
        raise exception.InvalidRequest(
            f'A reservation cannot end at {reservation.end}, which is in the '
            'past.'
        )


def _write_new(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> None:
    """Write the record of a new reservation, unless it exists.

    :raises ReservationError: if the id is taken.
    """
    for _ in range(changes.ATTEMPTS):
        if store.compute.create_record(reservation):
            return
        records = store.read().records
        known = records.reservations.get(reservation.id)
        if known is not None and _goes(known, now):
            with contextlib.suppress(exception.NotFound):
                reconciler.reconcile(store, reservation.id, now)
        elif _is_other(records, reservation, now):
            break
        elif known is not None:
            _check_not_ending(known, now)
            return
    raise _taken(reservation.id)


def _goes(known: Reservation, now: datetime.datetime) -> bool:
    """Return whether it was refused and is being removed."""
    return not known.amount and known.has_ended(now)


def _check_not_ending(
    known: Reservation | None, now: datetime.datetime
) -> None:
    """Raise if a reservation with the id ends, and would not be kept."""
    if known and known.settled.has_ended(now) and not _goes(known, now):
        raise exception.ReservationError(
            known.id,
            'cannot be created, because an earlier reservation with that id '
            'is still ending; try again when reconcile has removed it',
        )


def _is_other(
    records: Records, wanted: Reservation, now: datetime.datetime
) -> bool:
    """Return whether the id is taken by another reservation or flavor."""
    known = records.reservations.get(wanted.id)
    if known is None:
        return wanted.id in records.foreign
    return not (_goes(known, now) or _is_same(known, wanted))


def _taken(reservation_id: str) -> exception.ReservationError:
    return exception.ReservationError(
        reservation_id,
        'cannot be created, because another reservation or a flavor already '
        'has that id',
    )


def _is_same(known: Reservation, wanted: Reservation) -> bool:
    """Return whether the existing reservation was created with these values.

    The times are not compared: a repeated command may compute them from now.
    """

    def fixed(reservation: Reservation) -> tuple[object, ...]:
        settled = reservation.settled
        return (
            settled.project,
            settled.amount,
            settled.shape,
            settled.affinity,
        )

    return fixed(known) == fixed(wanted)
