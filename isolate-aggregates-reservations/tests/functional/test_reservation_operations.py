# SPDX-License-Identifier: Apache-2.0
"""What can be done with reservations, on a real Placement."""

import dataclasses
import json
import threading

import pytest
from reservation_world import HOUR, NOW, PROJECT, told, uuid

from isolate_aggregates import exception
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors, names, slots
from isolate_aggregates_tools import errors as tools_errors

pytestmark = pytest.mark.usefixtures('two_hosts')

NEEDS = {'VCPU': 4, 'MEMORY_MB': 1024, 'DISK_GB': 10}
SHAPE = reservations.Shape(4, 1024, 10)


def reserve(world, amount, start=0, end=None, shape=SHAPE, **kwargs):
    """Reserve slots, with start and end in hours from now."""
    reservation = reservations.new(
        PROJECT,
        amount,
        shape,
        NOW + start * HOUR,
        None if end is None else NOW + end * HOUR,
        **kwargs,
    )
    return reservations.create(world.store, reservation, NOW)


def totals(status):
    return {name: slots.total for name, slots in status.hosts.items()}


def refused(world, *args, **kwargs):
    """Reserve in vain, and return why; nothing is left of it."""
    before = world.picture()
    with pytest.raises(errors.ReservationError) as caught:
        reserve(world, *args, **kwargs)
    assert world.picture() == before
    return str(caught.value)


def test_every_slot_counts_for_all_of_its_time(world):
    reserve(world, 3, start=1, end=3)
    assert 'room for 1 on h2' in refused(world, 2, start=2, end=4)
    assert 'room for 1 on h2' in refused(world, 2)
    assert reserve(world, 1, start=2, end=4).slots == 1
    assert reserve(world, 4, start=0, end=1).slots == 4
    assert reserve(world, 4, start=4).slots == 4
    assert 'there is room for none' in refused(world, 1, start=9)


def test_slots_open_at_the_start(world):
    status = reserve(world, 2, start=1, end=2)
    reservation = status.reservation
    assert status.state is reservations.Phase.PLANNED
    assert not world.nova.access[reservation.id]
    assert not world.boot('s1', 'h1', reservation.id, NEEDS)

    [status] = reservations.reconcile_all(world.store, NOW + HOUR)
    assert status.state is reservations.Phase.ACTIVE
    assert world.nova.access[reservation.id] == {PROJECT}
    assert world.boot('s1', 'h1', reservation.id, NEEDS)
    assert world.boot('s2', 'h1', reservation.id, NEEDS)
    # Only the number of slots prevents it.
    assert not world.boot('s3', 'h1', reservation.id, {'VCPU': 1})

    [status] = reservations.reconcile_all(world.store, NOW + 2 * HOUR)
    assert world.nova.deleted == [uuid(3, 's1'), uuid(3, 's2')]
    [status] = reservations.reconcile_all(world.store, NOW + 2 * HOUR)
    assert status.state is reservations.Phase.ENDED
    assert reservations.reconcile_all(world.store, NOW + 2 * HOUR) == []
    assert world.slots() == {}
    assert world.classes() == []
    assert world.nova.flavors == world.archives()


def test_a_reservation_is_kept_until_its_servers_are_deleted(world):
    reservation = reserve(world, 2, end=1).reservation
    world.boot('s1', 'h1', reservation.id, NEEDS)
    world.nova.is_slow = True
    for _ in range(3):
        [status] = reservations.reconcile_all(world.store, NOW + HOUR)
        assert status.state is reservations.Phase.ENDING
        assert told(status) == ('1 server is being deleted',)
        assert world.classes() == [reservation.resource_class]
        # Its capacity is not given to others while it has servers.
        assert not world.boot('s2', 'h1', reservation.id, NEEDS)
    world.nova.finish(uuid(3, 's1'))
    [status] = reservations.reconcile_all(world.store, NOW + HOUR)
    assert status.state is reservations.Phase.ENDED


