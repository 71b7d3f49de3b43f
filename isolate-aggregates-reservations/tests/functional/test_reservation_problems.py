# SPDX-License-Identifier: Apache-2.0
"""Every problem of a reservation names the command that mends it.

Each row begins with the place where the sentence is made. That there is a row
for all of them is tested in ``test_reservation_refusals.py``.
"""

import dataclasses

from agreement import agreed
import pytest
from reservation_world import HOUR, PROJECT, typed, uuid

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import names, slots
from isolate_aggregates_reservations.api import HostSlots
from isolate_aggregates_reservations.commands import times
from isolate_aggregates_tools.placement import inventories

STRANGER = 'f' * 32
ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
SLOT = {'VCPU': 4, 'MEMORY_MB': 64}

pytestmark = pytest.mark.usefixtures('two_hosts', 'operated')


@pytest.fixture
def command(run, tmp_path):
    """Run a reservation command with --yes, in a cloud that isolates."""
    path = tmp_path / 'nova.conf'
    path.write_text(
        '[scheduler]\nenable_isolated_aggregate_filtering = true\n'
    )
    settings = '--config-file', str(path)
    return lambda *arguments: typed(
        run, *settings, *agreed(('reservation', *arguments))
    )


def fail(world):
    world.fail_host('h1')


def fail_with_a_server(world):
    assert world.boot('s', 'h1', ID, SLOT)
    world.fail_host('h1')


def disable(world):
    world.fail_host('h1', status='disabled')


def leave_the_cloud(world):
    del world.nova.nodes[uuid(1, 'h1')]


def leave_the_pool(world):
    [pool] = world.nova.aggregates.values()
    pool['hosts'].remove('h1')


def shrink(world):
    world.set_vcpus('h1', 4)


def shrink_with_servers(world):
    for server in ('s', 't'):
        assert world.boot(server, 'h1', ID, SLOT)
    world.set_vcpus('h1', 4)


def delete_slots(world):
    provider = world.child('h1')
    world.direct.send('DELETE', f'/resource_providers/{provider}/inventories')


def fill_the_cloud(world):
    """Have no room for slots that are lost with their host."""
    other = reservations.new(
        PROJECT, 2, reservations.Shape(4, 64), times.now()
    )
    reservations.create(world.store, other, times.now())
    world.direct.send('DELETE', f'/resource_providers/{world.child("h1")}')
    leave_the_cloud(world)


def lock(world):
    world.nova.create_aggregate({}, {'aggregate': {'name': 'gpu'}})
    world.nova.aggregates[2].update(
        hosts=['h1'], metadata={'trait:CUSTOM_GPU': 'required'}
    )


def close_slots(world):
    """Be reserved for a time that is over, or began unseen."""
    inventory = inventories.read(world.direct, world.child('h1'))
    by_class = {
        name: slots.inventory(HostSlots(2, 0, 0), slots.change_of(body))
        if names.reservation_of(name)
        else body
        for name, body in inventory.by_class.items()
    }
    inventories.write(
        world.direct,
        world.child('h1'),
        inventories.Inventories(inventory.generation, by_class),
    )


def miss_the_start(world):
    """Have a start that nothing carried out."""
    reservation = world.store.read().reservation(ID)
    world.store.compute.write_record(
        dataclasses.replace(
            reservation, has_access=False, start=times.now() - HOUR
        ),
        times.now(),
    )
    close_slots(world)


def miss_the_end(world):
    reservation = world.store.read().reservation(ID)
    world.store.compute.write_record(
        dataclasses.replace(reservation, end=times.now() - HOUR), times.now()
    )


def give_access(world):
    world.nova.access[ID].add(STRANGER)


def add_extra_spec(world):
    world.nova.flavors[ID]['extra_specs']['hw:numa_nodes'] = '2'


def write_total(world, number):
    inventory = inventories.read(world.direct, world.child('h1'))
    by_class = {
        name: {**body, 'total': number} if names.reservation_of(name) else body
        for name, body in inventory.by_class.items()
    }
    inventories.write(
        world.direct,
        world.child('h1'),
        inventories.Inventories(inventory.generation, by_class),
    )


def oversell(world):
    for server in ('s', 't'):
        assert world.boot(server, 'h1', ID, SLOT)
    write_total(world, 1)
    reservation = world.store.read().reservation(ID)
    world.store.compute.write_record(
        dataclasses.replace(reservation, amount=1), times.now()
    )


