# SPDX-License-Identifier: Apache-2.0
"""All hosts are read with one call, and none is missing if that tells less."""

import pytest
from reservation_world import HOUR, NOW, PROJECT, uuid

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import names
from isolate_aggregates_reservations.api import HostSlots
from isolate_aggregates_tools.placement import inventories

pytestmark = pytest.mark.usefixtures('two_hosts')

NEEDS = {'VCPU': 5, 'MEMORY_MB': 64}
SHAPE = reservations.Shape(5, 64)
# A host has room for two slots.
RUNNING, PLANNED, LEAVING = (
    f'4d17d41a-830d-47b2-91c7-4f9fc0ae611{c}' for c in 'cde'
)
OPEN = HostSlots(1, 1, 1)
CLOSED = HostSlots(2, 0, 0, is_planned=True)


def reserve(world, name, start, end=None, **values):
    values = {'amount': 2, 'affinity': None, **values}
    reservation = reservations.new(
        PROJECT,
        shape=SHAPE,
        start=NOW + start * HOUR,
        end=end and NOW + end * HOUR,
        reservation_id=name,
        **values,
    )
    return reservations.create(world.store, reservation, NOW)


@pytest.fixture
def slots(world):
    """A slot in use on each host, and planned ones for later."""
    reserve(world, RUNNING, 0, 2, affinity=False)
    reserve(world, PLANNED, 2, affinity=True)
    hosts = world.store.read().hosts
    [planned] = [name for name, h in hosts.items() if PLANNED in h.slots]
    for host in 'h1', 'h2':
        assert world.boot(f's-{host}', host, RUNNING, NEEDS)
    world.wire.calls.clear()
    return {'h1': {}, 'h2': {}, planned: {PLANNED: CLOSED}}


def observed(world, store=None):
    world.wire.calls.clear()
    hosts = (store or world.new_store()).read().hosts
    return {
        name: {key: on for key, on in host.slots.items() if key != RUNNING}
        for name, host in hosts.items()
        if host.is_ready and host.slots[RUNNING] == OPEN
    }


def reads(world):
    """Return how many providers were read individually."""
    return sum('/resource_providers/' in url for _, url in world.wire.calls)


def test_full_hosts_are_read_with_one_call(world, slots):
    for host in 'h1', 'h2':
        assert world.boot(f'o-{host}', host, flavor_needs={'VCPU': 5})
    assert observed(world) == slots
    assert reads(world) == 0
    tree = world.store.read().tree(world.store.read().hosts['h1'])
    assert [(one.capacity['VCPU'], one.used['VCPU']) for one in tree] == [
        (10, 10)
    ]


def test_planned_slots_accept_no_server(world, slots):
    [host] = [host for host in slots if slots[host]]
    for amount in 1, 2, 3, 4:
        document = world.direct.get(
            '/allocation_candidates?resources='
            f'{names.resource_class(PLANNED)}:{amount}'
        )
        assert document['allocation_requests'] == []
    assert not world.boot('early', host, PLANNED, {'VCPU': 1})


def test_a_host_missing_in_the_answer_is_read_individually(world, slots):
    """As with [placement] max_allocation_candidates."""
    # That its slots are used is recorded once.
    reservations.reconcile_all(world.store, NOW)
    world.wire.most_candidates = 1
    assert observed(world) == slots
    assert reads(world) > 0
    before = world.picture()
    statuses = reservations.reconcile_all(world.store, NOW)
    assert [status.problems for status in statuses] == [(), ()]
    assert world.picture() == before


def test_a_host_whose_marker_is_taken_is_read_individually(world, slots):
    """A flavor of an operator requests the marker class."""
    taken = (world.child('h1'), {names.MARKER: 1})
    assert world.boot('odd', 'h1', None, {'MEMORY_MB': 1}, [taken])
    assert observed(world) == slots
    assert reads(world) > 0


def test_devices_are_read_together_with_their_host(world):
    world.add_device('h1', 'gpu', VGPU=4)
    whole = world.store.read()
    world.wire.most_candidates = 1
    for found in whole, world.store.read():
        for host in found.hosts.values():
            classes = [sorted(one.capacity) for one in found.tree(host)]
            assert classes[0] == ['DISK_GB', 'MEMORY_MB', 'VCPU']
            assert classes[1:] == [['VGPU']] * (host.name == 'h1')