def test_a_server_that_leaves_unnoticed_keeps_no_slot(world):
    """A claim that is deleted leaves the generation of the provider.

    So the write that closes the slot of a server succeeds although the server
    has gone since it was seen there. Claims that are written are noticed.
    """
    reservation = reserve(world, 2, end=1).reservation
    world.boot('s1', 'h1', reservation.id, NEEDS)
    world.nova.is_slow = True
    path = f'/resource_providers/{world.child("h1")}'
    generations = []

    def leave(method, url):
        if method == 'PUT' and url.endswith('/inventories'):
            world.wire.meddle = None
            generations.append(world.direct.get(path)['generation'])
            world.nova.finish(uuid(3, 's1'))
            generations.append(world.direct.get(path)['generation'])

    world.wire.meddle = leave
    reservations.reconcile_all(world.store, NOW + HOUR)
    before, after = generations
    assert before == after
    # The next round sees it, and the same store is used.
    reservations.reconcile_all(world.store, NOW + HOUR)
    assert world.slots() == {}
    assert world.classes() == []


def test_a_closed_slot_goes_to_a_migration_of_its_server_only(world):
    """Placement lets one consumer have what another gives up.

    In one request, although ``reserved`` is equal to ``total``. Nova asks that
    way when it moves a server, for the server and its migration.
    """
    reservation = reserve(world, 1, end=1).reservation
    world.boot('s1', 'h1', reservation.id, NEEDS)
    world.nova.is_slow = True

    def end():
        [status] = reservations.reconcile_all(world.store, NOW + HOUR)
        return status

    assert told(end()) == ('1 server is being deleted',)
    assert world.slots() == {('blazar_h1', reservation.id): (1, 0)}

    # No claim of another server, nor of one with a slot elsewhere.
    assert not world.boot('s2', 'h1', reservation.id, NEEDS)
    world.move(uuid(3, 's1'), uuid(3, 'migration of s1'))
    assert not world.boot('s2', 'h1', reservation.id, NEEDS)

    # The slot counts for whichever has it, until it is given up.
    holders = slots.holders(
        world.direct, [world.child('h1')], reservation.resource_class
    )
    assert holders == {uuid(3, 'migration of s1')}
    assert end().state is reservations.Phase.ENDING
    world.nova.finish(uuid(3, 's1'))
    assert end().state is reservations.Phase.ENDING
    assert world.classes() == [reservation.resource_class]
    world.free(uuid(3, 'migration of s1'))
    assert end().state is reservations.Phase.ENDED


def test_a_shelved_server_without_allocation_keeps_the_flavor(world):
    reservation = reserve(world, 1).reservation
    world.nova.servers[uuid(3, 's1')] = reservation.id
    world.nova.is_slow = True
    status = reservations.end(world.store, reservation.id, NOW)
    assert status.state is reservations.Phase.ENDING
    assert reservation.id in world.nova.flavors
    world.nova.finish(uuid(3, 's1'))
    status = reservations.end(world.store, reservation.id, NOW)
    assert status.state is reservations.Phase.ENDED


@pytest.mark.parametrize(
    ('affinity', 'amount', 'expected'),
    [(True, 2, {'h1': 2}), (False, 2, {'h1': 1, 'h2': 1})],
)
def test_affinity_decides_how_slots_are_spread(
    world, affinity, amount, expected
):
    status = reserve(world, amount, affinity=affinity)
    assert totals(status) == expected
    where = 'on one host' if affinity else 'on different hosts'
    assert where in refused(world, 3, affinity=affinity)


def test_update_before_and_after_the_start(world):
    reservation = reserve(world, 2, start=1, end=2).reservation
    assert totals(
        reservations.update(world.store, reservation.id, NOW, amount=3)
    ) == {
        'h1': 2,
        'h2': 1,
    }
    later = NOW + HOUR
    reservations.reconcile_all(world.store, later)
    world.boot('s1', 'h2', reservation.id, NEEDS)
    status = reservations.update(world.store, reservation.id, later, amount=4)
    assert {slots.open for slots in status.hosts.values()} == {2}
    status = reservations.update(
        world.store, reservation.id, later, amount=1, end=None
    )
    # The one that is used.
    assert totals(status) == {'h2': 1}
    assert status.reservation.end is None
    assert status.problems == ()
    world.nova.finish(uuid(3, 's1'))


def test_slots_with_servers_cannot_be_removed(world):
    reservation = reserve(world, 2).reservation
    for server in ('s1', 's2'):
        assert world.boot(server, 'h1', reservation.id, NEEDS)
    before = world.picture()
    with pytest.raises(errors.ReservationError) as caught:
        reservations.update(world.store, reservation.id, NOW, amount=1)
    assert 'cannot have 1 slot, because 2 have servers' in str(caught.value)
    assert world.picture() == before


