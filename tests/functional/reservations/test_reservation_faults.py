# SPDX-License-Identifier: Apache-2.0
"""Repeating a failed operation, or reconciling, completes it.

The calls of each writing operation fail in turn: either before the call has an
effect, or after it, with the response lost. By default every twelfth call
fails; with ``THOROUGH=1`` each one does.
"""

import abc
import contextlib
import re

import pytest
from reservation_world import HOUR, NOW, PROJECT, uuid
from thorough import every

from isolate_aggregates import exception, reservations
from isolate_aggregates.reservations import errors
from isolate_aggregates.tools import errors as tools_errors

STEP = every(12)

# Writes that Placement checks against a generation.
GUARDED = re.compile(
    'PUT .*/resource_providers/[^/]*/(aggregates|inventories|traits)$'
)
ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
OTHER = '2e1dfa7c-0000-4000-8000-000000000001'
NEEDS = {'VCPU': 4, 'MEMORY_MB': 1024, 'DISK_GB': 10}
SHAPE = reservations.Shape(
    4, 1024, 10, extra_specs={'hw:cpu_policy': 'shared'}
)


def wanted(start=NOW, amount=3, affinity=None, name=ID):
    return reservations.new(
        PROJECT, amount, SHAPE, start, NOW + 5 * HOUR, affinity, name
    )


class Case(abc.ABC):
    """An operation, its initial state, and the time of reconciling."""

    then = NOW
    # Whether reconciling completes it.
    is_ticked = True

    def begin(self, world):
        """Create the initial state."""
        world.reset()
        world.add_host('h1')
        world.add_host('h2')

    @abc.abstractmethod
    def act(self, world):
        """Run the operation."""


class Create(Case):
    start = NOW

    def act(self, world):
        reservations.create(world.store, wanted(self.start), NOW)


class CreateForLater(Create):
    start = NOW + HOUR


class Refuse(Create):
    """The slots do not fit."""

    def act(self, world):
        with pytest.raises(errors.ReservationError, match='room for'):
            reservations.create(world.store, wanted(amount=5), NOW)


class Start(Case):
    then = NOW + HOUR

    def begin(self, world):
        super().begin(world)
        reservations.create(world.store, wanted(NOW + HOUR), NOW)

    def act(self, world):
        reservations.reconcile_all(world.store, self.then)


class Running(Case):
    """A reservation is in use."""

    def begin(self, world):
        super().begin(world)
        reservations.create(world.store, wanted(amount=2), NOW)
        assert world.boot('s1', 'h1', ID, NEEDS)


class More(Running):
    def act(self, world):
        reservations.update(world.store, ID, NOW, amount=3)


class Fewer(Running):
    def act(self, world):
        reservations.update(world.store, ID, NOW, amount=1)


class Longer(Running):
    """The later end would overlap with another reservation."""

    def begin(self, world):
        super().begin(world)
        later = wanted(NOW + 4 * HOUR, 1, name=OTHER)
        reservations.create(world.store, later, NOW)

    def act(self, world):
        reservations.update(world.store, ID, NOW, amount=3, end=None)


class Share(Running):
    """Another project comes, one goes, and both learn when it ends."""

    is_ticked = False

    def begin(self, world):
        super().begin(world)
        reservations.update(world.store, ID, NOW, share=['f' * 32])

    def act(self, world):
        reservations.update(
            world.store,
            ID,
            NOW,
            share=['5' * 32],
            unshare=['f' * 32],
            warn_before=HOUR,
        )


class LoseHost(Running):
    """That a host with open slots is down is recorded once."""

    def begin(self, world):
        super().begin(world)
        reservations.reconcile_all(world.store, NOW)
        world.fail_host('h1')

    def act(self, world):
        reservations.reconcile_all(world.store, NOW)


class MoreThanFit(Running):
    def act(self, world):
        with pytest.raises(errors.ReservationError, match='room for'):
            reservations.update(world.store, ID, NOW, amount=5)


class End(Running):
    def begin(self, world):
        super().begin(world)
        # A shelved server, which has no allocation.
        world.nova.servers[uuid(3, 's2')] = ID

    def act(self, world):
        reservations.end(world.store, ID, NOW)
        reservations.reconcile_all(world.store, NOW)


