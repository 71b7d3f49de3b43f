"""Repeating a failed command, or reconciling, completes it.

The calls of each command fail in turn: either before the call has an effect,
or after it, with the response lost or missing. By default every twelfth call
fails; with ``THOROUGH=1`` each one does.
"""

import importlib.metadata
import re

from agreement import agreed
import pytest
from reservation_world import HOUR, NOW, PROJECT, typed, uuid
from thorough import every

from isolate_aggregates.rest import client
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import store as stores
from isolate_aggregates_reservations.commands import times

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


class Case:
    """Commands, their initial state, and the time."""

    commands = ()
    then = NOW
    # Their exit status if nothing fails.
    codes = (0,)
    # Whether reconciling completes it.
    is_ticked = False
    # Whether it writes slots or hosts.
    is_guarded = True

    def begin(self, world):
        """Create the initial state."""
        world.reset()
        world.add_host('h1')
        world.add_host('h2')


class Create(Case):
    is_ticked = True
    start = NOW
    amount = 3

    @property
    def commands(self):
        return (
            f'create --id {ID} --project {PROJECT} --amount {self.amount} '
            '--vcpus 4 --ram 1024 --disk 10 --property hw:cpu_policy=shared '
            f'--start {self.start.isoformat()} '
            f'--end {(NOW + 5 * HOUR).isoformat()}',
        )


class CreateForLater(Create):
    start = NOW + HOUR


class Refuse(Create):
    """The slots do not fit."""

    amount = 5
    codes = (1,)


class Start(Case):
    commands = ('reconcile',)
    then = NOW + HOUR
    is_ticked = True

    def begin(self, world):
        super().begin(world)
        reservations.create(world.store, wanted(NOW + HOUR), NOW)


class Running(Case):
    """A reservation is in use."""

    def begin(self, world):
        super().begin(world)
        reservations.create(world.store, wanted(amount=2), NOW)
        assert world.boot('s1', 'h1', ID, NEEDS)


class More(Running):
    commands = (f'set {ID} --amount 3',)
    is_ticked = True


class Fewer(Running):
    commands = (f'set {ID} --amount 1',)
    is_ticked = True


class Longer(Running):
    """The later end would overlap with another reservation."""

    commands = (f'set {ID} --amount 3 --end never',)
    is_ticked = True

    def begin(self, world):
        super().begin(world)
        later = wanted(NOW + 4 * HOUR, 1, name=OTHER)
        reservations.create(world.store, later, NOW)


class Share(Running):
    """Another project comes, one goes, and both learn when it ends."""

    commands = (
        f'set {ID} --share {"5" * 32} --unshare {"f" * 32} --warn-before 1h',
    )
    is_guarded = False

    def begin(self, world):
        super().begin(world)
        reservations.update(world.store, ID, NOW, share=['f' * 32])


class LoseHost(Running):
    """That a host with open slots is down is recorded once."""

    commands = ('reconcile',)
    codes = (3,)
    is_ticked = True
    is_guarded = False

    def begin(self, world):
        super().begin(world)
        reservations.reconcile_all(world.store, NOW)
        world.fail_host('h1')


class MoreThanFit(Running):
    commands = (f'set {ID} --amount 5',)
    codes = (1,)
    is_ticked = True


class End(Running):
    commands = (f'end {ID}', 'reconcile')
    codes = (3, 0)
    is_ticked = True

    def begin(self, world):
        super().begin(world)
        # A shelved server, which has no allocation.
        world.nova.servers[uuid(3, 's2')] = ID


class EndByItself(Running):
    commands = ('reconcile', 'reconcile')
    codes = (3, 0)
    is_ticked = True
    then = NOW + 6 * HOUR


class EndSlowly(EndByItself):
    """Servers are still there when the slots are closed."""

    def begin(self, world):
        super().begin(world)
        world.nova.is_slow = True


class Repair(Running):
    commands = ('repair',)
    codes = (3,)

    def begin(self, world):
        super().begin(world)
        reservations.update(world.store, ID, NOW, amount=2)
        world.fail_host('h1')


class Enable(Case):
    commands = ('host set --enable h3',)

    def begin(self, world):
        super().begin(world)
        world.add_host('h3', enable=False)


class Disable(Case):
    commands = ('host set --disable h2',)


