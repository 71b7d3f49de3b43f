# SPDX-License-Identifier: Apache-2.0
"""The access to the flavor of a reservation is granted and restored."""

import itertools

import pytest
from reservation_world import HOUR, NOW, PROJECT, World

from isolate_aggregates import reservations
from isolate_aggregates.reservations import access as access_module

SHAPE = reservations.Shape(1, 64)
ASKED = 3


@pytest.fixture
def world(embedded):
    """A host that takes ten slots."""
    world = World(embedded)
    world.add_host('h1')
    return world


def reserve(world, start=0):
    wanted = reservations.new(PROJECT, 1, SHAPE, NOW + start * HOUR)
    return reservations.create(world.store, wanted, NOW).reservation.id


def tick(world):
    """Advance the clock; return how often the access was read."""
    world.wire.calls.clear()
    statuses = reservations.reconcile_all(world.store, NOW)
    assert not any(status.problems for status in statuses)
    return sum(url.endswith('access') for _, url in world.wire.calls)


def test_removed_access_is_restored(world, caplog):
    kept, lost = reserve(world), reserve(world)
    tick(world)
    caplog.clear()
    world.nova.access[lost].clear()
    tick(world)
    assert world.nova.access[lost] == {PROJECT}
    assert world.nova.access[kept] == {PROJECT}
    assert [record.getMessage() for record in caplog.records] == [
        f'Project {PROJECT} had lost access to the flavor of its reservation '
        f'{lost}, and has it again.'
    ]


def test_granting_the_first_access_is_not_logged(world, caplog):
    coming = reserve(world, start=1)
    reservations.reconcile_all(world.store, NOW + HOUR)
    assert world.nova.access[coming] == {PROJECT}
    assert caplog.records == []


def test_each_round_checks_some_reservations_in_turn(world, monkeypatch):
    monkeypatch.setattr(access_module, '_ASKED_AGAIN', ASKED)
    made = [reserve(world) for _ in range(2 * ASKED + 1)]
    reserve(world, start=1)
    assert tick(world) == ASKED
    for name in made:
        world.nova.access[name].clear()
    restored = [
        [name for name in made if world.nova.access[name]]
        for _ in itertools.takewhile(lambda _: tick(world), range(3))
    ]
    # A round that changes something reads the access once more.
    assert all(restored)
    assert restored[-1] == made
