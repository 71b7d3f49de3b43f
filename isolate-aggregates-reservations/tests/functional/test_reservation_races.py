# SPDX-License-Identifier: Apache-2.0
"""Concurrent reservations never overbook a host.

Before each call of an operation in turn, another client creates a reservation
that fits before or after the operation, but not together with it.

By default this happens before every twelfth call; with ``THOROUGH=1``
before each one.
"""

import contextlib

import pytest
from reservation_world import HOUR, NOW, PROJECT
from thorough import every

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors, names

EVERY = every(12)

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
LATER = '4d17d41a-830d-47b2-91c7-4f9fc0ae611f'
SHAPE = reservations.Shape(4, 1024, 10)
SLOTS_OF_A_HOST = 2


def make(store, amount, start=0, end=None, name=None):
    reservation = reservations.new(
        PROJECT,
        amount,
        SHAPE,
        NOW + start * HOUR,
        None if end is None else NOW + end * HOUR,
        reservation_id=name,
    )
    reservations.create(store, reservation, NOW)


def create(world):
    make(world.store, 3, name=ID)


def more(world):
    reservations.update(world.store, ID, NOW, amount=3)


def longer(world):
    reservations.update(world.store, ID, NOW, end=None)


def tick(world):
    reservations.reconcile_all(world.store, NOW + HOUR)


def repair(world):
    reservations.repair(world.store, NOW)


def disable(world):
    reservations.disable_host(world.store, 'h2')


def restore(world):
    reservations.reconcile_all(world.store, NOW)


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch):
    monkeypatch.setattr('tenacity.nap.time.sleep', lambda _: None)


CASES = {
    'create': (create, None, 3),
    'more': (more, 2, 2),
    'longer': (longer, 2, 3),
    'tick': (tick, 2, 3),
    'repair': (repair, 2, 2),
    'disable': (disable, 1, 3),
    'restore': (restore, 2, 0),
}


def begin(world, case):
    """Two hosts, and a reservation that ends in two hours, if any."""
    action, amount, _ = CASES[case]
    world.reset()
    world.add_host('h1')
    world.add_host('h2')
    if amount:
        make(world.store, amount, 1 if case == 'tick' else 0, 2, name=ID)
    if case == 'repair':
        world.fail_host('h1')
    if case == 'restore':
        # Another client has deleted slots of a later reservation.
        make(world.store, 3, 3, name=LATER)
        name = names.resource_class(LATER)
        path = f'/resource_providers/{world.child("h1")}/inventories/{name}'
        world.direct.send('DELETE', path)
    return action


def other_one(world, case):
    """Create the competing reservation, if it fits."""
    if case == 'restore':
        with contextlib.suppress(errors.ReservationError):
            reservations.update(world.new_store(), ID, NOW, end=None)
        return
    amount = CASES[case][2]
    start = 3 if case == 'longer' else 0
    with contextlib.suppress(errors.ReservationError):
        make(world.new_store(), amount, start)


def check(world):
    """No host is overbooked, and each reservation has its granted slots."""
    statuses = reservations.list_reservations(world.store, NOW)
    for status in statuses:
        assert status.reservation.pending is None
        assert status.slots + status.missing == status.reservation.amount
        assert not status.missing or status.reservation.id == LATER
    for moment in {status.reservation.start for status in statuses}:
        taken = {}
        for status in statuses:
            one = status.reservation
            if one.start <= moment and (one.end is None or moment < one.end):
                for host, slots in status.hosts.items():
                    taken[host] = taken.get(host, 0) + slots.total
        assert all(number <= SLOTS_OF_A_HOST for number in taken.values())
    known = {status.reservation.id for status in statuses}
    assert {name for _, name in world.slots()} <= known
    assert set(world.records()) == known
    assert world.litter() == []
    return len(statuses)


@pytest.mark.parametrize(
    'case',
    [
        'create',
        *(
            pytest.param(case, marks=pytest.mark.slow)
            for case in CASES
            if case != 'create'
        ),
    ],
)
def test_no_slot_is_sold_twice(world, case):
    action = begin(world, case)
    scene = world.keep()
    world.put_back(scene)
    action(world)
    calls = len(world.wire.calls)
    made = set()
    for number in range(1, calls + 1, EVERY):
        world.put_back(scene)

        def meddle(method, url, number=number):
            if len(world.wire.calls) >= number:
                world.wire.meddle = None
                other_one(world, case)

        world.wire.meddle = meddle
        with contextlib.suppress(
            errors.ReservationError, errors.ReservationHostError
        ):
            action(world)
        world.wire.meddle = None
        made.add(check(world))
    # At least one of both is always created.
    assert 0 not in made
