# SPDX-License-Identifier: Apache-2.0
"""Plans what is to be done about a reservation, from any state.

These functions change nothing. What depends on the hosts that a plan chooses
is read by its state; see ``capacity``. A plan leads from a state one step
towards what the record of the reservation says; the plan for the state after
it says what comes next, until there is nothing left to do.

The order of the actions keeps every state in between safe:

* New slots are closed, and are opened when all of them are there. New hosts
  come first, so that no slot is missing meanwhile.
* A pending change is granted only if its slots have been written, or rewritten
  unchanged, since the revision that granting replaces was read. That raises
  the generation, so that a command that removes them, or that planned with an
  earlier end, has a conflict and must read again. A run that removes slots of
  a pending change writes a revision first.
* The project gets access after its slots were opened, and loses it before they
  are closed.
"""

from collections.abc import Collection, Iterator
import dataclasses
import datetime

from isolate_aggregates_reservations import capacity, limits
from isolate_aggregates_reservations.actions import (
    Action,
    DeleteRevisions,
    End,
    Grant,
    Refuse,
    Revoke,
    SwitchSlots,
    Wait,
    WriteExtraSpecs,
    WriteRecord,
    WriteSlots,
)
from isolate_aggregates_reservations.failed_hosts import Move, no_host
from isolate_aggregates_reservations.plan import Assignment
from isolate_aggregates_reservations.reservation import Reservation
from isolate_aggregates_reservations.state import (
    MOST_SKEW,
    HostSlots,
    ObservedState,
)
from isolate_aggregates_tools import shell

# The largest difference between the clocks of two runs: each may differ from
# Placement's clock by MOST_SKEW. See ReservationStore.now.
CLOCKS_DIFFER = 2 * MOST_SKEW

_NO_SLOTS = HostSlots(0, 0, 0)


def plan(
    state: ObservedState,
    reservation: str,
    now: datetime.datetime,
    move: Move = no_host,
    may_wait: bool = False,
) -> tuple[Action, ...]:
    """Plan the next actions for a reservation, in this order.

    :param move: Returns whether slots without a server may be moved off a host
        that cannot serve them.
    :param may_wait: Whether a change that does not fit may wait for pending
        changes of other reservations.
    :returns: Nothing if it is as it should be, or nothing can be done now.
    """
    found = state.records.reservations.get(reservation)
    if found is None:
        return ()
    planning = _Planning(state, found, now, move, may_wait)
    return tuple(planning.actions())


