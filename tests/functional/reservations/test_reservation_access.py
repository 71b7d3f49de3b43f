# SPDX-License-Identifier: Apache-2.0
"""The access to the flavor of a reservation is granted and restored."""

import itertools

import pytest
from reservation_world import HOUR, NOW, PROJECT

from isolate_aggregates import exception, reservations
from isolate_aggregates.reservations import access

pytestmark = pytest.mark.usefixtures('one_host')

SHAPE = reservations.Shape(1, 64)
ASKED = 3


def reserve(world, start=0):
    reservation = reservations.new(PROJECT, 1, SHAPE, NOW + start * HOUR)
    return reservations.create(world.store, reservation, NOW).reservation.id


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
    monkeypatch.setattr(access, '_CHECKED', ASKED)
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


def test_a_new_process_checks_only_some_reservations(world, monkeypatch):
    """What the record has is not asked again."""
    monkeypatch.setattr(access, '_CHECKED', ASKED)
    for _ in range(2 * ASKED):
        reserve(world)
    world.store = world.new_store()
    assert tick(world) == ASKED


def test_access_that_a_run_with_another_clock_grants_late_is_revoked(world):
    """It had found the reservation open, before the slots were closed."""
    made = reserve(world, start=1)

    def close(method, url):
        if method == 'POST' and f'/flavors/{made}/action' in url:
            world.wire.meddle = None
            reservations.reconcile_all(world.new_store(), NOW)

    world.wire.meddle = close
    reservations.reconcile_all(world.store, NOW + HOUR)
    assert world.wire.meddle is None
    reservations.reconcile_all(world.store, NOW)
    assert world.nova.access[made] == set()
    assert world.slots() == {('blazar_h1', made): (1, 0)}
    reservations.reconcile_all(world.store, NOW + HOUR)
    assert world.nova.access[made] == {PROJECT}


def test_access_before_the_start_is_revoked(world):
    early = reserve(world)
    tick(world)
    assert world.slots() == {('blazar_h1', early): (1, 1)}
    reservations.reconcile_all(world.store, NOW - 2 * HOUR)
    assert world.slots() == {('blazar_h1', early): (1, 0)}
    assert not world.nova.access[early]


def test_a_failure_is_noted_without_its_full_stop(world, monkeypatch):
    coming = reserve(world, start=1)

    def fail(*arguments):
        raise exception.ServiceError('Nova', None, 'answered 503.')

    monkeypatch.setattr(world.store.compute, 'grant', fail)
    [status] = reservations.reconcile_all(world.store, NOW + HOUR)
    assert status.reservation.id == coming
    assert 'Nova answered 503' in status.problems
