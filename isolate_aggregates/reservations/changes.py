# SPDX-License-Identifier: Apache-2.0
"""Changes of a reservation: decided, written down, and seen through."""

from collections.abc import Callable
import contextlib
import dataclasses
import datetime

from isolate_aggregates import exception
from isolate_aggregates.reservations import reconciler
from isolate_aggregates.reservations.observed import ObservedState
from isolate_aggregates.reservations.reservation import (
    PendingChange,
    Reservation,
)
from isolate_aggregates.reservations.status import Status
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.reservations.views import would_be

# A command decides again as often as another one changes the reservation.
ATTEMPTS = 10


def present(found: Reservation) -> PendingChange:
    """Return the change that changes nothing."""
    return PendingChange(found.amount, found.end, found.leaving)


# What a reservation is to become, decided by what it is.
Decide = Callable[[ObservedState, Reservation], PendingChange]


def preview(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    decide: Decide,
) -> Status:
    """Return how a reservation would be after a change; change nothing."""
    observed = store.read()
    found = observed.reservation(reservation_id)
    # What another command has begun will be done first.
    before = found.settled
    if before.has_ended(now):
        raise _ended(found.id)
    wanted = dataclasses.replace(before, pending=decide(observed, before))
    return would_be(store, observed, wanted, now)


def _ended(reservation_id: str) -> exception.ReservationError:
    return exception.ReservationError(
        reservation_id, 'cannot be changed, as it has ended'
    )


def make(
    store: ReservationStore,
    reservation_id: str,
    now: datetime.datetime,
    decide: Decide,
    is_done: Callable[[Status], bool],
) -> Status:
    """Change a reservation, and see that no other command undid it.

    :param decide: Returns what it is to become; asked again whenever another
        command has changed it.
    """
    for _ in range(ATTEMPTS):
        observed = store.read()
        found = observed.reservation(reservation_id)
        if found.pending:
            # Of another command, which may have been interrupted. If it does
            # not fit, that is for that command to tell.
            with contextlib.suppress(exception.ReservationError):
                reconciler.reconcile(store, found.id, now)
            observed = store.read()
            found = observed.reservation(reservation_id)
        if found.has_ended(now):
            raise _ended(found.id)
        if found.pending:
            continue
        wanted = decide(observed, found)
        if wanted != present(found):
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
    raise contended(reservation_id)


def contended(reservation_id: str) -> exception.ReservationError:
    """Return the error of a command that others have outrun."""
    return exception.ReservationError(
        reservation_id,
        'was changed by other commands again and again; run this one again',
    )
