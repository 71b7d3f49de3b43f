# SPDX-License-Identifier: Apache-2.0
"""A record that is older than the slots deletes nothing."""

import dataclasses

import pytest
from reservation_world import HOUR, NOW, PROJECT, uuid
import sqlalchemy
from thorough import every

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors, names
from isolate_aggregates_reservations.problems import LATE
from isolate_aggregates_reservations.review import review
from isolate_aggregates_tools.placement import inventories

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


def reserve_in(store, amount, name):
    reservation = reservations.new(
        PROJECT, amount, SHAPE, NOW, OLD_END, reservation_id=name
    )
    return reservations.create(store, reservation, NOW)


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
    with pytest.raises(errors.StaleRecord):
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


@pytest.mark.parametrize('is_blazars', [False, True])
def test_a_renamed_hypervisor_keeps_its_slots(world, extended, is_blazars):
    if is_blazars:
        # Blazar does not derive the uuid from that of the compute node.
        move_provider(world)
    host = world.store.read().hosts['h1']
    world.rename_host('h1', 'h1.example.org')
    after = world.store.read().hosts['h1.example.org']
    assert after.provider == host.provider
    assert after.slots == host.slots
    reservations.enable_host(world.store, 'h1.example.org')
    (status,) = reservations.reconcile_all(world.store, NOW)
    assert sum(on.total for on in status.hosts.values()) == 2


def move_provider(world):
    """Let the reservation provider of a host have another uuid."""
    with world._database.engine().begin() as connection:
        connection.execute(
            sqlalchemy.text(
                'UPDATE resource_providers SET uuid = :new WHERE uuid = :old'
            ),
            {'new': uuid(6, 'h1'), 'old': world.child('h1')},
        )


def return_with_a_new_uuid(world):
    """The compute service was deleted, and the host is registered anew."""
    for provider in (world.child('h1'), uuid(1, 'h1')):
        world.direct.send('DELETE', f'/resource_providers/{provider}')
    del world.nova.nodes[uuid(1, 'h1')]
    world.nova.aggregates[1]['hosts'].remove('h1')
    node = world.nova.nodes.setdefault(
        uuid(5, 'h1'),
        {**world.nova.nodes[uuid(1, 'h2')], 'id': uuid(5, 'h1')},
    )
    node.update(hypervisor_hostname='h1', service={'host': 'h1'})


def provide_anew(world):
    """nova-compute creates the provider of the new compute node."""
    world.provide('h1', uuid(5, 'h1'), None)
    world.direct.send(
        'PUT',
        f'/resource_providers/{uuid(5, "h1")}/inventories',
        {
            'resource_provider_generation': 0,
            'inventories': {
                'VCPU': {'total': 10, 'max_unit': 10},
                'MEMORY_MB': {'total': 10240, 'max_unit': 10240},
                'DISK_GB': {'total': 100, 'max_unit': 100},
            },
        },
    )


def test_a_host_with_a_new_uuid_gets_no_second_set_of_slots(world):
    name = reserve_in(world.store, 4, NAME).reservation.id
    for host in ('h1', 'h2'):
        by_class = inventories.read(world.direct, world.child(host))
        assert names.resource_class(name) in by_class.by_class
    free(world, name, 'h1')
    return_with_a_new_uuid(world)
    provide_anew(world)
    for _ in range(2):
        (status,) = reservations.reconcile_all(world.store, NOW)
        assert {h: on.total for h, on in status.hosts.items()} == {'h2': 2}
        assert status.missing == 2
    # It is an ordinary host, until it is enabled.
    reservations.enable_host(world.store, 'h1')
    (status,) = reservations.reconcile_all(world.store, NOW)
    assert {h: on.total for h, on in status.hosts.items()} == {
        'h1': 2,
        'h2': 2,
    }
    assert not status.problems
    assert sum(total for total, _ in world.slots().values()) == 4


def test_a_host_whose_old_provider_remains_is_not_enabled(world):
    """Servers of the old compute node keep its provider, and its name."""
    name = reserve_in(world.store, 4, NAME).reservation.id
    assert world.boot('s1', 'h1', name)
    node = world.nova.nodes.pop(uuid(1, 'h1'))
    world.nova.nodes[uuid(5, 'h1')] = {**node, 'id': uuid(5, 'h1')}
    before = world.slots()
    for _ in range(2):
        found = []
        (status,) = reservations.reconcile_all(
            world.store, NOW, on_unreadable=found.append
        )
        assert world.slots() == before
        assert any('h1 left the cloud' in p for p in status.problems)
    with pytest.raises(
        errors.ReservationHostError, match='of an earlier compute node'
    ):
        reservations.enable_host(world.store, 'h1')


def free(world, name, host):
    """Delete the slots on a host, as deleting its service does."""
    path = f'/resource_providers/{world.child(host)}/inventories'
    for resource_class in (names.resource_class(name), names.MARKER):
        world.direct.send('DELETE', f'{path}/{resource_class}')


