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
    :raises ReservationError: if it does not fit, or the id is taken; nothing
        is left behind then.
    """
    _check_new(reservation, now)
    _write_record(store, reservation, now)
    with contextlib.suppress(exception.NotFound):
        status = reconciler.reconcile(store, reservation.id, now)
        if not status.is_over:
            return status
    # Another run refused it, because it did not fit, or a command ended it.
    preview(store, reservation, now)
    raise exception.ReservationError(
        reservation.id,
        'was refused or ended by another command while it was created; run '
        'this command again',
    )


def preview(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> Status:
    """Return the status that creating would lead to; change nothing.

    :param reservation: A reservation from :func:`new`.
    """
    _check_new(reservation, now)
    observed = store.read()
    if _is_taken(observed.records, reservation):
        raise _taken_error(reservation.id)
    present = observed.records.reservations.get(reservation.id)
    _check_not_ending(present, now)
    if present is not None and not present.was_refused:
        # It would be completed, with its own times.
        reservation = present
    return would_be(store, observed, reservation, now)


def _check_new(reservation: Reservation, now: datetime.datetime) -> None:
    if not reservation.project:
        raise exception.InvalidRequest('A reservation needs a project.')
    if reservation.has_ended(now):
        raise exception.InvalidRequest(
            f'A reservation cannot end at {reservation.end}, which is in the '
            'past.'
        )


def _write_record(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> None:
    """Write the record of a new reservation, unless it exists."""
    for _ in range(changes.ATTEMPTS):
        if store.compute.create_record(reservation):
            return
        records = store.read().records
        present = records.reservations.get(reservation.id)
        if present is not None and present.was_refused:
            with contextlib.suppress(exception.NotFound):
                reconciler.reconcile(store, reservation.id, now)
        elif _is_taken(records, reservation):
            break
        elif present is not None:
            _check_not_ending(present, now)
            return
    raise _taken_error(reservation.id)


def _check_not_ending(
    reservation: Reservation | None, now: datetime.datetime
) -> None:
    """Raise if a reservation with the id ends, and would not be kept."""
    if (
        reservation
        and reservation.settled.has_ended(now)
        and not reservation.was_refused
    ):
        raise exception.ReservationError(
            reservation.id,
            'cannot be created, because an earlier reservation with that id '
            'is still ending; try again when reconcile has removed it',
        )


def _is_taken(records: Records, reservation: Reservation) -> bool:
    """Return whether the id is taken by another reservation or flavor."""
    present = records.reservations.get(reservation.id)
    if present is None:
        return reservation.id in records.foreign
    return not (present.was_refused or _is_same(present, reservation))


def _taken_error(reservation_id: str) -> exception.ReservationError:
    return exception.ReservationError(
        reservation_id,
        'cannot be created, because another reservation or a flavor already '
        'has that id',
    )


def _is_same(present: Reservation, reservation: Reservation) -> bool:
    """Return whether the existing reservation was created with these values.

    The times are not compared: a repeated command may compute them from now.
    """

    def fixed(either: Reservation) -> tuple[object, ...]:
        settled = either.settled
        return (
            settled.project,
            settled.amount,
            settled.shape,
            settled.affinity,
        )

    return fixed(present) == fixed(reservation)