class TakeOver(Case):
    """Slots and hosts are as Blazar writes them."""

    commands = ('reconcile',)
    is_ticked = True

    def begin(self, world):
        super().begin(world)
        reservations.create(world.store, wanted(NOW + HOUR), NOW)
        running = wanted(amount=1, name=OTHER)
        reservations.create(world.store, running, NOW)
        world.write_as_blazar()


class Read(Running):
    """It changes nothing, whatever fails."""

    is_guarded = False


class List(Read):
    commands = ('list',)


class Show(Read):
    commands = (f'show {ID}',)


class Calendar(Read):
    commands = ('calendar list',)


class Hosts(Read):
    commands = ('host list',)


class History(Read):
    commands = ('history list',)

    def begin(self, world):
        super().begin(world)
        reservations.create(
            world.store, wanted(NOW + HOUR, 1, name=OTHER), NOW
        )
        reservations.end(world.store, OTHER, NOW)


QUICK = (Create, Start, End, TakeOver, List)
SLOW = (
    *(CreateForLater, Refuse, Fewer, Longer, MoreThanFit, More, Share),
    *(Repair, EndByItself, EndSlowly, LoseHost, Enable, Disable),
    *(Show, Calendar, Hosts, History),
)
KINDS = (
    *QUICK,
    *(pytest.param(kind, marks=pytest.mark.slow) for kind in SLOW),
)


def test_each_command_has_a_case():
    """A command is what an entry point of the program is."""
    points = importlib.metadata.entry_points(group='isolate_aggregates.cli')
    words = {point.name.replace('_', ' ') for point in points}
    assert {
        name.removeprefix('reservation ')
        for name in words
        if name.startswith('reservation ')
    } == {
        re.match('[a-z]+( (list|set))?', command)[0]
        for kind in (*QUICK, *SLOW)
        for command in kind().commands
    }


@pytest.fixture
def act(world, run, operated, monkeypatch):
    """Run the commands of a case at its time; return how each ended."""
    monkeypatch.setattr(client, 'RETRY_DELAY', 0.001)

    def commands(case):
        monkeypatch.setattr(times, 'now', lambda: case.then)
        monkeypatch.setattr(stores, '_now', lambda: case.then)
        results = [
            typed(run, *agreed(('reservation', *command.split())))
            for command in case.commands
        ]
        for result in results:
            # Sentences, or nothing.
            assert 'Traceback' not in result.err
            assert bool(result.err) or result.code in (0, 3), result
        return [result.code for result in results]

    return commands


def breaks(calls):
    """Yield which call fails, and how.

    Between two changes, it does not matter which of the reads fails.
    """
    reads_only = all(method == 'GET' for method, _ in calls)
    before = 'PUT'
    for number, (method, _) in enumerate(calls, 1):
        if method != 'GET':
            yield number, 'lost'
            yield number, 'silent'
        if method != 'GET' or before != 'GET' or reads_only:
            yield number, 'refused'
        before = method


@pytest.mark.parametrize('kind', KINDS, ids=lambda kind: kind.__name__)
def test_an_interrupted_command_is_completed(world, act, kind):
    case = kind()
    case.begin(world)
    before = world.picture()
    scene = world.keep()
    world.put_back(scene)
    codes = act(case)
    assert tuple(codes) == case.codes
    calls = list(world.wire.calls)
    expected = world.picture()
    assert isinstance(case, Read) == (expected == before) or 1 in codes

    rounds = list(enumerate(breaks(calls)))
    for round_, (number, fault) in rounds[::STEP]:
        where = number, fault, *calls[number - 1]
        world.put_back(scene)
        world.wire.fault = lambda call, number=number, fault=fault: (
            fault if call == number else None
        )
        act(case)
        world.wire.fault = None
        if case.is_ticked and round_ % 2:
            for _ in range(2):
                reservations.reconcile_all(world.new_store(), case.then)
            # An operation that was never recorded cannot be completed.
            assert world.picture() in (expected, before), where
        # It may have been completed before the failure.
        act(case)
        assert world.picture() == expected, where


@pytest.mark.parametrize(
    'kind',
    [
        *(kind for kind in QUICK if kind.is_guarded),
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in SLOW
            if kind.is_guarded
        ),
    ],
    ids=lambda kind: kind.__name__,
)
def test_commands_survive_database_deadlocks(world, act, kind):
    case = kind()
    case.begin(world)
    before = world.picture()
    scene = world.keep()
    world.put_back(scene)
    act(case)
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
    act(case)
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
