# SPDX-License-Identifier: Apache-2.0
"""Reconciles a reservation from any state.

Each step reads the current state and does what is missing, so that the next
run completes an interrupted one. Concurrent runs and commands are safe,
because a change is written only if the state it is based on is still current:

* A record is written as the next revision, and each revision number can be
  written only once.
* Slots are written with the generation of the reservation provider. The write
  fails if slots of any reservation on the host have changed meanwhile.
* A pending change is granted only if its slots have been written, or rewritten
  unchanged, since the revision that granting replaces was read. A command that
  removes slots of a pending change writes a revision first.
* Slots are opened only if they have not changed since they were read. The
  record is read again before the project gets access, and once more after it.

On a conflict, a command reads the state again and decides again.
"""

from collections.abc import Collection, Container, Mapping
import contextlib
import dataclasses
import datetime
import logging
import random
import sys
import time

from isolate_aggregates import exception
from isolate_aggregates.reservations import (
    conditions,
    details,
    ending,
    history,
    host_capacity,
    limits,
    names,
    slots,
)
from isolate_aggregates.reservations.conditions import Move, no_host
from isolate_aggregates.reservations.plan import Assignment
from isolate_aggregates.reservations.reservation import (
    PendingChange,
    Reservation,
)
from isolate_aggregates.reservations.slots import retried
from isolate_aggregates.reservations.state import (
    HostSlots,
    ObservedState,
    Phase,
    Status,
    status_of,
)
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.tools.placement import inventories

LOG = logging.getLogger(__name__)

# How often a change that does not fit waits for pending changes of other
# reservations, which may be refused and free their slots.
_PATIENCE = 6
_PAUSE = 0.2  # seconds

# A run takes a few steps; so many mean that another program undoes them.
_MAX_STEPS = 40

_NO_SLOTS = HostSlots(0, 0, 0)

# The numbers of all changes.
_ALL = range(sys.maxsize)


@dataclasses.dataclass(frozen=True)
class _SlotWrite:
    """A change of the number of slots on a host."""

    host: str
    before: HostSlots
    total: int
    is_pending: bool

    @property
    def order(self) -> int:
        """The order of writes: new hosts, then fewer slots, then more."""
        if not self.before.total:
            return 0
        return 1 if self.total < self.before.total else 2

    @property
    def after(self) -> HostSlots:
        """The new slots."""
        if self.is_pending or self.total < self.before.total:
            number = min(self.before.open, self.total)
        else:
            # All or none: see Reconciliation._secure.
            number = self.total if self.before.open else 0
        return HostSlots(self.total, number, self.before.used)


