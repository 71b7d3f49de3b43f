# SPDX-License-Identifier: Apache-2.0
"""Blazar plugin for instance reservations, kept in Placement.

It replaces Blazar's plugin of the same resource type. Reservations with an
aggregate or a server group were created by that plugin, and are delegated to
it.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import dataclasses
import datetime
import logging
import time
from typing import Any, ClassVar

from blazar import context, status
from blazar.db import api as db_api
from oslo_concurrency import lockutils
from oslo_config import cfg
from oslo_utils import timeutils

from isolate_aggregates import exception
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_reservations import errors
from isolate_aggregates_reservations.blazar import planning, rows, settings
from isolate_aggregates_reservations.blazar.backend import Backend
from isolate_aggregates_reservations.blazar.exceptions import (
    ReservationNotKept,
    refusing,
    translated,
)
from isolate_aggregates_reservations.blazar.periodic import PeriodicCompletion
from isolate_aggregates_reservations.blazar.record import BlazarRecord

CONF = cfg.CONF
LOG = logging.getLogger(__name__)

settings.register(CONF)

_PAUSE = 1  # second

# How much earlier than agreed a reservation may end, because clocks differ.
_SKEW = datetime.timedelta(minutes=1)


class _EndsLater(errors.ReservationError):
    """A later end of a reservation was agreed than Blazar's database has."""


@dataclasses.dataclass(frozen=True)
class _Named:
    """An object whose ``id`` Blazar stores in its database."""

    id: str | None


