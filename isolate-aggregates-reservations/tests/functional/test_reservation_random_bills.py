# SPDX-License-Identifier: Apache-2.0
"""Random lives of reservations are billed as an accountant bills them.

In each cloud live twenty reservations, one beside the other. With
``THOROUGH=1`` there are ten clouds.
"""

import collections
import dataclasses
import datetime
import random
import uuid

import bill_oracle
import pytest
from reservation_world import NOW, PROJECT
from thorough import THOROUGH

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors, execution, history, names
from isolate_aggregates_tools import errors as tools_errors

HOSTS = ('h1', 'h2', 'h3')
SHAPE = reservations.Shape(1, 64)
QUARTER = datetime.timedelta(minutes=15)
LIVES = 20
LONGEST = 400


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Let commands take no time."""
    monkeypatch.setattr(execution.Run, '_update_time', lambda self: None)


def at(quarter):
    return NOW + quarter * QUARTER


class Lives:
    """What a seed lets happen to some reservations.

    Times are numbers of quarters of an hour.
    """

    def __init__(self, world, seed):
        self.world = world
        self.chance = random.Random(seed)
        self.accountant = bill_oracle.Accountant()
        self.time = 0
        self.up = set(HOSTS)
        self.done = collections.Counter()
        self.servers = 0

    def live(self):
        """Let things happen until each reservation has been made."""
        deeds = [
            *(self.reserve, self.reserve, self.resize, self.last_until),
            *(self.end, self.move, self.boot, self.fail, self.lose_flavor),
            *(self.free, self.reserve_again, self.reconcile, self.wait),
        ]
        while len(self.accountant.orders) < LIVES and self.time < LONGEST:
            deed = self.chance.choice(deeds)
            try:
                deed()
            except (errors.ReservationError, tools_errors.InvalidRequest):
                self.done['refused'] += 1
            else:
                self.done[deed.__name__] += 1
            self.read()
        for _ in range(12):
            self.wait()
            self.reconcile()
            self.read()

    # What may happen. Each order is written down once it was accepted.

    def reserve(self):
        name = str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
        self._reserve(name)

    def _reserve(self, name):
        start = self.time + self.chance.choice((-9, 0, 0, 3, 12))
        end = self.chance.choice((None, start + 9 + self.chance.randrange(20)))
        warning = self.chance.choice((0, 0, 3))
        amount = self.chance.randint(1, 3)
        reservation = reservations.new(
            PROJECT,
            amount,
            SHAPE,
            at(start),
            None if end is None else at(end),
            self.chance.choice((None, True, False)),
            name,
            warn_before=warning * QUARTER if warning else None,
        )
        reservations.create(self.world.store, reservation, at(self.time))
        self._order(name, bill_oracle.Order(start, end, amount, warning))

    def resize(self):
        name, order = self._one()
        amount = self.chance.randint(1, 4)
        self._update(name, amount=amount)
        self._order(name, dataclasses.replace(order, amount=amount))

    def last_until(self):
        name, order = self._one()
        end = self.time + self.chance.randint(1, 20)
        self._update(name, end=at(end))
        self._order(name, dataclasses.replace(order, end=end))

    def end(self):
        name, order = self._one()
        reservations.end(self.world.store, name, at(self.time))
        self._order(name, dataclasses.replace(order, end=self.time))

    def move(self):
        name, _ = self._one()
        host = self.chance.choice(HOSTS)
        reservations.move(self.world.store, name, at(self.time), [host])

    def boot(self):
        name, _ = self._one()
        self.servers += 1
        needs = {'VCPU': 1, 'MEMORY_MB': 64}
        self.world.boot(
            f's{self.servers}', self.chance.choice(HOSTS), name, needs
        )

    def fail(self):
        """Let a host be down or up again, and a round find out."""
        host = self.chance.choice(HOSTS)
        self.up ^= {host}
        self.world.fail_host(host, state='up' if host in self.up else 'down')
        self.reconcile()

    def lose_flavor(self):
        name, order = self._one()
        del self.world.nova.flavors[name]
        lost = dataclasses.replace(
            order, is_lost=True, last_up=frozenset(self.up)
        )
        self._order(name, lost)

    def free(self):
        """Let the slots of a lost reservation be freed, and a round see it."""
        name, order = self._one(is_lost=True)
        slots = names.resource_class(name)
        hosts = [host for host in HOSTS if slots in self._inventories(host)]
        if any(self._usages(host).get(slots) for host in hosts):
            raise tools_errors.InvalidRequest('Servers are in them.')
        for host in hosts:
            self.world.direct.send(
                'DELETE',
                f'/resource_providers/{self.world.child(host)}'
                f'/inventories/{slots}',
            )
        self.reconcile()
        end = self.time if order.end is None else min(self.time, order.end)
        self._order(name, dataclasses.replace(order, end=end, amount=0))

    def reserve_again(self):
        name, _ = self._one(is_lost=True)
        self._reserve(name)

    def reconcile(self):
        reservations.reconcile_all(
            self.world.store, at(self.time), on_unreadable=lambda _: None
        )

    def wait(self):
        self.time += self.chance.randint(1, 6)

    # What is written down.

    def _one(self, is_lost=False):
        """Choose a reservation that is not over."""
        choice = [
            (name, order)
            for name in self.accountant.orders
            if (order := self.accountant.current(name)).is_lost is is_lost
            and order.amount
            and (name in self.world.nova.flavors) is not is_lost
            and (is_lost or order.end is None or order.end > self.time)
        ]
        if not choice:
            raise tools_errors.InvalidRequest('There is none.')
        return self.chance.choice(choice)

    def _update(self, name, **settings):
        reservations.update(self.world.store, name, at(self.time), **settings)

    def _order(self, name, order):
        self.accountant.order(name, self.time, order)

    def _inventories(self, host):
        return self._of_provider(host, 'inventories')

    def _usages(self, host):
        return self._of_provider(host, 'usages')

    def _of_provider(self, host, what):
        path = f'/resource_providers/{self.world.child(host)}/{what}'
        return self.world.direct.send('GET', path)[what]

    def read(self):
        found = {host: self._inventories(host) for host in HOSTS}
        self.accountant.read(self.time, found, frozenset(self.up))


def billed(world, since, until, now):
    """Return the bill of the package, by reservation, in quarters."""
    total = collections.defaultdict(lambda: (0, 0, 0))
    for entry in history.read_history(
        world.new_store(), at(now), at(since), at(until)
    ):
        time = (entry.time.sold, entry.time.open, entry.time.usable)
        before = total[entry.reservation.id]
        total[entry.reservation.id] = tuple(
            sum_ + part / QUARTER
            for sum_, part in zip(before, time, strict=True)
        )
    return total


@pytest.fixture
def three_hosts(world):
    def play():
        for name in HOSTS:
            world.add_host(name)

    world.play_once('three hosts', play)


@pytest.mark.usefixtures('three_hosts')
@pytest.mark.parametrize('seed', range(10 if THOROUGH else 1))
def test_random_lives_are_billed_as_an_accountant_bills_them(world, seed):
    lives = Lives(world, seed)
    lives.live()
    assert lives.done['reserve'] > LIVES // 2, lives.done
    now = lives.time
    periods = [
        sorted(lives.chance.sample(range(-20, now + 1), 2)) for _ in range(5)
    ]
    for since, until in [(-20, now), *periods]:
        found = billed(world, since, until, now)
        for name in lives.accountant.orders:
            assert found[name] == lives.accountant.bill(name, since, until), (
                name,
                since,
                until,
                lives.accountant.orders[name],
            )
