# SPDX-License-Identifier: Apache-2.0
"""Chooses the hosts of instance reservations, each slot of which counts."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
import datetime
import logging
import threading
from typing import Any

from blazar import status
from blazar.db import api as db_api
from blazar.db import utils as db_utils
from blazar.manager import exceptions as manager_exceptions
from blazar.plugins.instances import instance_plugin
from oslo_utils import strutils, timeutils

from isolate_aggregates.reservations.blazar import rows, usage
from isolate_aggregates.reservations.room import (
    Demand,
    HostCapacity,
    free_slots,
)

LOG = logging.getLogger(__name__)

# Leases start and end on full minutes.
_MOMENT = datetime.timedelta(seconds=1)
_LONG_AGO = datetime.datetime(1970, 1, 1)

# Held from the choice of hosts until the database has it. blazar-manager
# serves several requests at once, and two must not choose the same slots.
CHOOSING = threading.RLock()


class SlotPlanning(instance_plugin.VirtualInstancePlugin):
    """The part of the plugin that chooses hosts."""

    def reserve_resource(
        self, reservation_id: str, values: dict[str, Any]
    ) -> Any:
        """Create a reservation.

        :returns: The id of the instance reservation.
        """
        with CHOOSING:
            return super().reserve_resource(reservation_id, values)

    def update_reservation(
        self, reservation_id: str, new_values: dict[str, Any]
    ) -> None:
        """Change a reservation."""
        with CHOOSING:
            super().update_reservation(reservation_id, new_values)

    def filter_hosts_by_reservation(
        self,
        hosts: Iterable[Any],
        start_date: datetime.datetime,
        end_date: datetime.datetime,
        excludes: Collection[str] | None,
    ) -> tuple[list[Any], list[Any]]:
        """Return the hosts without and with other reservations at a time.

        Reservations that ended before still count while they have servers,
        those that only touch the time do not.

        :param start_date: From when on.
        :param end_date: Until when.
        :param excludes: The ids of reservations that do not count.
        :returns: Hosts without, and hosts with them.
        """
        free, reserved = super().filter_hosts_by_reservation(
            hosts, start_date + _MOMENT, end_date - _MOMENT, excludes
        )
        if start_date > timeutils.utcnow():
            return free, reserved
        for entry in [*free, *reserved]:
            counted = {found['id'] for found in entry['reservations']}
            lingering = [
                found
                for found in self._lingering(entry['host'], start_date)
                if found['id'] not in counted
            ]
            if lingering and entry in free:
                free.remove(entry)
                reserved.append(entry)
            entry['reservations'] = [*entry['reservations'], *lingering]
        return free, reserved

    def _lingering(self, host: Any, before: datetime.datetime) -> list[Any]:
        return [
            found
            for found in db_utils.get_reservations_by_host_id(
                host['id'], _LONG_AGO, before
            )
            if found['status'] == status.reservation.DELETED
        ]

    def get_hosts_list(
        self, host_info: Mapping[str, Any], cpus: int, memory: int, disk: int
    ) -> list[Any]:
        """Return a host as often as slots of a size fit on it.

        :param host_info: The host and the reservations on it.
        :param cpus: Virtual CPUs of a slot.
        :param memory: Memory of a slot in MiB.
        :param disk: Disk of a slot in GiB.
        """
        host = host_info['host']
        capacity = HostCapacity(
            host['id'],
            usage.capacity(host),
            claims=usage.claims(host['id'], host_info['reservations']),
        )
        # All of them overlap the time that is asked about, so those that
        # overlap each other do so within it: the peak of all time is that of
        # the time asked about.
        demand = Demand(
            start=datetime.datetime.min,
            end=None,
            needs={'VCPU': cpus, 'MEMORY_MB': memory, 'DISK_GB': disk},
            amount=1,
        )
        return [host] * free_slots(capacity, demand)

    def pickup_hosts(
        self, reservation_id: str | None, values: Mapping[str, Any]
    ) -> dict[str, list[str]]:
        """Return the ids of the hosts that get slots, and that lose some.

        Slots stay where they are if they can. Servers that stayed on failed
        hosts do not stand in the way of slots that they would be in.

        :param values: The reservation as it is to be.
        :raises NotEnoughHostsAvailable: if it does not fit.
        """
        before = Counter(
            row['compute_host_id'] for row in rows.allocations(reservation_id)
        )
        # In the order in which they are to be taken.
        free = Counter(
            host['id']
            for host in self.query_available_hosts(
                cpus=values['vcpus'],
                memory=values['memory_mb'],
                disk=values['disk_gb'],
                resource_properties=values['resource_properties'],
                start_date=values['start_date'],
                end_date=values['end_date'],
                excludes_res=[reservation_id] if reservation_id else None,
            )
        )
        amount = values['amount']
        affinity = strutils.bool_from_string(values['affinity'], default=None)
        after = Counter[str]()
        if affinity:
            whole = [host for host in free if free[host] >= amount]
            for host in sorted(whole, key=lambda host: host not in before)[:1]:
                after[host] = amount
        else:
            if affinity is False:
                free = Counter(free.keys())
            for most in (before & free, free):
                for host in free:
                    missing = amount - after.total()
                    after[host] += min(most[host] - after[host], missing)
        if after.total() < amount:
            raise manager_exceptions.NotEnoughHostsAvailable()
        return {
            'added': list((after - before).elements()),
            'removed': list((before - after).elements()),
        }

    def allocation_candidates(self, reservation: Mapping[str, Any]) -> Any:
        """Return the ids of the hosts a reservation would have.

        :param reservation: The reservation, with the values it is to get; its
            own slots do not stand in its way.
        """
        known = reservation.get('id')
        changed = self.pickup_hosts(known, reservation)
        hosts = Counter(
            allocation['compute_host_id']
            for allocation in rows.allocations(known)
        )
        hosts.subtract(changed['removed'])
        hosts.update(changed['added'])
        return list(hosts.elements())

    def _move(
        self, reservation: Mapping[str, Any], failed: Sequence[str]
    ) -> bool:
        """Give the slots on failed hosts other hosts, as far as they fit.

        :returns: Whether all of them did.
        """
        allocations = rows.allocations(reservation['id'])
        stuck = [a for a in allocations if a['compute_host_id'] in failed]
        if reservation['status'] == status.reservation.ACTIVE:
            # Each of them may have a server, until Placement has said which.
            stayed = rows.left_behind(reservation['id'])
            stayed.update(row['compute_host_id'] for row in stuck)
            rows.leave_behind(reservation['id'], stayed)
        amount = len(allocations) - len(stuck)
        moved = True
        # With affinity all of them go together.
        step = len(stuck) if reservation['affinity'] else 1
        for place in range(0, len(stuck), step or 1):
            together = stuck[place : place + step]
            host = self._host_for(reservation, amount + len(together))
            for allocation in together:
                if host is None:
                    db_api.host_allocation_destroy(allocation['id'])
                else:
                    db_api.host_allocation_update(
                        allocation['id'], {'compute_host_id': host}
                    )
            if host is None:
                moved = False
                LOG.warning(
                    'Reservation %s loses %d of its slots: their host failed, '
                    'and no other host has capacity.',
                    reservation['id'],
                    len(together),
                )
            else:
                amount += len(together)
        return moved

    def _host_for(
        self, reservation: Mapping[str, Any], amount: int
    ) -> str | None:
        lease = db_api.lease_get(reservation['lease_id'])
        try:
            changed = self.pickup_hosts(
                reservation['id'],
                {
                    **reservation,
                    'amount': amount,
                    'start_date': max(timeutils.utcnow(), lease['start_date']),
                    'end_date': lease['end_date'],
                },
            )
        except manager_exceptions.NotEnoughHostsAvailable:
            return None
        return next(iter(changed['added']), None)
