# SPDX-License-Identifier: Apache-2.0
"""What Blazar's database has of reservations."""

from collections import Counter
from typing import Any

from blazar import status
from blazar.db import api as db_api
from oslo_utils import timeutils

# Where Blazar's own plugin writes down what it makes in Nova.
_OLD_COLUMNS = ('aggregate_id', 'server_group_id')

# What Blazar writes before it ends the reservations of a lease.
_ENDING = (
    status.lease.TERMINATING,
    status.lease.TERMINATED,
    status.lease.DELETING,
)


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


def current(reservation: str) -> dict[str, Any] | None:
    """Return a reservation; None if it is not to have anything any more."""
    found: dict[str, Any] | None = db_api.reservation_get(reservation)
    if (
        not found
        or is_ending(reservation)
        or found['status'] == status.reservation.ERROR
    ):
        return None
    lease = db_api.lease_get(found['lease_id'])
    return found if timeutils.utcnow() < lease['end_date'] else None


def has_started(found: dict[str, Any]) -> bool:
    """Tell whether a reservation has started, or is being started."""
    lease = db_api.lease_get(found['lease_id'])
    return bool(
        found['status'] == status.reservation.ACTIVE
        or lease['status'] == status.lease.STARTING
    )


def is_ending(reservation: str) -> bool:
    """Tell whether the database says that a reservation ends, or has ended."""
    found = db_api.reservation_get(reservation)
    if not found:
        # Nothing is said of it.
        return False
    lease = db_api.lease_get(found['lease_id'])
    return bool(
        found['status'] == status.reservation.DELETED
        or lease['status'] in _ENDING
    )


def report(reservation: str, is_missing: bool) -> None:
    """Tell users whether a reservation lacks something, as healing does."""
    found = db_api.reservation_get(reservation)
    if not found or found['missing_resources'] == is_missing:
        return
    db_api.reservation_update(reservation, {'missing_resources': is_missing})
    lease = db_api.lease_get(found['lease_id'])
    db_api.lease_update(
        lease['id'],
        {
            'degraded': any(
                one['missing_resources'] or one['resources_changed']
                for one in lease['reservations']
            )
        },
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
