# SPDX-License-Identifier: Apache-2.0
"""Instance reservations that are kept in Placement alone.

Takes the place of Blazar's own plugin of the same resource type, and lets that
one end what was made by it: reservations with an aggregate or a server group.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
import datetime
import functools
import logging
import time
from typing import Any

from blazar import status
from blazar.db import api as db_api
from blazar.db import utils as db_utils
from blazar.manager import exceptions as manager_exceptions
from blazar.plugins import instances
from blazar.plugins.instances import instance_plugin
from oslo_config import cfg
from oslo_utils import timeutils

from isolate_aggregates import exception
from isolate_aggregates.blazar import options, usage
from isolate_aggregates.blazar.connection import connect
from isolate_aggregates.blazar.exceptions import translated
from isolate_aggregates.blazar.keeper import Keeper
from isolate_aggregates.blazar.upkeep import Upkeep
from isolate_aggregates.reservation.planner import Room, Wish, free_slots

CONF = cfg.CONF
LOG = logging.getLogger(__name__)

options.register(CONF)

# Leases start and end on full minutes.
_MOMENT = datetime.timedelta(seconds=1)
_LONG_AGO = datetime.datetime(1970, 1, 1)

_PAUSE = 1  # second


@dataclasses.dataclass(frozen=True)
class _Named:
    """What Blazar writes the id of into its database."""

    id: str | None


class PlacementInstancePlugin(instance_plugin.VirtualInstancePlugin):
    """Plugin for virtual instances that are reserved in Placement."""

    title = 'Virtual Instance Plugin with Placement'

    def __init__(self) -> None:
        super().__init__()
        # Blazar's own monitor of hosts, where the healing is registered now,
        # is that of the plugin for hosts as well.
        self.monitor = Upkeep(
            self.complete, lambda: CONF[options.GROUP].completion_interval
        )
        # Reservations that may not be as they should be, and whether those
        # that an earlier process left behind so are among them.
        self._doubtful: set[str] = set()
        self._has_looked = False

    @functools.cached_property
    def keeper(self) -> Keeper:
        """What keeps reservations in Nova and Placement."""
        return Keeper(connect(CONF), CONF.nova.aggregate_freepool_name)

    # Choosing hosts.

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

        :param hosts: Blazar's hosts.
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
            lingering = self._lingering(entry['host'], start_date)
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
        room = Room(
            host['id'],
            usage.capacity(host),
            claims=usage.claims(host['id'], host_info['reservations']),
        )
        # All of them overlap the time that is asked about, so those that
        # overlap each other do so within it: the peak of all time is that of
        # the time asked about.
        wish = Wish(
            start=datetime.datetime.min,
            end=None,
            needs={'VCPU': cpus, 'MEMORY_MB': memory, 'DISK_GB': disk},
            amount=1,
        )
        return [host] * free_slots(room, wish)

    def allocation_candidates(self, reservation: Mapping[str, Any]) -> Any:
        """Return the ids of the hosts a reservation would have.

        :param reservation: The reservation, with the values it shall get; its
            own slots do not stand in its way.
        """
        known = reservation.get('id')
        changed = self.pickup_hosts(known, reservation)
        hosts = Counter(
            allocation['compute_host_id'] for allocation in _allocations(known)
        )
        hosts.subtract(changed['removed'])
        hosts.update(changed['added'])
        return list(hosts.elements())

    # The life of a reservation.

    def _create_resources(self, inst_reservation: Any) -> tuple[Any, ...]:
        reservation = inst_reservation['reservation_id']
        with translated(reservation):
            try:
                self.keeper.prepare(
                    reservation, usage.shape_of(inst_reservation)
                )
            except exception.IsolateAggregatesError:
                self.cleanup_resources(inst_reservation)
                raise
        # Neither a server group nor an aggregate.
        return _Named(reservation), None, _Named(None)

    def cleanup_resources(self, instance_reservation: Any) -> None:
        """Take away what a reservation has in Nova and Placement.

        :param instance_reservation: Blazar's instance reservation.
        """
        if _is_old(instance_reservation):
            super().cleanup_resources(instance_reservation)
            return
        self._finish(instance_reservation['reservation_id'])

    def on_start(self, resource_id: str) -> None:
        """Start a reservation; may be repeated.

        :param resource_id: The id of the instance reservation.
        :raises ReservationNotKept: if it can not be done.
        """
        row = db_api.instance_reservation_get(resource_id)
        if _is_old(row):
            super().on_start(resource_id)
            return
        reservation = row['reservation_id']
        with translated(reservation):
            self._open(db_api.reservation_get(reservation))

    def on_end(self, resource_id: str) -> None:
        """End a reservation.

        What can not be done within a few seconds is completed later, and
        nothing is forgotten before.

        :param resource_id: The id of the instance reservation.
        """
        row = db_api.instance_reservation_get(resource_id)
        if _is_old(row):
            super().on_end(resource_id)
            return
        wait = CONF[options.GROUP].server_deletion_wait
        until = time.monotonic() + wait
        while not self._finish(row['reservation_id']):
            if time.monotonic() + _PAUSE > until:
                return
            time.sleep(_PAUSE)

    def update_resources(self, reservation_id: str) -> None:
        """Bring Nova and Placement up to date after a change.

        :param reservation_id: The id of the reservation.
        """
        reservation = db_api.reservation_get(reservation_id)
        if _is_old(reservation):
            super().update_resources(reservation_id)
            return
        self._bring(reservation)

    def _heal_reservation(
        self, reservation: Any, host_ids: Sequence[str]
    ) -> bool:
        found = db_api.reservation_get(reservation['id'])
        if _is_old(found):
            # Blazar's plugin reads the columns of two tables from it.
            allocations = _allocations(found['id'])
            healed = super()._heal_reservation(
                {**found, 'computehost_allocations': allocations}, host_ids
            )
            return bool(healed)
        former = [
            db_api.host_get(host)['hypervisor_hostname'] for host in host_ids
        ]
        healed = self._move(found, host_ids)
        self._bring(found, former)
        return healed

    def _move(
        self, reservation: Mapping[str, Any], failed: Sequence[str]
    ) -> bool:
        """Give the slots on failed hosts other hosts, as far as they fit.

        :returns: Whether all of them did.
        """
        allocations = _allocations(reservation['id'])
        stuck = [a for a in allocations if a['compute_host_id'] in failed]
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
                    'and no other has room.',
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

    # What is completed later.

    def complete(self) -> None:
        """Complete what events had to leave undone.

        :raises ServiceError: if it can not be read what there is to do.
        """
        if not self._has_looked:
            self._doubtful.update(_active())
            self._has_looked = True
        if self._doubtful:
            self._bring_doubtful(self.keeper.hosts())
        for reservation in self.keeper.kept():
            found = db_api.reservation_get(reservation)
            if not found or found['status'] == status.reservation.DELETED:
                self._finish(reservation)

    def _bring_doubtful(self, hosts: Mapping[str, Iterable[str]]) -> None:
        for reservation in sorted(self._doubtful):
            self._doubtful.discard(reservation)
            found = db_api.reservation_get(reservation)
            if found:
                self._bring(found, hosts.get(reservation, ()))

    def _bring(
        self, reservation: Mapping[str, Any], former: Iterable[str] = ()
    ) -> None:
        """Bring Nova and Placement up to date, now or later.

        :param former: The hostnames of hosts that may still have slots of it.
        """
        try:
            if reservation['status'] == status.reservation.ACTIVE:
                self._open(reservation, former)
            elif reservation['status'] == status.reservation.PENDING:
                shape = usage.shape_of(reservation)
                self.keeper.prepare(reservation['id'], shape)
        except exception.IsolateAggregatesError as exc:
            LOG.warning(
                'Reservation %s is brought up to date later: %s',
                reservation['id'],
                exc,
            )
            self._doubtful.add(reservation['id'])

    def _open(
        self, reservation: Mapping[str, Any], former: Iterable[str] = ()
    ) -> None:
        """Bring what a started reservation has to where it should be."""
        known = reservation['id']
        lease = db_api.lease_get(reservation['lease_id'])
        self.keeper.prepare(known, usage.shape_of(reservation))
        self.keeper.publish(known, _numbers(known), former)
        self.keeper.grant(known, lease['project_id'])

    def _finish(self, reservation: str) -> bool:
        """End a reservation as far as it can be at the moment.

        :returns: Whether nothing is left of it.
        """
        try:
            waiting = self.keeper.finish(reservation, _numbers(reservation))
        except exception.IsolateAggregatesError as exc:
            waiting = str(exc)
        if waiting:
            LOG.warning(
                'The end of reservation %s is completed later: %s',
                reservation,
                waiting,
            )
            return False
        for allocation in _allocations(reservation):
            db_api.host_allocation_destroy(allocation['id'])
        return True


def _is_old(row: Any) -> bool:
    """Tell whether a reservation is kept as Blazar's own plugin does."""
    return (row['aggregate_id'] or row['server_group_id']) is not None


def _allocations(reservation: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = db_api.host_allocation_get_all_by_values(
        reservation_id=reservation
    )
    return found


def _numbers(reservation: str) -> Counter[str]:
    """Return the number of slots by hypervisor hostname."""
    return Counter(
        db_api.host_get(allocation['compute_host_id'])['hypervisor_hostname']
        for allocation in _allocations(reservation)
    )


def _active() -> list[str]:
    """Return the ids of the reservations that are active and kept here."""
    found = db_api.reservation_get_all_by_values(
        resource_type=instances.RESOURCE_TYPE,
        status=status.reservation.ACTIVE,
    )
    return [row['id'] for row in found if not _is_old(row)]