def test_a_later_end_is_refused_if_another_reservation_follows(world):
    reservation = reserve(world, 3, end=1).reservation
    reserve(world, 2, start=2)
    assert reservations.update(
        world.store, reservation.id, NOW, end=NOW + 2 * HOUR
    )
    with pytest.raises(errors.ReservationError, match='room for'):
        reservations.update(
            world.store, reservation.id, NOW, end=NOW + 3 * HOUR
        )
    # With fewer slots it is possible.
    status = reservations.update(
        world.store, reservation.id, NOW, amount=2, end=NOW + 3 * HOUR
    )
    assert status.slots == 2


def test_unused_slots_make_room_for_a_later_end(world):
    reservation = reserve(world, 1, end=1).reservation
    other = reserve(world, 2, start=1, affinity=True)
    assert totals(other) == {'h1': 2}
    status = reservations.update(world.store, reservation.id, NOW, end=None)
    assert totals(status) == {'h2': 1}


def test_ordinary_servers_on_a_host_count(world):
    assert world.boot('o1', 'h1', flavor_needs={'VCPU': 5, 'MEMORY_MB': 9})
    reservation = reserve(world, 1, affinity=True).reservation
    assert 'room for 2 on h2' in refused(world, 3)
    # A server booted from a volume uses less than its slot. The usage of an
    # ordinary server must not be underestimated because of it.
    assert world.boot(
        's1', 'h1', reservation.id, {'VCPU': 4, 'MEMORY_MB': 1024}
    )
    disk = {'VCPU': 1, 'MEMORY_MB': 9, 'DISK_GB': 70}
    assert world.boot('o2', 'h1', flavor_needs=disk)
    big = reservations.Shape(0, 64, 25)
    assert 'room for 4 on h2' in refused(world, 5, shape=big)


def test_a_full_host_is_read_one_by_one(world):
    reservation = reserve(world, 2, end=1).reservation
    assert world.boot('s1', 'h1', reservation.id, {'VCPU': 10})
    # Not a candidate now, but free again in an hour.
    status = reserve(world, 4, start=1)
    assert totals(status) == {'h1': 2, 'h2': 2}


def test_a_host_takes_no_server_larger_than_its_largest(world):
    world.add_host('h3', vcpus=3, allocation_ratio=16.0)
    assert totals(reserve(world, 4)) == {'h1': 2, 'h2': 2}
    assert 'room for' in refused(world, 1)


def test_required_traits_select_the_hosts(world):
    path = f'/resource_providers/{uuid(1, "h2")}/traits'
    generation = world.direct.get(path)['resource_provider_generation']
    world.direct.send(
        'PUT',
        path,
        {
            'resource_provider_generation': generation,
            'traits': ['HW_CPU_X86_AVX2'],
        },
    )
    trait = 'trait:HW_CPU_X86_AVX2'
    wants = dataclasses.replace(SHAPE, extra_specs={trait: 'required'})
    avoids = dataclasses.replace(SHAPE, extra_specs={trait: 'forbidden'})
    assert totals(reserve(world, 1, shape=wants)) == {'h2': 1}
    assert totals(reserve(world, 1, shape=avoids)) == {'h1': 1}
    assert 'room for 1 on h2' in refused(world, 2, shape=wants)


