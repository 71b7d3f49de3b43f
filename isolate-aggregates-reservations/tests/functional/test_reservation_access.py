# SPDX-License-Identifier: Apache-2.0
"""The access to the flavor of a reservation is granted and restored."""

import itertools

import pytest
from reservation_world import HOUR, NOW, PROJECT

from isolate_aggregates import exception
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import store

pytestmark = pytest.mark.usefixtures('one_host')

SHAPE = reservations.Shape(1, 64)
FRIEND, STRANGER = 'f' * 32, '5' * 32
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
        f'Project {PROJECT} had no access to the flavor of its reservation '
        f'{lost}, and gets it again.'
    ]


def test_granting_the_first_access_is_not_logged(world, caplog):
    coming = reserve(world, start=1)
    reservations.reconcile_all(world.store, NOW + HOUR)
    assert world.nova.access[coming] == {PROJECT}
    assert caplog.records == []


def test_each_round_checks_some_reservations_in_turn(world, monkeypatch):
    monkeypatch.setattr(store, '_CHECKED', ASKED)
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
    monkeypatch.setattr(store, '_CHECKED', ASKED)
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


def test_several_projects_share_a_reservation(world):
    reservation = reservations.new(
        PROJECT, 1, SHAPE, NOW, shared=[FRIEND, PROJECT]
    )
    reservations.create(world.store, reservation, NOW)
    access_to = world.nova.access[reservation.id]
    assert access_to == {PROJECT, FRIEND}
    access_to.discard(FRIEND)
    tick(world)
    assert world.nova.access[reservation.id] == {PROJECT, FRIEND}

    def share(**settings):
        return reservations.update(
            world.store, reservation.id, NOW, **settings
        ).reservation.shared

    assert share(share=[STRANGER]) == (STRANGER, FRIEND)
    assert world.nova.access[reservation.id] == {PROJECT, FRIEND, STRANGER}
    assert share(unshare=[FRIEND], share=[STRANGER]) == (STRANGER,)
    assert world.nova.access[reservation.id] == {PROJECT, STRANGER}
    assert share(unshare=[PROJECT]) == (STRANGER,)
    reservations.end(world.store, reservation.id, NOW)
    assert reservation.id not in world.nova.flavors


def test_a_shared_reservation_is_for_its_projects_from_its_start_on(world):
    reservation = reservations.new(
        PROJECT, 1, SHAPE, NOW + HOUR, shared=[FRIEND]
    )
    reservations.create(world.store, reservation, NOW)
    reservations.update(world.store, reservation.id, NOW, share=[STRANGER])
    assert world.nova.access[reservation.id] == set()
    reservations.reconcile_all(world.store, NOW + HOUR)
    assert world.nova.access[reservation.id] == {PROJECT, FRIEND, STRANGER}
