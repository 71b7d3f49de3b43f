# SPDX-License-Identifier: Apache-2.0
"""Every refusal of reservations says what to do, and that lets it pass.

With ``test_reservation_problems.py`` this goes through all the sentences that
reservations can say; the last test finds them where they are made.
"""

import dataclasses
import datetime
import pathlib

import pytest
from reservation_world import HOUR, NOW, PROJECT, uuid
import sentences_made
import test_reservation_history as old_history
import test_reservation_problems as problems

from isolate_aggregates import exception
from isolate_aggregates_reservations import (
    actions,
    execution,
    executor,
    history,
    names,
    rounds,
    slots,
)
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations.api import HostSlots
from isolate_aggregates_tools.errors import InvalidRequest
from isolate_aggregates_tools.placement import inventories

pytestmark = pytest.mark.usefixtures('two_hosts')

ID, OTHER = problems.ID, '5e28e52b-941e-48c3-a2d8-50afd1bf722f'
PAST = NOW - HOUR
SHAPE = reservations.Shape(4, 64)


def new(amount=2, name=ID, start=NOW, affinity=True, **values):
    return reservations.new(
        PROJECT,
        amount,
        SHAPE,
        start,
        affinity=affinity,
        reservation_id=name,
        **values,
    )


def create(world, **values):
    return reservations.create(world.new_store(), new(**values), NOW)


def create_another(world):
    create(world, name=OTHER)


def update(world, **values):
    return reservations.update(world.new_store(), ID, NOW, **values)


def reconcile(world):
    return reservations.reconcile_all(world.new_store(), NOW)


def end(world):
    return reservations.end(world.new_store(), ID, NOW)


def has(world):
    """Have a reservation."""
    world.play_once('two slots on one host', lambda: create(world))


def nothing(world):
    pass


def write(world, **values):
    """Write the record as another machine did."""
    store = world.new_store()
    record = dataclasses.replace(store.read().reservation(ID), **values)
    store.compute.write_record(record, NOW)


def meddling(world, method, part, act, once=False):
    """Let another program act before each such call."""

    def meddle(its_method, url):
        if its_method == method and part in url:
            world.wire.meddle = None
            act()
            if not once:
                world.wire.meddle = meddle

    world.wire.meddle = meddle


def leave_alone(world):
    world.wire.meddle = None


def undo(world):
    has(world)
    flavor = world.nova.flavors[ID]
    meddling(world, 'GET', '/flavors', flavor['extra_specs'].clear)


def keep_changing(world):
    has(world)
    notes = iter(range(1000))
    meddling(
        world,
        'POST',
        '/flavors',
        lambda: update(world, note=str(next(notes))),
    )


def end_during_change(world):
    """End it, while Nova takes its time to delete its server."""
    has(world)
    assert world.boot('s', 'h1', ID, problems.SLOT)
    world.nova.is_slow = True
    meddling(world, 'PUT', '/inventories', lambda: end(world), once=True)


def end_during_creation(world):
    meddling(world, 'PUT', '/inventories', lambda: end(world), once=True)


def be_over(world):
    has(world)
    write(world, end=PAST)


def be_ending(world):
    has(world)
    assert world.boot('s', 'h1', ID, problems.SLOT)
    world.nova.is_slow = True
    end(world)
    world.nova.is_slow = False


def be_slow(world):
    """Have a Nova that takes its time to delete servers."""
    has(world)
    assert world.boot('s', 'h1', ID, problems.SLOT)
    world.nova.is_slow = True


def raised(statuses):
    """Raise the problems of reservations."""
    for status in statuses:
        for problem in status.problems:
            raise exception.IsolateAggregatesError(problem)


def end_it(world):
    raised([end(world)])


def reconcile_all(world):
    raised(reconcile(world))


def let_it_end(world):
    world.nova.is_slow = False
    for _ in range(2):
        reconcile(world)


