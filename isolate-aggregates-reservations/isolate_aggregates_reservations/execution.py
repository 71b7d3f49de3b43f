# SPDX-License-Identifier: Apache-2.0
"""Carries out plans: reads the state, and does what is due, until it is done.

It does not matter who was interrupted where, as a plan starts from any state.
Concurrent runs and commands are safe, because an action is carried out only if
the state that it is based on is still current:

* A record is written as the next revision, and each revision number can be
  written only once, until a later one is there. So it is read again before
  anybody is told what was written, unless more depends on it.
* Slots are written with the generation of the reservation provider. The write
  fails if slots of any reservation on the host have changed meanwhile.
* Slots are opened only if their number has not changed since it was read, and
  the record is read again before the project gets access.

After a conflict the state is read, and planned, again. When nothing is left to
do, the state is read once more: another command may have ended the reservation
meanwhile.
"""

from collections.abc import Container, Mapping
import dataclasses
import datetime
import logging
import random
import sys
import time

from isolate_aggregates import exception
from isolate_aggregates_reservations import capacity, errors, history, planner
from isolate_aggregates_reservations.actions import (
    Action,
    End,
    Grant,
    Refuse,
    Wait,
    WriteRecord,
)
from isolate_aggregates_reservations.executor import Executor
from isolate_aggregates_reservations.failed_hosts import Move, no_host
from isolate_aggregates_reservations.problems import status_of
from isolate_aggregates_reservations.reservation import Reservation
from isolate_aggregates_reservations.slots import retried
from isolate_aggregates_reservations.state import HostSlots, ObservedState
from isolate_aggregates_reservations.status import Kind, Phase, Problem, Status
from isolate_aggregates_reservations.store import ReservationStore
from isolate_aggregates_tools import errors as tools_errors

LOG = logging.getLogger(__name__)

# How often a change that does not fit waits for pending changes of other
# reservations, which may be refused and free their slots.
_PATIENCE = 6
_PAUSE = 0.2  # seconds

# A run takes a few plans; so many mean that another program undoes them.
_MOST_PLANS = 40

# The numbers of all changes.
_ALL = range(sys.maxsize)


