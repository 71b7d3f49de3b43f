# SPDX-License-Identifier: Apache-2.0
"""What Blazar's database has of reservations."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from blazar import status
from blazar.db import api as db_api
from oslo_utils import timeutils, uuidutils

# Where Blazar's own plugin writes down what it makes in Nova.
_OLD_COLUMNS = ('aggregate_id', 'server_group_id')

# How the ids of allocations begin that are slots left behind, see left_behind.
_LEFT_BEHIND = 'left-behind-'

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
    return [row for row in _rows(reservation) if not _is_left_behind(row)]


def left_behind(reservation: str | None) -> Counter[str]:
    """Return how many slots of a reservation stayed, by id of the host.

    The host failed and has not lost their servers. They are among Blazar's
    allocations, so that whatever chooses hosts counts them.
    """
    return Counter(
        row['compute_host_id']
        for row in _rows(reservation)
        if _is_left_behind(row)
    )


def leave_behind(reservation: str, numbers: Mapping[str, int]) -> None:
    """Write down how many slots of a reservation stayed.

    :param numbers: How many, by id of the host; other hosts do not change.
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
    """Return the ids of the reservations with slots that stayed."""
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
    """Return numbers by id of the host, of those that Blazar has.

    :param numbers: The numbers by hypervisor hostname.
    """
    return {
        host['id']: numbers[host['hypervisor_hostname']]
        for host in db_api.host_list()
        if host['hypervisor_hostname'] in numbers
    }


def forget_slots(reservation: str) -> None:
    """Take all slots from a reservation, those that stayed as well."""
    for row in _rows(reservation):
        db_api.host_allocation_destroy(row['id'])


def numbers(reservation: str) -> Counter[str]:
    """Return the number of slots of a reservation by hypervisor hostname."""
    return Counter(
        hostnames(row['compute_host_id'] for row in allocations(reservation))
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


def _rows(reservation: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = db_api.host_allocation_get_all_by_values(
        reservation_id=reservation
    )
    return found


def _is_left_behind(row: Mapping[str, Any]) -> bool:
    return str(row.get('id')).startswith(_LEFT_BEHIND)


def _is_kept_here(reservation: dict[str, Any]) -> bool:
    # Reservations of hosts, say, have no size.
    return 'vcpus' in reservation and not is_old(reservation)
