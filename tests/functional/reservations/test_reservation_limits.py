# SPDX-License-Identifier: Apache-2.0
"""Limits of what a project may reserve, over a real Placement."""

import itertools

from agreement import agreed
import pytest
import reservation_world
from reservation_world import HOUR, NOW, PROJECT

from isolate_aggregates import exception, reservations

OTHER = 'b' * 32
SIZE = ('--vcpus', '1', '--ram', '64')
ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
SECOND = '5e28e52b-941e-48c3-a2d8-50afd1bf722f'

pytestmark = pytest.mark.usefixtures('two_hosts', 'operated')


@pytest.fixture
def limit(world):
    """Set the limits of all projects, or of one."""
    [pool] = world.nova.aggregates.values()

    def set_limit(value, project=None):
        key = 'reservation_limit' + (f':{project}' if project else '')
        pool['metadata'][key] = value

    return set_limit


@pytest.fixture
def command(world, run):
    """Run a reservation command with --yes."""
    return lambda *arguments: reservation_world.typed(
        run, *agreed(('reservation', *arguments))
    )


@pytest.fixture
def create(command):
    """Create a reservation; return why it is refused, or nothing."""

    def run_it(*arguments, project=PROJECT, start='1d', end='7d'):
        result = command(
            *('create', '--project', project, *SIZE),
            *('--start', start, '--end', end, *arguments),
        )
        assert result.code == bool(result.err)
        return result.err

    return run_it


def test_slots_at_the_same_time_are_limited(create, limit, world):
    limit('slots=3')
    assert create('--id', ID, '--amount', '2') == ''
    before = world.picture()
    for shown in ((), ('--dry-run',)):
        assert create('--id', SECOND, '--amount', '2', *shown) == (
            f'Reservation {SECOND} exceeds a limit: project {PROJECT} would '
            'have 4 slots at the same time, and its limit is slots=3; ask for '
            'less, or raise the limit with "openstack aggregate set '
            f'--property reservation_limit:{PROJECT}=slots=<number> '
            'freepool".\n'
        )
    assert world.picture() == before
    assert create('--amount', '1') == ''
    # Another project, and another time.
    assert create('--amount', '3', project=OTHER) == ''
    assert create('--amount', '3', start='8d') == ''
    assert '5 slots' in create('--amount', '2', start='7d', end='2d')


def test_a_limit_of_a_project_precedes_that_of_all(create, limit):
    limit('slots=1,days=30')
    limit('slots=2', PROJECT)
    assert create('--amount', '2') == ''
    assert '2 slots' in create('--amount', '2', project=OTHER)
    # What is left out there is that of all.
    assert 'limit is days=30' in create(start='40d', end='31d')


def test_length_and_start_are_limited(create, limit):
    limit('days=7,days_ahead=30')
    assert create() == ''
    assert 'for 8 days, and its limit is days=7' in create(end='8d')
    assert 'without an end, and its limit is days=7' in create(end='never')
    assert create(start='29d', end='1d') == ''
    refusal = create(start='31d', end='1d')
    assert ' that starts at ' in refusal
    assert 'its limit is days_ahead=30' in refusal


@pytest.mark.parametrize(
    ('change', 'refusal'),
    [
        pytest.param(('--amount', '3'), 'limit is slots=2', id='more slots'),
        pytest.param(('--end', '8d'), 'limit is days=7', id='a later end'),
        pytest.param(
            ('--start', '9d', '--end', '1d'),
            'limit is days_ahead=8',
            id='a later start',
        ),
        pytest.param(
            ('--project', OTHER), 'limit is slots=1', id='another project'
        ),
    ],
)
def test_a_change_is_limited(create, command, limit, change, refusal):
    assert create('--id', ID, '--amount', '2') == ''
    limit('slots=2,days=7,days_ahead=8')
    limit('slots=1', OTHER)
    before = command('show', ID).out
    assert refusal in command('update', ID, *change).err
    assert command('show', ID).out == before


@pytest.mark.parametrize(
    'change',
    [
        pytest.param(('--amount', '2'), id='fewer slots'),
        pytest.param(('--end', '6d'), id='an earlier end'),
        pytest.param(('--start', '12h', '--end', '6d'), id='a shorter time'),
        pytest.param(('--note', 'order 1'), id='a note'),
        pytest.param(('--affinity', 'same'), id='affinity'),
    ],
)
def test_what_asks_for_no_more_is_allowed_after_a_limit_was_lowered(
    create, command, limit, change
):
    assert create('--id', ID, '--amount', '3') == ''
    limit('days=1,days_ahead=0')
    if 'start' not in change[0]:
        limit('slots=1,days=1,days_ahead=0')
    result = command('update', ID, *change)
    assert (result.code, result.err) == (0, '')
    assert command('repair').code == 0
    assert command('reconcile').code == 0


@pytest.mark.parametrize(
    'value', ['slots=', 'slots=-1', 'slots=1,slots=2', 'hosts=1', '5', '']
)
def test_an_invalid_limit_refuses_what_it_would_limit(create, limit, value):
    limit(value)
    assert create() == (
        'Aggregate freepool: reservation_limit must be a list such as '
        f'slots=10,days=30,days_ahead=90, not "{value}"; set it with '
        '"openstack aggregate set --property reservation_limit=slots=10 '
        'freepool".\n'
    )


@pytest.mark.parametrize('place', range(1, 32, 5))
def test_two_commands_at_once_do_not_exceed_a_limit_together(
    world, limit, place
):
    limit('slots=3')
    results = {}

    def create(name):
        reservation = reservations.new(
            PROJECT,
            2,
            reservations.Shape(1, 64),
            NOW + HOUR,
            reservation_id=name,
        )
        try:
            reservations.create(world.new_store(), reservation, NOW)
        except exception.ReservationError as exc:
            results[name] = str(exc)
        else:
            results[name] = ''

    calls = itertools.count(1)

    def meddle(*_):
        if next(calls) == place:
            create(SECOND)

    world.wire.meddle = meddle
    create(ID)
    world.wire.meddle = None
    if SECOND not in results:
        create(SECOND)
    [refusal] = filter(None, results.values())
    assert 'exceeds a limit' in refusal
    assert sum(total for total, _ in world.slots().values()) == 2