class Run:
    """A run that brings one reservation to the state it should be in.

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
        asked: Container[int] = _ALL,
    ) -> None:
        self._asked = asked
        self.id = reservation
        self.notes: list[Problem] = []
        # Whether it has ended the reservation as far as possible, or failed.
        self.is_over = False
        # Whether the reservation is gone.
        self.is_gone = False
        self._store = store
        self._executor = Executor(store, reservation)
        self._now = self._began_at = now
        self._began = time.monotonic()
        self._move = move
        self._patience = _PATIENCE
        self._ended: Reservation | None = None
        # The state after it has closed what it ends, and cannot delete yet.
        self.closed: ObservedState | None = None

    def attempt(self, state: ObservedState) -> bool:
        """Do what is due, and note any failure; see ``bring``."""
        try:
            return self.bring(state)
        except tools_errors.NotFound:
            LOG.debug('Reservation %s was ended by another command.', self.id)
        except exception.IsolateAggregatesError as exc:
            self.note(exc)
        self.is_over = True
        return True

    def note(self, error: exception.IsolateAggregatesError) -> None:
        """Add an error to the problems of the reservation."""
        self.notes.append(Problem(Kind.OTHER, str(error).rstrip('.')))

    def bring(self, state: ObservedState) -> bool:
        """Do what is due.

        :returns: Whether there was anything, so that the state must be read
            again.
        :raises ReservationError: if a pending change does not fit, or there is
            still something to do after many plans.
        """
        if self.is_over:
            return False
        self._before = state
        self._has_acted = False
        try:
            self._bring([state])
        except (tools_errors.NotFound, exception.ServiceNotFound):
            if self._store.compute.record(self.id) is not None:
                raise
            self._executor.delete_class()
            raise errors.unknown(self.id) from None
        finally:
            # There may be as many runs as reservations.
            del self._before
        return self._has_acted

    @retried
    def _bring(self, given: list[ObservedState]) -> None:
        """Do what is due.

        :param given: A state that has just been read; it is used once.
        """
        if given:
            state = given.pop()
        else:
            self._has_acted = True
            state = self._store.read(self._before)
        for _ in range(_MOST_PLANS):
            self._update_time()
            actions = planner.plan(
                state, self.id, self._now, self._move, self._patience > 0
            )
            if not actions:
                return
            self._has_acted = True
            for action in actions:
                state = self._carry_out(action, state)
            if self.is_over:
                return
        raise not_complete(self.id)

    def _update_time(self) -> None:
        """Set the current time, as a run among many may last for minutes."""
        seconds = int(time.monotonic() - self._began)
        self._now = self._began_at + datetime.timedelta(seconds=seconds)

    def _carry_out(
        self, action: Action, state: ObservedState
    ) -> ObservedState:
        compute = self._store.compute
        match action:
            case WriteRecord():
                return state.with_reservation(
                    compute.write_record(action.reservation, self._now)
                )
            case Grant():
                self._check_grant(action, state)
            case Wait():
                self._patience -= 1
                time.sleep(random.uniform(0, _PAUSE))  # noqa: S311
                return self._store.read(self._before)
            case Refuse():
                self._refuse(action, state)
                return self._store.read(self._before)
            case End():
                self._end(action.reservation, state)
                return action.after(state)
        change = state.reservation(self.id).change
        return self._executor.carry_out(action, state, change)

    def _check_grant(self, action: Grant, state: ObservedState) -> None:
        reservation = state.reservation(self.id)
        self._store.check_newest(reservation)
        if reservation.has_access:
            for project in sorted(action.projects):
                LOG.warning(
                    'Project %s had no access to the flavor of its '
                    'reservation %s, and gets it again.',
                    project,
                    self.id,
                )

    def _refuse(self, action: Refuse, state: ObservedState) -> None:
        store = self._store
        reservation = state.reservation(self.id)
        withdrawn = dataclasses.replace(reservation, pending=None)
        is_new = not reservation.amount
        if is_new:
            store.check_record(state, reservation)
            # A new reservation ends. Other runs will also see it as ended and
            # remove it if this run is interrupted.
            withdrawn = dataclasses.replace(withdrawn, end=self._now)
        written = store.compute.write_record(withdrawn, self._now)
        # Other runs may have granted it and gone on, or have removed it, and
        # the id been used again: then this revision belongs to nothing.
        store.check_newest(written)
        if is_new:
            providers = store.read(state).slot_providers(self.id)
            self._executor.remove(providers)
            store.compute.delete_record(written)
        if reservation.change in self._asked:
            raise errors.ChangeRefused(self.id, action.why, reservation.change)

    def _end(self, reservation: Reservation, state: ObservedState) -> None:
        # The state may be minutes old, and the id may have been used again.
        self._store.check_newest(reservation)
        self._store.check_record(state, reservation)
        self._ended = reservation
        waiting = self._executor.finish(state.slot_providers(self.id))
        if waiting:
            if reservation.open:
                closed = dataclasses.replace(reservation, open={}, down=())
                self._ended = self._store.compute.write_record(
                    closed, self._now
                )
            rest = '; reservation reconcile completes the end'
            self.notes.append(Problem(Kind.OTHER, waiting.what, rest))
            for name, on in state.slots(self.id).items():
                shut = HostSlots(on.total, 0, on.used, not on.used)
                if state.hosts[name].provider not in waiting.providers:
                    shut = HostSlots(0, 0, 0)
                state = state.with_slots(name, self.id, shut)
            self.closed = state.with_reservation(self._ended)
        else:
            # First, as an interruption in between must not lose it.
            history.archive(self._store, reservation, self._now)
            self._store.compute.delete_record(reservation)
            self.is_gone = True
        self.is_over = True

    def status(
        self,
        state: ObservedState,
        last: Reservation | None,
        short: Mapping[str, str],
    ) -> Status:
        """Return the status of the reservation.

        :param last: The reservation before the run, in case it is gone now.
        :param short: The capacity problems of hosts, by name of the host.
        """
        reservation = state.records.reservations.get(self.id)
        # A part that failed on several attempts is named once.
        failed = dict.fromkeys(self._executor.failed)
        notes = [
            *self.notes,
            *(Problem(Kind.OTHER, sentence) for sentence in failed),
        ]
        if reservation is None or self.is_gone:
            last = self._ended or last
            if last is None:
                raise errors.unknown(self.id)
            return Status(last, Phase.ENDED, found=tuple(notes))
        return status_of(
            self._store, state, reservation, self._now, short, notes=notes
        )


def reconcile(
    store: ReservationStore,
    reservation: str,
    now: datetime.datetime,
    move: Move = no_host,
    state: ObservedState | None = None,
    asked: int | None = None,
) -> Status:
    """Bring a reservation to the state it should be in.

    :param move: Returns whether slots without a server may be moved off a host
        that is down, disabled, gone or too small.
    :param state: A state that was just read; None to read it.
    :param asked: The number of the change that the caller has asked for.
    :returns: The resulting status, with what could not be done among its
        problems.
    :raises ChangeRefused: if that change does not fit. It is then withdrawn,
        as are those of others; a new reservation is removed.
    :raises NotFound: if the reservation is gone.
    """
    run = Run(store, reservation, now, move, () if asked is None else (asked,))
    state = state or store.read()
    found = state.reservation(reservation)
    if found.has_access and planner.is_open(found, now):
        state = store.with_access(state, [found.id])
    for _ in range(_MOST_PLANS):
        if not run.bring(state):
            if not run.is_gone:
                state.reservation(reservation)
            short = capacity.shortages(state, now, state.slots(reservation))
            return run.status(state, found, short)
        if run.closed:
            state = run.closed
        elif not run.is_gone:
            state = store.read(state)
    raise not_complete(reservation)


def outcome(
    state: ObservedState,
    reservation: str,
    now: datetime.datetime,
    move: Move = no_host,
) -> tuple[ObservedState, list[Action]]:
    """Return what would be done, and the state after it; change nothing.

    If a change is refused, that is the last action.
    """
    actions: list[Action] = []
    for _ in range(_MOST_PLANS):
        planned = planner.plan(state, reservation, now, move)
        if not planned:
            return state, actions
        for action in planned:
            actions.append(action)
            if isinstance(action, Refuse):
                return state, actions
            state = action.after(state)
    raise not_complete(reservation)


def not_complete(reservation: str) -> errors.ReservationError:
    return errors.ReservationError(
        reservation,
        'is still not complete, because another program keeps undoing what is '
        'done; stop that program, and run reservation reconcile',
    )
