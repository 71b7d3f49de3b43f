# SPDX-License-Identifier: Apache-2.0
"""Writes leases for existing reservations into Blazar's database.

Nova and Placement are not changed.
"""

from collections.abc import Mapping
import dataclasses
import datetime
from typing import Any

from blazar import status
from blazar.db import api as db_api
from blazar.plugins import instances

from isolate_aggregates import exception
from isolate_aggregates.reservations.blazar import rows
from isolate_aggregates.reservations.reservation import Shape

_START, _END = 'start_lease', 'end_lease'
_LIVING = (status.lease.PENDING, status.lease.ACTIVE)


@dataclasses.dataclass(frozen=True)
class Lease:
    """The data of a lease with one reservation.

    :param slots: The number of slots by hypervisor hostname.
    :param has_started: Whether its project has access.
    """

    reservation: str
    project: str
    start: datetime.datetime
    end: datetime.datetime
    has_started: bool
    amount: int
    affinity: bool | None
    shape: Shape
    slots: Mapping[str, int]


def write(wanted: Lease) -> None:
    """Create a lease in Blazar's database, or update it.

    :raises ReservationError: if a host is not in the database, or the database
        has a different reservation with this id.
    """
    known = {host['hypervisor_hostname'] for host in db_api.host_list()}
    missing = ', '.join(sorted(wanted.slots.keys() - known))
    if not wanted.slots:
        raise _problem(wanted, 'it has no slots')
    if missing:
        raise _problem(
            wanted, f'Blazar does not know {missing}; add it as a host first'
        )
    found = db_api.reservation_get(wanted.reservation)
    if found is None:
        _create(wanted)
    else:
        _update(wanted, found)


def _create(wanted: Lease) -> None:
    hosts = {host['hypervisor_hostname']: host for host in db_api.host_list()}
    reservation, lease = _statuses(wanted)
    made = db_api.lease_create(
        {
            'name': f'adopted-{wanted.reservation}',
            'project_id': wanted.project,
            'start_date': _naive(wanted.start),
            'end_date': _naive(wanted.end),
            # The trust of the operator who added the host: the owner of the
            # lease cannot create one here.
            'trust_id': hosts[next(iter(wanted.slots))]['trust_id'],
            'status': lease,
            'reservations': [
                {
                    'id': wanted.reservation,
                    'resource_type': instances.RESOURCE_TYPE,
                    'status': reservation,
                }
            ],
            'events': [
                {'event_type': _START, **_start_event(wanted)},
                {
                    'event_type': _END,
                    'time': _naive(wanted.end),
                    'status': status.event.UNDONE,
                },
            ],
        }
    )
    shape = wanted.shape
    try:
        row = db_api.instance_reservation_create(
            {
                'reservation_id': wanted.reservation,
                'vcpus': shape.vcpus,
                'memory_mb': shape.ram,
                'disk_gb': shape.disk + shape.ephemeral,
                'amount': wanted.amount,
                'affinity': wanted.affinity,
                'resource_properties': '',
                'flavor_id': wanted.reservation,
            }
        )
        db_api.reservation_update(
            wanted.reservation, {'resource_id': row['id']}
        )
        _allocate(wanted)
    except Exception:
        db_api.lease_destroy(made['id'])
        raise


def _update(wanted: Lease, found: Mapping[str, Any]) -> None:
    """Update a lease with what has changed without Blazar."""
    lease = db_api.lease_get(found['lease_id'])
    if lease['status'] not in _LIVING:
        raise _problem(wanted, f'its lease is {lease["status"]} in Blazar')
    if lease['project_id'] != wanted.project:
        raise _problem(
            wanted, f'its lease belongs to project {lease["project_id"]}'
        )
    times = {
        'start_date': _naive(wanted.start),
        'end_date': _naive(wanted.end),
    }
    if len(lease['reservations']) > 1 and any(
        lease[name] != time for name, time in times.items()
    ):
        raise _problem(
            wanted, 'its times changed, and its lease has other reservations'
        )
    rows.forget_slots(wanted.reservation)
    _allocate(wanted)
    db_api.instance_reservation_update(
        found['resource_id'],
        {'amount': wanted.amount, 'affinity': wanted.affinity},
    )
    reservation, state = _statuses(wanted)
    for event in lease['events']:
        if event['event_type'] == _START:
            db_api.event_update(event['id'], _start_event(wanted))
        elif event['event_type'] == _END:
            db_api.event_update(event['id'], {'time': _naive(wanted.end)})
    db_api.reservation_update(wanted.reservation, {'status': reservation})
    db_api.lease_update(lease['id'], {**times, 'status': state})


def _allocate(wanted: Lease) -> None:
    for host, number in rows.by_host(wanted.slots).items():
        for _ in range(number):
            db_api.host_allocation_create(
                {
                    'compute_host_id': host,
                    'reservation_id': wanted.reservation,
                }
            )


def _statuses(wanted: Lease) -> tuple[str, str]:
    if wanted.has_started:
        return status.reservation.ACTIVE, status.lease.ACTIVE
    return status.reservation.PENDING, status.lease.PENDING


def _start_event(wanted: Lease) -> dict[str, Any]:
    return {
        'time': _naive(wanted.start),
        'status': status.event.DONE
        if wanted.has_started
        else status.event.UNDONE,
    }


def _naive(time: datetime.datetime) -> datetime.datetime:
    """Return a time as Blazar stores it: naive, in UTC."""
    return time.astimezone(datetime.UTC).replace(tzinfo=None)


def _problem(wanted: Lease, why: str) -> exception.ReservationError:
    return exception.ReservationError(
        wanted.reservation, f'cannot be adopted: {why}'
    )