def restore(world):
    """Have an older record than the slots, from a backup."""
    has(world)
    backup = world.nova.keep()
    update(world, amount=1)
    world.nova.put_back(backup)


def lose_revisions(world):
    has(world)
    update(world, amount=1)
    for key in list(world.nova.flavors):
        if names.revision_of(key):
            del world.nova.flavors[key]


def newest(world):
    return world.nova.flavors[
        max(filter(names.revision_of, world.nova.flavors))
    ]


def rewrite(flavor, old, now):
    assert old in flavor['description']
    flavor['description'] = flavor['description'].replace(old, now)


def be_of_a_newer_release(world):
    has(world)
    rewrite(newest(world), 'reservation": 1', 'reservation": 2')


def use_the_newer_release(world):
    rewrite(newest(world), 'reservation": 2', 'reservation": 1')


def told_by_list(world):
    found = []
    reservations.list_reservations(world.new_store(), NOW, found.append)
    for problem in found:
        raise problem


def told_by_history(world):
    found = []
    history.read_history(
        world.new_store(), NOW + HOUR, on_unreadable=found.append
    )
    for problem in found:
        raise problem


def archive(world):
    has(world)
    end(world)
    [flavor] = world.archives().values()
    return flavor


def archive_of_a_newer_release(world):
    rewrite(archive(world), 'history": 1', 'history": 2')


def read_with_the_newer_release(world):
    [flavor] = world.archives().values()
    rewrite(flavor, 'history": 2', 'history": 1')


def break_the_archive(world):
    archive(world)['description'] += '}'


def delete_archives(world):
    for key in world.archives():
        del world.nova.flavors[key]


def lose_a_page(world):
    old_history.reserve(world, end=NOW + 300 * HOUR)
    old_history.many_events(world, 250)
    [page] = old_history.pages(world)
    world.page = world.nova.flavors.pop(page)


def restore_the_page(world):
    world.nova.flavors[world.page['id']] = world.page


# Hosts.


def enable(world):
    reservations.enable_host(world.new_store(), 'h3')


def add_h3(world):
    world.add_host('h3', enable=False)


def have_no_provider(world):
    world.add_node('h3')


def nova_compute_starts(world):
    del world.nova.nodes[uuid(1, 'h3')]
    add_h3(world)


def have_another_uuid(world):
    add_h3(world)
    node = world.nova.nodes.pop(uuid(1, 'h3'))
    world.nova.nodes[uuid(5, 'h3')] = {**node, 'id': uuid(5, 'h3')}


def delete_provider(world, provider):
    world.direct.send('DELETE', f'/resource_providers/{provider}')


def delete_the_earlier(world):
    delete_provider(world, uuid(1, 'h3'))
    world.provide('h3', uuid(5, 'h3'))


def lease(world):
    add_h3(world)
    world.nova.create_aggregate({}, {'aggregate': {'name': 'L'}})
    world.nova.aggregates[2].update(
        hosts=['h3'], metadata={'blazar:owner': PROJECT}
    )


def leave_the_lease(world):
    world.nova.aggregates[2]['hosts'] = []


def be_a_host_of_blazar(world):
    add_h3(world)
    world.provide(names.provider('h3'), uuid(6, 'h3'), uuid(1, 'h3'))


def have_a_namesake(world):
    add_h3(world)
    world.provide(names.provider('h3'), uuid(6, 'h3'))


def delete_it(world):
    delete_provider(world, uuid(6, 'h3'))


def have_no_lock(world):
    add_h3(world)
    world.nova.aggregates[1]['metadata'].clear()


def mark_the_pool(world):
    world.nova.aggregates[1]['metadata'][names.POOL_KEY] = 'true'


def lose_the_pool(world):
    add_h3(world)
    world.nova.aggregates.clear()
    meddling(
        world, 'GET', '/os-aggregates', lambda: world.nova.aggregates.clear()
    )


def have_a_namesake_service(world):
    add_h3(world)
    world.add_host('h4', enable=False)
    for name in ('h3', 'h4'):
        world.nova.nodes[uuid(1, name)]['service'] = {'host': 'both'}


