# SPDX-License-Identifier: Apache-2.0
"""``reservation`` commands ask before they change a cloud."""

import json

import agreement
from live_example import ISOLATE
import pytest
import reservation_world
from reservation_world import PROJECT, uuid

from isolate_aggregates_reservations import names
from isolate_aggregates_tools.placement import edits, inventories

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
ORPHAN = names.resource_class(names.new_reservation_id())
SIZE = ('--vcpus', '4', '--ram', '1024', '--disk', '10')

pytestmark = pytest.mark.usefixtures('two_hosts', 'operated')


@pytest.fixture
def command(world, run, config):
    """Run a command for reservations."""
    path = config(ISOLATE)
    return lambda *arguments: reservation_world.typed(
        run, '--config-file', path, 'reservation', *arguments
    )


answer = agreement.answer


@pytest.fixture
def reserved(world, command):
    """A cloud with a reservation that has a server."""

    def play():
        command('create', '--project', PROJECT, *SIZE, '--id', ID, '--yes')
        needs = {'VCPU': 4, 'MEMORY_MB': 1024, 'DISK_GB': 10}
        world.boot('s', 'h1', ID, needs)

    world.play_once('a reservation that has a server', play)
    return world


RESERVATIONS = [
    (
        ['create', '--project', PROJECT, *SIZE, '--end', '2127-03-01T08:00Z',
         '--start', '2127-03-01T06:00Z', '--amount', '2'],
        f'reserve 2 slots for project {PROJECT} from '
        '2127-03-01T06:00:00+00:00 until 2127-03-01T08:00:00+00:00, when its '
        'servers are deleted, on h2 (2)',
    ),
    (['set', ID, '--amount', '2', '--end', '2127-03-01T08:00Z'],
     'end: never -> 2127-03-01T08:00:00+00:00'),
    (['set', ID, '--amount', '2'], 'add 1 slot on h1'),
    (['repair', ID, '--from', 'h1'],
     f'reservation {ID}: leaving: none -> h1'),
    (['end', ID],
     f'end reservation {ID} of project {PROJECT}, and permanently delete its '
     '1 server'),
    (['repair'], f'delete {ORPHAN} of an ended reservation'),
    (['host', 'set', '--enable', 'h3'],
     'host h3: create its resource provider for slots'),
    (['host', 'set', '--disable', 'h2'],
     'host h2: remove it from aggregate freepool'),
]  # fmt: skip


@pytest.fixture(params=RESERVATIONS, ids=lambda one: ' '.join(one[0][:2]))
def reservation_command(request, reserved, command):
    """Run a reservation command; return it and its preview."""
    reserved.add_host('h3', enable=False)
    inventories.create_class(reserved.direct, ORPHAN)
    arguments, preview = request.param

    def run_it(*options):
        before = reserved.picture()
        result = command(*arguments, *options)
        return result, reserved.picture() != before

    return run_it, preview


def test_nothing_is_done_without_a_terminal(reservation_command):
    run_it, _ = reservation_command
    result, has_changed = run_it()
    assert (result.code, has_changed) == (3, False)
    assert result.err == (
        'Nothing was changed: there is no terminal to ask for confirmation. '
        'Use --yes to make the changes.\n'
    )
    assert result.out


def test_a_dry_run_changes_nothing_and_asks_nothing(
    reservation_command, answer
):
    run_it, preview = reservation_command
    answer('y\n')
    result, has_changed = run_it('--dry-run', '-f', 'json')
    assert (result.code, result.err, has_changed) == (3, '', False)
    assert preview in json.loads(result.out)['planned']


def test_a_plan_is_shown_and_carried_out_after_confirmation(
    reservation_command, answer
):
    run_it, preview = reservation_command
    for no in ('', 'yesterday\n'):
        answer(no)
        result, has_changed = run_it()
        assert (result.code, has_changed) == (3, False)
        assert result.err.startswith('To be done:\n')
        assert f'  {preview}\n' in result.err
        end = '' if no else '\n'
        assert result.err.endswith(
            f'Make these changes? [y/N] {end}Nothing was changed.\n'
        )
    answer('Y\n')
    result, _ = run_it()
    assert 'Nothing was changed' not in result.err
    # It takes time to migrate or to delete a server.
    assert result.code == (
        3 if '1 server' in preview or 'leaving' in preview else 0
    )


def test_an_interruption_is_told(reservation_command, reserved):
    def interrupt(method, url):
        if method != 'GET':
            reserved.wire.meddle = None
            raise KeyboardInterrupt

    run_it, _ = reservation_command
    reserved.wire.meddle = interrupt
    result, _ = run_it('--yes')
    assert 'it is unknown whether the last change was made' in result.err


@pytest.mark.parametrize(
    ('arguments', 'code'),
    [
        (['set', ID, '--amount', '1'], 0),
        (['repair', ID, '--call-off'], 0),
        (['create', '--project', PROJECT, *SIZE, '--id', ID], 0),
        (['host', 'set', '--enable', 'h1'], 0),
        (['host', 'set', '--disable', 'h3'], 0),
        # It completes what is due, after a question.
        (['repair', ID], 3),
    ],
)
@pytest.mark.parametrize('options', [[], ['--dry-run']])
def test_a_change_that_is_there_does_nothing_else(
    reserved, command, arguments, code, options
):
    reserved.add_host('h3', enable=False)
    reserved.nova.access[ID].clear()
    before = reserved.picture()
    result = command(*arguments, *options)
    assert result.code == code
    assert result.out
    assert reserved.picture() == before