def lose_the_record(world):
    """Have an older record than the slots."""
    reservations.update(world.store, ID, times.now(), amount=1)
    for key in list(world.nova.flavors):
        if names.revision_of(key):
            del world.nova.flavors[key]


def delete_a_slot(world):
    """Have a slot that is on no host, besides one that is."""
    write_total(world, 1)


def block_the_end(world):
    """End on a failed host, where Nova takes its time to delete a server."""
    fail_with_a_server(world)
    world.nova.is_slow = True
    reservations.end(world.store, ID, times.now())
    world.nova.is_slow = False


def is_left(world):
    assert world.boot('s', 'h1', ID, SLOT)
    reservations.move(world.store, ID, times.now(), ['h1'])


REPAIR = f'reservation repair {ID}'


@pytest.mark.parametrize(
    ('place', 'happen', 'sentence', 'mending'),
    [
        (
            'problems._Problems.unusable 3',
            fail,
            'host h1 is down: 2 slots there',
            REPAIR,
        ),
        (
            'problems._Problems.unusable 3',
            disable,
            'host h1 is disabled: 2 slots there',
            REPAIR,
        ),
        (
            'problems._Problems.unusable 3',
            leave_the_cloud,
            'host h1 left the cloud: 2 slots there',
            REPAIR,
        ),
        (
            'problems._Problems.unusable 3',
            leave_the_pool,
            'host h1 is not enabled for reservations: 2 slots there',
            'reservation host set --enable h1',
        ),
        (
            'problems._Problems.unusable 1',
            shrink,
            'host h1 has room for 4 of the 8 VCPU that the slots there need',
            REPAIR,
        ),
        (
            'problems._Problems._missing 1',
            delete_slots,
            '2 slots of 2 have no host',
            'reservation reconcile',
        ),
        (
            'problems._Problems._missing 1',
            delete_a_slot,
            '1 slot of 2 has no host',
            f'reservation set {ID} --amount 1',
        ),
        (
            'problems._Problems._missing 1',
            fill_the_cloud,
            '2 slots of 2 have no host',
            f'reservation end {ID}',
        ),
        (
            'problems._Problems.unusable 3',
            lock,
            'host h1 is closed to its servers: ',
            REPAIR,
        ),
        ('problems._missed 1', miss_the_start, 'at ', 'reservation reconcile'),
        ('problems._missed 1', miss_the_end, 'at ', 'reservation reconcile'),
        (
            'problems._Problems._tampering 1',
            give_access,
            f'project {STRANGER} has access to its flavor without being one',
            f'reservation set {ID} --share {STRANGER}',
        ),
        (
            'problems._Problems._tampering 1',
            give_access,
            f'project {STRANGER} has access to its flavor without being one',
            f'openstack flavor unset --project {STRANGER} reservation:{ID}',
        ),
        (
            'problems._Problems._tampering 2',
            add_extra_spec,
            'its flavor has an extra spec that it was not created with: '
            'hw:numa_nodes=2',
            'openstack flavor unset --property hw:numa_nodes '
            f'reservation:{ID}',
        ),
        (
            'problems._Problems.oversold 1',
            oversell,
            'host h1 has 1 slot for 2 servers',
            f'reservation set {ID} --amount 2',
        ),
        (
            'problems.status_of 1',
            lose_the_record,
            'it has a record in Nova that is older than its slots',
            f'reservation end {ID}',
        ),
        (
            'problems._Problems.unusable 2',
            is_left,
            'host h1 is being left and still has 1 server',
            f'{REPAIR} --call-off',
        ),
    ],
)
def test_the_command_that_a_problem_names_mends_it(
    world, command, made, place, happen, sentence, mending
):
    create(command)
    happen(world)
    problem = problem_of(command, sentence)
    assert place in made
    assert mending in problem
    if mending.startswith('openstack '):
        unset(world, *mending.split()[3:5])
    else:
        result = command(*mending.split()[1:])
        assert result.code == 0, result
    assert not any(ID in line for line in command('list').err.splitlines())


