# SPDX-License-Identifier: Apache-2.0
"""Random histories of several processes and users, with faults.

At the same time there are reconcilers, up to three, operators with commands,
and users who boot servers. Each process has a clock of its own, as wrong as is
allowed. Some are killed at one of their calls, or get no answer to a call that
is carried out, or is not. In some histories Placement leaves hosts out of its
answers, slots are as Blazar writes them, a reservation ends when others start,
or somebody restores Nova's database from a backup.

Before each call it is drawn who goes on, so the same seed gives the same
history. In ``tests/databases`` all go on at the same time.
"""

from concurrent import futures
import copy
import dataclasses
import datetime
import math
import random
import re
import threading
import types
import uuid

import pytest
from reservation_world import HOUR, NOW, PROJECT
from reservation_world import uuid as uuid_of
import test_reservation_interleaving as interleaving
from test_reservation_interleaving import PROMISES, START, W, X, Y, Z, clock
from thorough import THOROUGH

from isolate_aggregates import exception
from isolate_aggregates.rest import client
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors, execution, names
from isolate_aggregates_reservations.blazar.record import BlazarRecord
from isolate_aggregates_reservations.capacity import HostClaims
from isolate_aggregates_reservations.slots import changes
from isolate_aggregates_reservations.state import MOST_SKEW
from isolate_aggregates_tools.placement import inventories
from isolate_aggregates_tools.placement.client import PlacementClient

SECOND = datetime.timedelta(seconds=1)
# All clocks are right again, and what was about to end has ended.
AFTER = START + 60 * SECOND
NEEDS = {'VCPU': 1, 'MEMORY_MB': 64}
# A reservation of Blazar, which has a host of its own.
BLAZARS = '0d3c8f2e-830d-47b2-91c7-4f9fc0ae611b'
CREATING = (
    *(interleaving.create, interleaving.create_later, interleaving.give_away),
)


def keep(store):
    """Put off an end that may be near."""
    return reservations.update(store, Z, clock(store), end=NOW + 9 * HOUR)


# Most want the slots that are free.
COMMANDS = (
    *(interleaving.more, interleaving.more, interleaving.too_many),
    *(interleaving.create, interleaving.create, *CREATING),
    *(interleaving.longer, interleaving.shorter, interleaving.end),
    *(interleaving.move, interleaving.repair, keep),
)

# What happens to one call, and to all later ones.
FAULTS = (
    *(('refused', 'refused'), ('lost', 'refused')),
    *(('refused', None), ('cut', None), ('lost', None), ('silent', None)),
)


class Turns:
    """Lets one actor at a time go on.

    :param chance: Draws who is next.
    """

    def __init__(self, actors, chance):
        self._chance = chance
        # How likely the last one goes on.
        self._constancy = chance.choice([0, 0.5, 0.9, 0.97])
        self._busy = set(actors)
        self._waiting = set()
        self._last = None
        self._lock = threading.Lock()
        self._turns = {actor: threading.Semaphore(0) for actor in actors}

    def take(self, actor):
        """Wait for the next turn of an actor."""
        with self._lock:
            self._busy.remove(actor)
            self._waiting.add(actor)
            self._draw()
        assert self._turns[actor].acquire(timeout=300)

    idle = take

    def leave(self, actor):
        """Let the others go on without an actor."""
        with self._lock:
            self._busy.discard(actor)
            self._draw()

    def _draw(self):
        if self._busy or not self._waiting:
            return
        if (
            self._last not in self._waiting
            or self._chance.random() >= self._constancy
        ):
            self._last = self._chance.choice(sorted(self._waiting))
        self._waiting.remove(self._last)
        self._busy.add(self._last)
        self._turns[self._last].release()


@dataclasses.dataclass
class Told:
    """What a command told, and when it began and ended."""

    command: object
    begin: int
    end: float = math.inf
    refusal: str | None = None

    @property
    def is_done(self):
        return self.end < math.inf and self.refusal is None

    @property
    def may_have_acted(self):
        # It is two commands, of which the second may be refused.
        is_half = self.command is interleaving.give_away
        return self.refusal is None or is_half


