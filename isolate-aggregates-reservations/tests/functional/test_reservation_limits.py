# SPDX-License-Identifier: Apache-2.0
"""Limits of what a project may reserve, over a real Placement."""

import itertools

from agreement import agreed
import pytest
import reservation_world
from reservation_world import HOUR, NOW, PROJECT

from isolate_aggregates import exception
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations.errors import ReservationError
from isolate_aggregates_tools import errors, identity

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
    limit('3')
    assert create('--id', ID, '--amount', '2') == ''
    before = world.picture()
    for shown in ((), ('--dry-run',)):
        assert create('--id', SECOND, '--amount', '2', *shown) == (
            f'Reservation {SECOND} exceeds a limit: project {PROJECT} would '
            'have 4 slots at the same time, and its limit is 3; ask for '
            'less, or run openstack aggregate set '
            f'--property reservation_limit:{PROJECT}=NUMBER '
            'freepool.\n'
        )
    assert world.picture() == before
    assert create('--amount', '1') == ''
    # Another project, and another time.
    assert create('--amount', '3', project=OTHER) == ''
    assert create('--amount', '3', start='8d') == ''
    assert '5 slots' in create('--amount', '2', start='7d', end='2d')


def test_a_limit_of_a_project_precedes_that_of_all(create, limit):
    limit('1')
    limit('2', PROJECT)
    assert create('--amount', '2') == ''
    assert '2 slots' in create('--amount', '2', project=OTHER)


@pytest.mark.parametrize(
    'change',
    [
        pytest.param(('--amount', '3'), id='more slots'),
        pytest.param(('--end', '8d'), id='a later end'),
    ],
)
def test_a_change_is_limited(create, command, limit, change):
    assert create('--id', ID, '--amount', '2') == ''
    limit('2' if 'amount' in change[0] else '1')
    before = command('show', ID).out
    assert 'exceeds a limit' in command('set', ID, *change).err
    assert command('show', ID).out == before


@pytest.mark.parametrize(
    'change',
    [
        pytest.param(('--amount', '2'), id='fewer slots'),
        pytest.param(('--end', '6d'), id='an earlier end'),
        pytest.param(('--note', 'order 1'), id='a note'),
    ],
)
def test_what_asks_for_no_more_is_allowed_after_a_limit_was_lowered(
    create, command, limit, change
):
    assert create('--id', ID, '--amount', '3') == ''
    limit('1')
    result = command('set', ID, *change)
    assert (result.code, result.err) == (0, '')
    assert command('repair').code == 0
    assert command('reconcile').code == 0


@pytest.mark.parametrize('value', ['-1', 'slots=5', '1.5', ''])
def test_an_invalid_limit_refuses_what_it_would_limit(create, limit, value):
    limit(value)
    assert create() == (
        f'Aggregate freepool has reservation_limit="{value}", which must be a '
        'number of slots from 0 to 1000000; run openstack aggregate set '
        '--property reservation_limit=10 freepool.\n'
    )


@pytest.mark.parametrize('place', range(1, 32, 5))
def test_two_commands_at_once_do_not_exceed_a_limit_together(
    world, limit, place
):
    limit('3')
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
        except ReservationError as exc:
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


@pytest.mark.parametrize(
    ('answer', 'is_told'),
    [
        pytest.param(OTHER, False, id='there is one'),
        pytest.param(PROJECT, True, id='a project has it as its name'),
        pytest.param(
            errors.NotFound('project', OTHER, 'Keystone'), True, id='none'
        ),
        pytest.param(
            exception.ServiceDenied('Keystone', None, 'denies it.'),
            False,
            id='one may not ask',
        ),
        pytest.param(
            exception.ServiceError('Keystone', None, 'is not there.'),
            False,
            id='it cannot be asked',
        ),
    ],
)
def test_a_limit_of_no_project_is_told(
    command, limit, monkeypatch, answer, is_told
):
    limit('2', OTHER)

    def project(_, name):
        assert name == OTHER
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(identity.KeystoneClient, 'project', project)
    listed = command('list')
    assert listed.code == 0
    assert listed.err == is_told * (
        f'Aggregate freepool has a limit reservation_limit:{OTHER}, which '
        'must end with the id of a project; run openstack aggregate unset '
        f'--property reservation_limit:{OTHER} freepool.\n'
    )


def test_without_a_keystone_no_limit_is_of_nobody(command, limit):
    limit('2', OTHER)
    assert command('list').err == ''
    limit('2', 'demo')
    assert 'reservation_limit:demo' in command('list').err