@pytest.mark.parametrize(
    ('happen', 'sentence', 'mending'),
    [
        (
            fail_with_a_server,
            'host h1 is down: 2 slots there, 1 with a server',
            f'{REPAIR} --from h1 --evacuate',
        ),
        (
            shrink_with_servers,
            'host h1 has room for 4 of the 8 VCPU that the slots there need',
            f'{REPAIR} --from h1',
        ),
    ],
)
def test_a_problem_with_servers_is_over_when_they_have_left(
    world, command, happen, sentence, mending
):
    create(command)
    happen(world)
    assert mending in problem_of(command, sentence)
    assert command(*mending.split()[1:]).code == 3
    problem_of(command, 'host h1 is being left and still has ')
    for server in world.nova.servers:
        world.direct.send('DELETE', f'/allocations/{server}')
    assert command('reconcile').code == 0


def fill_all_but_one(world):
    """Have a host that can be enabled besides."""
    fill_the_cloud(world)
    world.add_host('h3', enable=False)


def unlock(world):
    world.nova.aggregates[2]['metadata'].clear()


@pytest.mark.parametrize(
    ('happen', 'advice', 'mend'),
    [
        (
            fail,
            'start its nova-compute',
            lambda world, _: world.fail_host('h1', state='up'),
        ),
        (
            disable,
            'run openstack compute service set --enable h1 nova-compute',
            lambda world, _: world.fail_host('h1', state='up'),
        ),
        (lock, 'unlock it', lambda world, _: unlock(world)),
        (
            fill_all_but_one,
            'after reservation host set --enable with another host',
            lambda _, command: command('host', 'set', '--enable', 'h3'),
        ),
    ],
)
def test_what_else_a_problem_advises_mends_it(
    world, command, happen, advice, mend
):
    create(command)
    happen(world)
    assert advice in problem_of(command, '')
    mend(world, command)
    assert command('reconcile').code == 0
    assert not any(ID in line for line in command('list').err.splitlines())


def replace_the_description(world):
    world.nova.flavors[ID]['description'] = 'GPU servers'


def copy_the_description(world, problem):
    """Do as the problem says: copy the description of its newest flavor."""
    assert 'openstack flavor set --description TEXT' in problem
    newest = problem.rstrip('.').split('reservation:')[-1]
    description = world.nova.flavors[newest]['description']
    world.nova.flavors[ID]['description'] = description


def break_the_description(world):
    key = max(filter(names.revision_of, world.nova.flavors))
    world.nova.flavors[key]['description'] += '}'


def correct_the_description(world, problem):
    key = max(filter(names.revision_of, world.nova.flavors))
    flavor = f'reservation:{ID}'
    assert f'openstack flavor set --description TEXT {flavor}' in problem
    description = world.nova.flavors[key]['description']
    world.nova.flavors[key]['description'] = description[:-1]


def delete_the_flavors(world):
    for flavor in [*world.nova.flavors]:
        del world.nova.flavors[flavor]


def delete_the_slots(world, problem):
    *_, resource_class, provider = problem.rstrip('.').split()
    world.direct.send(
        'DELETE',
        f'/resource_providers/{provider}/inventories/{resource_class}',
    )


def create_again(command, problem):
    assert f'run reservation create --id {ID} --amount 2 with' in problem
    create(command)


@pytest.mark.parametrize(
    ('place', 'happen', 'sentence', 'mend'),
    [
        (
            'record._replaced 1',
            replace_the_description,
            f'has a flavor reservation:{ID} whose description was replaced',
            copy_the_description,
        ),
        (
            'record.parse 2',
            break_the_description,
            f'has a flavor reservation:{ID} whose description is broken',
            correct_the_description,
        ),
        (
            'problems.find_unreadable 1',
            delete_the_flavors,
            'has no record in Nova, but 2 slots on host h1',
            delete_the_slots,
        ),
        (
            'problems.find_unreadable 1',
            delete_the_flavors,
            'has no record in Nova, but 2 slots on host h1',
            create_again,
        ),
    ],
)
def test_what_cannot_be_read_names_what_mends_it(
    world, command, made, place, happen, sentence, mend
):
    create(command)
    happen(world)
    [problem] = command('list').err.splitlines()
    assert place in made
    assert problem.startswith(f'Reservation {ID} {sentence}')
    mend(command if mend is create_again else world, problem)
    assert command('list').err == ''


@pytest.mark.parametrize('place', ['problems._Problems.remaining 1'])
def test_servers_that_keep_an_end_from_completing_are_deleted(
    world, command, made, place
):
    create(command)
    block_the_end(world)
    problem = problem_of(command, 'host h1 still has server ')
    assert place in made
    assert 'run reservation reconcile to delete it' in problem
    assert command('reconcile').code == 3
    assert command('reconcile').code == 0
    assert command('list').err == ''
    assert world.nova.servers == {}