class Process:
    """Runs commands, with a clock and a line of its own."""

    def __init__(self, history, number, commands):
        chance = history.chance
        self._history = history
        self._commands = commands
        self._calls = 0
        self.number = number
        self._at = chance.randrange(1, 80)
        self._fault, self._later = chance.choice([(None, None), *FAULTS])
        self.store = history.world.new_store(self)
        most = int(MOST_SKEW / SECOND)
        self.store.ahead = chance.randint(-most, most) * SECOND

    def send(self, request, **kwargs):
        """Carry a call, when it is its turn."""
        self._history.turns.take(self.number)
        wire = self._history.world.wire
        wire.calls.append((request.method, request.url))
        self._calls += 1
        fault = self._fault if self._calls == self._at else None
        if self._calls > self._at:
            fault = self._later
        return wire.carry(request, fault, **kwargs)

    def close(self):
        """Close nothing."""

    @property
    def _has_failed(self):
        return bool(self._fault) and self._calls >= self._at

    def run(self):
        for command in self._commands:
            if self._has_failed and self._later:
                return
            told = Told(command, self._history.time())
            self._history.told.append(told)
            try:
                told.refusal = interleaving.attempt(command, self.store)
            except exception.ServiceError:
                if not self._has_failed:
                    raise
            else:
                told.end = self._history.time()
                # A sentence.
                assert re.fullmatch(r'[A-Z].*\.', told.refusal or 'No.')


class User:
    """Boots servers, some as soon as there is access."""

    def __init__(self, history, number):
        chance = history.chance
        self._history = history
        self.number = number
        self._is_eager = chance.random() < 0.5
        self._boots = [
            (
                chance.choice([X, X, Y, Z, W]),
                chance.sample(['h1', 'h2'], 2),
                chance.randrange(60),
            )
            for _ in range(chance.randint(1, 3))
        ]

    def run(self):
        world = self._history.world
        servers = world.nova.servers
        for index, (reservation, hosts, pause) in enumerate(self._boots):
            for _ in range(pause):
                if self._is_eager and self._has_access(reservation):
                    break
                self._history.turns.idle(self.number)
            if not self._has_access(reservation):
                continue
            server = uuid_of(3, f's{self.number}{index}')
            servers[server] = reservation
            if not any(
                self._claim(server, host, reservation) for host in hosts
            ):
                servers.pop(server, None)
            elif server in servers:
                self._history.booted[server] = reservation
            else:
                # Deleted meanwhile; Nova gives up its claim.
                world.free(server)

    def _has_access(self, reservation):
        return PROJECT in self._history.world.nova.access.get(reservation, ())

    def _claim(self, server, host, reservation):
        self._history.turns.take(self.number)
        return self._history.claim(
            server,
            {
                uuid_of(1, host): {'resources': NEEDS},
                self._history.world.child(host): {
                    'resources': {names.resource_class(reservation): 1}
                },
            },
        )


class Restorer:
    """Restores the flavors of Nova from a backup of some time before."""

    def __init__(self, history, number):
        self._history = history
        self.number = number
        self._pauses = [history.chance.randrange(80) for _ in range(2)]

    def run(self):
        nova = self._history.world.nova
        self._pause(0)
        backup = nova.keep()
        self._pause(1)
        with nova._lock:
            _, _, nova.flavors, nova.access, _ = copy.deepcopy(backup)

    def _pause(self, index):
        for _ in range(self._pauses[index]):
            self._history.turns.idle(self.number)


class History:
    """A history that a seed draws.

    :param claim: Claims resources for a server.
    :param turns: Who goes on; takes numbers of actors and the chance.
    :param most: The most users.
    """

    def __init__(self, world, seed, claim, turns=Turns, most=3):
        self.world = world
        self.chance = chance = random.Random(seed)
        self.claim = claim
        # What each command told.
        self.told = []
        # The reservations of servers that were booted.
        self.booted = {}
        # In how many seconds one of the reservations ends, if it does.
        self.ends_in = chance.choice([None, None, 0, 15, 25])
        begin(world, self.ends_in)
        self.booted |= world.nova.servers
        if chance.random() < 0.3:
            world.write_as_blazar()
        if chance.random() < 0.2:
            world.wire.most_candidates = 1
        work = [
            *(
                [interleaving.reconcile_all] * chance.choice([1, 1, 2])
                for _ in range(chance.randrange(4))
            ),
            *(
                chance.choices(COMMANDS, k=chance.choice([1, 1, 2]))
                for _ in range(chance.randint(2, 4))
            ),
        ]
        self.actors = [
            Process(self, number, commands)
            for number, commands in enumerate(work)
        ]
        self.actors += [
            User(self, number)
            for number in range(len(work), len(work) + chance.randint(0, most))
        ]
        self.is_restored = chance.random() < 0.25
        if self.is_restored:
            self.actors.append(Restorer(self, len(self.actors)))
        self.turns = turns([actor.number for actor in self.actors], chance)

    def time(self):
        return len(self.world.wire.calls)

    def run(self):
        with futures.ThreadPoolExecutor(len(self.actors)) as threads:
            running = [
                threads.submit(self._run, actor) for actor in self.actors
            ]
        for future in running:
            future.result()

    def _run(self, actor):
        try:
            self.turns.idle(actor.number)
            actor.run()
        finally:
            self.turns.leave(actor.number)

    def may_be_over(self, reservation):
        """Return whether a reservation may have been ended, and must be."""
        if reservation == Z:
            may_end = self.ends_in is not None
            told = self._of(keep)
            return (
                may_end and not any(one.is_done for one in told),
                may_end and not told,
            )
        told = self._of(interleaving.end) if reservation == X else []
        return bool(told), any(one.is_done for one in told)

    def _of(self, command):
        return [
            one
            for one in self.told
            if one.command is command and one.may_have_acted
        ]


