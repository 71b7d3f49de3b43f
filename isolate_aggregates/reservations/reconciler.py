# SPDX-License-Identifier: Apache-2.0
"""Brings a reservation from any state to the one it should be in.

One step after the other: each looks at how things are and does what is
missing, so that whatever was interrupted is completed by the next run, and
several may run at once. What depends on other reservations is written with
the generations at which it was found out; if one of them has changed, the step
is taken anew with fresh data.
"""

import dataclasses
import datetime
import logging
import random
import time

from isolate_aggregates import exception
from isolate_aggregates.placement import inventories
from isolate_aggregates.reservations import ending, names, needs, rooms, slots
from isolate_aggregates.reservations.planner import Placing
from isolate_aggregates.reservations.record import Reservation
from isolate_aggregates.reservations.refusal import refusal
from isolate_aggregates.reservations.site import Site
from isolate_aggregates.reservations.status import State, Status, status_of
from isolate_aggregates.reservations.world import Slots, World

LOG = logging.getLogger(__name__)

# How often to wait for others that ask for slots at the same time and may
# give theirs back.
_PATIENCE = 6
_PAUSE = 0.2  # seconds

# Each needs a handful; more mean that somebody undoes them.
_MOST_STEPS = 40

_NONE = Slots(0, 0, 0)


def reconcile(
    site: Site,
    reservation: str,
    now: datetime.datetime,
    move: bool = False,
) -> Status:
    """Bring a reservation to the state it should be in.

    :param site: The cloud.
    :param reservation: Its id.
    :param now: The time.
    :param move: Whether slots without a server leave hosts that are down,
        disabled or gone.
    :returns: How it is then; what could not be done is among its problems.
    :raises NotFound: if there is no such reservation.
    :raises ReservationError: if what is asked for it does not fit; it is then
        as it was before that was asked, and gone if it was to be made.
    :raises ServiceError: if anything can not be done; the next run completes
        it.
    """
    run = _Run(site, reservation, now, move)
    world = run.settle(None) or site.read()
    return run.status(world)


def tick(
    site: Site, now: datetime.datetime, move: bool = False
) -> list[Status]:
    """Bring all reservations to the state they should be in.

    A reservation that fails does not keep the others waiting. Those whose
    record can not be read are logged.

    :param site: The cloud.
    :param now: The time.
    :param move: Whether slots without a server leave hosts that are down,
        disabled or gone.
    :returns: How they are then, those that ended too, in the order of their
        starts; what could not be done is among their problems.
    :raises IsolateAggregatesError: if it can not be read how things are.
    """
    world = site.read()
    for problem in world.problems.values():
        LOG.error('%s', problem)
    runs = [
        _Run(site, found.id, now, move)
        for found in sorted(
            world.records.values(), key=lambda r: (r.start, r.id)
        )
    ]
    changed = False
    for run in runs:
        if needs.is_settled(world, world.records[run.id], now, move):
            continue
        changed = True
        try:
            run.settle(world)
        except exception.NotFound:
            # Somebody else was faster.
            continue
        except exception.IsolateAggregatesError as exc:
            run.notes.append(str(exc).rstrip('.'))
    after = site.read() if changed else world
    return [run.status(after, world.records[run.id]) for run in runs]


@dataclasses.dataclass(frozen=True)
class _Change:
    """How many slots a host shall have.

    :param host: Its name.
    :param before: The slots it has.
    :param total: How many it shall have.
    :param is_asked: Whether that is asked for and not granted yet.
    """

    host: str
    before: Slots
    total: int
    is_asked: bool

    @property
    def turn(self) -> int:
        """When to write it."""
        if not self.before.total:
            return 0
        return 1 if self.total < self.before.total else 2

    @property
    def open(self) -> int:
        """How many of them servers may take."""
        if self.is_asked or self.total < self.before.total:
            return min(self.before.open, self.total)
        # All or none: see _Run._open_rest.
        return self.total if self.before.open else 0