class Reconciliation:
    """A run that reconciles one reservation.

    :param asked: The numbers of the changes whose refusal is an error of this
        run. Another change that does not fit is refused, and the run goes on:
        the command that asked for it may still run, and reports it.
    """

    def __init__(
        self,
        store: ReservationStore,
        reservation: str,
        now: datetime.datetime,
        move: Move,
        before: ObservedState | None = None,
        asked: Container[int] = _ALL,
    ) -> None:
        self._asked = asked
        self.id = reservation
        self.notes: list[str] = []
        # Whether it has opened slots or granted access since it last read the
        # record.
        self.has_opened = False
        self._store = store
        self._now = self._began_at = now
        self._began = time.monotonic()
        self._move = move
        self._patience = _PATIENCE
        # A revision, and the providers written since it was read.
        self._secured: tuple[int, set[str]] = (0, set())
        self._before = before
        self._ended: Reservation | None = None
        self._created_class = False

    def attempt(
        self,
        state: ObservedState,
        lost: set[str],
        leave: Collection[str],
    ) -> bool:
        """Reconcile the reservation if necessary, and note any failure.

        :param lost: The ids of the reservations whose project lacks access
            although it was granted.
        :returns: Whether there was something to do.
        """
        self._update_time()
        reservation = state.records.reservations.get(self.id)
        if reservation is None or conditions.is_settled(
            state,
            reservation,
            self._now,
            self.id in lost,
            {
                *leave,
                *conditions.closed_to_leave(state, reservation, self._move),
            },
        ):
            return False
        try:
            self.settle(state)
        except exception.NotFound:
            LOG.debug('Reservation %s was ended by another command.', self.id)
        except exception.IsolateAggregatesError as exc:
            self.notes.append(str(exc).rstrip('.'))
        finally:
            # There may be as many runs as reservations.
            self._before = None
        return True

    def settle(self, state: ObservedState | None) -> ObservedState | None:
        """Take steps until there is nothing left to do.

        :returns: The resulting state; None if it was not read again after the
            last step.
        :raises ReservationError: if a pending change does not fit, or there is
            still something to do after many steps.
        """
        self.has_opened = False
        states = [state] if state else []
        for _ in range(_MAX_STEPS):
            try:
                state, is_done = self._step(states)
            except exception.ChangeRefused as exc:
                if exc.change in self._asked:
                    raise
                continue
            except (exception.NotFound, exception.ServiceNotFound):
                if self._store.compute.record(self.id) is not None:
                    raise
                self._delete_class()
                raise exception.NotFound(
                    'reservation', self.id, 'Nova'
                ) from None
            if is_done:
                return state
        raise exception.ReservationError(
            self.id,
            f'is still not complete after {_MAX_STEPS} steps, because '
            'another program keeps changing it; find out which',
        )

    def status(
        self,
        state: ObservedState,
        short: Mapping[str, str],
        before: Reservation | None = None,
    ) -> Status:
        """Return the status of the reservation.

        :param before: The reservation before the run, in case it is gone now.
        """
        reservation = state.records.reservations.get(self.id)
        if reservation is not None:
            return status_of(
                state,
                reservation,
                self._now,
                short,
                self.notes,
                details.read(self._store, state, reservation, self._now),
            )
        last = self._ended or before
        if last is None:
            raise exception.NotFound('reservation', self.id, 'Nova')
        return Status(last, Phase.ENDED, problems=tuple(self.notes))

    @retried
    def _step(
        self, states: list[ObservedState]
    ) -> tuple[ObservedState | None, bool]:
        """Take a step; return the state and whether it was the last step.

        :param states: The state, if it has just been read; it is used once.
        """
        self._update_time()
        state = states.pop() if states else self._store.read(self._before)
        self._before = state
        reservation = state.reservation(self.id)
        for flavor in state.records.old_flavors.get(self.id, ()):
            self._store.compute.delete_flavor(flavor)
        if reservation.pending:
            self._settle_change(state, reservation, reservation.pending)
            return None, False
        if reservation.has_ended(self._now):
            self._end(state, reservation)
            return None, True
        if conditions.lacks_extra_specs(state, reservation):
            self._write_extra_specs(reservation)
        leave = self._hosts_to_leave(state)
        if conditions.is_misplaced(state, reservation, leave):
            assignment = self._assign(state, reservation, leave)
            if self._write_assignment(
                state, reservation, assignment, is_pending=False
            ):
                return None, False
        if conditions.has_left(state, reservation):
            self._store.compute.write_record(
                dataclasses.replace(
                    reservation,
                    leaving=tuple(
                        name
                        for name in reservation.leaving
                        if name in state.slots(self.id)
                    ),
                ),
                self._now,
            )
            return None, False
        if self._open_slots(state, reservation):
            self.has_opened = True
            return None, True
        return state, True

    def _update_time(self) -> None:
        """Set the current time, as a run among many may last for minutes."""
        seconds = int(time.monotonic() - self._began)
        self._now = self._began_at + datetime.timedelta(seconds=seconds)

    # A pending change.

    def _settle_change(
        self,
        state: ObservedState,
        reservation: Reservation,
        pending: PendingChange,
    ) -> None:
        """Take a step towards a pending change, or refuse the change."""
        if conditions.lacks_extra_specs(state, reservation):
            self._write_extra_specs(reservation)
        if self._secured[0] != reservation.revision:
            self._secured = reservation.revision, set()
        target = reservation.settled
        excess = limits.excess(state, reservation, target, self._now)
        assignment = self._assign(state, target)
        is_late = pending.terms is not None and conditions.has_begun(
            state, reservation, self._now
        )
        if is_late or excess or assignment.missing:
            reservation = self._release(state, reservation)
            if (
                not is_late
                and self._patience
                and conditions.others_pending(state, reservation)
            ):
                self._patience -= 1
                time.sleep(random.uniform(0, _PAUSE))  # noqa: S311
                return
            why = (
                conditions.BEGUN
                if is_late
                else excess
                or host_capacity.refusal(
                    self._store, state, reservation, assignment, self._now
                )
            )
            self._refuse(state, reservation)
            raise exception.ChangeRefused(self.id, why, reservation.change)
        if self._write_assignment(state, target, assignment, is_pending=True):
            return
        self._secure(state)
        self._store.compute.write_record(target, self._now)

    def _secure(self, state: ObservedState) -> None:
        """Make sure that the slots of a pending change still exist.

        Slots that this run did not write are rewritten unchanged. This raises
        the generation, so that a command that removes them or that planned
        with an earlier end has a conflict and must read again. If some slots
        on a host are open, all are opened: once the change is granted, readers
        assume that the slots on a host are all open or all closed.
        """
        for name, on_host in state.slots(self.id).items():
            is_mixed = 0 < on_host.open < on_host.total
            if (
                is_mixed
                or state.hosts[name].provider not in (self._secured[1])
            ):
                number = on_host.total if on_host.open else 0
                self._write_slots(
                    state, name, dataclasses.replace(on_host, open=number)
                )

    def _release(
        self, state: ObservedState, reservation: Reservation
    ) -> Reservation:
        """Remove the slots that a pending change has added."""
        before = dataclasses.replace(reservation, pending=None)
        if not conditions.is_misplaced(state, before):
            return reservation
        # With a new revision, no other run can grant the change any more.
        successor = self._store.compute.write_record(reservation, self._now)
        assignment = self._assign(state, before)
        self._write_assignment(state, before, assignment, is_pending=False)
        return successor

    def _refuse(self, state: ObservedState, reservation: Reservation) -> None:
        if reservation.amount:
            self._store.compute.write_record(
                dataclasses.replace(reservation, pending=None), self._now
            )
            return
        details.check_record(self._store, state, reservation)
        # A new reservation ends. Other runs will also see it as ended and
        # remove it if this run is interrupted.
        ended = self._store.compute.write_record(
            dataclasses.replace(reservation, end=self._now, pending=None),
            self._now,
        )
        # Another run may have removed it, and the id been used again: then
        # this revision belongs to nothing.
        self._check_newest(ended)
        providers = self._providers(self._store.read(self._before))
        ending.remove(self._store, self.id, providers)
        self._store.compute.delete_record(ended)

    # Slots.

    def _assign(
        self,
        state: ObservedState,
        reservation: Reservation,
        leave: Collection[str] = (),
    ) -> Assignment:
        return host_capacity.assign(
            self._store, state, reservation, self._now, leave
        )

    def _hosts_to_leave(self, state: ObservedState) -> set[str]:
        """Return the hosts whose slots without a server are to be moved."""
        hosts = [state.hosts[name] for name in state.slots(self.id)]
        candidates = [host for host in hosts if self._move(host)]
        short = host_capacity.shortages(
            self._store,
            state,
            self._now,
            [host.name for host in candidates],
        )
        return conditions.hosts_to_leave(
            candidates, self._move, short
        ) | conditions.closed_to_leave(
            state, state.reservation(self.id), self._move
        )

    def _write_assignment(
        self,
        state: ObservedState,
        reservation: Reservation,
        assignment: Assignment,
        is_pending: bool,
    ) -> bool:
        """Write the slots that differ from the plan.

        New hosts come first, so that no slot is missing meanwhile. New slots
        are closed there, so that never too many are open. Until a pending
        change is granted, no slots are removed, and those it adds stay closed.
        Hosts in ``leaving`` keep only the slots with a server.
        """
        before = state.slots(self.id)
        writes = []
        for name in sorted(before.keys() | assignment.slots.keys()):
            on_host = before.get(name, _NO_SLOTS)
            total = assignment.slots.get(name, 0)
            if name in reservation.leaving:
                total = on_host.used
            if is_pending:
                total = max(total, on_host.total)
            if total != on_host.total:
                writes.append(_SlotWrite(name, on_host, total, is_pending))
        for write in sorted(writes, key=lambda write: write.order):
            self._write_slots(state, write.host, write.after)
        return bool(writes)

    def _write_slots(
        self, state: ObservedState, name: str, new: HostSlots
    ) -> None:
        host = state.hosts[name]
        if host.provider is None:
            return
        resource_class = names.resource_class(self.id)
        try:
            slots.write(
                self._store.placement,
                host.provider,
                resource_class,
                new,
                host.generation,
                state.reservation(self.id).change,
            )
        except exception.BadQuery as exc:
            if self._store.compute.record(self.id) is not None:
                self._create_class()
            raise exception.ServiceConflict(
                'Placement',
                None,
                f'has no resource class {resource_class}; run the command '
                'again.',
            ) from exc
        self._secured[1].add(host.provider)

    def _open_slots(
        self, state: ObservedState, reservation: Reservation
    ) -> bool:
        """Open or close slots as due, and grant the project access."""
        is_open = conditions.is_open(reservation, self._now)
        access = self._store.access
        lacks_access = is_open and not access.is_granted(reservation)
        to_switch = conditions.hosts_to_switch(state, reservation, self._now)
        if is_open is False and reservation.has_access:
            reservation = self._store.compute.write_record(
                dataclasses.replace(reservation, has_access=False), self._now
            )
            is_early = True
        else:
            is_early = bool(is_open is False and to_switch)
        if is_early or (lacks_access and reservation.former):
            # Access from a clock that is ahead, or of a former project.
            access.revoke(self.id)
        for name in to_switch:
            provider = state.hosts[name].provider
            on_host = state.slots(self.id)[name]
            is_to_open = conditions.is_host_open(reservation, name, self._now)
            if not is_to_open and not on_host.used:
                closed_slots = dataclasses.replace(on_host, open=0)
                self._write_slots(state, name, closed_slots)
            elif provider:
                slots.change(
                    self._store.placement,
                    provider,
                    reservation.resource_class,
                    slots.opened_from(on_host) if is_to_open else slots.closed,
                )
        if lacks_access:
            # No command changes project or start once slots are open, so they
            # cannot change after this check.
            self._check_newest(reservation)
            access.grant(reservation)
            if reservation.has_access:
                LOG.warning(
                    'Project %s had lost access to the flavor of its '
                    'reservation %s, and has it again.',
                    reservation.project,
                    self.id,
                )
        if is_open and not reservation.has_access:
            self._store.compute.write_record(
                dataclasses.replace(reservation, has_access=True), self._now
            )
            return True
        return bool(to_switch or lacks_access or is_early)

    def _check_newest(self, reservation: Reservation) -> None:
        """Raise ServiceConflict unless a record is unchanged."""
        if not self._store.is_newest(reservation):
            raise details.conflict(self.id)

    def _write_extra_specs(self, reservation: Reservation) -> None:
        self._create_class()
        flavor = reservation.flavor
        self._store.compute.set_extra_specs(flavor, flavor.extra_specs)

    def _create_class(self) -> None:
        inventories.create_class(
            self._store.placement, names.resource_class(self.id)
        )
        self._created_class = True

    def _delete_class(self) -> None:
        """Delete the class if this run created it for an ended reservation."""
        if self._created_class:
            with contextlib.suppress(exception.ServiceConflict):
                inventories.delete_class(
                    self._store.placement, names.resource_class(self.id)
                )

    # The end.

    def _end(self, state: ObservedState, reservation: Reservation) -> None:
        # The state may be minutes old, and the id may have been used again.
        self._check_newest(reservation)
        details.check_record(self._store, state, reservation)
        self._ended = reservation
        waiting = ending.finish(self._store, self.id, self._providers(state))
        if waiting:
            self.notes.append(waiting)
        else:
            # First, as an interruption in between must not lose it.
            history.archive(self._store, reservation, self._now)
            self._store.compute.delete_record(reservation)

    def _providers(self, state: ObservedState) -> list[str]:
        """Return the reservation providers with slots of the reservation."""
        return state.slot_providers(self.id)


def reconcile(
    store: ReservationStore,
    reservation: str,
    now: datetime.datetime,
    move: Move = no_host,
    before: ObservedState | None = None,
    asked: int | None = None,
) -> Status:
    """Bring a reservation to the state it should be in.

    :param move: Returns whether slots without a server may be moved off a host
        that is down, disabled, gone or too small.
    :param before: A state that was read moments ago; see ``store.read``.
    :param asked: The number of the change that the caller has asked for.
    :returns: The resulting status, with what could not be done among its
        problems.
    :raises ChangeRefused: if that change does not fit. It is then withdrawn,
        as are those of others; a new reservation is removed.
    :raises NotFound: if the reservation is gone.
    """
    run = Reconciliation(
        store,
        reservation,
        now,
        move,
        before,
        asked=() if asked is None else (asked,),
    )
    state = run.settle(None)
    if run.has_opened:
        # If it was ended meanwhile, its slots must be closed again.
        state = run.settle(None)
    state = state or store.read()
    short = host_capacity.shortages(
        store, state, now, state.slots(reservation)
    )
    return run.status(state, short)