def begin(world, ends_in):
    """Reservations of ours are about to start, and others' are in use.

    :param ends_in: In how many seconds one of ours ends, with a server.
    """

    def play():
        interleaving.begin(world)
        if ends_in is not None:
            reservations.end(world.store, Z, NOW)
            interleaving.make(world.store, Z, NOW, START + ends_in * SECOND)
            reservations.reconcile_all(world.store, NOW)
            [host] = reservations.show(world.store, Z, NOW).hosts
            assert world.boot('z', host, Z)
        world.add_host('h3', vcpus=4)
        world.store.compute.client.flavors.create('m1', 64, 1, 1, 'm1')
        shape = reservations.Shape(4, 1024, 10)
        description = BlazarRecord(BLAZARS, 'database').describe()
        world.store.compute.create_flavor(BLAZARS, shape, description)
        own = names.resource_class(BLAZARS)
        inventories.create_class(world.direct, own)
        provider = world.child('h3')
        present = inventories.read(world.direct, provider)
        slots = {'total': 1, 'max_unit': 1}
        inventories.write(
            world.direct,
            provider,
            dataclasses.replace(
                present, by_class={**present.by_class, own: slots}
            ),
        )
        assert world.boot('blazars', 'h3', BLAZARS)

    world.play_once(f'others, and one that ends in {ends_in}', play)


def is_of_others(world):
    """Return what is not to change."""
    return (
        copy.deepcopy(world.nova.flavors['m1']),
        copy.deepcopy(world.nova.flavors[BLAZARS]),
        world.slots()['blazar_h3', BLAZARS],
        world.nova.servers[uuid_of(3, 'blazars')],
        names.resource_class(BLAZARS) in world.classes(),
    )


def forget_others(world):
    """Delete what is not to change, to look at the rest."""
    for flavor in ('m1', BLAZARS):
        del world.nova.flavors[flavor]
    world.nova.finish(uuid_of(3, 'blazars'))
    provider = world.child('h3')
    own = names.resource_class(BLAZARS)
    world.direct.send(
        'DELETE', f'/resource_providers/{provider}/inventories/{own}'
    )
    world.direct.send('DELETE', f'/resource_classes/{own}')


def check(history, others):
    """Nothing is oversold, lost or taken from others, and all comes to rest.

    :param others: What others had before.
    """
    world = history.world
    world.wire.most_candidates = None
    kept = of_older_records(world)
    reservations.reconcile_all(world.new_store(), AFTER)
    assert kept.items() <= totals(world).items()
    for server, reservation in history.booted.items():
        may_be_over, _ = history.may_be_over(reservation)
        assert server in world.nova.servers or may_be_over, reservation
    if history.is_restored:
        mend(world)
    else:
        check_promises(history)
    leave(world)
    assert is_of_others(world) == others
    forget_others(world)
    interleaving.check(world, {}, {'is_gone': True}, now=AFTER)
    world.wire.calls.clear()
    reservations.reconcile_all(world.new_store(), AFTER)
    assert {method for method, _ in world.wire.calls} == {'GET'}


def totals(world):
    return {key: total for key, (total, _) in world.slots().items()}


def of_older_records(world):
    """Return the slots of reservations whose record is older than they."""
    present = records(world)
    older = {
        name
        for host in ('h1', 'h2')
        for name, change in changes(world.direct, world.child(host)).items()
        if name in present and present[name].change < change
    }
    return {
        key: total for key, total in totals(world).items() if key[1] in older
    }


