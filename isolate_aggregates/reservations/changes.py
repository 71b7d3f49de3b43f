# SPDX-License-Identifier: Apache-2.0
"""Changes existing reservations: decide, record, reconcile."""

from collections.abc import Callable
import contextlib
import dataclasses
import datetime

from isolate_aggregates import exception
from isolate_aggregates.reservations import conditions, reconciler
from isolate_aggregates.reservations.observed import ObservedState
from isolate_aggregates.reservations.reservation import (
    PendingChange,
    Reservation,
)
from isolate_aggregates.reservations.status import Status
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.reservations.views import would_be

# How often a command retries because another one changed the reservation.
ATTEMPTS = 10


def present(reservation: Reservation) -> PendingChange:
    """Return a pending change that equals the current values."""
    return PendingChange(
        reservation.amount, reservation.end, reservation.leaving
    )


# Returns the wanted change, given the current state.
Decide = Callable[[ObservedState, Reservation], PendingChange]


def preview(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    decide: Decide,
) -> Status:
    """Return the status that a change would lead to; change nothing."""
    observed = store.read()
    reservation = observed.reservation(reservation_id)
    # A pending change of another command is completed first.
    current = reservation.settled
    _check_changeable(current, now)
    changed = dataclasses.replace(current, pending=decide(observed, current))
    return would_be(store, observed, changed, now)


def _check_changeable(
    reservation: Reservation, now: datetime.datetime
) -> None:
    if conditions.is_ending(reservation, now):
        over = 'has ended' if reservation.has_ended(now) else 'is about to end'
        raise exception.ReservationError(
            reservation.id, f'cannot be changed, because it {over}'
        )


def make(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    decide: Decide,
    is_done: Callable[[Status], bool],
) -> Status:
    """Change a reservation, and retry if another command interferes.

    :param decide: Called again after each change by another command.
    :raises ReservationError: if the change does not fit, the reservation ends
        now, or other commands keep changing it.
    """
    for _ in range(ATTEMPTS):
        observed = store.read()
        reservation = observed.reservation(reservation_id)
        if reservation.pending:
            # Complete the change of another command, which may have been
            # interrupted. If it does not fit, that command reports it.
            with contextlib.suppress(exception.ReservationError):
                reconciler.reconcile(store, reservation.id, now)
            observed = store.read()
            reservation = observed.reservation(reservation_id)
        _check_changeable(reservation, now)
        if reservation.pending:
            continue
        change = decide(observed, reservation)
        if change != present(reservation):
            try:
                store.compute.write_record(
                    dataclasses.replace(reservation, pending=change)
                )
            except exception.ServiceConflict:
                continue
        status = reconciler.reconcile(store, reservation.id, now)
        if status.is_over:
            raise exception.ReservationError(
                reservation.id, 'has ended while it was changed'
            )
        if is_done(status):
            return status
        # Another command refused this change or made a different one.
    raise contended(reservation_id)


def contended(reservation_id: str) -> exception.ReservationError:
    """Return the error for a command that gave up because of conflicts."""
    return exception.ReservationError(
        reservation_id,
        'was changed repeatedly by other commands; run this command again',
    )