@pytest.mark.parametrize('arguments', [['repair'], ['repair', ID]])
def test_repair_does_not_ask_if_it_can_do_nothing(
    reserved, command, answer, arguments
):
    assert command(*arguments, '--dry-run').code == 0
    # A slot with a server does not move.
    reserved.fail_host('h1')
    answer('y\n')
    result = command(*arguments)
    assert (result.code, '[y/N]' in result.err) == (3, False)
    reserved.direct.send('DELETE', f'/allocations/{uuid(3, "s")}')
    answer('n\n')
    err = command(*arguments).err
    assert f'reservation {ID}: add 1 slot on h2\n' in err
    assert f'reservation {ID}: remove 1 slot on h1\n' in err


SLOT = {'VCPU': 4, 'MEMORY_MB': 1024, 'DISK_GB': 10}


def test_no_server_created_after_the_prompt_is_deleted(
    reserved, command, answer
):
    command('set', ID, '--amount', '2', '--yes')
    answer('y\nn\n', lambda: reserved.boot('s2', 'h1', ID, SLOT))
    result = command('end', ID)
    assert result.code == 3
    assert 'permanently delete its 1 server' in result.err
    assert 'permanently delete its 2 servers' in result.err
    assert len(reserved.store.compute.servers_of(ID)) == 2


def test_no_host_is_left_that_failed_after_the_question(
    reserved, command, answer
):
    """An operator must check that the host is really down."""
    command('set', ID, '--amount', '3', '--yes')
    reserved.fail_host('h1')
    reserved.add_host('h3')
    reserved.add_host('h4')
    answer('y\nn\n', lambda: reserved.fail_host('h2'))
    result = command('repair', '--evacuate')
    assert result.code == 3
    assert 'leaving: none -> h1\n' in result.err
    assert result.err.count('remove 1 slot on h2\n') == 1
    assert reserved.store.read().reservation(ID).leaving == ()


def test_a_plan_that_shrank_is_carried_out(reserved, command, answer):
    inventories.create_class(reserved.direct, ORPHAN)
    reserved.nova.access[ID].clear()
    answer('y\n', lambda: inventories.delete_class(reserved.direct, ORPHAN))
    result = command('repair')
    assert result.code == 0
    assert result.err.count('[y/N]') == 1
    assert reserved.nova.access[ID]


@pytest.mark.parametrize('state', ['up', 'down'])
def test_repair_names_the_servers_that_it_evacuates(
    reserved, command, answer, state
):
    reserved.fail_host('h1', state)
    answer('n\n')
    result = command('repair', '--from', 'h1', '--evacuate')
    told = f'  evacuate server {uuid(3, "s")}\n'
    assert (told in result.err) is (state == 'down')


@pytest.mark.parametrize(
    ('hosts', 'code', 'message', 'problem'),
    [
        (['h1', 'h2'], 1, True, 'Host h1 has slots'),
        (['h2'], 1, False, 'it has hosts: h1'),
    ],
)
def test_a_pool_that_must_stay_is_not_offered_for_deletion(
    reserved, command, answer, hosts, code, message, problem
):
    answer('y\n')
    result = command('host', 'set', '--disable', *hosts, '--delete-pool')
    assert result.code == code
    assert problem in result.err
    assert 'delete aggregate' not in result.err
    assert ('  host h2: remove it from ' in result.err) is message


def test_no_host_is_disabled_for_a_pool_that_cannot_be_deleted(
    reserved, command
):
    before = reserved.picture()
    result = command(
        'host', 'set', '--disable', 'h2', '--delete-pool', '--yes'
    )
    assert (result.code, reserved.picture()) == (1, before)
    assert 'it has hosts: h1' in result.err


def test_a_host_that_is_only_half_enabled_is_enabled_after_a_question(
    reserved, command, answer
):
    pool = reserved.store.read_pool()
    root = reserved.store.read().hosts['h2'].root
    edits.change_aggregates(
        reserved.direct, root, lambda before: before - {pool.uuid}
    )
    answer('y\n')
    result = command('host', 'set', '--enable', 'h1', 'h2', '-f', 'json')
    assert 'host h1:' not in result.err
    assert json.loads(result.out)['hosts'] == [
        {'host': 'h1', 'result': 'nothing to do'},
        {'host': 'h2', 'result': 'done'},
    ]
    assert pool.uuid in reserved.direct.aggregates(root)


@pytest.mark.parametrize(
    ('options', 'problem'),
    [
        (['--amount', '2', '--id', ID], 'already has that id'),
        (['--start', '2020-03-01T06:00Z', '--end', '2020-03-01T08:00Z'],
         'which is in the past'),
    ],
)  # fmt: skip
def test_a_refused_reservation_is_not_prompted_for(
    reserved, command, answer, options, problem
):
    answer('y\n')
    result = command('create', '--project', PROJECT, *SIZE, *options)
    assert result.code == 1
    assert problem in result.err
    assert '[y/N]' not in result.err
