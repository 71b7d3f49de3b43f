# SPDX-License-Identifier: Apache-2.0
"""What ``reservation ...`` does before it is told to."""

import json

import agreement
from live_example import ISOLATE
import pytest
import reservation_world
from reservation_world import PROJECT

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
SIZE = ('--vcpus', '4', '--ram', '1024', '--disk', '10')

world = reservation_world.operated_world


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
    command('create', '--project', PROJECT, *SIZE, '--id', ID, '--yes')
    world.boot('s', 'h1', ID, {'VCPU': 4, 'MEMORY_MB': 1024, 'DISK_GB': 10})
    return world


RESERVATIONS = [
    (
        ['create', '--project', PROJECT, *SIZE, '--end', '2127-03-01T08:00Z',
         '--start', '2127-03-01T06:00Z', '--amount', '2'],
        f'reserve 2 slots for project {PROJECT} from '
        '2127-03-01T06:00:00+00:00 until 2127-03-01T08:00:00+00:00 on h2 (2)',
    ),
    (['update', ID, '--amount', '2', '--end', '2127-03-01T08:00Z'],
     'end: never -> 2127-03-01T08:00:00+00:00'),
    (['update', ID, '--amount', '2'], 'hosts: h1 (1) -> h1 (2)'),
    (['move', ID, '--from', 'h1'], 'leaving: none -> h1'),
    (['move', ID, '--from', 'h1', '--evacuate'],
     'evacuate the servers of hosts that are down'),
    (['end', ID],
     f'end reservation {ID} of project {PROJECT}, and delete its 1 server '
     'for good'),
    (['repair'], 'repair what reservations that are gone have left'),
    (['host', 'enable', 'h3'], 'enable host h3 for reservations'),
    (['host', 'disable', 'h2'], 'disable host h2 for reservations'),
]  # fmt: skip


@pytest.fixture(params=RESERVATIONS, ids=lambda one: ' '.join(one[0][:2]))
def reservation_command(request, reserved, command):
    """Run a command for reservations; return it, and what it would do."""
    reserved.add_host('h3', enable=False)
    arguments, told = request.param

    def run_it(*options):
        before = reserved.picture()
        finished = command(*arguments, *options)
        return finished, reserved.picture() != before

    return run_it, told


def test_nothing_is_done_where_nobody_can_be_asked(reservation_command):
    run_it, _ = reservation_command
    finished, has_changed = run_it()
    assert (finished.code, has_changed) == (3, False)
    assert finished.err == (
        'Nothing was changed: there is no terminal to ask on. Give --yes to '
        'make the changes.\n'
    )
    assert finished.out


def test_a_dry_run_changes_nothing_and_asks_nothing(
    reservation_command, answer
):
    run_it, _ = reservation_command
    answer('y\n')
    finished, has_changed = run_it('--dry-run', '-f', 'json')
    assert (finished.code, finished.err, has_changed) == (3, '', False)
    assert json.loads(finished.out)


def test_what_would_be_done_is_shown_and_done_after_a_yes(
    reservation_command, answer
):
    run_it, told = reservation_command
    for no in ('', '\n', 'n\n', 'yesterday\n'):
        answer(no)
        finished, has_changed = run_it()
        assert (finished.code, has_changed) == (3, False)
        assert finished.err.startswith('To be done:\n')
        assert f'  {told}\n' in finished.err
        assert finished.err.endswith('Do it? [y/N] Nothing was changed.\n')
    answer('Y\n')
    finished, _ = run_it()
    assert 'Nothing was changed' not in finished.err
    # A server takes its time to leave, or to be deleted.
    assert finished.code == (3 if 'server' in told or 'leaving' in told else 0)
