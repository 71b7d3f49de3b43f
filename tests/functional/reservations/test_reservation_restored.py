# SPDX-License-Identifier: Apache-2.0
"""A record that is older than the slots deletes nothing."""

import dataclasses

import pytest
from reservation_world import HOUR, NOW, PROJECT

from isolate_aggregates import exception, reservations
from isolate_aggregates.reservations import names

pytestmark = pytest.mark.usefixtures('two_hosts')

SHAPE = reservations.Shape(4, 1024, 10)
OLD_END = NOW + 5 * HOUR
LATER = OLD_END + HOUR
NEW_END = NOW + 50 * HOUR


def reserve(world, end=OLD_END, amount=2, **values):
    reservation = reservations.new(
        PROJECT, amount, SHAPE, NOW, end, True, **values
    )
    reservations.create(world.store, reservation, NOW)
    return reservation.id


def slots_of(world, reservation):
    return {
        host: total
        for (host, name), (total, _) in world.slots().items()
        if name == reservation
    }


@pytest.fixture
def extended(world):
    """Return a reservation with a server, extended after a backup."""
    name = reserve(world)
    assert world.boot('s1', 'h1', name)
    backup = world.nova.keep()
    reservations.update(world.store, name, NOW, end=NEW_END)
    return name, backup


def restore(world, extended):
    servers = dict(world.nova.servers)
    world.nova.put_back(extended[1])
    world.nova.servers.update(servers)
    world.store = world.new_store()


def delete_newest(world, extended):
    key = max(key for key in world.nova.flavors if names.revision_of(key))
    del world.nova.flavors[key]


@pytest.mark.parametrize('lose', [restore, delete_newest])
def test_an_older_record_ends_nothing(world, extended, lose):
    name, _ = extended
    lose(world, extended)
    before = slots_of(world, name)
    for round_ in (0, 1, 2):
        (status,) = reservations.reconcile_all(
            world.store, LATER + round_ * HOUR
        )
    assert any('older than its slots' in p for p in status.problems)
    assert world.nova.servers
    assert slots_of(world, name) == before
    assert world.slots()
    # With the end that it should have, it goes on.
    status = reservations.update(world.store, name, LATER, end=NEW_END)
    assert status.reservation.end == NEW_END
    (status,) = reservations.reconcile_all(world.store, LATER + HOUR)
    assert not status.problems
    assert world.boot('s2', 'h1', name)
    reservations.reconcile_all(world.store, NEW_END)
    reservations.reconcile_all(world.store, NEW_END)
    assert not world.nova.servers
    assert not world.slots()


def test_an_operator_may_end_it(world, extended):
    restore(world, extended)
    reservations.end(world.store, extended[0], LATER)
    reservations.reconcile_all(world.store, LATER)
    assert not world.nova.servers
    assert not world.slots()


def test_a_change_that_does_not_name_the_end_is_refused(world, extended):
    name, _ = extended
    restore(world, extended)
    with pytest.raises(exception.StaleRecord):
        reservations.update(world.store, name, NOW, amount=1)
    assert world.records()[name]


def test_automatic_writes_do_not_make_an_old_record_current(world):
    reservation = reservations.new(PROJECT, 2, SHAPE, NOW + HOUR, OLD_END)
    name = reservation.id
    reservations.create(world.store, reservation, NOW)
    backup = world.nova.keep()
    reservations.update(world.store, name, NOW, end=NEW_END)
    world.nova.put_back(backup)
    for hours in range(1, 8):
        reservations.reconcile_all(world.store, NOW + hours * HOUR)
        reservations.update(world.store, name, NOW + HOUR, note=f'{hours}')
    assert slots_of(world, name)


def test_slots_are_not_removed_by_an_older_record(world):
    name = reserve(world, amount=1)
    backup = world.nova.keep()
    reservations.update(world.store, name, NOW, amount=2)
    world.nova.put_back(backup)
    (status,) = reservations.reconcile_all(world.store, NOW)
    assert any('older than its slots' in p for p in status.problems)
    assert sum(slots_of(world, name).values()) == 2


def test_slots_without_a_record_stay_and_can_be_taken_over(world, extended):
    name, _ = extended
    before = slots_of(world, name)
    del world.nova.flavors[name]
    for _ in range(2):
        reservations.reconcile_all(world.store, LATER)
        reservations.repair(world.store, LATER)
    assert slots_of(world, name) == before
    assert world.nova.servers
    # What is left of the record is left for the operator.
    assert any(
        names.revision_of(key).reservation == name
        for key in world.nova.flavors
        if names.revision_of(key)
    )
    reserve(world, NEW_END, reservation_id=name)
    (status,) = reservations.reconcile_all(world.store, LATER)
    assert not status.problems
    assert slots_of(world, name) == before


def test_a_renamed_hypervisor_keeps_its_slots(world, extended):
    host = world.store.read().hosts['h1']
    world.rename_host('h1', 'h1.example.org')
    after = world.store.read().hosts['h1.example.org']
    assert after.provider == host.provider == world.child('h1')
    assert after.slots == host.slots
    reservations.enable_host(world.store, 'h1.example.org')
    (status,) = reservations.reconcile_all(world.store, NOW)
    assert sum(on.total for on in status.hosts.values()) == 2


def ask_for_nine(world):
    """Complete what is pending, and be interrupted after asking for more."""
    other = world.new_store()
    (status,) = reservations.reconcile_all(other, NOW)
    granted = status.reservation
    other.compute.write_record(
        dataclasses.replace(
            granted,
            pending=reservations.PendingChange(9, granted.end),
            change=granted.change + 1,
        ),
        NOW,
    )


def test_a_command_is_not_told_the_refusal_of_another(world):
    def others(method, url):
        if not world.records():
            return
        world.wire.meddle = None
        ask_for_nine(world)

    world.wire.meddle = others
    reservation = reservations.new(PROJECT, 1, SHAPE, NOW, OLD_END)
    status = reservations.create(world.store, reservation, NOW)
    assert world.wire.meddle is None
    assert status.reservation.amount == 1
    assert not status.reservation.pending


def test_an_update_is_not_told_the_refusal_of_another(world):
    name = reserve(world, amount=1)

    def others(method, url):
        if '"asked"' not in world.records()[name]['description']:
            return
        world.wire.meddle = None
        ask_for_nine(world)

    world.wire.meddle = others
    status = reservations.update(world.store, name, NOW, amount=2)
    assert world.wire.meddle is None
    assert status.reservation.amount == 2


def test_a_server_on_a_failed_host_that_keeps_the_end_is_reported(world):
    name = reserve(world)
    assert world.boot('s1', 'h1', name)
    world.fail_host('h1')
    world.nova.on_delete = lambda server: None
    (status,) = reservations.reconcile_all(world.store, LATER)
    (listed,) = reservations.list_reservations(world.store, LATER)
    for found in (status, listed):
        assert any('host h1 has failed' in p for p in found.problems)


@pytest.mark.parametrize('dry_run', [False, True])
def test_a_record_that_others_change_meanwhile_is_not_old(world, dry_run):
    name = reserve(world, amount=1)

    def others(method, url):
        if method != 'GET' or '/inventories' not in url:
            return
        world.wire.meddle = None
        reservations.update(world.new_store(), name, NOW, end=NEW_END)

    world.wire.meddle = others
    status = reservations.update(
        world.store, name, NOW, amount=2, dry_run=dry_run
    )
    assert world.wire.meddle is None
    assert (status.reservation.amount, status.reservation.end) == (2, NEW_END)