def unset(world, option, value):
    """Do what ``openstack flavor unset`` does to the flavor."""
    if option == '--project':
        world.nova.access[ID].remove(value)
    else:
        del world.nova.flavors[ID]['extra_specs'][value]


def leave_placement(world):
    root = uuid(1, 'h1')
    generation = world.direct.get(f'/resource_providers/{root}')['generation']
    world.direct.send(
        'PUT',
        f'/resource_providers/{root}/aggregates',
        {'resource_provider_generation': generation, 'aggregates': []},
    )


def unlock_the_pool(world):
    [pool] = world.nova.aggregates.values()
    pool['metadata'].pop('reservation:pool')


def delete_the_provider(world):
    world.direct.send('DELETE', f'/resource_providers/{world.child("h1")}')


@pytest.mark.parametrize(
    ('place', 'happen', 'sentence'),
    [
        (
            'host_health.host_problems 1',
            leave_the_pool,
            'may get ordinary servers, because it is not in',
        ),
        (
            'host_health.host_problems 1',
            leave_placement,
            'may get ordinary servers, because Placement does',
        ),
        (
            'host_health.host_problems 1',
            unlock_the_pool,
            'may get ordinary servers, because aggregate',
        ),
        (
            'host_health.host_problems 1',
            delete_the_provider,
            'has no reservation provider',
        ),
    ],
)
def test_the_command_that_a_problem_of_a_host_names_mends_it(
    world, command, made, place, happen, sentence
):
    happen(world)
    problems = command('list').err
    assert place in made
    assert f'Host h1 {sentence}' in problems
    mending = 'reservation host set --enable h1'
    assert f'; run {mending}.' in problems
    assert command(*mending.split()[1:]).code == 0
    assert command('list').err == ''


def slots_there(world, command):
    create(command)


def ordinary_server_there(world, command):
    assert world.boot('ordinary', 'h1')


def delete_the_server(world):
    world.direct.send('DELETE', f'/allocations/{uuid(3, "ordinary")}')


@pytest.mark.parametrize(
    ('place', 'happen', 'verb', 'sentence', 'mending'),
    [
        (
            'hosts._refuse_slots 1',
            slots_there,
            '--disable',
            f'has slots of reservation {ID}; ',
            'reservation repair --from h1',
        ),
        (
            'hosts._refuse_slots 1',
            slots_there,
            '--disable',
            f'has slots of reservation {ID}; ',
            'reservation end',
        ),
        (
            'errors.ordinary_servers 1',
            ordinary_server_there,
            '--enable',
            f'runs servers without a reservation ({uuid(3, "ordinary")})',
            'openstack server delete',
        ),
    ],
)
def test_the_command_that_a_refused_change_of_a_host_names_lets_it_pass(
    world, command, made, place, happen, verb, sentence, mending
):
    happen(world, command)
    if verb == '--enable':
        problem = command('list').err
        assert f'Host h1 {sentence}' in problem
        assert mending in problem
        assert command('host', 'set', '--disable', 'h1').code == 0
    refused = command('host', 'set', verb, 'h1')
    assert refused.code == 1
    assert place in made
    assert f'Host h1 {sentence}' in refused.err
    assert mending in refused.err
    if mending.startswith('openstack '):
        delete_the_server(world)
    else:
        more = [] if '--from' in mending else [ID]
        assert command(*mending.split()[1:], *more).code == 0
    assert command('host', 'set', verb, 'h1').code == 0


@pytest.mark.parametrize('place', ['errors.unknown 1'])
def test_an_unknown_reservation_is_told_with_what_lists_all(
    command, made, place
):
    create(command)
    assert command('end', ID).code == 0
    for name in ('show', 'end', 'repair'):
        error = command(name, ID).err
        assert f"There is no reservation with the name or id '{ID}'" in error
        assert 'run reservation list, or reservation history list' in error
    assert place in made
    assert ID in command('history', 'list').out


def create(command):
    result = command(
        *('create', '--id', ID, '--project', PROJECT, '--amount', '2'),
        *('--vcpus', '4', '--ram', '64', '--affinity', 'same'),
    )
    assert (result.code, result.err) == (0, '')


def problem_of(command, sentence):
    """Return the line of ``list`` with a problem."""
    [line] = [
        line
        for line in command('list').err.splitlines()
        if line.startswith(f'Reservation {ID}: {sentence}')
    ]
    return line