def check_promises(history):
    """What each command has told is true, in one order of the commands."""
    present = {
        name: reservation
        for name, reservation in records(history.world).items()
        if not reservation.has_ended(AFTER)
    }
    for name in (X, Y, Z):
        may_be_over, must_be_over = history.may_be_over(name)
        assert name in present or may_be_over, name
        assert name not in present or not must_be_over, name
    created = [one for one in history.told if one.command in CREATING]
    if any(one.is_done for one in created):
        assert W in present
    assert W not in present or any(one.may_have_acted for one in created)
    if X in present:
        for field, initial in ('amount', 1), ('end', NOW + 10 * HOUR):
            assert getattr(present[X], field) in possible(
                history.told, field, initial
            )


def records(world):
    return world.new_store().records().reservations


def possible(told, field, initial):
    """Return the values that a field can have after all commands."""
    acted = [
        one
        for one in told
        if one.may_have_acted and field in PROMISES.get(one.command, {})
    ]
    done = [one for one in acted if one.is_done]
    values = {
        PROMISES[one.command][field]
        for one in acted
        if not any(later.begin >= one.end for later in done)
    }
    return values if done else {*values, initial}


def mend(world):
    """Do what is said about records that are older than their slots."""
    lost = []
    for _ in range(8):
        lost.clear()
        store = world.new_store()
        statuses = reservations.reconcile_all(
            store, AFTER, on_unreadable=lost.append
        )
        wrong = [
            status
            for status in statuses
            if status.problems and not is_leaving(status)
        ]
        if not wrong and not lost:
            delete_classes(world)
            return
        for status in wrong:
            reservations.end(store, status.reservation.id, AFTER)
        for problem in lost:
            name = problem.reservation
            amount = int(re.search(r'--amount (\d+)', problem.problem)[1])
            create_again(store, name, amount)
            reservations.end(store, name, AFTER)
    pytest.fail(str((wrong, lost)))


def create_again(store, name, amount):
    """Create a reservation that may have been one for later."""
    try:
        interleaving.make(store, name, START, None, amount, AFTER)
    except errors.ChangeRefused as exc:
        offered = re.search(r'with --start (\S+?),', str(exc))[1]
        start = datetime.datetime.fromisoformat(offered)
        interleaving.make(store, name, start, None, amount, AFTER)


def delete_classes(world):
    """Delete the classes without a record; their ids may be Blazar's."""
    for name in world.classes():
        if names.reservation_of(name) not in world.records():
            world.direct.send('DELETE', f'/resource_classes/{name}')


def is_leaving(status):
    return bool(status.reservation.leaving) and all(
        'is being left' in problem for problem in status.problems
    )


def leave(world):
    """Let the users delete their servers on hosts that are being left."""
    for reservation in records(world).values():
        for host in reservation.leaving:
            own = names.resource_class(reservation.id)
            for server, amounts in inventories.consumers(
                world.direct, world.child(host)
            ).items():
                if own in amounts:
                    world.nova.finish(server)


@pytest.fixture
def seeded(monkeypatch):
    """Let all that is drawn depend on a seed, and let nobody wait."""
    monkeypatch.setattr('tenacity.nap.time.sleep', lambda _: None)
    still = types.SimpleNamespace(monotonic=lambda: 0, sleep=lambda _: None)
    monkeypatch.setattr(execution, 'time', still)
    monkeypatch.setattr(
        PlacementClient, 'pool', lambda self: futures.ThreadPoolExecutor(1)
    )
    monkeypatch.setattr(client, 'RETRY_DELAY', 0.001)

    def seed(number):
        ids = random.Random(number)
        monkeypatch.setattr(
            uuid,
            'uuid4',
            lambda: uuid.UUID(int=ids.getrandbits(128), version=4),
        )

    return seed


@pytest.mark.parametrize('seed', range(1000 if THOROUGH else 5))
def test_no_history_oversells_or_loses_a_reservation(world, seeded, seed):
    seeded(seed)
    history = History(world, seed, world.claim)
    others = is_of_others(world)
    history.run()
    check(history, others)


def test_a_history_that_oversells_is_noticed(world, seeded, monkeypatch):
    """The check counts by itself, without the planner."""
    # Each reservation is planned as if there were no others.
    monkeypatch.setattr(HostClaims, 'claims', lambda *_, **__: iter(()))
    empty = world.keep()
    for seed in range(20):
        world.put_back(empty)
        seeded(seed)
        history = History(world, seed, world.claim)
        others = is_of_others(world)
        history.run()
        try:
            check(history, others)
        except AssertionError as exc:
            if interleaving.OVERSOLD in str(exc):
                return
    pytest.fail('No history oversells a host.')
