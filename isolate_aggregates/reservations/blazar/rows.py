# SPDX-License-Identifier: Apache-2.0
"""Reads and writes reservations in Blazar's database."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from blazar import status
from blazar.db import api as db_api
from oslo_utils import timeutils, uuidutils

# The columns in which Blazar's own plugin stores ids of objects in Nova.
_OLD_COLUMNS = ('aggregate_id', 'server_group_id')

# The prefix of the ids of allocations for slots left behind; see left_behind.
_LEFT_BEHIND = 'left-behind-'

# The lease statuses that Blazar sets before it ends the reservations.
_ENDING = (
    status.lease.TERMINATING,
    status.lease.TERMINATED,
    status.lease.DELETING,
)


def is_old(row: Any) -> bool:
    """Return whether Blazar's own plugin created a reservation."""
    return any(row.get(column) for column in _OLD_COLUMNS)


def allocations(reservation: str | None) -> list[dict[str, Any]]:
    """Return the slots of a reservation, each with its host."""
    return [row for row in _rows(reservation) if not _is_left_behind(row)]


def left_behind(reservation: str | None) -> Counter[str]:
    """Return the number of slots that were left behind, by host id.

    They are slots on failed hosts that may still have servers. They are stored
    as allocations of Blazar, so that they count when hosts are chosen.
    """
    return Counter(
        row['compute_host_id']
        for row in _rows(reservation)
        if _is_left_behind(row)
    )


def leave_behind(reservation: str, numbers: Mapping[str, int]) -> None:
    """Set the number of slots that were left behind.

    :param numbers: The number by host id; other hosts do not change.
    """
    for host, number in numbers.items():
        known = [
            row
            for row in _rows(reservation)
            if _is_left_behind(row) and row['compute_host_id'] == host
        ]
        for row in known[number:]:
            db_api.host_allocation_destroy(row['id'])
        for _ in range(number - len(known)):
            db_api.host_allocation_create(
                {
                    'id': _LEFT_BEHIND + uuidutils.generate_uuid()[-24:],
                    'compute_host_id': host,
                    'reservation_id': reservation,
                }
            )


def with_slots_left_behind() -> list[str]:
    """Return the ids of the reservations with slots left behind."""
    return sorted(
        {
            row['reservation_id']
            for row in db_api.host_allocation_get_all_by_values()
            if _is_left_behind(row)
        }
    )


def hostnames(hosts: Iterable[str]) -> list[str]:
    """Return the hypervisor hostnames of hosts."""
    return [db_api.host_get(host)['hypervisor_hostname'] for host in hosts]


def by_host(numbers: Mapping[str, int]) -> dict[str, int]:
    """Convert numbers by hypervisor hostname to numbers by host id.

    Hosts that are not in Blazar's database are left out.
    """
    return {
        host['id']: numbers[host['hypervisor_hostname']]
        for host in db_api.host_list()
        if host['hypervisor_hostname'] in numbers
    }


def forget_slots(reservation: str) -> None:
    """Delete all slots of a reservation, including those left behind."""
    for row in _rows(reservation):
        db_api.host_allocation_destroy(row['id'])


def numbers(reservation: str) -> Counter[str]:
    """Return the number of slots of a reservation by hypervisor hostname."""
    return Counter(
        hostnames(row['compute_host_id'] for row in allocations(reservation))
    )


def current(reservation: str) -> dict[str, Any] | None:
    """Return a reservation; None if it has ended, failed or is gone."""
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
    """Return whether a reservation has started, or is being started."""
    lease = db_api.lease_get(found['lease_id'])
    return bool(
        found['status'] == status.reservation.ACTIVE
        or lease['status'] == status.lease.STARTING
    )


def is_ending(reservation: str) -> bool:
    """Return whether a reservation ends or has ended, by the database."""
    found = db_api.reservation_get(reservation)
    if not found:
        # It is not in the database.
        return False
    lease = db_api.lease_get(found['lease_id'])
    return bool(
        found['status'] == status.reservation.DELETED
        or lease['status'] in _ENDING
    )


def report(reservation: str, is_missing: bool) -> None:
    """Set the flag for missing resources, as Blazar's healing does."""
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
    """Return the ids of the active reservations of these plugins."""
    found = db_api.reservation_get_all_by_values(
        status=status.reservation.ACTIVE
    )
    return [r['id'] for r in found if _is_kept_here(r)]


def lingering() -> list[str]:
    """Return the ids of ended reservations that still have slots."""
    found = db_api.reservation_get_all_by_values(
        status=status.reservation.DELETED
    )
    held = {
        allocation['reservation_id']
        for allocation in db_api.host_allocation_get_all_by_values()
    }
    return [r['id'] for r in found if r['id'] in held and _is_kept_here(r)]


def allow_deletion(lease: str) -> None:
    """Make a lease deletable again after its deletion has failed.

    Blazar has marked the end event of the lease as in progress, and refuses
    to delete a lease whose events do not match its status.
    """
    event = db_api.event_get_first_sorted_by_filters(
        'lease_id', 'asc', {'lease_id': lease, 'event_type': 'end_lease'}
    )
    if event['status'] == status.event.IN_PROGRESS:
        db_api.event_update(event['id'], {'status': status.event.UNDONE})


def _rows(reservation: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = db_api.host_allocation_get_all_by_values(
        reservation_id=reservation
    )
    return found


def _is_left_behind(row: Mapping[str, Any]) -> bool:
    return str(row.get('id')).startswith(_LEFT_BEHIND)


def _is_kept_here(reservation: dict[str, Any]) -> bool:
    # Reservations of other resource types, like hosts, have no size.
    return 'vcpus' in reservation and not is_old(reservation)