def enable_both(world):
    reservations.enable_host(world.new_store(), 'both')


def enable_by_node(world):
    reservations.enable_host(world.new_store(), 'h3')
    reservations.enable_host(world.new_store(), 'h4')


def disable(world):
    reservations.disable_host(world.new_store(), 'h1')


def be_unknown(world):
    """Be in a pool without a lock, and lose the trait."""
    world.nova.aggregates[1]['metadata'].clear()
    delete_provider(world, world.child('h1'))


def be_used_meanwhile(world):
    """Get a slot with a server that only Blazar knows, while it is deleted."""

    def use():
        child = world.child('h1')
        generation = inventories.read(world.direct, child).generation
        by_class = {
            names.MARKER: {'total': 1},
            names.resource_class(ID): {'total': 1},
        }
        inventories.create_class(world.direct, names.resource_class(ID))
        inventories.write(
            world.direct, child, inventories.Inventories(generation, by_class)
        )
        assert world.boot('s', 'h1', ID)

    meddling(
        world, 'DELETE', f'/resource_providers/{world.child("h1")}', use, True
    )


def end_there(world):
    world.direct.send('DELETE', f'/allocations/{uuid(3, "s")}')
    world.direct.send(
        'DELETE', f'/resource_providers/{world.child("h1")}/inventories'
    )


def delete_pool(world):
    reservations.delete_pool(world.new_store())


def disable_all(world):
    for name in ('h1', 'h2'):
        reservations.disable_host(world.new_store(), name)


def be_needed(world):
    has(world)
    for name in ('h1', 'h2'):
        del world.nova.nodes[uuid(1, name)]
    world.nova.aggregates[1]['hosts'] = []


def have_other_metadata(world):
    disable_all(world)
    world.nova.aggregates[1]['metadata']['ssd'] = 'true'


def unset_it(world):
    del world.nova.aggregates[1]['metadata']['ssd']


def be_of_others(world):
    disable_all(world)
    world.nova.aggregates[1]['metadata'].clear()


def delete_the_pool(world):
    world.nova.aggregates.clear()


# The metadata of the pool.


def limit(key, value):
    return lambda world: world.nova.aggregates[1]['metadata'].update(
        {key: value}
    )


def unset(key):
    return lambda world: world.nova.aggregates[1]['metadata'].pop(key)


def set_clock(world):
    world.wire.date = 'Mon, 01 Mar 2027 08:00:00 GMT'


def synchronize(world):
    world.wire.date = None


def write_late(world):
    """Write slots at the generation that a decision was based on."""
    has(world)
    world.generation = 0


def write_slots(world):
    slots.write(
        world.direct,
        world.child('h1'),
        names.resource_class(ID),
        HostSlots(2, 2, 0),
        world.generation,
        change=9,
    )


def read_again(world):
    current = inventories.read(world.direct, world.child('h1'))
    world.generation = current.generation


def change_meanwhile(world):
    has(world)
    world.read = world.store.read().reservation(ID)
    update(world, note='another')


def check_newest(world):
    world.new_store().check_newest(world.read)


def read_the_newest(world):
    world.read = world.store.read().reservation(ID)


def lose_the_class(world):
    world.store.compute.create_flavor(ID, SHAPE, 'foreign')


def write_the_first_slots(world):
    store = world.new_store()
    executor.Executor(store, ID).carry_out(
        actions.WriteSlots(ID, 'h1', HostSlots(0, 0, 0), 1, 1), store.read()
    )


def five(world):
    create(world, amount=5, affinity=None)


def try_five(world):
    reservations.create(
        world.new_store(), new(5, affinity=None), NOW, dry_run=True
    )


def create_without_id(world):
    create(world, name=None)


def create_on_h1(world):
    create(world, only_on=['h1'])


def create_less(world):
    create(world)


def end_now(world):
    end(world)