class _Planning:
    def __init__(
        self,
        state: ObservedState,
        reservation: Reservation,
        now: datetime.datetime,
        move: Move,
        may_wait: bool,
    ) -> None:
        self._state = state
        self._reservation = reservation
        self._now = now
        self._move = move
        self._may_wait = may_wait

    def actions(self) -> Iterator[Action]:
        state, reservation = self._state, self._reservation
        old_flavors = state.records.old_flavors.get(reservation.id)
        if old_flavors:
            yield DeleteRevisions(reservation.id, old_flavors)
        if not reservation.pending and reservation.has_ended(self._now):
            yield End(reservation)
            return
        has = state.extra_specs.get(reservation.id, {})
        if any(
            has.get(key) != value
            for key, value in reservation.flavor.extra_specs.items()
        ):
            yield WriteExtraSpecs(reservation.flavor)
        if reservation.pending:
            yield from self._settle_change()
            return
        leave = _to_leave(state, reservation, self._now, self._move)
        # Of what ends, another run may be deleting the slots.
        if not is_ending(reservation, self._now) and _is_misplaced(
            state, reservation, leave
        ):
            writes = self._writes(
                reservation, self._assign(reservation, leave)
            )
            if writes:
                yield from writes
                return
        present = state.slots(reservation.id)
        if not present.keys() >= {*reservation.leaving}:
            leaving = tuple(n for n in reservation.leaving if n in present)
            yield WriteRecord(
                dataclasses.replace(reservation, leaving=leaving),
                'record that it has left a host',
            )
            return
        yield from self._open_or_close()

    def _assign(
        self, reservation: Reservation, leave: Collection[str] = ()
    ) -> Assignment:
        return capacity.assign(self._state, reservation, self._now, leave)

    # A pending change.

    def _settle_change(self) -> Iterator[Action]:
        """Grant the change, or refuse it."""
        state, reservation = self._state, self._reservation
        target = reservation.settled
        excess = limits.excess(state, reservation, target, self._now)
        assignment = self._assign(target)
        if excess or assignment.missing:
            yield from self._withdraw(excess, assignment)
            return
        writes = self._writes(target, assignment, is_pending=True)
        yield from writes
        written = {write.host for write in writes}
        for write in writes:
            state = write.after(state)
        for name, on_host in state.slots(reservation.id).items():
            # Once the change is granted, readers assume that the slots on a
            # host are all open or all closed.
            is_mixed = 0 < on_host.open < on_host.total
            if is_mixed or name not in written:
                yield WriteSlots(
                    reservation.id,
                    name,
                    on_host,
                    on_host.total,
                    on_host.total if on_host.open else 0,
                )
        yield WriteRecord(target)

    def _withdraw(
        self, excess: str | None, assignment: Assignment
    ) -> Iterator[Action]:
        """Remove the slots that a change has added, wait, or refuse it."""
        state, reservation = self._state, self._reservation
        before = dataclasses.replace(reservation, pending=None)
        if _is_misplaced(state, before):
            writes = self._writes(before, self._assign(before))
            if writes:
                # With a new revision, no other run can grant the change any
                # more.
                yield WriteRecord(reservation)
                yield from writes
                return
        if self._may_wait and any(
            other.pending and other.id != reservation.id
            for other in state.records.reservations.values()
        ):
            yield Wait()
            return
        yield Refuse(reservation, excess or self._refusal(assignment))

    def _refusal(self, assignment: Assignment) -> str:
        if self._reservation.amount:
            return f'{assignment.refusal}; {assignment.advice}'
        later = capacity.first_fit(
            self._state, self._reservation.settled, self._now
        )
        if later.missing:
            return (
                f'{assignment.refusal}; it does not fit later either; '
                f'{assignment.advice}'
            )
        start = later.demand.start.isoformat(timespec='seconds')
        return (
            f'{assignment.refusal}; all of it fits from {start} on; run '
            f'{shell.Kind.RESERVATION_CREATE} with '
            f'{shell.line(("--start", start))}, or '
            f'{assignment.advice}'
        )

    # Slots.

    def _writes(
        self,
        reservation: Reservation,
        assignment: Assignment,
        is_pending: bool = False,
    ) -> list[WriteSlots]:
        """Return the slots that differ from an assignment.

        Until a pending change is granted, no slots are removed, and those it
        adds stay closed. Hosts in ``leaving`` keep only the slots with a
        server.
        """
        present = self._state.slots(reservation.id)
        writes = []
        for name in sorted(present.keys() | assignment.slots.keys()):
            on_host = present.get(name, _NO_SLOTS)
            total = assignment.slots.get(name, 0)
            if name in reservation.leaving:
                total = on_host.used
            if is_pending:
                total = max(total, on_host.total)
            if total == on_host.total:
                continue
            number = total if on_host.open else 0
            if is_pending or total < on_host.total:
                number = min(on_host.open, total)
            writes.append(
                WriteSlots(reservation.id, name, on_host, total, number)
            )
        return sorted(writes, key=_order)

    def _open_or_close(self) -> Iterator[Action]:
        """Open or close slots as due, and grant the project access."""
        state, reservation = self._state, self._reservation
        to_be_open = is_open(reservation, self._now)
        to_switch = _hosts_to_switch(state, reservation, self._now)
        may_boot = bool(to_be_open) and not _warns(reservation, self._now)
        is_closing = to_be_open is False and bool(to_switch)
        if reservation.has_access and not may_boot:
            is_closing |= to_be_open is not None
        if is_closing:
            # It ends soon, or was opened by a clock that is ahead.
            if reservation.has_access:
                yield WriteRecord(
                    dataclasses.replace(reservation, has_access=False),
                    'record that its project has no access',
                )
            yield Revoke(reservation.id)
        present = state.slots(reservation.id)
        for name, to_open in to_switch.items():
            action = SwitchSlots(reservation.id, name, present[name], to_open)
            present[name] = action.written.slots
            yield action
        missing = reservation.projects - state.access.get(
            reservation.id,
            reservation.projects if reservation.has_access else frozenset(),
        )
        if may_boot and missing:
            yield Grant(reservation.id, missing)
        # What was open and usable from now on.
        open_on = {n: on.open for n, on in sorted(present.items()) if on.open}
        down = [name for name in open_on if state.hosts[name].has_failed]
        after = dataclasses.replace(
            reservation,
            has_access=may_boot or reservation.has_access,
            open=open_on,
            down=tuple(down),
        )
        if to_be_open:
            is_used = any(on.used for on in present.values())
            since = None if is_used else reservation.unused_since or self._now
            after = dataclasses.replace(after, unused_since=since)
        started = after.has_access and not reservation.has_access
        if after != reservation and not is_closing:
            yield WriteRecord(
                after, 'record that it has started' if started else ''
            )


