# SPDX-License-Identifier: Apache-2.0
"""What Blazar's database has of reservations."""

from collections import Counter
from typing import Any

from blazar import status
from blazar.db import api as db_api

# Where Blazar's own plugin writes down what it makes in Nova.
_OLD_COLUMNS = ('aggregate_id', 'server_group_id')


def is_old(row: Any) -> bool:
    """Tell whether a reservation is kept as Blazar's own plugin does."""
    return any(row.get(column) for column in _OLD_COLUMNS)


def allocations(reservation: str | None) -> list[dict[str, Any]]:
    """Return the slots of a reservation, each with its host."""
    found: list[dict[str, Any]] = db_api.host_allocation_get_all_by_values(
        reservation_id=reservation
    )
    return found


def numbers(reservation: str) -> Counter[str]:
    """Return the number of slots of a reservation by hypervisor hostname."""
    return Counter(
        db_api.host_get(allocation['compute_host_id'])['hypervisor_hostname']
        for allocation in allocations(reservation)
    )


def active() -> list[str]:
    """Return the ids of the reservations that are active and kept here."""
    found = db_api.reservation_get_all_by_values(
        status=status.reservation.ACTIVE
    )
    return [r['id'] for r in found if _is_kept_here(r)]


def lingering() -> list[str]:
    """Return the ids of the reservations that ended and still have slots."""
    found = db_api.reservation_get_all_by_values(
        status=status.reservation.DELETED
    )
    held = {
        allocation['reservation_id']
        for allocation in db_api.host_allocation_get_all_by_values()
    }
    return [r['id'] for r in found if r['id'] in held and _is_kept_here(r)]


def allow_deletion(lease: str) -> None:
    """Let a lease whose deletion has just failed be deleted again.

    Blazar has written down that it is ending, and takes no other lease for one
    that it can delete.
    """
    event = db_api.event_get_first_sorted_by_filters(
        'lease_id', 'asc', {'lease_id': lease, 'event_type': 'end_lease'}
    )
    if event['status'] == status.event.IN_PROGRESS:
        db_api.event_update(event['id'], {'status': status.event.UNDONE})


def _is_kept_here(reservation: dict[str, Any]) -> bool:
    # Reservations of hosts, say, have no size.
    return 'vcpus' in reservation and not is_old(reservation)