class EndByItself(Running):
    then = NOW + 6 * HOUR

    def act(self, world):
        reservations.reconcile_all(world.store, self.then)
        reservations.reconcile_all(world.store, self.then)


class EndSlowly(EndByItself):
    """Servers are still there when the slots are closed."""

    def begin(self, world):
        super().begin(world)
        world.nova.is_slow = True


class Repair(Running):
    is_ticked = False

    def begin(self, world):
        super().begin(world)
        reservations.update(world.store, ID, NOW, amount=2)
        world.fail_host('h1')

    def act(self, world):
        reservations.repair(world.store, NOW)


class Enable(Case):
    is_ticked = False

    def begin(self, world):
        super().begin(world)
        world.add_host('h3', enable=False)

    def act(self, world):
        reservations.enable_host(world.store, 'h3')


class Disable(Case):
    is_ticked = False

    def act(self, world):
        reservations.disable_host(world.store, 'h2')


class TakeOver(Case):
    """Slots and hosts are as Blazar writes them."""

    def begin(self, world):
        super().begin(world)
        reservations.create(world.store, wanted(NOW + HOUR), NOW)
        running = wanted(amount=1, name=OTHER)
        reservations.create(world.store, running, NOW)
        world.write_as_blazar()

    def act(self, world):
        reservations.reconcile_all(world.store, NOW)


KINDS = (
    *(Create, Start, End, TakeOver),
    *(
        pytest.param(kind, marks=pytest.mark.slow)
        for kind in (
            *(CreateForLater, Refuse, Fewer, Longer, MoreThanFit),
            *(More, Repair, EndByItself, Enable, Disable),
            *(Share, LoseHost, EndSlowly),
        )
    ),
)


def breaks(calls):
    """Yield which call fails, and how.

    Between two changes, it does not matter which of the reads fails.
    """
    before = 'PUT'
    for number, (method, _) in enumerate(calls, 1):
        if method != 'GET':
            yield number, 'lost'
        if method != 'GET' or before != 'GET':
            yield number, 'refused'
        before = method


@pytest.mark.parametrize('kind', KINDS, ids=lambda kind: kind.__name__)
def test_an_interrupted_operation_is_completed(world, kind):
    case = kind()
    case.begin(world)
    before = world.picture()
    scene = world.keep()
    world.put_back(scene)
    case.act(world)
    calls = list(world.wire.calls)
    expected = world.picture()

    rounds = list(enumerate(breaks(calls)))
    for round_, (number, fault) in rounds[::STEP]:
        where = number, fault, *calls[number - 1]
        world.put_back(scene)
        world.wire.fault = lambda call, number=number, fault=fault: (
            fault if call == number else None
        )
        # Reconciling logs the failure and continues.
        with contextlib.suppress(exception.ServiceError):
            case.act(world)
        world.wire.fault = None
        if case.is_ticked and round_ % 2:
            reservations.reconcile_all(world.store, case.then)
            reservations.reconcile_all(world.store, case.then)
            # An operation that was never recorded cannot be completed.
            assert world.picture() in (expected, before), where
        with contextlib.suppress(tools_errors.NotFound):
            # It may have been completed before the failure.
            case.act(world)
        assert world.picture() == expected, where


@pytest.mark.parametrize('kind', KINDS, ids=lambda kind: kind.__name__)
def test_operations_survive_database_deadlocks(world, kind):
    if kind in (Share, LoseHost):
        pytest.skip('It writes nothing into Placement.')
    case = kind()
    case.begin(world)
    before = world.picture()
    scene = world.keep()
    world.put_back(scene)
    case.act(world)
    expected = world.picture()
    world.put_back(scene)
    ended = set()

    def fault(_):
        call = world.wire.calls[-1]
        if call in ended or not GUARDED.match(' '.join(call)):
            return None
        ended.add(call)
        return 'refused'

    world.wire.fault = fault
    case.act(world)
    world.wire.fault = None
    assert world.picture() == expected
    # What is refused writes nothing.
    assert bool(ended) is (expected != before)


def test_hosts_enabled_by_the_library_and_the_tests_are_equal(world):
    world.reset()
    world.add_host('h1')
    expected = world.picture()
    world.reset()
    world.add_host('h1', enable=False)
    host = reservations.enable_host(world.store, 'h1')
    assert world.picture() == expected
    assert host.is_enabled
    assert host.obstacle is None