def _order(write: WriteSlots) -> int:
    """The order of writes: new hosts, then fewer slots, then more."""
    if not write.before.total:
        return 0
    return 1 if write.total < write.before.total else 2


def _to_leave(
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
    move: Move,
) -> set[str]:
    names = [n for n in state.slots(reservation.id) if move(state.hosts[n])]
    if not names:
        return set()
    return {
        *(name for name in names if state.hosts[name].obstacle),
        *capacity.shortages(state, now, names),
        *state.closed(reservation, names),
    }


def _is_misplaced(
    state: ObservedState,
    reservation: Reservation,
    leave: Collection[str] = (),
) -> bool:
    """Return whether slots should be added, removed or moved."""
    present = state.slots(reservation.id)
    stays = {
        n: on for n, on in present.items() if n not in reservation.leaving
    }
    return (
        sum(slots.total for slots in stays.values()) != reservation.amount
        or any(
            slots.used < slots.total
            for name, slots in stays.items()
            if name in leave
        )
        or any(
            slots.used != slots.total
            for name, slots in present.items()
            if name not in stays
        )
    )


def _hosts_to_switch(
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
) -> dict[str, bool]:
    hosts = {}
    for name, slots in sorted(state.slots(reservation.id).items()):
        to_open = (
            False if name in reservation.leaving else is_open(reservation, now)
        )
        if to_open is not None and (
            slots.open != to_open * slots.total
            # Closed in a way that the candidates do not show.
            or not (to_open or slots.used or slots.is_planned)
        ):
            hosts[name] = to_open
    return hosts


def is_open(reservation: Reservation, now: datetime.datetime) -> bool | None:
    """Return whether a reservation that has not ended is to be open.

    :returns: None so close to the start or end that a run with another clock
        may decide differently; slots and access then stay as they are.
    """
    if not reservation.has_started(now):
        return None if reservation.start - now <= CLOCKS_DIFFER else False
    return None if is_ending(reservation, now) else True


def _warns(reservation: Reservation, now: datetime.datetime) -> bool:
    """Return whether no more servers are to be booted, as it ends soon."""
    until = reservation.boot_until
    return bool(reservation.warn_before) and until is not None and until <= now


def is_ending(reservation: Reservation, now: datetime.datetime) -> bool:
    """Return whether it has ended, by the clock of any run.

    Another run whose clock is ahead may be deleting its servers.
    """
    end = reservation.end
    return end is not None and end - now <= CLOCKS_DIFFER