def test_slots_written_by_others_are_read_and_taken_over(world, slots):
    world.write_as_blazar()
    old = {
        host: {key: HostSlots(2, 0, 0) for key in there}
        for host, there in slots.items()
    }
    assert observed(world) == old
    picture = world.slots()
    reservations.reconcile_all(world.store, NOW)
    assert world.slots() == picture
    assert observed(world) == slots
    assert reads(world) == 0
    reservations.reconcile_all(world.store, NOW + 2 * HOUR)
    opened = world.store.read().slots(PLANNED)
    assert {on.open for on in opened.values()} == {2}


def test_a_single_reservation_is_taken_over_too(world, slots):
    world.write_as_blazar()
    reservations.reconcile(world.store, PLANNED, NOW)
    assert observed(world) == slots


def test_the_hosts_of_blazar_are_marked_and_stay_without_trait(world):
    world.add_host('b', enable=False)
    child = names.provider_uuid(uuid(1, 'b'))
    inventories.create_provider(
        world.direct, names.provider('b'), child, uuid(1, 'b')
    )
    assert 'b' in world.store.read().hosts
    reservations.reconcile_all(world.store, NOW)
    world.wire.calls.clear()
    host = world.store.read().hosts['b']
    assert (host.is_ready, host.is_marked) == (False, True)
    assert reads(world) == 0


def test_a_host_that_cannot_be_marked_is_still_read(world, slots, caplog):
    world.write_as_blazar()

    def fault(number):
        _, url = world.wire.calls[number - 1]
        return 'refused' if url.endswith(names.MARKER) else None

    world.wire.fault = fault
    statuses = reservations.reconcile_all(world.store, NOW)
    assert [status.problems for status in statuses] == [(), ()]
    assert 'Host h1 was not marked' in caplog.text
    assert observed(world) == slots


def test_a_server_can_be_moved_off_a_host_that_is_left(world, slots):
    """Such slots are reserved: their server can still be moved."""
    reservations.update(world.store, RUNNING, NOW, end=NOW + HOUR / 2)
    world.add_host('h3')
    reservations.move(world.store, RUNNING, NOW, ['h1'])
    left = world.store.read().hosts['h1'].slots[RUNNING]
    assert left == HostSlots(1, 0, 1)
    path = f'/allocations/{uuid(3, "s-h1")}'
    held = world.direct.get(path)
    # As Nova does, the migration takes the allocations over.
    answer = world.direct._service.request(
        'POST',
        '/allocations',
        '1.28',
        {
            consumer: {
                'allocations': allocations,
                'consumer_generation': generation,
                'project_id': PROJECT,
                'user_id': PROJECT,
            }
            for consumer, allocations, generation in (
                (uuid(3, 's-h1'), {}, 1),
                (uuid(3, 'migration'), held['allocations'], None),
            )
        },
        accept=(204, 409),
    )
    assert answer.status_code == 204


@pytest.fixture
def _from_volumes(world, two_hosts):
    """A server on each host uses less than its slot has."""
    reservation = reservations.new(
        PROJECT,
        2,
        reservations.Shape(1, 64, 10),
        NOW,
        affinity=False,
        reservation_id=RUNNING,
    )
    reservations.create(world.store, reservation, NOW)
    for host in 'h1', 'h2':
        assert world.boot(f's-{host}', host, RUNNING)


def on_one_host(world, amount):
    """Return the host of slots with a disk."""
    reservation = reservations.new(
        PROJECT, amount, reservations.Shape(1, 64, 10), NOW, affinity=True
    )
    world.wire.calls.clear()
    [host] = reservations.create(
        world.store, reservation, NOW, dry_run=True
    ).hosts
    return host


@pytest.mark.usefixtures('_from_volumes')
def test_only_the_servers_of_chosen_hosts_are_read(world):
    chosen = on_one_host(world, 9)
    assert {
        url.split('/')[-2]
        for _, url in world.wire.calls
        if url.endswith('/allocations')
    } == {uuid(1, chosen), world.child(chosen)}


@pytest.mark.usefixtures('_from_volumes')
def test_an_ordinary_server_counts_although_slots_use_less(world):
    chosen = on_one_host(world, 9)
    assert world.boot('o', chosen, flavor_needs={'DISK_GB': 5})
    assert {chosen, on_one_host(world, 9)} == {'h1', 'h2'}
