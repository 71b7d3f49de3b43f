# SPDX-License-Identifier: Apache-2.0
"""Finds records that are older than the slots that were written for them."""

from collections.abc import Iterable

from isolate_aggregates import exception
from isolate_aggregates.reservations import (
    errors,
    parallel,
    record,
    slots,
)
from isolate_aggregates.reservations.reservation import Reservation
from isolate_aggregates.reservations.state import ObservedState
from isolate_aggregates.reservations.store import ReservationStore


def stale_records(
    store: ReservationStore,
    state: ObservedState,
    reservations: Iterable[Reservation],
) -> dict[str, str]:
    """Find records that are older than their slots.

    :returns: What is wrong, as the predicate of a sentence, by reservation id.
    """
    by_id = {reservation.id: reservation for reservation in reservations}
    changes = parallel.each(
        lambda provider: slots.changes(store.placement, provider),
        {
            provider
            for name in by_id
            for provider in state.slot_providers(name)
        },
    )
    suspects = {
        name
        for by_name in changes.values()
        for name, change in by_name.items()
        if name in by_id and change > by_id[name].change
    }
    stale = {}
    for name in sorted(suspects):
        try:
            check_record(store, state, by_id[name])
        except errors.StaleRecord as exc:
            stale[name] = exc.problem
        except exception.ServiceConflict:
            # Another command has changed it since it was read.
            continue
    return stale


def check_record(
    store: ReservationStore, state: ObservedState, reservation: Reservation
) -> None:
    """Check that the record of a reservation is not older than its slots.

    :raises StaleRecord: if it is.
    :raises ServiceConflict: if another command has changed it since it was
        read.
    """
    change = slots.last_change(
        store.placement,
        state.slot_providers(reservation.id),
        reservation.resource_class,
    )
    if change <= reservation.change:
        return
    # The slots were read after the record, and written after theirs.
    revisions = record.read(store.compute.revisions(reservation))
    newest = revisions.reservations.get(reservation.id)
    if newest is None or newest.change >= change:
        raise conflict(reservation.id)
    raise errors.StaleRecord(reservation.id, change)


def conflict(reservation: str) -> exception.ServiceConflict:
    return exception.ServiceConflict(
        'Nova',
        None,
        f'has a new record of reservation {reservation}; run the command '
        'again.',
    )
