# SPDX-License-Identifier: Apache-2.0
"""Every problem of a reservation names the command that mends it."""

from agreement import agreed
import pytest
from reservation_world import PROJECT, typed, uuid

from isolate_aggregates import reservations
from isolate_aggregates.reservations.commands import times

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
SLOT = {'VCPU': 4, 'MEMORY_MB': 64}

pytestmark = pytest.mark.usefixtures('two_hosts', 'operated')


@pytest.fixture
def command(run):
    """Run a reservation command with --yes."""
    return lambda *arguments: typed(run, *agreed(('reservation', *arguments)))


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


def is_left(world):
    assert world.boot('s', 'h1', ID, SLOT)
    reservations.move(world.store, ID, times.now(), ['h1'])


REPAIR = f'reservation repair {ID}'


@pytest.mark.parametrize(
    ('happen', 'sentence', 'mending'),
    [
        (fail, 'host h1 is down: 2 slots there', REPAIR),
        (disable, 'host h1 is disabled: 2 slots there', REPAIR),
        (leave_the_cloud, 'host h1 left the cloud: 2 slots there', REPAIR),
        (
            leave_the_pool,
            'host h1 is not enabled for reservations: 2 slots there',
            'reservation host set --enable h1',
        ),
        (
            shrink,
            'host h1 has room for 4 of the 8 VCPU that the slots there need',
            REPAIR,
        ),
        (delete_slots, '2 slots of 2 have no host', 'reservation reconcile'),
        (fill_the_cloud, '2 slots of 2 have no host', f'reservation end {ID}'),
        (
            is_left,
            'host h1 is being left and still has 1 server',
            f'{REPAIR} --call-off',
        ),
    ],
)
def test_the_command_that_a_problem_names_mends_it(
    world, command, happen, sentence, mending
):
    create(command)
    happen(world)
    problem = problem_of(command, sentence)
    assert mending in problem
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
