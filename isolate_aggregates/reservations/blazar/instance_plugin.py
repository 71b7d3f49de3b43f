# SPDX-License-Identifier: Apache-2.0
"""Instance reservations that are kept in Placement alone.

Takes the place of Blazar's own plugin of the same resource type, and lets that
one end what was made by it: reservations with an aggregate or a server group.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import functools
import logging
import time
from typing import Any

from blazar import status
from blazar.db import api as db_api
from oslo_config import cfg

from isolate_aggregates import exception
from isolate_aggregates.reservations.blazar import (
    options,
    planning,
    rows,
    usage,
)
from isolate_aggregates.reservations.blazar.connection import connect
from isolate_aggregates.reservations.blazar.exceptions import translated
from isolate_aggregates.reservations.blazar.keeper import Keeper
from isolate_aggregates.reservations.blazar.upkeep import Upkeep

CONF = cfg.CONF
LOG = logging.getLogger(__name__)

options.register(CONF)

_PAUSE = 1  # second


@dataclasses.dataclass(frozen=True)
class _Named:
    """What Blazar writes the id of into its database."""

    id: str | None


class PlacementInstancePlugin(planning.SlotPlanning):
    """Plugin for virtual instances that are reserved in Placement."""

    title = 'Virtual Instance Plugin with Placement'

    def __init__(self) -> None:
        super().__init__()
        # Blazar's own monitor of hosts, where the healing is registered now,
        # is that of the plugin for hosts as well.
        self.monitor = Upkeep(
            self.complete, lambda: CONF[options.GROUP].completion_interval
        )
        # Reservations that may not be as they should be, others whose end is
        # not complete, and whether those that an earlier process left behind
        # are among them.
        self._doubtful: set[str] = set()
        self._unfinished: set[str] = set()
        self._has_looked = False

    @functools.cached_property
    def keeper(self) -> Keeper:
        """What keeps reservations in Nova and Placement."""
        return Keeper(connect(CONF), CONF.nova.aggregate_freepool_name)

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
        if rows.is_old(instance_reservation):
            super().cleanup_resources(instance_reservation)
            return
        self._finish(instance_reservation['reservation_id'])

    def on_start(self, resource_id: str) -> None:
        """Start a reservation; may be repeated.

        :param resource_id: The id of the instance reservation.
        :raises ReservationNotKept: if it can not be done.
        """
        row = db_api.instance_reservation_get(resource_id)
        if rows.is_old(row):
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
        if rows.is_old(row):
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
        if rows.is_old(reservation):
            super().update_resources(reservation_id)
            return
        self._bring(reservation)

    def _heal_reservation(
        self, reservation: Any, host_ids: Sequence[str]
    ) -> bool:
        found = db_api.reservation_get(reservation['id'])
        if rows.is_old(found):
            # Blazar's plugin reads the columns of two tables from it.
            allocations = rows.allocations(found['id'])
            healed = super()._heal_reservation(
                {**found, 'computehost_allocations': allocations}, host_ids
            )
            return bool(healed)
        former = [
            db_api.host_get(host)['hypervisor_hostname'] for host in host_ids
        ]
        with planning.CHOOSING:
            healed = self._move(found, host_ids)
        self._bring(found, former)
        return healed

    # What is completed later.

    def complete(self) -> None:
        """Complete what events had to leave undone.

        :raises ServiceError: if it can not be read what there is to do.
        """
        if not self._has_looked:
            self._doubtful.update(rows.active())
            self._unfinished.update(rows.lingering())
            self._has_looked = True
        if self._doubtful:
            self._bring_doubtful(self.keeper.hosts())
        # Those that Blazar has forgotten are known by their flavors.
        for reservation in sorted({*self.keeper.kept(), *self._unfinished}):
            found = db_api.reservation_get(reservation)
            if not found or found['status'] == status.reservation.DELETED:
                self._finish(reservation)

    def _bring_doubtful(self, hosts: Mapping[str, Iterable[str]]) -> None:
        for reservation in sorted(self._doubtful.copy()):
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
        self.keeper.publish(known, rows.numbers(known), former)
        self.keeper.grant(known, lease['project_id'])

    def _finish(self, reservation: str) -> bool:
        """End a reservation as far as it can be at the moment.

        :returns: Whether nothing is left of it.
        """
        try:
            waiting = self.keeper.finish(
                reservation, rows.numbers(reservation)
            )
        except exception.IsolateAggregatesError as exc:
            waiting = str(exc)
        if waiting:
            self._unfinished.add(reservation)
            LOG.warning(
                'The end of reservation %s is completed later: %s',
                reservation,
                waiting,
            )
            return False
        for allocation in rows.allocations(reservation):
            db_api.host_allocation_destroy(allocation['id'])
        self._unfinished.discard(reservation)
        return True
