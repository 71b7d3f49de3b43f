# SPDX-License-Identifier: Apache-2.0
"""Blazar plugin for instance reservations, kept in Placement.

It replaces Blazar's plugin of the same resource type. Reservations with an
aggregate or a server group were created by that plugin, and are delegated to
it.
"""

from collections.abc import Iterable, Mapping, Sequence
import contextlib
import dataclasses
import functools
import logging
import time
from typing import Any, ClassVar

from blazar import context, status
from blazar.db import api as db_api
from oslo_concurrency import lockutils
from oslo_config import cfg

from isolate_aggregates import exception
from isolate_aggregates.reservations.blazar import (
    options,
    planning,
    rows,
    usage,
)
from isolate_aggregates.reservations.blazar.backend import Backend
from isolate_aggregates.reservations.blazar.connection import connect
from isolate_aggregates.reservations.blazar.database import database_id
from isolate_aggregates.reservations.blazar.exceptions import translated
from isolate_aggregates.reservations.blazar.periodic import PeriodicCompletion
from isolate_aggregates.reservations.blazar.record import BlazarRecord

CONF = cfg.CONF
LOG = logging.getLogger(__name__)

options.register(CONF)

_PAUSE = 1  # second


@dataclasses.dataclass(frozen=True)
class _Named:
    """An object whose ``id`` Blazar stores in its database."""

    id: str | None


