# SPDX-License-Identifier: Apache-2.0
"""Computes the capacity of Blazar's hosts, and what their slots need.

Blazar counts a reservation once per host, no matter how many slots of it the
host has, and takes the totals of the hypervisor as the capacity. Here every
slot counts, and capacity that is reserved in Placement is subtracted.
"""

from collections.abc import Iterable, Mapping
import json
from typing import Any

from blazar import status
from blazar.db import api as db_api

from isolate_aggregates.reservations.plan import Claim
from isolate_aggregates.reservations.reservation import Shape

# The columns of Blazar's hosts, by resource class.
_COLUMNS = {'VCPU': 'vcpus', 'MEMORY_MB': 'memory_mb', 'DISK_GB': 'local_gb'}

# Present only in flavor-based reservations; see FlavorPlugin.
_EPHEMERAL = 'OS-FLV-EXT-DATA:ephemeral'


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


def needs(shape: Shape) -> dict[str, int]:
    """Return the resources that a slot needs, by resource class."""
    return {
        'VCPU': shape.vcpus,
        'MEMORY_MB': shape.ram,
        'DISK_GB': shape.disk + shape.ephemeral,
    }


def capacity(host: Mapping[str, Any]) -> dict[str, int]:
    """Return the capacity of a host, by resource class.

    This is the smaller of Blazar's value, which does not overcommit CPUs, and
    Placement's.
    """
    amounts = {name: host[column] for name, column in _COLUMNS.items()}
    for row in db_api.host_resource_inventory_get_all_per_host(host['id']):
        if row['resource_class'] in amounts:
            available = (row['total'] - row['reserved']) * row[
                'allocation_ratio'
            ]
            amounts[row['resource_class']] = min(
                amounts[row['resource_class']], int(available)
            )
    return amounts


def claims(host: str, reservations: Iterable[Any]) -> tuple[Claim, ...]:
    return tuple(_claim(host, reservation) for reservation in reservations)


def _claim(host: str, reservation: Any) -> Claim:
    lease = db_api.lease_get(reservation['lease_id'])
    allocations = db_api.host_allocation_get_all_by_values(
        reservation_id=reservation['id'], compute_host_id=host
    )
    # It has ended but still has servers, so its end is open.
    lingers = reservation['status'] == status.reservation.DELETED
    return Claim(
        start=lease['start_date'],
        end=None if lingers else lease['end_date'],
        needs=needs(shape_of(reservation['instance_reservation'])),
        slots=len(allocations),
    )


def _reserved_flavor(row: Any) -> Mapping[str, Any] | None:
    properties = row['resource_properties']
    if not properties or _EPHEMERAL not in properties:
        return None
    flavor: Mapping[str, Any] = json.loads(properties)
    return flavor