def test_concurrent_creations_never_oversell(world):
    world.add_host('h3')
    outcomes = []

    def run(store):
        reservation = reservations.new(PROJECT, 2, SHAPE, NOW)
        try:
            status = reservations.create(store, reservation, NOW)
        except exception.IsolateAggregatesError as exc:
            outcomes.append(exc)
        else:
            outcomes.append(status.reservation.id)

    stores = [world.new_store() for _ in range(6)]
    threads = [threading.Thread(target=run, args=[store]) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [found for found in outcomes if isinstance(found, str)]
    assert len(outcomes) == 6
    # Each slot takes four of ten VCPUs.
    by_host = {}
    for (host, found), (total, opened) in world.slots().items():
        assert opened == total
        by_host[host] = by_host.get(host, 0) + total
        assert found in made
    assert all(total <= 2 for total in by_host.values())
    assert sum(by_host.values()) == 2 * len(made)
    assert sorted(world.records()) == sorted(made)
    # They do not all refuse each other.
    assert len(made) >= 2


def test_concurrent_reconciliations_do_not_conflict(world):
    for start in range(4):
        reserve(world, 4, start=start + 1, end=start + 2)
    stores = [world.new_store() for _ in range(3)]
    # No thread changes anything before all of them have read.
    all_have_read = threading.Barrier(len(stores), timeout=60)
    thread = threading.local()
    failures = []

    def meet(method, url):
        if method != 'GET' and not hasattr(thread, 'has_met'):
            thread.has_met = True
            all_have_read.wait()

    def run(store):
        try:
            reservations.reconcile_all(store, NOW + HOUR)
        except Exception as exc:
            failures.append(exc)

    world.wire.meddle = meet
    threads = [threading.Thread(target=run, args=[store]) for store in stores]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures
    statuses = reservations.list_reservations(world.store, NOW + HOUR)
    assert [status.slots for status in statuses] == [4, 4, 4, 4]
    assert [status.state.value for status in statuses] == [
        'active',
        'planned',
        'planned',
        'planned',
    ]
    assert not any(status.problems for status in statuses)


def test_unused_slots_leave_a_failed_host(world):
    reservation = reserve(world, 2).reservation
    assert world.boot('s1', 'h1', reservation.id, NEEDS)
    world.fail_host('h1')
    # A tick does not move anything: hosts come back.
    [status] = reservations.reconcile_all(world.store, NOW)
    assert totals(status) == {'h1': 2}
    assert told(status) == ('host h1 is down: 2 slots there, 1 with a server',)
    [status] = reservations.repair(world.store, NOW, reservation.id)
    assert totals(status) == {'h1': 1, 'h2': 1}
    assert told(status) == ('host h1 is down: 1 slot there, 1 with a server',)
    assert world.boot('s2', 'h2', reservation.id, NEEDS)


def test_slots_that_fit_nowhere_else_stay_and_are_reported(world):
    reserve(world, 4)
    world.fail_host('h1', status='disabled')
    [status] = reservations.repair(world.store, NOW)
    assert totals(status) == {'h1': 2, 'h2': 2}
    assert told(status) == ('host h1 is disabled: 2 slots there',)


def test_slots_of_a_removed_host_move(world):
    reservation = reserve(world, 2).reservation
    del world.nova.nodes[uuid(1, 'h1')]
    [status] = reservations.reconcile_all(world.store, NOW)
    assert told(status) == ('host h1 left the cloud: 2 slots there',)
    [status] = reservations.repair(world.store, NOW)
    assert totals(status) == {'h2': 2}
    assert status.problems == ()
    # The remains of it can be removed.
    reservations.disable_host(world.store, 'h1')
    assert world.slots() == {('blazar_h2', reservation.id): (2, 2)}


def test_deleted_slots_are_created_again(world):
    reservation = reserve(world, 3).reservation
    path = f'/resource_providers/{world.child("h2")}/inventories'
    world.direct.send('DELETE', path)
    [status] = reservations.reconcile_all(world.store, NOW)
    assert status.slots == 3
    world.add_host('h3')
    path = f'/resource_providers/{world.child("h1")}'
    world.direct.send('DELETE', path)
    [status] = reservations.reconcile_all(world.store, NOW)
    assert (status.slots, status.missing) == (3, 0)
    # The host is enabled again, too.
    assert world.store.read().hosts['h1'].is_enabled
    assert reservation.id in world.nova.flavors


def test_missing_slots_are_reported(world):
    reserve(world, 4)
    world.direct.send('DELETE', f'/resource_providers/{world.child("h1")}')
    [status] = reservations.list_reservations(world.store, NOW)
    assert status.missing == 2
    assert told(status) == ('2 slots of 4 have no host',)
    [status] = reservations.reconcile_all(world.store, NOW)
    assert (status.missing, status.problems) == (0, ())


def test_reservations_of_others_count_and_are_left_alone(world):
    theirs = '2e1dfa7c-0000-4000-8000-000000000001'
    world.nova.create_flavor(
        {},
        {
            'flavor': {
                'id': theirs,
                'name': names.flavor(theirs),
                'vcpus': 4,
                'ram': 64,
                'disk': 0,
                'swap': 0,
                'OS-FLV-EXT-DATA:ephemeral': 0,
                'os-flavor-access:is_public': False,
                'description': 'made by Blazar',
            }
        },
    )
    unknown = '2e1dfa7c-0000-4000-8000-000000000002'
    for host, found in (('h1', theirs), ('h2', unknown)):
        name = names.resource_class(found)
        world.direct.send('PUT', f'/resource_classes/{name}')
        world.direct.send(
            'PUT',
            f'/resource_providers/{world.child(host)}/inventories',
            {
                'resource_provider_generation': 2,
                'inventories': {name: {'total': 1}},
            },
        )
    assert 'room for 1 on h1' in refused(world, 2)
    before = world.slots()
    assert reservations.reconcile_all(world.store, NOW) == []
    assert world.slots() == before
    with pytest.raises(tools_errors.NotFound):
        reservations.end(world.store, theirs, NOW)
    with pytest.raises(errors.ReservationHostError, match=theirs):
        reservations.disable_host(world.store, 'h1')


def test_a_broken_record_is_reported_and_left_alone(world):
    reservation = reserve(world, 1).reservation
    flavor = world.nova.flavors[reservation.id]
    good = flavor['description']
    for broken in (
        good[:-2],
        json.dumps({**json.loads(good), 'amount': '1'}),
        json.dumps({**json.loads(good), 'start': '2027-03-01'}),
        good.replace('reservation": 1', 'reservation": 2'),
    ):
        flavor['description'] = broken
        with pytest.raises(errors.ReservationError) as caught:
            reservations.show(world.store, reservation.id, NOW)
        assert 'broken' in str(caught.value) or 'newer' in str(caught.value)
        assert reservations.reconcile_all(world.store, NOW) == []
    # Its slots still count.
    assert 'room for 2 on h2, 1 on h1' in refused(world, 4)


def test_an_id_cannot_be_used_twice(world):
    first = reserve(world, 1).reservation
    reservation = reservations.new(
        PROJECT, 2, SHAPE, NOW, reservation_id=first.id
    )
    with pytest.raises(errors.ReservationError, match='already has that id'):
        reservations.create(world.store, reservation, NOW)
    with pytest.raises(errors.ReservationError, match='already has that id'):
        reservations.create(world.store, reservation, NOW, dry_run=True)
    # An identical command is a retry after an error.
    again = dataclasses.replace(
        reservation, pending=dataclasses.replace(reservation.pending, amount=1)
    )
    status = reservations.create(world.store, again, NOW)
    assert status.slots == 1


def test_the_id_of_a_flavor_of_others_is_taken(world):
    reservation = reservations.new(PROJECT, 1, SHAPE, NOW)
    world.store.compute.create_flavor(reservation.id, SHAPE, 'made by Blazar')
    for dry_run in (True, False):
        with pytest.raises(
            errors.ReservationError, match='already has that id'
        ):
            reservations.create(world.new_store(), reservation, NOW, dry_run)


def test_the_id_of_a_reservation_that_is_ending_is_not_free_yet(world):
    reservation = reserve(world, 1, end=1).reservation
    world.boot('s1', 'h1', reservation.id, NEEDS)
    world.nova.is_slow = True
    again = reservations.new(
        PROJECT, 1, SHAPE, NOW + 3 * HOUR, reservation_id=reservation.id
    )
    for dry_run in (True, False):
        with pytest.raises(errors.ReservationError, match='is still ending'):
            reservations.create(world.store, again, NOW + 2 * HOUR, dry_run)
    reservations.reconcile_all(world.store, NOW + 2 * HOUR)
    world.nova.finish(uuid(3, 's1'))
    reservations.reconcile_all(world.store, NOW + 2 * HOUR)
    for dry_run in (True, False):
        status = reservations.create(
            world.store, again, NOW + 2 * HOUR, dry_run
        )
        assert status.reservation.start == NOW + 3 * HOUR
        assert status.slots == 1


def first(world, amount, start=0, length=None, shape=SHAPE, **kwargs):
    """Find the first start, in hours from now, and slots by host."""
    booking = reservations.new(
        PROJECT,
        amount,
        shape,
        NOW + start * HOUR,
        None if length is None else NOW + (start + length) * HOUR,
        **kwargs,
    )
    before = world.picture()
    reservation = reservations.earliest(world.store, booking, NOW)
    status = reservations.create(world.store, reservation, NOW, dry_run=True)
    assert world.picture() == before
    if length is None:
        assert reservation.end is None
    else:
        assert reservation.end == reservation.start + length * HOUR
    return (reservation.start - NOW) / HOUR, totals(status)


def test_find_returns_the_first_time_with_enough_free_slots(world):
    reserve(world, 3, start=2, end=4)
    reserve(world, 4, start=6, end=8)
    assert first(world, 4, length=2) == (0, {'h1': 2, 'h2': 2})
    assert first(world, 4, start=1, length=1)[0] == 1
    assert first(world, 4, start=1, length=2)[0] == 4
    assert first(world, 1, start=1, length=2) == (1, {'h2': 1})
    assert first(world, 1, length=7)[0] == 8
    assert first(world, 4)[0] == 8
    assert first(world, 2, start=1, length=2, affinity=True)[0] == 4
    with pytest.raises(errors.ReservationError) as caught:
        first(world, 5)
    assert 'does not fit at any time, because it needs 5 slots of 10' in str(
        caught.value
    )
    assert 'room for 2 on h1, 2 on h2' in str(caught.value)
    # What was found can be created, and nothing more fits before.
    assert reserve(world, 4, start=8).slots == 4


def test_a_host_that_takes_no_such_server_is_not_found(world):
    large = reservations.Shape(8, 1024, 10)
    world.add_host('h3', vcpus=20, max_unit=4)
    assert first(world, 2, shape=large) == (0, {'h1': 1, 'h2': 1})
    reserve(world, 2, end=1, shape=large)
    assert first(world, 1, shape=large)[0] == 1


def test_a_host_with_slots_is_not_disabled(world):
    reservation = reserve(world, 1, start=1).reservation
    with pytest.raises(errors.ReservationHostError, match=reservation.id):
        reservations.disable_host(world.store, 'h1')
    reservations.disable_host(world.store, 'h2')
    [host] = reservations.list_hosts(world.store)
    assert (host.name, sorted(host.slots)) == ('h1', [reservation.id])


def test_a_host_is_not_disabled_while_slots_are_put_there(world):
    made = []

    def meddle(method, url):
        if method == 'PUT' and url.endswith('/traits'):
            world.wire.meddle = None
            made.append(reserve(world, 4).reservation)

    world.wire.meddle = meddle
    with pytest.raises(errors.ReservationHostError):
        reservations.disable_host(world.store, 'h2')
    assert world.slots()[('blazar_h2', made[0].id)] == (2, 2)


def test_a_host_with_ordinary_servers_is_not_enabled(world):
    world.add_host('h3', enable=False)
    assert world.boot('o1', 'h3')
    with pytest.raises(errors.ReservationHostError) as caught:
        reservations.enable_host(world.store, 'h3')
    assert uuid(3, 'o1') in str(caught.value)
    assert world.nova.aggregates[1]['hosts'] == ['h1', 'h2']


def test_a_server_created_before_the_fence_is_noticed(world):
    world.add_host('h3', enable=False)

    def meddle(method, url):
        if method == 'POST' and 'os-aggregates' in url:
            world.wire.meddle = None
            assert world.boot('o1', 'h3')

    world.wire.meddle = meddle
    with pytest.raises(errors.ReservationHostError):
        reservations.enable_host(world.store, 'h3')
    assert world.nova.aggregates[1]['hosts'] == ['h1', 'h2']
    assert world.picture()['providers']['h3']['aggregates'] == []


def test_a_reconciliation_without_work_sends_few_requests(world):
    for start in range(3):
        reserve(world, 4, start=start + 1, end=start + 2)
    world.wire.calls.clear()
    reservations.reconcile_all(world.store, NOW)
    few = len(world.wire.calls)
    # The state is read once, and nothing else.
    assert few < 10
    for start in range(3, 9):
        reserve(world, 4, start=start + 1, end=start + 2)
    reservations.reconcile_all(world.store, NOW)
    world.wire.calls.clear()
    reservations.reconcile_all(world.store, NOW)
    assert len(world.wire.calls) <= few