def let_it_be_over(world):
    let_it_end(world)
    assert world.slots() == world.nova.servers == {}


def find_five(world):
    reservations.earliest(world.new_store(), new(5, affinity=None), NOW)


def enable_another(world):
    add_h3(world)
    enable(world)


def shrink(world):
    update(world, amount=1)


def have_two_servers(world):
    has(world)
    for server in ('s', 't'):
        assert world.boot(server, 'h1', ID, problems.SLOT)


def delete_a_server(world):
    world.direct.send('DELETE', f'/allocations/{uuid(3, "s")}')


# These take the place of what was refused.
INSTEAD = (
    *(create_another, create_less, create_on_h1, create_without_id, end_now),
    *(enable_by_node, let_it_be_over),
)

# These do something before they tell a problem.
CHANGING = (end_it, write_the_first_slots)

REFUSED = [
    (
        'execution.Run._end 1',
        be_slow,
        end_it,
        '1 server is being deleted',
        'reservation reconcile completes the end',
        let_it_be_over,
    ),
    (
        'execution.Run.note 1',
        undo,
        reconcile_all,
        'is still not complete, because another program keeps undoing',
        'run reservation reconcile',
        leave_alone,
    ),
    (
        'execution.not_complete 1',
        undo,
        lambda world: reservations.reconcile(world.new_store(), ID, NOW),
        'is still not complete, because another program keeps undoing',
        'run reservation reconcile',
        leave_alone,
    ),
    (
        'operations._apply 1',
        keep_changing,
        lambda world: update(world, note='mine'),
        'was changed repeatedly by other commands',
        'run this command again',
        leave_alone,
    ),
    (
        'operations._change.is_reached 1',
        end_during_change,
        lambda world: update(world, amount=1),
        'has ended while it was changed',
        'run reservation create for a new one',
        create_another,
    ),
    (
        'operations.create.is_reached 1',
        end_during_creation,
        create,
        'was refused or ended by another command',
        'run this command again',
        leave_alone,
    ),
    (
        'operations._check_changeable 1',
        be_over,
        lambda world: update(world, amount=1),
        'cannot be changed, because it has ended',
        'run reservation create for a new one',
        create_another,
    ),
    (
        'operations._check_same 1',
        be_ending,
        create,
        'an earlier reservation with that id is still ending',
        'run reservation reconcile until it is gone',
        let_it_end,
    ),
    (
        'operations._taken 1',
        has,
        lambda world: create(world, amount=1),
        'already has that id',
        'run reservation create without --id',
        create_without_id,
    ),
    (
        'operations.create.get_desired 1',
        restore,
        create,
        'has a record in Nova that is older than its slots',
        f'reservation end {ID}',
        end,
    ),
    (
        'slots.write 2',
        restore,
        create,
        'has a record in Nova that is older than its slots',
        f'reservation end {ID}',
        end,
    ),
    (
        'operations.create.get_desired 2',
        lose_revisions,
        create,
        'has a record in Nova that is older than its slots',
        f'reservation end {ID}',
        end,
    ),
    (
        'store.ReservationStore.stale_records 1',
        restore,
        lambda world: update(world, amount=2),
        'has a record in Nova that is older than its slots',
        f'run reservation set {ID} --end TIME',
        lambda world: update(world, end=NOW + HOUR),
    ),
    (
        'operations.update.decide 1',
        has,
        lambda world: update(world, end=PAST),
        'cannot be changed to end at 2027-03-01T11:00:00+00:00, which is in',
        f'run reservation end {ID} to end it now',
        end_now,
    ),
    (
        'operations.move.decide 1',
        has,
        lambda world: reservations.move(world.new_store(), ID, NOW, ['h2']),
        'has no slots on h2',
        f'see reservation show {ID}',
        lambda world: reservations.move(world.new_store(), ID, NOW, ['h1']),
    ),
    (
        'errors.no_host 1',
        nothing,
        lambda world: create(world, only_on=['h3']),
        'h3 is not a host for reservations',
        'see reservation host list',
        create_on_h1,
    ),
    (
        'planner._Planning._withdraw 1',
        nothing,
        five,
        'there is room for 2 on h1, 2 on h2',
        'run reservation host set --enable with another host',
        enable_another,
    ),
    (
        'execution.Run._refuse 1',
        nothing,
        five,
        'it does not fit later either',
        'ask for less',
        create_less,
    ),
    (
        'execution.Run._refuse 1',
        have_two_servers,
        shrink,
        'cannot have 1 slot, because 2 have servers',
        'run openstack server delete with those not needed',
        delete_a_server,
    ),
    (
        'execution.Run._refuse 1',
        lambda world: create(world, name=OTHER, end=NOW + HOUR, amount=2),
        lambda world: create(world, amount=3, affinity=None),
        'all of it fits from 2027-03-01T13:00:00+00:00 on',
        'run reservation create with --start 2027-03-01T13:00:00+00:00',
        lambda world: create(world, amount=3, affinity=None, start=NOW + HOUR),
    ),
    (
        'views.outlook 1',
        nothing,
        try_five,
        'it does not fit later either',
        'run reservation host set --enable with another host',
        enable_another,
    ),
    (
        'views.earliest 1',
        nothing,
        find_five,
        'does not fit at any time',
        'run reservation host set --enable with another host',
        enable_another,
    ),
    (
        'record.parse 1',
        be_of_a_newer_release,
        told_by_list,
        'was written in format 2',
        'use the newer release',
        use_the_newer_release,
    ),
    (
        'history._reading 1',
        archive_of_a_newer_release,
        told_by_history,
        'of format 2, but this release only knows format 1',
        'use the newer release',
        read_with_the_newer_release,
    ),
    (
        'history._reading 2',
        break_the_archive,
        told_by_history,
        'whose description is broken',
        'run openstack flavor delete reservation:history.',
        delete_archives,
    ),
    (
        'history._with_pages 1',
        lose_a_page,
        told_by_history,
        'has lost a part of its history',
        'restore it from a backup',
        restore_the_page,
    ),
    (
        'hosts.read_enablable 1',
        have_no_provider,
        enable,
        'has no resource provider in Placement yet',
        'run this command again once its nova-compute has created one',
        nova_compute_starts,
    ),
    (
        'hosts.read_enablable 1',
        have_another_uuid,
        enable,
        'because that of an earlier compute node has its name',
        f'run openstack resource provider delete {uuid(1, "h3")}',
        delete_the_earlier,
    ),
    (
        'hosts.read_enablable 2',
        lease,
        enable,
        'because it is in aggregate L',
        'run openstack aggregate remove host L h3',
        leave_the_lease,
    ),
    (
        'hosts.read_enablable 3',
        be_a_host_of_blazar,
        enable,
        'has a reservation provider that was not created here',
        f'run openstack resource provider delete {uuid(6, "h3")}',
        delete_it,
    ),
    (
        'hosts._provide 1',
        have_a_namesake,
        enable,
        'because another provider has that name',
        'run openstack resource provider list --name blazar_h3',
        delete_it,
    ),
    (
        'hosts._refuse_foreign 1',
        have_no_lock,
        enable,
        'which has hosts but no lock',
        'set --property reservation:pool=true freepool',
        mark_the_pool,
    ),
    (
        'pools.existing 1',
        lose_the_pool,
        enable,
        "There is no aggregate with the name or id 'freepool' in Nova",
        'run this command again',
        leave_alone,
    ),
    (
        'hosts._find_node 1',
        have_a_namesake_service,
        enable_both,
        'h3, h4',
        'h3',
        enable_by_node,
    ),
    (
        'hosts._find_node 2',
        nothing,
        enable,
        "There is no compute node with the name or id 'h3'",
        'run openstack hypervisor list',
        add_h3,
    ),
    (
        'hosts._refuse_unknown 1',
        be_unknown,
        disable,
        'was not enabled here and is in no locked pool',
        'set --property reservation:pool=true freepool',
        mark_the_pool,
    ),
    (
        'hosts._delete_provider 1',
        be_used_meanwhile,
        disable,
        'has a reservation provider that was just used',
        'run the command again, which names what is there',
        end_there,
    ),
    (
        'pools._refuse_use 1',
        nothing,
        delete_pool,
        'has hosts: h1, h2',
        'run reservation host set --disable with each',
        disable_all,
    ),
    (
        'pools._refuse_use 1',
        be_needed,
        delete_pool,
        f'is needed for reservation {ID}',
        'run reservation end with each',
        end,
    ),
    (
        'pools._refuse_use 1',
        have_other_metadata,
        delete_pool,
        'has other metadata: ssd',
        'run openstack aggregate unset --property ssd freepool',
        unset_it,
    ),
    (
        'pools._refuse_use 1',
        be_of_others,
        delete_pool,
        'was not created by isolate-aggregates',
        'run openstack aggregate delete freepool',
        delete_the_pool,
    ),
    (
        'limits.of_nobody 1',
        limit('reservation_limit:demo', '2'),
        create,
        'has a limit reservation_limit:demo, which must end with the id',
        'openstack aggregate unset --property reservation_limit:demo freepool',
        unset('reservation_limit:demo'),
    ),
    (
        'limits.of_nobody 1',
        limit('reservation_limit:demo', '2'),
        told_by_list,
        'has a limit reservation_limit:demo, which must end with the id',
        'openstack aggregate unset --property reservation_limit:demo freepool',
        unset('reservation_limit:demo'),
    ),
    (
        'planner._Planning._withdraw 1',
        limit('reservation_limit', '1'),
        create,
        'exceeds a limit',
        f'set --property reservation_limit:{PROJECT}=NUMBER freepool',
        limit(f'reservation_limit:{PROJECT}', '2'),
    ),
    (
        'state.pool_number 1',
        limit('reservation_limit', '-1'),
        create,
        'has reservation_limit="-1", which must be a number of slots',
        'run openstack aggregate set --property reservation_limit=10 freepool',
        limit('reservation_limit', '10'),
    ),
    (
        'store.ReservationStore.now 1',
        set_clock,
        lambda world: world.new_store().now(),
        'has a different time',
        'synchronize both clocks',
        synchronize,
    ),
    (
        'store._conflict 1',
        change_meanwhile,
        check_newest,
        f'has a new record of reservation {ID}',
        'run the command again',
        read_the_newest,
    ),
    (
        'slots.write 1',
        write_late,
        write_slots,
        'no longer 0',
        'run the command again',
        read_again,
    ),
    (
        'executor.Executor._write_slots 1',
        lose_the_class,
        write_the_first_slots,
        'has no resource class CUSTOM_RESERVATION_4D17D41A',
        'run the command again',
        nothing,
    ),
]


