# SPDX-License-Identifier: Apache-2.0
"""An accountant's table: what is sold, open and usable in many lives.

Each life is of two slots, from hour 0 to hour 10 unless it says otherwise, and
is billed until hour 24. Its steps are what happens in an hour, in this order.
"""

import datetime
import zoneinfo

import pytest
from reservation_world import HOUR, NOW, PROJECT

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import (
    errors,
    events,
    execution,
    history,
    names,
)
from isolate_aggregates_tools import errors as tools_errors

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
SHAPE = reservations.Shape(4, 64)
NEEDS = {'VCPU': 4, 'MEMORY_MB': 64}
NO_TIME = 0 * HOUR

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

    def look(self):
        """Have nothing done but a bill written."""

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

    def lose_flavor(self):
        """Have the flavor deleted by hand."""
        del self.world.nova.flavors[ID]

    def free_slots(self):
        """Have the slots of the lost record deleted, as is advised."""
        for child, _ in self.world.slots():
            provider = self.world.child(names.host_of(child))
            self.world.direct.send(
                'DELETE',
                f'/resource_providers/{provider}/inventories/'
                + names.resource_class(ID),
            )

    def be_killed_at_end(self):
        """Be interrupted after the flavor was deleted."""

        def kill(method, url):
            is_gone = ID not in self.world.nova.flavors
            if is_gone and method == 'DELETE' and '/flavors/' in url:
                raise KeyboardInterrupt

        self.world.wire.meddle = kill
        with pytest.raises(KeyboardInterrupt):
            self.end()
        self.world.wire.meddle = None

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
    'closed late, and looked at before': (
        [RESERVED, step(12, 'look'), step(16, 'reconcile')],
        (20, 32, 20),
    ),
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
    'interrupted at its end': (
        [RESERVED, step(5, 'be_killed_at_end'), step(7, 'reconcile'), ENDED],
        (10, 10, 10),
    ),
    'its flavor is deleted by hand': (
        [RESERVED, step(4, 'lose_flavor'), step(5, 'reconcile'), ENDED],
        (20, 20, 20),
    ),
    'its slots are freed, too': (
        [
            RESERVED,
            step(4, 'lose_flavor'),
            step(6, 'free_slots'),
            step(6, 'reconcile'),
            ENDED,
        ],
        (12, 12, 12),
    ),
    'it is created again': (
        [
            RESERVED,
            step(4, 'lose_flavor'),
            step(5, 'reserve', 0, 12),
            step(6, 'reconcile'),
            step(12, 'reconcile'),
        ],
        (24, 24, 24),
    ),
}


def bill(world, since=None, until=NOW + 24 * HOUR):
    entries = history.read_history(
        world.new_store(), max(until, NOW + 24 * HOUR), since, until
    )
    assert all(entry.reservation.shape == SHAPE for entry in entries)
    times = [(e.time.sold, e.time.open, e.time.usable) for e in entries]
    parts = zip((NO_TIME,) * 3, *times, strict=True)
    return tuple(sum(part, NO_TIME) / HOUR for part in parts)


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
    # The rest is on the next bill.
    for until in bills:
        rest = bill(world, since=until)
        both = zip(bills[until], rest, strict=True)
        assert tuple(map(sum, both)) == expected


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


def test_a_later_change_of_the_warning_leaves_a_bill_as_it_was(world):
    """Neither an early end nor another warning reaches back."""
    reservation = reservations.new(
        *(PROJECT, 2, SHAPE, NOW, NOW + 10 * HOUR),
        reservation_id=ID,
        warn_before=4 * HOUR,
    )
    reservations.create(world.store, reservation, NOW)
    life = Life(world)
    bills = {}
    for hour, change, is_open in (
        (3, lambda: life.last_until(9), 6),
        (
            4,
            lambda: reservations.update(
                world.store, ID, life.now, warn_before=6 * HOUR
            ),
            8,
        ),
        (5, life.end, 8),
    ):
        life.now = NOW + hour * HOUR
        change()
        bills[life.now] = is_open
        for until, expected in bills.items():
            assert bill(world, until=until)[1] == expected
    [entry] = history.read_history(world.store, NOW + 6 * HOUR)
    assert 'bootable until 2027-03-01T15:00:00+00:00' in [
        what for _, what in events.sentences(entry.reservation.events)
    ]


def test_a_warning_may_not_have_begun_when_a_reservation_is_made(world):
    reservation = reservations.new(
        PROJECT,
        2,
        SHAPE,
        NOW - 10 * HOUR,
        NOW + HOUR,
        warn_before=2 * HOUR,
    )
    with pytest.raises(tools_errors.InvalidRequest, match='--warn-before'):
        reservations.create(world.store, reservation, NOW)
    assert history.read_history(world.store, NOW) == []


def test_a_late_write_of_an_ended_reservation_bills_nothing(world):
    life = Life(world)
    life.reserve(end=None)
    [stale] = filter(names.revision_of, world.nova.flavors)
    flavor = world.nova.flavors[stale]
    life.now = NOW + 5 * HOUR
    life.end()
    assert bill(world) == (10, 10, 10)
    world.nova.flavors[stale] = flavor
    world.nova.access[stale] = set()
    assert bill(world) == (10, 10, 10)
    life.now = NOW + 6 * HOUR
    life.reconcile()
    assert stale not in world.nova.flavors
    assert bill(world) == (10, 10, 10)


def test_two_that_find_a_flavor_deleted_bill_it_once(world):
    life = Life(world)
    life.reserve()
    life.lose_flavor()
    life.free_slots()
    [left] = filter(names.revision_of, world.nova.flavors)
    flavor = world.nova.flavors[left]
    for hour in (4, 5):
        world.nova.flavors[left] = flavor
        world.nova.access[left] = set()
        life.now = NOW + hour * HOUR
        life.reconcile()
        assert left not in world.nova.flavors
        assert bill(world) == (8, 8, 8)


def test_a_broken_rest_of_a_record_is_kept_and_named(world):
    life = Life(world)
    life.reserve()
    life.lose_flavor()
    life.free_slots()
    [left] = filter(names.revision_of, world.nova.flavors)
    world.nova.flavors[left]['description'] = '{'
    life.reconcile()
    assert left in world.nova.flavors
    problems = []
    history.read_history(world.store, NOW, on_unreadable=problems.append)
    assert f'{names.flavor(left)} whose description is broken' in str(
        problems[0]
    )
