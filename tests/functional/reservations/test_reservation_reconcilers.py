# SPDX-License-Identifier: Apache-2.0
"""Three reconcilers at once, while an operator and users are at work.

Each has its own store, as a process of its own would have. Here Placement
serves one request at a time; ``tests/databases`` has the same with requests at
the same time.
"""

from concurrent import futures
import random
import threading

import pytest
import test_reservation_interleaving as interleaving
from test_reservation_interleaving import (
    CREATING,
    PROMISES,
    START,
    W,
    X,
    Y,
    Z,
)
from thorough import THOROUGH

from isolate_aggregates import reservations

RECONCILERS = 3
COMMANDS = (
    *(interleaving.more, interleaving.longer, interleaving.shorter),
    *(interleaving.too_many, interleaving.give_away, interleaving.create),
    *(interleaving.create_later, interleaving.move, interleaving.end),
)
BOOTS = 6


class Rush:
    """What happens while three reconcilers run.

    :param boot: Takes a reservation and names of hosts; boots a server on one
        of them if it has a slot.
    """

    def __init__(self, world, seed, boot):
        self._world = world
        self._chance = random.Random(seed)
        self._boot = boot
        self._is_over = threading.Event()
        # What the operator was promised, and which reservations.
        self.promise = {}
        self.known = {Y, Z}
        self.rounds = []

    def run(self):
        commands = self._chance.sample(COMMANDS, 3)
        boots = [
            (name, self._chance.sample(['h1', 'h2'], 2))
            for name in self._chance.choices([X, Y, Z], k=BOOTS)
        ]
        with futures.ThreadPoolExecutor(RECONCILERS + 2) as threads:
            rounds = [
                threads.submit(self._reconcile, self._world.new_store())
                for _ in range(RECONCILERS)
            ]
            work = [
                threads.submit(self._operate, commands),
                threads.submit(self._use, boots),
            ]
            try:
                for future in work:
                    future.result()
            finally:
                self._is_over.set()
            self.rounds = [future.result() for future in rounds]

    def _reconcile(self, store):
        rounds = 0
        while not self._is_over.is_set() or not rounds:
            reservations.reconcile_all(store, START)
            rounds += 1
        return rounds

    def _operate(self, commands):
        for command in commands:
            refusal = interleaving.attempt(command, self._world.new_store())
            if refusal is None:
                self.promise |= PROMISES.get(command, {})
                self.known |= {W} if command in CREATING else set()

    def _use(self, boots):
        for reservation, hosts in boots:
            self._boot(reservation, hosts)


def check(world, rush):
    """Nothing is oversold or lost, and no reconciler has anything to do."""
    is_gone = rush.promise.get('is_gone')
    servers = dict(world.nova.servers)
    interleaving.check(world, {'is_gone': True} if is_gone else rush.promise)
    assert rush.known <= set(world.records())
    # Only the servers of what was ended are deleted.
    assert is_gone or world.nova.servers == servers
    assert is_gone or not world.nova.deleted
    for _ in range(RECONCILERS):
        world.wire.calls.clear()
        reservations.reconcile_all(world.new_store(), START)
        writes = [call for call in world.wire.calls if call[0] != 'GET']
        assert writes == []


@pytest.mark.parametrize('seed', range(100 if THOROUGH else 2))
def test_three_reconcilers_at_once_lose_and_oversell_nothing(world, seed):
    interleaving.begin(world)

    def boot(reservation, hosts):
        name = f'server {len(world.nova.servers)}'
        return any(world.boot(name, host, reservation) for host in hosts)

    rush = Rush(world, seed, boot)
    rush.run()
    assert min(rush.rounds) >= 1
    check(world, rush)


def test_that_reconcilers_oversell_is_noticed(world, monkeypatch):
    """The check counts by itself, without the planner."""
    interleaving.begin(world)
    monkeypatch.setattr(
        interleaving.HostClaims, 'claims', lambda *_, **__: iter(())
    )
    rush = Rush(world, 0, lambda *_: False)
    rush._operate([interleaving.create, interleaving.too_many])
    with pytest.raises(AssertionError, match=interleaving.OVERSOLD):
        check(world, rush)