@pytest.mark.parametrize(
    ('place', 'happen', 'act', 'sentence', 'mending', 'mend'), REFUSED
)
def test_what_a_refusal_names_lets_it_pass(
    world, made, monkeypatch, place, happen, act, sentence, mending, mend
):
    # More than any of these needs.
    monkeypatch.setattr(execution, '_MOST_PLANS', 10)
    monkeypatch.setattr(rounds, '_MOST_PASSES', 3)
    happen(world)
    is_alone = world.wire.meddle is None
    before = world.picture()
    with pytest.raises(exception.IsolateAggregatesError) as caught:
        act(world)
    assert sentence in str(caught.value)
    assert mending in str(caught.value)
    assert place in made
    # A refusal changes nothing.
    assert not is_alone or act in CHANGING or world.picture() == before
    mend(world)
    if mend not in INSTEAD:
        act(world)


ARGUMENTS = [
    (
        'reservation.new 1',
        lambda _: reservations.new('', 1, SHAPE, NOW),
        'A reservation needs a project',
    ),
    (
        'reservation.new 2',
        lambda _: new(end=PAST),
        'because it starts at 2027-03-01T12:00:00+00:00',
    ),
    (
        'reservation.new 3',
        lambda _: shaped(names.flavor_extra_specs(OTHER)),
        'cannot be taken from another reservation',
    ),
    (
        'reservation.new 4',
        lambda _: shaped({'pci_passthrough:alias': 'gpu:1'}),
        'Leave it out, or use --allow-uncounted',
    ),
    (
        'reservation.new 5',
        lambda _: shaped({}, reservations.Shape(0, 0)),
        'must request at least one resource',
    ),
    (
        'reservation.check_texts 1',
        lambda _: new(note='n' * 1001),
        'may have 1000 characters, not 1001',
    ),
    (
        'reservation.check_texts 2',
        lambda _: new(note='\n'),
        'may have no control characters',
    ),
    (
        'reservation.check_amount 1',
        lambda _: new(amount=0),
        'must have at least 1 slot, not 0',
    ),
    (
        'reservation.utc 1',
        lambda _: new(start=NOW.replace(tzinfo=None)),
        'has no time zone',
    ),
    (
        'reservation.utc 2',
        lambda _: new(start=TOO_LATE),
        'is not between the years 1 and 9999 in UTC',
    ),
    (
        'names.reservation_id 1',
        lambda world: reservations.show(world.store, 'X', NOW),
        'it must be a uuid',
    ),
    (
        'operations._check_new 1',
        lambda world: create(world, start=NOW - 2 * HOUR, end=PAST),
        'which is in the past',
    ),
    (
        'history.read_history 1',
        lambda world: history.read_history(world.store, NOW, NOW, PAST),
        'is empty',
    ),
    (
        'views.calendar 1',
        lambda world: reservations.calendar(world.store, NOW, NOW, PAST),
        'because it starts at 2027-03-01T12:00:00+00:00',
    ),
]

