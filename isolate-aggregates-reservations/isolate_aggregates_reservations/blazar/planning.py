# SPDX-License-Identifier: Apache-2.0
"""Chooses the hosts of instance reservations, counting every slot.

Blazar counts a reservation once per host, no matter how many slots of it the
host has, and takes the totals of the hypervisor as the capacity. Here every
slot counts, and capacity that is reserved in Placement is subtracted.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
import contextlib
import contextvars
import datetime
import logging
import threading
from typing import Any

from blazar import status
from blazar.db import api as db_api
from blazar.db import exceptions as db_exceptions
from blazar.db import utils as db_utils
from blazar.manager import exceptions as manager_exceptions
from blazar.plugins.instances import instance_plugin
from oslo_utils import strutils, timeutils

from isolate_aggregates_reservations import plan
from isolate_aggregates_reservations.blazar import rows
from isolate_aggregates_reservations.blazar.exceptions import (
    UnknownResourceProperty,
    refusing,
)
from isolate_aggregates_reservations.reservation import Shape
from isolate_aggregates_tools import shell

LOG = logging.getLogger(__name__)

# Shorter than any lease, which start and end on full minutes.
_MOMENT = datetime.timedelta(seconds=1)
_LONG_AGO = datetime.datetime(1970, 1, 1)

# The columns of Blazar's hosts, by resource class.
_COLUMNS = {'VCPU': 'vcpus', 'MEMORY_MB': 'memory_mb', 'DISK_GB': 'local_gb'}

# Blazar counts free slots; see get_hosts_list.
_SLOT = 'slot'

# Held while hosts are chosen and the choice is written to Blazar's database,
# as concurrent requests must not choose the same capacity. Nova and Placement
# are called after it was released: they may hang.
CHOOSING = threading.RLock()

# The reservations to write to Nova and Placement then; None outside.
CHANGED: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar(
    'changed', default=None
)


class SlotPlanning(instance_plugin.VirtualInstancePlugin):
    """The part of the instance plugin that chooses hosts."""

    def reserve_resource(
        self, reservation_id: str, values: dict[str, Any]
    ) -> Any:
        with CHOOSING:
            return super().reserve_resource(reservation_id, values)

    def update_reservation(
        self, reservation_id: str, new_values: dict[str, Any]
    ) -> None:
        changes: list[str] = []
        token = CHANGED.set(changes)
        try:
            with CHOOSING:
                super().update_reservation(reservation_id, new_values)
        finally:
            CHANGED.reset(token)
        for reservation in changes:
            self.update_resources(reservation)

    def filter_hosts_by_reservation(
        self,
        hosts: Iterable[Any],
        start_date: datetime.datetime,
        end_date: datetime.datetime,
        excludes: Collection[str] | None,
    ) -> tuple[list[Any], list[Any]]:
        """Divide hosts by whether they have reservations in a period.

        Reservations that have ended but still have servers count. Reservations
        that end exactly at the start, or start at the end, do not.

        :returns: Hosts without reservations, and hosts with reservations.
        """
        free, reserved = super().filter_hosts_by_reservation(
            hosts, start_date + _MOMENT, end_date - _MOMENT, excludes
        )
        if start_date > timeutils.utcnow():
            return free, reserved
        for entry in [*free, *reserved]:
            ids = {reservation['id'] for reservation in entry['reservations']}
            lingering = [
                reservation
                for reservation in self._lingering(entry['host'], start_date)
                if reservation['id'] not in ids
            ]
            if lingering and entry in free:
                free.remove(entry)
                reserved.append(entry)
            entry['reservations'] = [*entry['reservations'], *lingering]
        return free, reserved

    def _lingering(self, host: Any, before: datetime.datetime) -> list[Any]:
        return [
            reservation
            for reservation in db_utils.get_reservations_by_host_id(
                host['id'], _LONG_AGO, before
            )
            if reservation['status'] == status.reservation.DELETED
        ]

    def get_hosts_list(
        self, host_info: Mapping[str, Any], cpus: int, memory: int, disk: int
    ) -> list[Any]:
        """Return a host once for each slot that fits on it.

        :param cpus: Virtual CPUs of a slot.
        :param memory: Memory of a slot in MiB.
        :param disk: Disk of a slot in GiB.
        """
        host = host_info['host']
        capacity = plan.HostCapacity(
            host['id'],
            _capacity(host),
            claims=_claims(host['id'], host_info['reservations']),
        )
        # All these reservations overlap the requested period. So wherever they
        # overlap each other, they do so within it, and their overall peak is
        # the peak of the period.
        demand = plan.Demand(
            start=datetime.datetime.min,
            end=None,
            needs={'VCPU': cpus, 'MEMORY_MB': memory, 'DISK_GB': disk},
            amount=1,
        )
        return [host] * plan.free_slots(capacity, demand)

    def pickup_hosts(
        self, reservation_id: str | None, values: Mapping[str, Any]
    ) -> dict[str, list[str]]:
        """Return the ids of the hosts to add slots to and remove slots from.

        :raises NotEnoughHostsAvailable: if it does not fit.
        """
        assignment, before = self._assign(reservation_id, values)
        if assignment.missing:
            raise manager_exceptions.NotEnoughHostsAvailable()
        after = Counter(assignment.slots)
        return {
            'added': list((after - before).elements()),
            'removed': list((before - after).elements()),
        }

    def allocation_candidates(self, reservation: Mapping[str, Any]) -> Any:
        """Return the ids of the hosts that a reservation would get.

        :param reservation: The reservation with its wanted values. Capacity of
            its existing slots counts as free.
        :raises MissingParameter: if a value is missing.
        """
        self._check_missing_reservation_params(reservation)
        known = reservation.get('id')
        # A reservation with an id is one that is to be changed.
        with refusing() if known else contextlib.nullcontext():
            assignment, _ = self._assign(known, reservation)
        if assignment.missing:
            raise manager_exceptions.NotEnoughHostsAvailable()
        return list(Counter(assignment.slots).elements())

    def _assign(
        self, reservation_id: str | None, values: Mapping[str, Any]
    ) -> tuple[plan.Assignment, Counter[str]]:
        """Choose hosts for as many slots of a reservation as possible.

        Slots stay on their hosts if possible. Slots that were left behind on a
        failed host do not take capacity from the same reservation.

        :returns: The number of slots by host id, and the present number.
        :raises UnknownResourceProperty: if no host has a property that it
            requires; Blazar's own error does not say so.
        """
        before = Counter(
            row['compute_host_id'] for row in rows.allocations(reservation_id)
        )
        try:
            hosts = self.query_available_hosts(
                cpus=values['vcpus'],
                memory=values['memory_mb'],
                disk=values['disk_gb'],
                resource_properties=values['resource_properties'],
                start_date=values['start_date'],
                end_date=values['end_date'],
                excludes_res=[reservation_id] if reservation_id else None,
            )
        except db_exceptions.BlazarDBNotFound as exc:
            raise UnknownResourceProperty(
                name=exc.kwargs['id'],
                requirements=values['resource_properties'],
                give=shell.command(
                    shell.Kind.LEASE_HOST_SET,
                    *shell.option('--extra', f'{exc.kwargs["id"]}=VALUE'),
                ),
            ) from exc
        # The order is the order of preference.
        free = Counter(host['id'] for host in hosts)
        demand = plan.Demand(
            start=values['start_date'],
            end=values['end_date'],
            needs={_SLOT: 1},
            amount=values['amount'],
            affinity=strutils.bool_from_string(
                values['affinity'], default=None
            ),
        )
        capacities = [
            plan.HostCapacity(
                host, {_SLOT: slots}, own=before[host], rank=rank
            )
            for rank, (host, slots) in enumerate(free.items())
        ]
        return plan.assign(demand, capacities), before

    def _move(
        self, reservation: Mapping[str, Any], failed_hosts: Sequence[str]
    ) -> bool:
        """Move slots from failed hosts to other hosts, as far as they fit.

        :returns: Whether all of them fit.
        """
        allocations = rows.allocations(reservation['id'])
        stuck = [
            a for a in allocations if a['compute_host_id'] in failed_hosts
        ]
        if reservation['status'] == status.reservation.ACTIVE:
            # Any of them may have a server, until Placement has been asked.
            old_hosts = rows.left_behind(reservation['id'])
            old_hosts.update(row['compute_host_id'] for row in stuck)
            rows.leave_behind(reservation['id'], old_hosts)
        lease = db_api.lease_get(reservation['lease_id'])
        # Blazar does not offer hosts that have failed.
        assignment, before = self._assign(
            reservation['id'],
            {
                **reservation,
                'amount': len(allocations),
                'start_date': max(timeutils.utcnow(), lease['start_date']),
                'end_date': lease['end_date'],
            },
        )
        added = list((Counter(assignment.slots) - before).elements())
        for allocation, host in zip(stuck, added, strict=False):
            db_api.host_allocation_update(
                allocation['id'], {'compute_host_id': host}
            )
        lost = stuck[len(added) :]
        for allocation in lost:
            db_api.host_allocation_destroy(allocation['id'])
        if lost:
            LOG.warning(
                'Reservation %s loses %d of its slots: their host failed, '
                'and no other host has capacity.',
                reservation['id'],
                len(lost),
            )
        return not lost


def _needs(shape: Shape) -> dict[str, int]:
    """Return the resources that a slot needs, by resource class."""
    return {
        'VCPU': shape.vcpus,
        'MEMORY_MB': shape.ram,
        'DISK_GB': shape.disk + shape.ephemeral,
    }


def _capacity(host: Mapping[str, Any]) -> dict[str, int]:
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


def _claims(host: str, reservations: Iterable[Any]) -> tuple[plan.Claim, ...]:
    return tuple(_claim(host, reservation) for reservation in reservations)


def _claim(host: str, reservation: Any) -> plan.Claim:
    lease = db_api.lease_get(reservation['lease_id'])
    allocations = db_api.host_allocation_get_all_by_values(
        reservation_id=reservation['id'], compute_host_id=host
    )
    # It has ended but still has servers, so its end is open.
    lingers = reservation['status'] == status.reservation.DELETED
    return plan.Claim(
        start=lease['start_date'],
        end=None if lingers else lease['end_date'],
        needs=_needs(rows.shape_of(reservation['instance_reservation'])),
        slots=len(allocations),
    )