class _Run:
    """One run for one reservation.

    :param site: The cloud.
    :param reservation: The id of the reservation.
    :param now: The time.
    :param move: Whether slots leave hosts that are down, disabled or gone.
    """

    def __init__(
        self,
        site: Site,
        reservation: str,
        now: datetime.datetime,
        move: bool,
    ) -> None:
        self.id = reservation
        self.notes: list[str] = []
        self._site = site
        self._now = now
        self._move = move
        self._patience = _PATIENCE
        # The providers written since the present end was asked for.
        self._marked: set[str] = set()
        self._ended: Reservation | None = None

    def settle(self, world: World | None) -> World | None:
        """Take steps until there is nothing left to do.

        :param world: How things are, if it is known.
        :returns: How things are then, if it is known.
        :raises ReservationError: if it does not come to rest.
        """
        known = [world] if world else []
        for _ in range(_MOST_STEPS):
            found, is_done = self._step(known)
            if is_done:
                return found
        raise exception.ReservationError(
            self.id,
            f'is not as it should be after {_MOST_STEPS} steps, as something '
            'changes it all the time; look for what that is',
        )

    def status(
        self, world: World, before: Reservation | None = None
    ) -> Status:
        """Return how the reservation is.

        :param world: How things are.
        :param before: The reservation as it was.
        """
        if self.id in world.records:
            return status_of(
                world, world.records[self.id], self._now, self.notes
            )
        last = self._ended or before
        if last is None:
            raise exception.NotFound('reservation', self.id, 'Nova')
        return Status(last, State.ENDED, problems=tuple(self.notes))

    @slots.retried
    def _step(self, known: list[World]) -> tuple[World | None, bool]:
        """Take a step; return how things are, and whether it was the last."""
        world = known.pop() if known else self._site.read()
        reservation = world.reservation(self.id)
        if reservation.asked:
            self._settle_ask(world, reservation)
            return None, False
        if reservation.has_ended(self._now):
            self._end(world, reservation)
            return None, True
        if needs.lacks_extra_specs(world, reservation):
            self._write_extra_specs(reservation)
        if needs.is_misplaced(world, reservation, self._move):
            placing = self._plan(world, reservation)
            if self._write(world, placing, is_asked=False):
                return None, False
        if self._open(world, reservation):
            return None, True
        return world, True

    # What is asked for.

    def _settle_ask(self, world: World, reservation: Reservation) -> None:
        """Take a step towards what is asked for, or refuse it."""
        if needs.lacks_extra_specs(world, reservation):
            self._write_extra_specs(reservation)
        wanted = reservation.settled
        placing = self._plan(world, wanted)
        if placing.missing:
            self._give_back(world, reservation)
            if self._patience and needs.others_ask(world, reservation):
                self._patience -= 1
                time.sleep(random.uniform(0, _PAUSE))  # noqa: S311
                return
            self._refuse(reservation)
            raise refusal(world, wanted, placing, self._now)
        if self._write(world, placing, is_asked=True):
            return
        if needs.ends_later(reservation) and self._mark(world):
            return
        if self._open_rest(world):
            return
        self._site.compute.write_record(wanted)

    def _mark(self, world: World) -> bool:
        """Write slots as they are, for whoever planned with the old end."""
        wrote = False
        for name, found in world.slots(self.id).items():
            host = world.hosts[name]
            if host.provider and host.provider not in self._marked:
                self._put(world, name, found.total, found.open)
                wrote = True
        return wrote

    def _open_rest(self, world: World) -> bool:
        """Open all slots of a host where some are open.

        Before it is written down that they were granted: how many there are
        can not be told from what is open of them, unless all of them are.
        """
        found = {
            name: slots_there
            for name, slots_there in world.slots(self.id).items()
            if 0 < slots_there.open < slots_there.total
        }
        for name, slots_there in found.items():
            self._put(world, name, slots_there.total, slots_there.total)
        return bool(found)

    def _give_back(self, world: World, reservation: Reservation) -> None:
        """Take back what was asked for, as far as it was placed."""
        before = dataclasses.replace(reservation, asked=None)
        if needs.is_misplaced(world, before, move=False):
            placing = self._plan(world, before)
            self._write(world, placing, is_asked=False)
        self._marked.clear()

    def _refuse(self, reservation: Reservation) -> None:
        if reservation.amount:
            self._site.compute.write_record(
                dataclasses.replace(reservation, asked=None)
            )
            return
        providers = self._providers(self._site.read())
        ending.remove(self._site, reservation, providers)

    # Slots.

    def _plan(self, world: World, reservation: Reservation) -> Placing:
        return rooms.plan(
            self._site, world, reservation, self._now, self._move
        )

    def _write(self, world: World, placing: Placing, is_asked: bool) -> bool:
        """Write slots where they are not as planned.

        On further hosts they come first, so that none is missing, and closed,
        so that there are never more open than there should be. On hosts that
        have some, what is asked for stays closed until it is granted.

        :returns: Whether anything was written.
        """
        before = world.slots(self.id)
        changes = [
            _Change(
                name,
                before.get(name, _NONE),
                placing.slots.get(name, 0),
                is_asked,
            )
            for name in sorted(before.keys() | placing.slots.keys())
        ]
        pending = [c for c in changes if c.total != c.before.total]
        for change in sorted(pending, key=lambda change: change.turn):
            self._put(world, change.host, change.total, change.open)
        return bool(pending)

    def _put(self, world: World, name: str, total: int, opened: int) -> None:
        host = world.hosts[name]
        if host.provider is None:
            return
        slots.write(
            self._site.placement,
            host.provider,
            names.resource_class(self.id),
            total,
            opened,
            host.generation,
        )
        self._marked.add(host.provider)

    def _open(self, world: World, reservation: Reservation) -> bool:
        """Open the slots from the start on, and let the project use them."""
        has_started = reservation.has_started(self._now)
        to_open = needs.to_open(world, reservation, self._now)
        for name in to_open:
            provider = world.hosts[name].provider
            if provider:
                slots.change(
                    self._site.placement,
                    provider,
                    reservation.resource_class,
                    slots.opened if has_started else slots.closed,
                )
        is_new = has_started and not reservation.granted
        if is_new or (has_started and self._move):
            self._site.compute.grant(reservation)
        if is_new:
            self._site.compute.write_record(
                dataclasses.replace(reservation, granted=True)
            )
        return bool(to_open or is_new)

    def _write_extra_specs(self, reservation: Reservation) -> None:
        inventories.create_class(
            self._site.placement, reservation.resource_class
        )
        self._site.compute.write_extra_specs(reservation)

    # The end.

    def _end(self, world: World, reservation: Reservation) -> None:
        self._ended = reservation
        waiting = ending.finish(
            self._site, reservation, self._providers(world)
        )
        if waiting:
            self.notes.append(waiting)

    def _providers(self, world: World) -> list[str]:
        """Return the reservation providers that have slots of it."""
        found = (world.hosts[name].provider for name in world.slots(self.id))
        return [provider for provider in found if provider]