TOO_LATE = datetime.datetime.max.replace(
    tzinfo=datetime.timezone(-datetime.timedelta(hours=1))
)


def shaped(extra_specs, shape=SHAPE):
    shape = dataclasses.replace(shape, extra_specs=extra_specs)
    return reservations.new(PROJECT, 1, shape, NOW)


@pytest.mark.parametrize(('place', 'act', 'sentence'), ARGUMENTS)
def test_a_wrong_argument_is_told_with_what_is_right(
    world, made, place, act, sentence
):
    with pytest.raises(InvalidRequest) as caught:
        act(world)
    assert sentence in str(caught.value)
    assert place in made


# Sentences that have no state and command of their own: they pass on why a
# part failed, or are made by tests with more than one reservation or host.
ELSEWHERE = {
    'commands.common.id_of 1': 'test_reservation_commands.py',
    'commands.reconcile.RepairReservations._move 1': (
        'test_reservation_commands.py'
    ),
    'execution.Run.status 1': 'test_reservation_parts.py',
    'host_health.mend_hosts 1': 'test_reservation_parts.py',
    'operations._noted 1': 'test_reservation_parts.py',
    'problems._Problems._unknown_hosts 1': 'test_reservation_wishes.py',
    'reservation.check_warning 1': 'test_reservation_bills.py',
    'saved.SavedCompute.records 1': 'test_reservation_files.py',
}


def test_there_is_a_row_for_each_sentence():
    tests = [
        each
        for module in (vars(problems), globals())
        for name, each in module.items()
        if name.startswith('test_')
    ]
    covered = {
        row if isinstance(row, str) else row[0]
        for test in tests
        for mark in getattr(test, 'pytestmark', ())
        if mark.name == 'parametrize' and 'place' in mark.args[0]
        for row in mark.args[1]
    }
    made = set(sentences_made.places().values())
    assert made - covered == {*ELSEWHERE}
    assert covered <= made
    folder = pathlib.Path(__file__).parent
    assert all((folder / name).exists() for name in ELSEWHERE.values())