def ask_for_nine(world, name):
    """Complete what is pending, and be interrupted after asking for more."""
    other = world.new_store()
    reservations.reconcile_all(other, NOW)
    granted = other.read().records.reservations.get(name)
    if granted is None or granted.has_ended(NOW):
        return False
    other.compute.write_record(
        dataclasses.replace(
            granted,
            pending=reservations.PendingChange(9, granted.end),
            change=granted.change + 1,
        ),
        NOW,
    )
    return True


NAME = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
COMMANDS = {
    'create': lambda store: reserve_in(store, 1, NAME),
    'more': lambda store: reservations.update(store, NAME, NOW, amount=2),
    'longer': lambda store: reservations.update(store, NAME, NOW, end=None),
    'move': lambda store: reservations.move(store, NAME, NOW, ['h1']),
    'end': lambda store: reservations.end(store, NAME, NOW),
    'repair': lambda store: reservations.repair(store, NOW, NAME),
}


@pytest.mark.parametrize(
    'command',
    [
        'repair',
        *(
            pytest.param(command, marks=pytest.mark.slow)
            for command in COMMANDS
            if command != 'repair'
        ),
    ],
)
def test_no_command_is_told_the_refusal_of_another(world, command):
    """Before each call of a command, another one asks for too much."""
    if command != 'create':
        reserve_in(world.store, 1, NAME)
    scene = world.keep()
    world.wire.calls.clear()
    COMMANDS[command](world.store)
    asked = 0
    for number in range(1, len(world.wire.calls) + 1, every(12)):
        world.put_back(scene)

        def others(method, url, number=number):
            nonlocal asked
            if len(world.wire.calls) >= number:
                world.wire.meddle = None
                asked += ask_for_nine(world, NAME)

        world.wire.meddle = others
        # An error would be the refusal.
        COMMANDS[command](world.store)
        assert world.wire.meddle is None
    assert asked


@pytest.mark.parametrize('lose', [restore, delete_newest])
def test_an_older_record_is_reported_before_its_end(world, extended, lose):
    name, _ = extended
    assert not thorough(world)[0].problems
    lose(world, extended)
    shown = reservations.show(world.store, name, NOW)
    (listed,) = thorough(world)
    found = review(world.store, NOW, is_thorough=True).stale
    assert shown.problems == listed.problems == (f'it {found[name]}',)
    assert f'reservation set {name} --end TIME' in found[name]
    reservations.update(world.store, name, NOW, end=NEW_END)
    assert not thorough(world)[0].problems


def thorough(world):
    return reservations.list_reservations(world.store, NOW, is_thorough=True)


def test_a_record_that_changes_while_it_is_shown_is_not_old(world):
    name = reserve(world, amount=1)

    def others(method, url):
        if not url.endswith('/inventories'):
            return
        world.wire.meddle = None
        reservations.update(world.new_store(), name, NOW, end=NEW_END)

    world.wire.meddle = others
    assert not reservations.show(world.store, name, NOW).problems
    assert world.wire.meddle is None


@pytest.fixture
def stuck(world):
    """A reservation has ended whose server Nova does not delete."""
    name = reserve(world)
    assert world.boot('s1', 'h1', name)
    world.nova.is_slow = True
    reservations.reconcile_all(world.store, OLD_END)
    return name


def remaining(world, now=LATER):
    (round_,) = reservations.reconcile_all(world.store, now)
    (listed,) = reservations.list_reservations(world.store, now)
    shown = reservations.show(world.store, listed.reservation.id, now)
    assert {*listed.problems} == {*shown.problems} <= {*round_.problems}
    found = review(world.store, now).remaining
    assert len(found) == len(listed.problems)
    for problem in listed.problems:
        assert problem in found[listed.reservation.id]
    return '; '.join(listed.problems)


def test_a_server_that_takes_some_time_is_no_problem(world, stuck):
    assert not remaining(world, OLD_END + LATE / 2)


def test_a_server_that_keeps_the_end_is_found_and_the_next_round_ends(
    world, stuck
):
    """Nova does not know yet that the host has failed."""
    server = uuid(3, 's1')
    assert (
        f'host h1 still has server {server}, which Nova does not delete; if '
        'the host has failed, run openstack compute service set --down h1 '
        'nova-compute'
    ) in remaining(world)
    # As the command does, after which Nova deletes its servers itself.
    world.fail_host('h1')
    assert f'still has server {server}; run reservation' in remaining(world)
    world.nova.is_slow = False
    assert end_completes(world)


def test_allocations_without_a_server_that_keep_the_end_are_found(
    world, stuck
):
    """Nova has forgotten a server without its allocations."""
    server = uuid(3, 's1')
    del world.nova.servers[server]
    assert (
        f'run openstack resource provider allocation delete {server}'
        in remaining(world)
    )
    world.direct.send('DELETE', f'/allocations/{server}')
    assert end_completes(world)


def end_completes(world):
    for _ in range(2):
        (status,) = reservations.reconcile_all(world.store, LATER)
        if status.state is reservations.Phase.ENDED:
            break
    return not (
        status.problems or world.slots() or world.classes() or world.records()
    )


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
