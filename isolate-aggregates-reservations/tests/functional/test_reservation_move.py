# SPDX-License-Identifier: Apache-2.0
"""Reservations leave a host together with their servers."""

import pytest
from reservation_world import NOW, PROJECT, told, uuid

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors
from isolate_aggregates_tools import errors as tools_errors

pytestmark = pytest.mark.usefixtures('two_hosts')

NEEDS = {'VCPU': 4, 'MEMORY_MB': 64}
SHAPE = reservations.Shape(4, 64)


def reserve(world, amount, affinity=None, servers=0):
    """Reserve slots, and boot servers on the first host; return the id."""
    reservation = reservations.new(
        PROJECT, amount, SHAPE, NOW, affinity=affinity
    )
    reservations.create(world.store, reservation, NOW)
    for number in range(servers):
        assert world.boot(f's{number}', 'h1', reservation.id, NEEDS)
    return reservation.id


def evacuated(world, reservation_id, server):
    """Add a server with allocations on both hosts, as after an evacuation."""
    allocations = {
        uuid(1, host): {'resources': NEEDS} for host in ('h1', 'h2')
    }
    name = f'CUSTOM_RESERVATION_{reservation_id.upper().replace("-", "_")}'
    for host in ('h1', 'h2'):
        allocations[world.child(host)] = {'resources': {name: 1}}
    write_allocations(world, server, allocations)


def is_back(world, reservation_id, server):
    """Make Nova delete the allocation on the failed host."""
    name = f'CUSTOM_RESERVATION_{reservation_id.upper().replace("-", "_")}'
    write_allocations(
        world,
        server,
        {
            uuid(1, 'h2'): {'resources': NEEDS},
            world.child('h2'): {'resources': {name: 1}},
        },
    )


def write_allocations(world, server, allocations):
    """Replace the allocations of a server."""
    path = f'/allocations/{uuid(3, server)}'
    before = world.direct.get(path)
    world.direct._service.request(
        'PUT',
        path,
        '1.28',
        {
            'allocations': allocations,
            'consumer_generation': before.get('consumer_generation', 1),
            'project_id': PROJECT,
            'user_id': PROJECT,
        },
        accept=(204,),
    )


def on(status):
    """Return total, open and used slots by host."""
    return {
        name: (slots.total, slots.open, slots.used)
        for name, slots in status.hosts.items()
    }


@pytest.mark.parametrize('affinity', [True, None])
def test_a_failed_host_is_left_with_all_its_servers(world, affinity):
    reservation_id = reserve(world, 2, affinity, servers=2)
    world.fail_host('h1')
    status = reservations.move(world.store, reservation_id, NOW, ['h1'])
    # h1 has no open slots, and h2 has one for each server.
    assert on(status) == {'h1': (2, 0, 2), 'h2': (2, 2, 0)}
    assert (status.slots, status.missing) == (2, 0)
    assert status.reservation.leaving == ('h1',)
    assert told(status) == ('host h1 is being left and still has 2 servers',)

    for server in ('s0', 's1'):
        evacuated(world, reservation_id, server)
    [status] = reservations.reconcile_all(world.store, NOW)
    assert on(status) == {'h1': (2, 0, 2), 'h2': (2, 2, 2)}

    is_back(world, reservation_id, 's0')
    [status] = reservations.reconcile_all(world.store, NOW)
    assert on(status) == {'h1': (1, 0, 1), 'h2': (2, 2, 2)}
    is_back(world, reservation_id, 's1')
    world.fail_host('h1', 'up')
    [status] = reservations.reconcile_all(world.store, NOW)
    assert on(status) == {'h2': (2, 2, 2)}
    assert (status.reservation.leaving, status.problems) == ((), ())
    assert world.litter() == []


def test_a_move_without_free_slots_elsewhere_changes_nothing(world):
    status = reserve(world, 2, servers=1)
    reserve(world, 1)
    world.fail_host('h1')
    before = world.picture()
    with pytest.raises(errors.ReservationError) as caught:
        reservations.move(world.store, status, NOW, ['h1'])
    assert 'room for 1 on h2' in str(caught.value)
    assert world.picture() == before


def test_a_healthy_host_is_left_where_it_is_named(world):
    reservation_id = reserve(world, 2, servers=1)
    with pytest.raises(tools_errors.InvalidRequest, match='no slots on h2'):
        reservations.move(world.store, reservation_id, NOW, ['h2'])
    status = reservations.move(world.store, reservation_id, NOW, ['h1'])
    assert on(status) == {'h1': (1, 0, 1), 'h2': (2, 2, 0)}
    # Repeating it changes nothing.
    before = world.picture()
    reservations.move(world.store, reservation_id, NOW, ['h1'])
    assert world.picture() == before


def test_slots_without_servers_move_at_once(world):
    reservation_id = reserve(world, 2)
    status = reservations.move(world.store, reservation_id, NOW, ['h1'])
    assert on(status) == {'h2': (2, 2, 0)}
    assert status.reservation.leaving == ()
    # So that the host can be used again.
    status = reservations.update(world.store, reservation_id, NOW, amount=3)
    assert on(status) == {'h1': (1, 1, 0), 'h2': (2, 2, 0)}


def test_a_move_can_be_cancelled(world):
    reservation_id = reserve(world, 2, True, servers=2)
    before = world.picture()
    reservations.move(world.store, reservation_id, NOW, ['h1'])
    status = reservations.move(world.store, reservation_id, NOW, [])
    assert on(status) == {'h1': (2, 2, 2)}
    after = world.picture()
    for picture in (before, after):
        del picture['flavors'][reservation_id]['description']
    assert after == before


def test_a_change_during_a_move_keeps_the_hosts_being_left(world):
    reservation_id = reserve(world, 1, servers=1)
    reservations.move(world.store, reservation_id, NOW, ['h1'])
    status = reservations.update(world.store, reservation_id, NOW, amount=2)
    assert on(status) == {'h1': (1, 0, 1), 'h2': (2, 2, 0)}
    assert status.reservation.leaving == ('h1',)


def test_slots_on_a_host_being_left_still_count(world):
    status = reserve(world, 2, servers=1)
    reservations.move(world.store, status, NOW, ['h1'])
    reservation = reservations.new(PROJECT, 2, SHAPE, NOW)
    with pytest.raises(errors.ReservationError, match='room for 1 on h1'):
        reservations.create(world.store, reservation, NOW)


def test_a_reservation_ends_while_it_leaves_a_host(world):
    reservation_id = reserve(world, 2, servers=2)
    empty = world.store.read().records
    assert empty.reservations
    reservations.move(world.store, reservation_id, NOW, ['h1'])
    status = reservations.end(world.store, reservation_id, NOW)
    status = reservations.end(world.store, reservation_id, NOW)
    assert status.state is reservations.Phase.ENDED
    assert (world.slots(), world.nova.flavors) == ({}, world.archives())


def test_a_running_process_notices_that_a_server_has_left(world):
    reserve(world, 2, servers=2)
    world.boot('o', 'h1', flavor_needs={'VCPU': 2})
    world.fail_host('h1')
    [status] = reservations.reconcile_all(world.store, NOW)
    assert on(status) == {'h1': (2, 2, 2)}
    world.direct.send('DELETE', f'/allocations/{uuid(3, "s0")}')
    [status] = reservations.repair(world.store, NOW)
    assert on(status) == {'h1': (1, 1, 1), 'h2': (1, 1, 0)}
