# SPDX-License-Identifier: Apache-2.0
"""Reads and writes reservations in Blazar's database."""

from collections import Counter
from collections.abc import Iterable, Mapping
import datetime
import json
from typing import Any

from blazar import status
from blazar.db import api as db_api
from blazar.db.sqlalchemy import facade_wrapper
from oslo_db import exception as db_exceptions
from oslo_utils import timeutils, uuidutils
import sqlalchemy as sa

from isolate_aggregates_reservations import errors
from isolate_aggregates_reservations.reservation import Shape

# The columns in which Blazar's own plugin stores ids of objects in Nova.
_OLD_COLUMNS = ('aggregate_id', 'server_group_id')

# The prefix of the ids of allocations for slots left behind; see left_behind.
_LEFT_BEHIND = 'left-behind-'

# Present only in flavor-based reservations; see FlavorPlugin.
_EPHEMERAL = 'OS-FLV-EXT-DATA:ephemeral'

# The id of the database, created once. Several Blazars may keep reservations
# in one Nova, and a Blazar may be started with a wrong database by mistake. So
# each reservation records that id.
_TABLE = sa.Table(
    'isolate_aggregates_database',
    sa.MetaData(),
    # A constant, so that the table has a single row.
    sa.Column('name', sa.String(16), primary_key=True),
    sa.Column('id', sa.String(36), nullable=False),
)
_NAME = 'database'

# The lease statuses that Blazar sets before it ends the reservations.
_ENDING = (
    status.lease.TERMINATING,
    status.lease.TERMINATED,
    status.lease.DELETING,
)


def database_id() -> str:
    """Return the id of Blazar's database; create it if there is none."""
    with facade_wrapper.session_for_write() as session:
        connection = session.connection()
        if not sa.inspect(connection).has_table(_TABLE.name):
            _TABLE.create(connection, checkfirst=True)
    value = _read_id()
    if value is None:
        try:
            with facade_wrapper.session_for_write() as session:
                session.execute(
                    _TABLE.insert().values(
                        name=_NAME, id=uuidutils.generate_uuid()
                    )
                )
        except db_exceptions.DBDuplicateEntry:
            # Another blazar-manager created it first.
            pass
        value = _read_id()
    return str(value)


def shape_of(row: Any) -> Shape:
    flavor = _reserved_flavor(row)
    if flavor is None:
        return Shape(row['vcpus'], row['memory_mb'], row['disk_gb'])
    return Shape(
        vcpus=flavor['vcpus'],
        ram=flavor['ram'],
        disk=flavor['disk'],
        ephemeral=flavor[_EPHEMERAL],
        extra_specs=flavor['extra_specs'],
    )


def is_old(row: Any) -> bool:
    """Return whether Blazar's own plugin created a reservation."""
    return any(row.get(column) for column in _OLD_COLUMNS)


def allocations(reservation: str | None) -> list[dict[str, Any]]:
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
        present = [
            row
            for row in _rows(reservation)
            if _is_left_behind(row) and row['compute_host_id'] == host
        ]
        for row in present[number:]:
            db_api.host_allocation_destroy(row['id'])
        for _ in range(number - len(present)):
            db_api.host_allocation_create(
                {
                    'id': _LEFT_BEHIND + uuidutils.generate_uuid()[-24:],
                    'compute_host_id': host,
                    'reservation_id': reservation,
                }
            )


def with_slots_left_behind() -> list[str]:
    return sorted(
        {
            row['reservation_id']
            for row in db_api.host_allocation_get_all_by_values()
            if _is_left_behind(row)
        }
    )


def hostnames(hosts: Iterable[str]) -> list[str]:
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
    return Counter(
        hostnames(row['compute_host_id'] for row in allocations(reservation))
    )


def current(reservation: str) -> dict[str, Any] | None:
    """Return a reservation; None if it has ended, failed or is gone."""
    row: dict[str, Any] | None = db_api.reservation_get(reservation)
    if (
        not row
        or is_ending(reservation)
        or row['status'] == status.reservation.ERROR
    ):
        return None
    lease = lease_of(row)
    return row if timeutils.utcnow() < lease['end_date'] else None


def lease_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the lease of a reservation.

    :raises ReservationError: if the database has lost it.
    """
    lease: Mapping[str, Any] | None = db_api.lease_get(row['lease_id'])
    if lease is None:
        raise errors.ReservationError(
            row['id'],
            f'belongs to lease {row["lease_id"]}, which is not in the '
            'database of Blazar; restore the database, or end the reservation '
            'as an operator',
        )
    return lease


def end_of(lease: Mapping[str, Any]) -> datetime.datetime:
    end: datetime.datetime = lease['end_date']
    return end.replace(tzinfo=datetime.UTC)


def is_deleting(reservation: str) -> bool:
    row = db_api.reservation_get(reservation)
    return bool(row) and lease_of(row)['status'] == status.lease.DELETING


def has_none(reservation: str) -> bool:
    return not _rows(reservation)


def lost_slots(reservation: str) -> errors.ReservationError:
    return errors.ReservationError(
        reservation,
        'has slots in Placement, but no allocation in the database of '
        'Blazar; its slots are left unchanged; restore the database',
    )


def has_started(row: dict[str, Any]) -> bool:
    lease = lease_of(row)
    return bool(
        row['status'] == status.reservation.ACTIVE
        or lease['status'] == status.lease.STARTING
    )


def is_ending(reservation: str) -> bool:
    row = db_api.reservation_get(reservation)
    if not row:
        # It is not in the database.
        return False
    lease = lease_of(row)
    return bool(
        row['status'] == status.reservation.DELETED
        or lease['status'] in _ENDING
    )


def report(reservation: str, is_missing: bool) -> None:
    """Set the flag for missing resources, as Blazar's healing does."""
    row = db_api.reservation_get(reservation)
    if not row or row['missing_resources'] == is_missing:
        return
    db_api.reservation_update(reservation, {'missing_resources': is_missing})
    lease = lease_of(row)
    db_api.lease_update(
        lease['id'],
        {
            'degraded': any(
                each['missing_resources'] or each['resources_changed']
                for each in lease['reservations']
            )
        },
    )


def active() -> list[str]:
    active_rows = db_api.reservation_get_all_by_values(
        status=status.reservation.ACTIVE
    )
    return [row['id'] for row in active_rows if _is_kept_here(row)]


def lingering() -> list[str]:
    """Return the ids of ended reservations that still have slots."""
    ended = db_api.reservation_get_all_by_values(
        status=status.reservation.DELETED
    )
    with_slots = {
        allocation['reservation_id']
        for allocation in db_api.host_allocation_get_all_by_values()
    }
    return [
        row['id']
        for row in ended
        if row['id'] in with_slots and _is_kept_here(row)
    ]


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
    allocations: list[dict[str, Any]] = (
        db_api.host_allocation_get_all_by_values(reservation_id=reservation)
    )
    return allocations


def _is_left_behind(row: Mapping[str, Any]) -> bool:
    return str(row.get('id')).startswith(_LEFT_BEHIND)


def _is_kept_here(reservation: dict[str, Any]) -> bool:
    # Reservations of other resource types, like hosts, have no size.
    return 'vcpus' in reservation and not is_old(reservation)


def _reserved_flavor(row: Any) -> Mapping[str, Any] | None:
    properties = row['resource_properties']
    if not properties or _EPHEMERAL not in properties:
        return None
    flavor: Mapping[str, Any] = json.loads(properties)
    return flavor


def _read_id() -> str | None:
    with facade_wrapper.session_for_read() as session:
        value = session.execute(sa.select(_TABLE.c.id)).scalar()
        return None if value is None else str(value)