class PlacementInstancePlugin(planning.SlotPlanning):
    """Blazar plugin for instances that are reserved in Placement."""

    title = 'Virtual Instance Plugin with Placement'

    # Warnings that were logged already. A class attribute, because the flavor
    # plugin has an instance of this class as well.
    _told: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        super().__init__()
        # The parent uses the host monitor that it shares with the host plugin.
        # Healing stays registered there.
        self.monitor = PeriodicCompletion(
            self.complete, lambda: CONF[options.GROUP].completion_interval
        )
        # Reservations to check, reservations whose end is not complete, and
        # whether those of an earlier process have been added.
        self._doubtful: set[str] = set()
        self._unfinished: set[str] = set()
        self._has_looked = False

    @functools.cached_property
    def backend(self) -> Backend:
        """The storage of reservations in Nova and Placement."""
        return Backend(
            connect(CONF), CONF.nova.aggregate_freepool_name, database_id()
        )

    # The life of a reservation.

    def _create_resources(self, inst_reservation: Any) -> tuple[Any, ...]:
        reservation = inst_reservation['reservation_id']
        with translated(reservation):
            try:
                self.backend.prepare(
                    reservation, usage.shape_of(inst_reservation)
                )
            except exception.IsolateAggregatesError:
                self.cleanup_resources(inst_reservation)
                raise
        # There is no server group and no aggregate.
        return _Named(reservation), None, _Named(None)

    def cleanup_resources(self, instance_reservation: Any) -> None:
        """Remove a reservation from Nova and Placement.

        :param instance_reservation: Blazar's instance reservation.
        """
        if rows.is_old(instance_reservation):
            super().cleanup_resources(instance_reservation)
            return
        self._finish(
            instance_reservation['reservation_id'], 'it could not be created'
        )

    def on_start(self, resource_id: str) -> None:
        """Start a reservation; may be repeated.

        If Nova or Placement fails, this is completed later, because Blazar
        does not start a lease again.

        :raises ReservationNotKept: if the reservation must not be started.
        """
        row = db_api.instance_reservation_get(resource_id)
        if rows.is_old(row):
            super().on_start(resource_id)
            return
        reservation = row['reservation_id']
        with translated(reservation):
            try:
                self._keep(reservation)
            except exception.ReservationError:
                raise
            except exception.IsolateAggregatesError as exc:
                self._postpone(reservation, exc)

    def on_end(self, resource_id: str) -> None:
        """End a reservation.

        What cannot be done within a few seconds is completed later. Until
        then the flavor records that the reservation is to end.
        """
        row = db_api.instance_reservation_get(resource_id)
        if rows.is_old(row):
            super().on_end(resource_id)
            return
        reservation = row['reservation_id']
        lease = db_api.lease_get(
            db_api.reservation_get(reservation)['lease_id']
        )
        if lease['status'] == status.lease.DELETING:
            # Blazar is about to delete it from its database. The record in the
            # flavor makes sure that the rest is done later.
            by = f'lease {lease["id"]} was deleted{_by_user()}'
            with translated(reservation):
                try:
                    self.backend.mark_end(reservation, by)
                except exception.IsolateAggregatesError:
                    rows.allow_deletion(lease['id'])
                    raise
        else:
            by = f'lease {lease["id"]} ended'
        wait = CONF[options.GROUP].server_deletion_wait
        until = time.monotonic() + wait
        while not self._finish(reservation, by):
            if time.monotonic() + _PAUSE > until:
                return
            time.sleep(_PAUSE)

    def update_resources(self, reservation_id: str) -> None:
        """Update Nova and Placement after a change."""
        reservation = db_api.reservation_get(reservation_id)
        if rows.is_old(reservation):
            super().update_resources(reservation_id)
            return
        self._bring(reservation_id)

    def _heal_reservation(
        self, reservation: Any, host_ids: Sequence[str]
    ) -> bool:
        found = db_api.reservation_get(reservation['id'])
        if rows.is_old(found):
            # Blazar's plugin expects the columns of both tables in the row.
            allocations = reservation['computehost_allocations']
            healed = super()._heal_reservation(
                {**found, 'computehost_allocations': allocations}, host_ids
            )
            return bool(healed)
        former = rows.hostnames(host_ids)
        with planning.CHOOSING:
            healed = self._move(found, host_ids)
        self._bring(found['id'], former)
        return healed

    # What is completed later.

    def complete(self) -> None:
        """Complete what could not be done when an event was handled."""
        if not self._has_looked:
            self._doubtful.update(rows.active())
            self._unfinished.update(rows.lingering())
            self._has_looked = True
        if self._doubtful:
            self._bring_doubtful(self.backend.hosts())
        for reservation in rows.with_slots_left_behind():
            self._bring(reservation)
        found = self.backend.records()
        due = {one.reservation for one in found if self._is_due(one)}
        for reservation in sorted(due | self._unfinished):
            self._finish(reservation, 'Blazar ended it')

    def _is_due(self, found: BlazarRecord) -> bool:
        """Return whether a reservation was ended by this Blazar.

        A reservation that is missing in the database does not count as ended:
        the database may be a wrong one, or restored from a backup.
        """
        if found.database != self.backend.database:
            self._tell(
                found.database,
                'Nova has reservations of a Blazar whose database is %s; this '
                'Blazar ignores them',
            )
            return False
        if found.end is not None:
            return True
        row = db_api.reservation_get(found.reservation)
        if row:
            return bool(row['status'] == status.reservation.DELETED)
        if found.reservation not in self._unfinished:
            self._tell(
                found.reservation,
                'Reservation %s is not in the database of this Blazar. It is '
                'left unchanged; see reservation blazar list',
            )
        return False

    def _tell(self, what: str, warning: str) -> None:
        """Log a warning once per subject."""
        if what not in self._told:
            self._told.add(what)
            LOG.warning(warning, what)

    def _bring_doubtful(self, hosts: Mapping[str, Iterable[str]]) -> None:
        for reservation in sorted(self._doubtful.copy()):
            self._doubtful.discard(reservation)
            try:
                self._bring(reservation, hosts.get(reservation, ()))
            except Exception:
                # For example of the database.
                self._doubtful.add(reservation)
                raise

    def _bring(self, reservation: str, former: Iterable[str] = ()) -> None:
        """Update Nova and Placement, now or later.

        :param former: The hypervisor hostnames of hosts that may still have
            slots of it.
        """
        try:
            self._keep(reservation, former)
        except exception.IsolateAggregatesError as exc:
            self._postpone(reservation, exc)

    def _postpone(self, reservation: str, why: Exception) -> None:
        LOG.warning(
            'Reservation %s will be updated later: %s', reservation, why
        )
        self._doubtful.add(reservation)
        rows.report(reservation, is_missing=True)

    def _keep(self, reservation: str, former: Iterable[str] = ()) -> None:
        """Write a reservation to Nova and Placement, unless it has ended.

        :param former: The hypervisor hostnames of hosts that may still have
            slots of it.
        """
        with _turn(reservation):
            found = rows.current(reservation)
            if found is None:
                return
            self.backend.prepare(reservation, usage.shape_of(found))
            if rows.has_started(found):
                lease = db_api.lease_get(found['lease_id'])
                stayed = rows.hostnames(rows.left_behind(reservation))
                stay = self.backend.publish(
                    reservation,
                    rows.numbers(reservation),
                    {*former, *stayed},
                )
                rows.leave_behind(reservation, rows.by_host(stay))
                self.backend.grant(reservation, lease['project_id'])
        if rows.is_ending(reservation):
            # Another blazar-manager ended it meanwhile.
            self._finish(reservation, 'its lease ended while it was started')
            return
        amount = len(rows.allocations(reservation))
        rows.report(reservation, is_missing=amount < found['amount'])

    def _finish(self, reservation: str, by: str) -> bool:
        """End a reservation as far as possible now.

        :param by: What ended it, for the record.
        :returns: Whether nothing is left of it.
        """
        try:
            with _turn(reservation):
                self.backend.mark_end(reservation, by)
                stayed = rows.hostnames(rows.left_behind(reservation))
                waiting = self.backend.finish(
                    reservation, [*rows.numbers(reservation), *stayed]
                )
        except exception.IsolateAggregatesError as exc:
            waiting = str(exc)
        if waiting:
            self._unfinished.add(reservation)
            LOG.warning(
                'The end of reservation %s will be completed later: %s',
                reservation,
                waiting,
            )
            return False
        rows.forget_slots(reservation)
        self._unfinished.discard(reservation)
        return True


def _turn(reservation: str) -> contextlib.AbstractContextManager[Any]:
    """Return a lock for starting and ending a reservation."""
    turn: contextlib.AbstractContextManager[Any] = lockutils.lock(
        f'isolate-aggregates-{reservation}'
    )
    return turn


def _by_user() -> str:
    """Return the requesting user, as the end of a sentence."""
    try:
        user = context.BlazarContext.current().user_name
    except RuntimeError:
        return ''
    return f' by {user}' if user else ''
