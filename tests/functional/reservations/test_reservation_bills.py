# SPDX-License-Identifier: Apache-2.0
"""An accountant's table: what is sold, open and usable in twenty lives.

Each life is of two slots, from hour 0 to hour 10 unless it says otherwise, and
is billed until hour 24. Its steps are what happens in an hour, in this order.
"""

import datetime
import zoneinfo

import pytest
from reservation_world import HOUR, NOW, PROJECT

from isolate_aggregates import reservations
from isolate_aggregates.reservations import errors, events, execution, history
from isolate_aggregates.tools import errors as tools_errors

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
SHAPE = reservations.Shape(4, 64)
NEEDS = {'VCPU': 4, 'MEMORY_MB': 64}

pytestmark = pytest.mark.usefixtures('two_hosts')


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Let commands take no time."""
    monkeypatch.setattr(execution.Run, '_update_time', lambda self: None)


class Life:
    """What happens to a reservation."""

    def __init__(self, world):
        self.world = world
        self.now = NOW

    def reserve(self, start=0, end=10, amount=2, affinity=True):
        reservation = reservations.new(
            PROJECT,
            amount,
            SHAPE,
            NOW + start * HOUR,
            None if end is None else NOW + end * HOUR,
            affinity,
            ID,
        )
        reservations.create(self.world.store, reservation, self.now)

    def reconcile(self):
        reservations.reconcile_all(self.world.store, self.now)

    def resize(self, amount):
        reservations.update(self.world.store, ID, self.now, amount=amount)

    def last_until(self, end):
        end = end and NOW + end * HOUR
        reservations.update(self.world.store, ID, self.now, end=end)

    def be_refused(self):
        with pytest.raises(errors.ReservationError):
            self.resize(99)

    def end(self):
        reservations.end(self.world.store, ID, self.now)

    def move(self):
        reservations.move(self.world.store, ID, self.now, ['h1'])

    def boot(self, server, host='h1'):
        assert self.world.boot(server, host, ID, NEEDS)

    def break_down(self, host):
        self.world.fail_host(host)

    def come_back(self, host):
        self.world.fail_host(host, state='up')

    def be_killed_at_start(self):
        """Be interrupted after the slots were opened."""

        def kill(method, url):
            if method == 'POST' and url.endswith('/flavors'):
                raise KeyboardInterrupt

        self.world.wire.meddle = kill
        with pytest.raises(KeyboardInterrupt):
            self.reconcile()
        self.world.wire.meddle = None

    def delete_slowly(self, is_slow):
        nova = self.world.nova
        nova.is_slow = is_slow
        for server in set(nova.deleted) & nova.servers.keys():
            nova.finish(server)


def step(hour, name, *arguments, **settings):
    return hour, name, arguments, settings


RESERVED = step(0, 'reserve')
ENDED = step(10, 'reconcile')
APART = {'affinity': False}

LIVES = {
    'plain': ([RESERVED, ENDED], (20, 20, 20)),
    'reserved before': (
        [step(0, 'reserve', 2), step(2, 'reconcile'), ENDED],
        (16, 16, 16),
    ),
    'opened late': (
        [step(0, 'reserve', 1), step(6, 'reconcile'), ENDED],
        (18, 8, 8),
    ),
    'never opened': (
        [step(0, 'reserve', 1), step(12, 'reconcile')],
        (18, 0, 0),
    ),
    'closed late': ([RESERVED, step(16, 'reconcile')], (20, 32, 20)),
    'closed late, with servers': (
        [RESERVED, step(1, 'boot', 's'), step(16, 'reconcile')],
        (20, 32, 20),
    ),
    'servers are deleted slowly': (
        [
            RESERVED,
            step(1, 'boot', 's'),
            step(1, 'delete_slowly', True),
            step(10, 'reconcile'),
            step(15, 'delete_slowly', False),
            step(16, 'reconcile'),
        ],
        (20, 20, 20),
    ),
    'a host is down': (
        [
            step(0, 'reserve', **APART),
            step(2, 'break_down', 'h2'),
            step(2, 'reconcile'),
            step(6, 'come_back', 'h2'),
            step(6, 'reconcile'),
            ENDED,
        ],
        (20, 20, 16),
    ),
    'all its hosts are down': (
        [
            RESERVED,
            step(2, 'break_down', 'h1'),
            step(2, 'reconcile'),
            step(6, 'come_back', 'h1'),
            step(6, 'reconcile'),
            ENDED,
        ],
        (20, 20, 12),
    ),
    'its host stays down': (
        [
            RESERVED,
            step(6, 'break_down', 'h1'),
            step(6, 'reconcile'),
            ENDED,
        ],
        (20, 20, 12),
    ),
    'extended': (
        [RESERVED, step(5, 'last_until', 12), step(12, 'reconcile')],
        (24, 24, 24),
    ),
    'shortened': (
        [RESERVED, step(5, 'last_until', 8), step(8, 'reconcile')],
        (16, 16, 16),
    ),
    'ended early': ([RESERVED, step(5, 'end')], (10, 10, 10)),
    'ended before its start': (
        [step(0, 'reserve', 5), step(2, 'end')],
        (0, 0, 0),
    ),
    'without an end': ([step(0, 'reserve', end=None)], (48, 48, 48)),
    'made larger': (
        [step(0, 'reserve', affinity=None), step(5, 'resize', 4), ENDED],
        (30, 30, 30),
    ),
    'made smaller': (
        [step(0, 'reserve', affinity=None), step(5, 'resize', 1), ENDED],
        (15, 15, 15),
    ),
    'refused to be larger': (
        [RESERVED, step(5, 'be_refused'), ENDED],
        (20, 20, 20),
    ),
    'moved with a server': (
        [RESERVED, step(1, 'boot', 's'), step(5, 'move'), ENDED],
        (20, 20, 20),
    ),
    'interrupted at its start': (
        [
            step(0, 'reserve', 1),
            step(1, 'be_killed_at_start'),
            step(2, 'reconcile'),
            ENDED,
        ],
        (18, 16, 16),
    ),
}


def bill(world, since=None, until=NOW + 24 * HOUR):
    entries = history.read_history(
        world.new_store(), max(until, NOW + 24 * HOUR), since, until
    )
    time = entries[0].time if entries else events.SlotTime()
    return tuple(part / HOUR for part in (time.sold, time.open, time.usable))


@pytest.mark.parametrize('name', LIVES)
def test_a_life_is_billed_to_the_second(world, name):
    steps, expected = LIVES[name]
    life = Life(world)
    bills = {}
    for hour, what, arguments, settings in steps:
        life.now = NOW + hour * HOUR
        getattr(life, what)(*arguments, **settings)
        bills[life.now] = bill(world, until=life.now)
    assert bill(world) == expected
    # What was billed once stays true.
    assert {until: bill(world, until=until) for until in bills} == bills


@pytest.mark.parametrize('month', [4, 11])
def test_months_of_any_time_zone_are_billed(world, month):
    """An hour before midnight in Berlin and two hours after it."""
    berlin = zoneinfo.ZoneInfo('Europe/Berlin')
    midnight = datetime.datetime(2027, month, 1, tzinfo=berlin)
    reservation = reservations.new(
        *(PROJECT, 1, SHAPE, midnight - HOUR, midnight + 2 * HOUR),
        reservation_id=ID,
    )
    reservations.create(world.store, reservation, NOW)
    for moment in (midnight - HOUR, midnight + 2 * HOUR):
        reservations.reconcile_all(world.store, moment)
    later = midnight + 24 * HOUR
    assert bill(world, midnight - 1000 * HOUR, midnight) == (1, 1, 1)
    assert bill(world, midnight, later) == (2, 2, 2)


def test_a_period_that_is_empty_is_refused(world):
    with pytest.raises(tools_errors.InvalidRequest, match='is empty'):
        bill(world, NOW, NOW)


def test_nothing_is_sold_before_it_was_asked_for(world):
    reservation = reservations.new(PROJECT, 2, SHAPE, NOW - 48 * HOUR)
    reservations.create(world.store, reservation, NOW)
    assert (
        history.read_history(world.store, NOW, until=NOW - HOUR)[0].time
        == events.SlotTime()
    )


def test_no_slot_is_open_once_the_end_is_near(world):
    def new(warning):
        return reservations.new(
            PROJECT,
            2,
            SHAPE,
            NOW,
            NOW + 10 * HOUR,
            warn_before=warning * HOUR,
        )

    with pytest.raises(tools_errors.InvalidRequest, match='--warn-before'):
        new(10)
    reservations.create(world.store, new(4), NOW)
    [past] = history.read_history(world.store, NOW + 10 * HOUR)
    assert past.time == events.SlotTime(20 * HOUR, 12 * HOUR, 20 * HOUR)