class PlacementInstancePlugin(planning.SlotPlanning):
    """Blazar plugin for instances that are reserved in Placement."""

    title = 'Virtual Instance Plugin with Placement'

    # Warnings that were logged already. A class attribute, because the flavor
    # plugin has an instance of this class as well.
    _past_warnings: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        super().__init__()
        # The parent uses the host monitor that it shares with the host plugin.
        # Healing stays registered there.
        self.monitor = PeriodicCompletion(
            self.complete, lambda: CONF[settings.GROUP].completion_interval
        )
        # Reservations to check, reservations whose end is not complete, and
        # whether those of an earlier process have been added.
        self._doubtful: set[str] = set()
        self._unfinished: set[str] = set()
        self._has_loaded = False

    @lazy_property
    def backend(self) -> Backend:
        """The storage of reservations in Nova and Placement."""
        return Backend(
            settings.connect(CONF),
            CONF.nova.aggregate_freepool_name,
            rows.database_id(),
        )

    # The life of a reservation.

    def reserve_resource(
        self, reservation_id: str, values: dict[str, Any]
    ) -> Any:
        resource = super().reserve_resource(reservation_id, values)
        self.create(reservation_id)
        return resource

    def _create_resources(self, inst_reservation: Any) -> tuple[Any, ...]:
        # Called while hosts are chosen; see create. There is no server group
        # and no aggregate.
        return _Named(inst_reservation['reservation_id']), None, _Named(None)

    def create(self, reservation: str) -> None:
        """Create flavor and resource class of a reservation.

        :raises ReservationNotKept: if that fails; nothing is left of it then.
        """
        row = db_api.reservation_get(reservation)
        with translated(reservation):
            try:
                self.backend.prepare(
                    reservation,
                    rows.shape_of(row),
                    rows.end_of(rows.lease_of(row)),
                )
            except exception.IsolateAggregatesError:
                self._finish(
                    reservation, 'it could not be created', is_early=True
                )
                raise

    def cleanup_resources(self, instance_reservation: Any) -> None:
        if rows.is_old(instance_reservation):
            super().cleanup_resources(instance_reservation)
            return
        self._finish(
            instance_reservation['reservation_id'],
            'it could not be created',
            is_early=True,
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
                self._write(reservation)
            except errors.ReservationError:
                raise
            except exception.IsolateAggregatesError as exc:
                self._postpone(reservation, exc)

    def on_end(self, resource_id: str) -> None:
        """End a reservation.

        What cannot be done within a few seconds is completed later. Until
        then the flavor records that the reservation is to end.

        :raises ReservationNotKept: if its lease is not deleted, but was
            extended beyond the end that the database has.
        """
        row = db_api.instance_reservation_get(resource_id)
        if rows.is_old(row):
            super().on_end(resource_id)
            return
        reservation = row['reservation_id']
        lease = db_api.lease_get(
            db_api.reservation_get(reservation)['lease_id']
        )
        is_early = lease['status'] == status.lease.DELETING
        if is_early:
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
            try:
                self._check_end(reservation)
            except _EndsLater as exc:
                raise ReservationNotKept(
                    reservation=reservation, problem=str(exc)
                ) from exc
            except exception.IsolateAggregatesError:
                # _finish checks it again, now or later.
                pass
        wait = CONF[settings.GROUP].server_deletion_wait
        until = time.monotonic() + wait
        while not self._finish(reservation, by, is_early):
            if time.monotonic() + _PAUSE > until:
                return
            time.sleep(_PAUSE)

    def update_reservation(
        self, reservation_id: str, new_values: dict[str, Any]
    ) -> None:
        """Change a reservation, and record the end of its lease."""
        self._validate_reservation_params(new_values)
        with self.agreeing(reservation_id, new_values):
            super().update_reservation(reservation_id, new_values)

    @contextlib.contextmanager
    def agreeing(
        self, reservation: str, new_values: Mapping[str, Any]
    ) -> Iterator[None]:
        """Record the new end of a lease that is changed within this context.

        A later end is recorded before the change, and an earlier one after
        it, so that the record never has an earlier end than the lease.

        :raises CantUpdateParameter: if the end cannot be recorded. The lease
            is not changed then.
        """
        with refusing():
            yield from self._agreeing(reservation, new_values)

    def _agreeing(
        self, reservation: str, new_values: Mapping[str, Any]
    ) -> Iterator[None]:
        row = db_api.reservation_get(reservation)
        end = new_values['end_date'].replace(tzinfo=datetime.UTC)
        if rows.is_old(row) or end == rows.end_of(rows.lease_of(row)):
            yield
            return
        with translated(reservation), _lock(reservation):
            before = self.backend.until(reservation)
            is_later = before is None or end > before
            if is_later:
                self.backend.agree(reservation, end)
        try:
            yield
        except Exception:
            if is_later and before is not None:
                # If this fails, the next poll says so.
                with contextlib.suppress(exception.IsolateAggregatesError):
                    self.backend.agree(reservation, before)
            raise
        if not is_later:
            with translated(reservation), _lock(reservation):
                self.backend.agree(reservation, end)

    def update_resources(self, reservation_id: str) -> None:
        """Update Nova and Placement after a change."""
        changes = planning.CHANGED.get()
        if changes is not None:
            changes.append(reservation_id)
            return
        reservation = db_api.reservation_get(reservation_id)
        if rows.is_old(reservation):
            super().update_resources(reservation_id)
            return
        self._write_or_postpone(reservation_id)

    def _heal_reservation(
        self, reservation: Any, host_ids: Sequence[str]
    ) -> bool:
        row = db_api.reservation_get(reservation['id'])
        if rows.is_old(row):
            # Blazar's plugin expects the columns of both tables in the row.
            allocations = reservation['computehost_allocations']
            is_healed = super()._heal_reservation(
                {**row, 'computehost_allocations': allocations}, host_ids
            )
            return bool(is_healed)
        with planning.CHOOSING:
            is_healed = self._move(row, host_ids)
        self._write_or_postpone(row['id'])
        return is_healed

    # What is completed later.

    def complete(self) -> None:
        if not self._has_loaded:
            self._doubtful.update(rows.active())
            self._unfinished.update(rows.lingering())
            self._has_loaded = True
        self._check_doubtful()
        for reservation in rows.with_slots_left_behind():
            self._write_or_postpone(reservation)
        marks = self.backend.records()
        due = {mark.reservation for mark in marks if self._is_due(mark)}
        # Warn again about what comes back, and keep nothing of what is gone.
        self._past_warnings.intersection_update(
            name
            for mark in marks
            for name in (mark.reservation, mark.database)
        )
        for reservation in sorted(due | self._unfinished):
            self._finish(reservation, 'Blazar ended it')

    def _is_due(self, mark: BlazarRecord) -> bool:
        """Return whether a reservation was ended by this Blazar.

        A reservation that is missing in the database does not count as ended:
        the database may be a wrong one, or restored from a backup.
        """
        if mark.database != self.backend.database:
            self._warn_once(
                mark.database,
                'Nova has reservations of a Blazar whose database is %s; this '
                'Blazar ignores them',
            )
            return False
        if mark.end is not None:
            return True
        row = db_api.reservation_get(mark.reservation)
        if row:
            return self._has_ended(row, mark.until)
        if mark.reservation not in self._unfinished:
            self._warn_once(
                mark.reservation,
                'Reservation %s is not in the database of this Blazar. It is '
                'left unchanged; check that the database is the right one',
            )
        return False

    def _has_ended(
        self, row: Mapping[str, Any], until: datetime.datetime | None
    ) -> bool:
        """Return whether a reservation has ended, by database and flavor."""
        if row['status'] == status.reservation.DELETED:
            return until is None or until <= _now()
        try:
            end = rows.end_of(rows.lease_of(row))
        except errors.ReservationError as exc:
            self._warn_once(row['id'], '%s', exc)
            return False
        if until is None or until <= end:
            return False
        self._warn_once(
            row['id'],
            '%s',
            errors.ReservationError(row['id'], _extended(until, end)),
        )
        # Blazar could not end it when its database said so.
        return (
            row['status'] == status.reservation.ERROR
            and max(end, until) <= _now()
        )

    def _check_end(self, reservation: str) -> None:
        """Raise _EndsLater if a later end of a reservation was agreed."""
        until = self.backend.until(reservation)
        if until is not None and until > _now() + _SKEW:
            raise _EndsLater(reservation, _extended(until, _now()))

    def _warn_once(
        self, subject: str, warning: str, name: object = None
    ) -> None:
        """Log a warning once per subject.

        :param name: What the warning names; None for the subject.
        """
        if subject not in self._past_warnings:
            self._past_warnings.add(subject)
            LOG.warning(warning, name or subject)

    def _check_doubtful(self) -> None:
        """Write each reservation whose state in Placement is in doubt."""
        for reservation in sorted(self._doubtful.copy()):
            self._doubtful.discard(reservation)
            try:
                self._write_or_postpone(reservation)
            except Exception:
                # For example of the database.
                self._doubtful.add(reservation)
                raise

    def _write_or_postpone(self, reservation: str) -> None:
        try:
            self._write(reservation)
        except errors.ReservationError as exc:
            # Waiting does not help; its rows contradict each other, or it
            # belongs to another Blazar. Without a flavor an operator has
            # ended it.
            if self.backend.has_flavor(reservation):
                self._warn_once(reservation, '%s', exc)
                self._doubtful.add(reservation)
        except exception.IsolateAggregatesError as exc:
            self._postpone(reservation, exc)

    def _postpone(self, reservation: str, why: Exception) -> None:
        LOG.warning(
            'Reservation %s will be updated later: %s', reservation, why
        )
        self._doubtful.add(reservation)
        rows.report(reservation, is_missing=True)

    def _write(self, reservation: str) -> None:
        """Write a reservation to Nova and Placement, unless it has ended.

        :raises ReservationError: if the database has lost its slots.
        """
        with _lock(reservation):
            row = rows.current(reservation)
            if row is None:
                return
            lease = rows.lease_of(row)
            self.backend.prepare(
                reservation, rows.shape_of(row), rows.end_of(lease)
            )
            if rows.has_started(row):
                if rows.has_none(reservation) and self.backend.slots(
                    reservation
                ):
                    raise rows.lost_slots(reservation)
                stay = dict.fromkeys(
                    rows.hostnames(rows.left_behind(reservation)), 0
                )
                stay |= self.backend.publish(
                    reservation, rows.numbers(reservation)
                )
                rows.leave_behind(reservation, rows.by_host(stay))
                self.backend.grant(reservation, lease['project_id'])
        if rows.is_ending(reservation):
            # Another blazar-manager ended it meanwhile.
            self._finish(
                reservation,
                'its lease ended while it was started',
                rows.is_deleting(reservation),
            )
            return
        amount = len(rows.allocations(reservation))
        rows.report(reservation, is_missing=amount < row['amount'])

    def _finish(
        self, reservation: str, by: str, is_early: bool = False
    ) -> bool:
        """End a reservation as far as possible now.

        :param is_early: Whether it may end before the end that was agreed.
        :returns: Whether nothing is left of it.
        """
        try:
            with _lock(reservation):
                if not is_early:
                    self._check_end(reservation)
                self.backend.mark_end(reservation, by)
                waiting = self.backend.finish(reservation)
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


def _lock(reservation: str) -> contextlib.AbstractContextManager[Any]:
    lock: contextlib.AbstractContextManager[Any] = lockutils.lock(
        f'isolate-aggregates-{reservation}'
    )
    return lock


def _now() -> datetime.datetime:
    return timeutils.utcnow().replace(tzinfo=datetime.UTC)


def _extended(until: datetime.datetime, end: datetime.datetime) -> str:
    return (
        f'lasts until {until:%Y-%m-%d %H:%M} UTC according to its flavor, but '
        f'until {end:%Y-%m-%d %H:%M} UTC according to the database of Blazar, '
        'which may be an old one; it is kept for the longer time; restore a '
        'newer database, extend the lease, or delete it to end it now'
    )


def _by_user() -> str:
    try:
        user = context.BlazarContext.current().user_name
    except RuntimeError:
        return ''
    return f' by {user}' if user else ''
