# SPDX-License-Identifier: Apache-2.0
"""``isolate-aggregates reservation ...`` over a real Placement."""

import datetime
import json
import os
import signal
import uuid

from agreement import agreed
from oslo_config import cfg
import pytest
import reservation_world
from reservation_world import HOUR, PROJECT

from isolate_aggregates import options as tools_options
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import failed_hosts, names
from isolate_aggregates_reservations.commands import calendar, times
from isolate_aggregates_tools.report import calendar as page_calendar

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
OTHER = '5e28e52b-941e-48c3-a2d8-50afd1bf722f'
NEEDS = {'VCPU': 4, 'MEMORY_MB': 1024, 'DISK_GB': 10}
SIZE = ('--vcpus', '4', '--ram', '1024', '--disk', '10')
CREATE = ('create', '--project', PROJECT, *SIZE)


pytestmark = pytest.mark.usefixtures('two_hosts', 'operated')


@pytest.fixture
def command(world, run):
    """Run a reservation command with --yes."""
    return lambda *arguments: reservation_world.typed(
        run, *agreed(('reservation', *arguments))
    )


@pytest.fixture
def run_json(command):
    """Run a command that must not fail; return its document.

    Without the name of its schema, which was checked.
    """

    def run_it(*arguments):
        result = command(*arguments, '-f', 'json')
        only_shown = '--dry-run' in arguments
        assert (result.code, result.err) == (3 if only_shown else 0, '')
        return without_schema(result)

    return run_it


def without_schema(result):
    """Return the document of a command without the name of its schema."""
    document = json.loads(result.out)
    del document['schema']
    return document


def test_the_document_has_every_property(run_json):
    result = run_json(
        *CREATE,
        *('--amount', '3', '--id', ID, '--start', '2127-03-01T08:00Z'),
        *('--end', '7d', '--property', 'hw:cpu_policy=shared'),
    )
    assert result == {
        'id': ID,
        'project': PROJECT,
        'state': 'planned',
        'start': '2127-03-01T08:00:00+00:00',
        'end': '2127-03-08T08:00:00+00:00',
        'flavor': f'reservation:{ID}',
        'amount': 3,
        'affinity': 'any',
        'shape': {
            'vcpus': 4,
            'ram': 1024,
            'disk': 10,
            'ephemeral': 0,
            'swap': 0,
        },
        'properties': {'hw:cpu_policy': 'shared'},
        'slots': 3,
        'used': 0,
        'missing': 0,
        'hosts': {
            'h1': {'slots': 2, 'open': 0, 'used': 0},
            'h2': {'slots': 1, 'open': 0, 'used': 0},
        },
        'problems': [],
        **{'name': '', 'note': '', 'asked': None, 'leaving': []},
        **{'shared': [], 'only_on': []},
        **{'warn_before': None, 'unused_since': None, 'planned': []},
    }
    assert run_json('show', ID) == result
    assert run_json('list') == {'reservations': [result]}


def test_a_table_shows_slots_hosts_and_state(command, run_json, world):
    assert 'There are no reservations.' in command('list').out
    run_json(*CREATE, '--amount', '3', '--id', ID)
    world.boot('s', 'h1', ID, NEEDS)
    listed = command('list', '-f', 'value', '-c', 'State', '-c', 'Hosts')
    assert listed.out == 'active h1 (2), h2 (1)\n'
    assert ' never ' in command('list').out
    output = command('show', ID).out
    assert '| h1: 2 slots, 2 open, 1 used' in output
    hosts = command('host', 'list', '-f', 'value').out
    assert hosts.splitlines()[0] == f'h1 up True 2 1 {ID} (2)'


def test_the_size_can_be_that_of_a_flavor(run_json, world):
    world.nova.flavors['1'] = {
        'id': '1',
        'name': 'm1.small',
        'vcpus': 2,
        'ram': 512,
        'disk': 5,
        'OS-FLV-EXT-DATA:ephemeral': 0,
        'swap': '',
        'os-flavor-access:is_public': True,
        'extra_specs': {'hw:cpu_policy': 'shared'},
        'description': None,
    }
    result = run_json('create', '--project', PROJECT, '--like', 'm1.small')
    assert result['shape']['vcpus'] == 2
    assert result['properties'] == {'hw:cpu_policy': 'shared'}


def test_a_dry_run_shows_where_it_fits_and_leaves_nothing(
    command, run_json, world
):
    before = world.picture()
    document = run_json(*CREATE, '--amount', '4', '--dry-run')
    assert {h: on['slots'] for h, on in document['hosts'].items()} == {
        'h1': 2,
        'h2': 2,
    }
    result = command(*CREATE, '--amount', '5', '--dry-run')
    assert (result.code, result.out) == (1, '')
    assert 'there is room for 2 on h1, 2 on h2' in result.err
    assert world.picture() == before


def test_a_reservation_that_does_not_fit_leaves_nothing(command, world):
    before = world.picture()
    result = command(*CREATE, '--amount', '2', '--affinity', 'same')
    assert result.code == 0
    result = command(*CREATE, '--amount', '2', '--affinity', 'different')
    assert result.code == 1
    assert result.err.count('\n') == 1
    assert 'needs 2 slots of 10 DISK_GB' in result.err
    [made] = reservations.list_reservations(world.store, times.now())
    reservations.end(world.store, made.reservation.id, times.now())
    # Only the one that was created has a history.
    assert len(world.archives()) == 1
    assert {**world.picture(), 'archives': {}} == before


def test_repeating_a_command_changes_nothing(run_json, world):
    run_json(*CREATE, '--id', ID)
    before = world.picture()
    run_json(*CREATE, '--id', ID)
    assert world.picture() == before


@pytest.mark.parametrize(
    'given',
    [
        ('--start', '2127-03-02T08:00Z', '--end', '2127-03-08T08:00Z'),
        ('--start', '2127-03-01T08:00Z', '--end', '2127-03-09T08:00Z'),
        ('--start', '2127-03-01T08:00Z'),
    ],
)
def test_creating_again_with_other_times_keeps_the_first(
    command, run_json, world, given
):
    when = ('--start', '2127-03-01T08:00Z', '--end', '7d')
    document = run_json(*CREATE, '--id', ID, *when)
    assert run_json(*CREATE, '--id', ID, *when) == document
    before = world.picture()
    for shown in ((), ('--dry-run',)):
        result = command(*CREATE, '--id', ID, *given, '-f', 'json', *shown)
        assert result.code == 0
        assert result.err == (
            f'Reservation {ID} was created before, with other times, name or '
            'note, and keeps them; reservation set changes them.\n'
        )
        assert without_schema(result) == document
        assert world.picture() == before


def test_an_interrupted_command_gives_the_next_step(command, run_json, world):
    calls = len(world.wire.calls)
    world.wire.fault = lambda number: number > calls + 20 and 'refused'
    result = command(*CREATE, '--id', ID)
    assert result.code == 1
    assert f'Reservation {ID} may be incomplete' in result.err
    world.wire.fault = None
    [reservation] = run_json('reconcile')['reservations']
    assert (reservation['state'], reservation['slots']) == ('active', 1)


def test_amount_and_end_can_be_changed(command, run_json):
    run_json(*CREATE, '--id', ID, '--start', '2127-03-01T08:00Z')
    changed = run_json('set', ID, '--amount', '2', '--end', '2h')
    assert (changed['slots'], changed['end']) == (
        2,
        '2127-03-01T10:00:00+00:00',
    )
    assert run_json('set', ID, '--end', 'never')['end'] is None
    result = command('set', ID, '--amount', '9')
    assert result.code == 1
    assert run_json('show', ID)['slots'] == 2
    result = command('show', OTHER)
    assert result.code == 1
    assert result.err == (
        f"There is no reservation with the name or id '{OTHER}' in Nova; run "
        'reservation list, or reservation history list for those that have '
        'ended.\n'
    )


def test_name_and_note_are_shown_and_can_be_changed(command, run_json, world):
    sold = ('--name', 'Physics GPUs', '--note', 'order 4711, 3 months')
    made = run_json(*CREATE, '--id', ID, *sold)
    assert (made['name'], made['note']) == (sold[1], sold[3])
    assert run_json('show', ID) == made
    assert '| Physics GPUs |' in command('list').out
    [listed] = run_json('list')['reservations']
    assert listed['note'] == sold[3]
    # It is not planned again: there is no host that takes slots.
    world.fail_host('h1')
    world.fail_host('h2')
    shown = ('set', ID, '--note', 'order 4712', '--dry-run')
    assert run_json(*shown)['note'] == 'order 4712'
    assert run_json('show', ID)['note'] == sold[3]
    assert run_json('set', ID, '--note', 'order 4712')['note'] == 'order 4712'
    assert run_json('show', ID)['name'] == 'Physics GPUs'
    other = command(*CREATE, '--id', ID, '--name', 'Chemistry')
    assert 'was created before, with other times, name or note' in other.err


def test_an_unnamed_reservation_takes_no_column_of_a_table(command, run_json):
    run_json(*CREATE, '--id', ID)
    assert 'Name' not in command('list').out
    assert command('list', '-f', 'csv').out.startswith('"Id","Name",')


@pytest.mark.parametrize(
    ('label', 'said'),
    [
        pytest.param(
            ('--name', 256 * 'n'),
            'The name of a reservation may have 255 characters, not 256.',
            id='too long',
        ),
        pytest.param(
            ('--note', 'a\x1b[31mb'),
            'The note of a reservation may have no control characters, as '
            '"a\\x1b[31mb" has.',
            id='control characters',
        ),
    ],
)
def test_a_label_that_cannot_be_shown_is_refused(
    command, run_json, label, said
):
    result = command(*CREATE, *label)
    assert (result.code, result.err) == (1, f'{said}\n')
    run_json(*CREATE, '--id', ID)
    result = command('set', ID, *label)
    assert (result.code, result.err) == (1, f'{said}\n')


def test_the_earliest_start_is_shown_and_created(command, run_json):
    run_json(*CREATE, '--amount', '4', '--end', '2h')
    wanted = (*('create', '--project', PROJECT), *SIZE, '--affinity', 'any')
    three = (*wanted, '--amount', '3', '--end', '1d')
    refused = command(*three, '--yes')
    assert refused.code == 1
    shown = command(*three, '--dry-run', '--earliest', '-f', 'json')
    assert shown.code == 3
    found = json.loads(shown.out)
    assert {name: on['slots'] for name, on in found['hosts'].items()} == {
        'h1': 2,
        'h2': 1,
    }
    assert f'; all of it fits from {found["start"]}' in refused.err
    created = run_json(*three, '--earliest', '--id', ID)
    assert [created[key] for key in ('state', 'start', 'end')] == [
        *('planned', found['start'], found['end']),
    ]
    # A repeated command finds it.
    assert run_json(*three, '--earliest', '--id', ID) == created
    later = ('--earliest', '--start', '2127-03-01T08:00Z')
    shown = run_json(*wanted, '--amount', '1', *later)
    assert shown['start'] == '2127-03-01T08:00:00+00:00'
    assert shown['end'] is None
    process = command(*wanted, '--amount', '5', '--earliest', '--yes')
    assert (process.code, process.out) == (1, '')
    assert 'does not fit at any time' in process.err
    assert '2 on h1, 2 on h2; 4 slots would fit' not in process.err


def test_a_calendar_shows_free_resources_over_time(command, run_json, world):
    world.fail_host('h2')
    world.boot('plain', 'h1', None, {'VCPU': 1})
    when = ('--start', '2127-03-01T08:00Z', '--end', '2h')
    run_json(*CREATE, *when)
    month = run_json(
        'calendar', 'list', '--start', '2127-03-01T00:00Z', '--end', '1d'
    )
    assert [month['start'], month['end']] == [
        '2127-03-01T00:00:00+00:00',
        '2127-03-02T00:00:00+00:00',
    ]
    one, two = month['hosts']
    assert two == {'host': 'h2', 'obstacle': 'is down', 'periods': []}
    assert [one['host'], one['obstacle']] == ['h1', None]
    assert [
        (p['start'][11:13], p['end'][11:13], p['slots'], p['free']['VCPU'])
        for p in one['periods']
    ] == [('00', '08', 0, 9), ('08', '10', 1, 5), ('10', '00', 0, 9)]
    output = command('calendar', 'list', *when, '-f', 'value', '-c', 'Slots')
    assert output.out.split() == ['1']
    assert ' is down ' in command('calendar', 'list', *when).out
    for wrong in ('2127-03-01T08:00Z', '9999999d'):
        result = command('calendar', 'list', *when[:2], '--end', wrong)
        assert (result.code, result.out) == (
            (1 if 'Z' in wrong else 2),
            '',
        )


def test_the_report_has_a_chart_of_free_resources(run_json, world):
    world.fail_host('h2')
    now = times.now()
    run_json(*CREATE, '--start', (now + 6 * HOUR).isoformat(), '--end', '12h')
    world.boot('plain', 'h1', None, {'VCPU': 2})
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    found = page_calendar.encode(
        calendar.ShowCalendar.picture(conf, world.connection(), now, 1)
    )
    one, two = found['hosts']
    assert two == {'name': 'h2', 'obstacle': 'is down', 'periods': []}
    assert [share for share, _ in found['times']] == [0, 0.25, 0.75, 1]
    vcpus = found['classes'].index('VCPU')
    assert [
        (start, end, slots, taken, free[vcpus])
        for start, end, slots, taken, free in one['periods']
    ] == [(0, 1, 0, 0, 8), (1, 2, 1, 0.5, 4), (2, 3, 0, 0, 8)]


def test_reservations_that_end_soon_have_their_own_exit_code(
    command, run_json, monkeypatch
):
    run_json(*CREATE, '--id', ID, '--end', '36h')
    run_json(*CREATE, '--end', '3d')
    run_json(*CREATE)
    soon = ('list', '--ending-within')
    assert command(*soon, '35h').code == 0
    assert command(*soon, '35h').out.strip() == (
        'No reservation ends within that time.'
    )
    result = command(*soon, '2d', '-f', 'json')
    assert result.code == 4
    [reservation] = json.loads(result.out)['reservations']
    assert (reservation['id'], reservation['end']) == (
        ID,
        run_json('show', ID)['end'],
    )
    assert command(*soon, '1000000d').code == 4
    assert len(run_json('list')['reservations']) == 3
    # Reservations that have ended are not reported.
    late = times.now() + datetime.timedelta(hours=37)
    monkeypatch.setattr(times, 'now', lambda: late)
    assert command(*soon, '10h').code == 0


def test_unreadable_reservations_are_reported_with_those_that_end_soon(
    command, run_json, world
):
    run_json(*CREATE, '--id', ID)
    run_json(*CREATE, '--id', OTHER, '--end', '1d')
    flavor = world.nova.flavors[ID]
    flavor['description'] = flavor['description'].replace('"amount": 1', '')
    result = command('list', '--ending-within', '2d', '-f', 'json')
    assert result.code == 1
    [reservation] = json.loads(result.out)['reservations']
    assert reservation['id'] == OTHER
    assert f'Reservation {ID} has a flavor' in result.err


@pytest.mark.parametrize('number', [1, 2])
def test_slots_whose_record_was_deleted_are_named(
    command, run_json, world, number
):
    create = (*CREATE, '--id', ID, '--amount', str(number))
    [host] = run_json(*create)['hosts']
    uuid = names.provider_uuid(reservation_world.uuid(1, host))
    delete = f'--resource-class {names.resource_class(ID)} {uuid}'
    del world.nova.flavors[ID]

    for words, code in (('list', 1), ('reconcile', 3), ('repair', 3)):
        result = command(words)
        assert result.code == code
        assert result.err.startswith(
            f'Reservation {ID} has no record in Nova, but '
            f'{"1 slot" if number == 1 else "2 slots"} on host {host}; no '
            'other slots are planned there. To keep it, run reservation '
            f'create --id {ID} --amount {number} with its project and size; '
            'to free its slots, run '
            'openstack resource provider inventory delete '
        )
        assert result.err.endswith(f'{delete}.\n')
        assert result.err.count(ID) == 2

    kept = run_json(*create)
    assert (kept['state'], kept['missing']) == ('active', 0)
    assert list(kept['hosts']) == [host]
    [listed] = run_json('list')['reservations']
    assert (listed['hosts'], listed['problems']) == (kept['hosts'], [])


def test_slots_whose_record_was_deleted_stay_if_they_are_too_few(
    command, run_json, world
):
    create = (*CREATE, '--id', ID)
    [host] = run_json(*create)['hosts']
    assert world.boot('s', host, ID)
    del world.nova.flavors[ID]
    slots = world.slots()
    result = command(*create, '--amount', '999')
    assert (result.code, result.out) == (1, '')
    assert 'needs 999 slots' in result.err
    assert world.slots() == slots
    assert list(run_json(*create)['hosts']) == [host]


def test_slots_whose_record_was_deleted_can_be_freed(command, run_json, world):
    [host] = run_json(*CREATE, '--id', ID)['hosts']
    assert world.boot('s', host, ID)
    del world.nova.flavors[ID]
    assert (
        '1 slot on host h1, 1 with a server; no other slots are planned there.'
    ) in command('list').err
    world.nova.finish(reservation_world.uuid(3, 's'))
    result = command('list')
    *_, name, provider = result.err.strip(' .\n').split()
    world.direct.send(
        'DELETE', f'/resource_providers/{provider}/inventories/{name}'
    )
    assert run_json('list') == {'reservations': []}
    assert run_json('repair') == {'reservations': [], 'planned': []}
    assert world.slots() == {}


def test_an_end_that_is_not_after_the_start_is_refused(command, world):
    for end in ('now', '0s'):
        result = command(*CREATE, '--end', end)
        assert (result.code, result.out) == (1, '')
        assert 'cannot end at' in result.err
    assert world.nova.flavors == {}


def test_an_end_takes_as_long_as_nova_takes_to_delete_its_servers(
    command, run_json, world
):
    run_json(*CREATE, '--id', ID)
    world.boot('s', 'h1', ID, NEEDS)
    world.nova.is_slow = True
    result = command('end', ID)
    assert result.code == 3
    assert '1 server is being deleted' in result.out
    world.nova.finish(*world.nova.servers)
    assert run_json('end', ID)['state'] == 'ended'


def test_an_end_tells_servers_with_a_slot_from_those_without(
    command, run_json, world
):
    """Those that found no host, or were shelved, have none."""
    run_json(*CREATE, '--id', ID)
    world.boot('s', 'h1', ID, NEEDS)
    for name in ('in error', 'shelved'):
        world.nova.servers[str(uuid.UUID(int=len(name)))] = ID
    world.nova.is_slow = True
    result = command('end', ID)
    assert result.code == 3
    assert (
        '1 server and 2 servers without a slot are being deleted' in result.out
    )


def test_a_host_of_an_ended_reservation_waits_for_its_servers(
    command, run_json, world
):
    """Nothing can be ended or repaired: reconcile completes the end."""
    run_json(*CREATE, '--id', ID)
    world.boot('s', 'h1', ID, NEEDS)
    world.nova.is_slow = True
    assert command('end', ID).code == 3
    refused = command('host', 'set', '--disable', 'h1')
    assert refused.code == 1
    assert (
        f'Host h1 has slots of the ended reservation {ID}; run reservation '
        'reconcile until its servers are deleted.'
    ) in refused.err
    world.nova.finish(*world.nova.servers)
    assert command('reconcile').code == 0
    assert command('host', 'set', '--disable', 'h1').code == 0


def test_repair_moves_slots_and_names_those_that_fit_nowhere(
    command, run_json, world
):
    run_json(*CREATE, '--id', ID, '--amount', '3')
    world.boot('s', 'h1', ID, NEEDS)
    world.fail_host('h1')
    result = command('repair', '-f', 'json')
    assert result.code == 3
    [reservation] = json.loads(result.out)['reservations']
    assert {h: on['slots'] for h, on in reservation['hosts'].items()} == {
        'h1': 1,
        'h2': 2,
    }
    assert result.err == (
        f'Reservation {ID}: host h1 is down: 1 slot there, 1 with a server; '
        f'start its nova-compute, or run reservation repair {ID} --from h1 '
        '--evacuate.\n'
    )
    assert command('repair', ID).code == 3
    world.fail_host('h1', state='up')
    run_json('repair')


def test_a_move_shows_the_remaining_servers(command, run_json, world):
    run_json(*CREATE, '--id', ID, '--affinity', 'same')
    assert world.boot('s', 'h1', ID, NEEDS)
    result = command('repair', ID, '--from', 'h1', '-f', 'json')
    assert result.code == 3
    [moved] = json.loads(result.out)['reservations']
    assert moved['leaving'] == ['h1']
    assert moved['hosts'] == {
        'h1': {'slots': 1, 'open': 0, 'used': 1},
        'h2': {'slots': 1, 'open': 1, 'used': 0},
    }
    assert command('reconcile').code == 3
    called_off = command('repair', '--call-off', '-f', 'json')
    assert called_off.code == 0
    assert json.loads(called_off.out)['reservations'][0]['leaving'] == []
    assert command('repair', '--call-off', '--from', 'h1').code == 2


def test_all_reservations_leave_a_host_in_one_command(
    command, run_json, world
):
    for _ in range(2):
        run_json(*CREATE, '--id', str(uuid.uuid4()), '--affinity', 'same')
    for host in ('h3', 'h4'):
        world.add_host(host)
    elsewhere = run_json(*CREATE, '--amount', '2')
    assert 'h1' not in elsewhere['hosts']
    listed = run_json('list')['reservations']
    there = [one['id'] for one in listed if 'h1' in one['hosts']]
    assert len(there) == 2
    assert world.boot('s', 'h1', there[0], NEEDS)
    result = command('repair', '--from', 'h1', '-f', 'json')
    assert result.code == 3
    moved = json.loads(result.out)['reservations']
    assert [one['id'] for one in moved] == there
    assert [one['hosts'].get('h1') for one in moved] == [
        {'slots': 1, 'open': 0, 'used': 1},
        None,
    ]
    unknown = command('repair', '--from', 'h9')
    assert unknown.code == 1
    assert 'h9 is not a host for reservations' in unknown.err


def test_a_reservation_that_cannot_leave_a_host_keeps_no_other_there(
    command, run_json, world
):
    for _ in range(2):
        run_json(*CREATE, '--id', str(uuid.uuid4()), '--affinity', 'same')
    for host in ('h3', 'h4'):
        world.add_host(host)
    listed = run_json('list')['reservations']
    stuck, other = [one['id'] for one in listed if 'h1' in one['hosts']]
    world.wire.refuse = lambda method, url, body: (
        500 if method != 'GET' and stuck in url + body else None
    )
    result = command('repair', '--from', 'h1', '-f', 'json')
    assert result.code != 0
    moved = {one['id']: one for one in json.loads(result.out)['reservations']}
    assert moved[stuck]['problems']
    assert 'h1' in moved[stuck]['hosts']
    assert not moved[other]['problems']
    assert 'h1' not in moved[other]['hosts']


def test_each_host_is_enabled_and_disabled_independently(
    command, run_json, world
):
    world.add_host('h3', enable=False)
    result = command('host', 'set', '--enable', 'h3', 'h4', 'h3', '-f', 'json')
    assert result.code == 1
    assert json.loads(result.out) == {
        'schema': 'isolate-aggregates/reservation-host-set/1',
        'hosts': [
            {'host': 'h3', 'result': 'done'},
            {'host': 'h4', 'result': 'failed'},
        ],
        'planned': [],
        'effect': None,
    }
    assert result.err.splitlines()[1:] == [
        "There is no compute node with the name or id 'h4' in Nova; "
        'run openstack hypervisor list.'
    ]
    run_json(*CREATE, '--id', ID, '--amount', '3')
    result = command('host', 'set', '--disable', 'h1', 'h3')
    assert result.code == 1
    assert f'Host h1 has slots of reservation {ID}' in result.err
    assert [host['name'] for host in run_json('host', 'list')['hosts']] == [
        'h1',
        'h2',
    ]


def test_disabling_the_last_host_names_what_remains(command, world):
    assert command('host', 'set', '--disable', 'h1').err == ''
    result = command('host', 'set', '--disable', 'h2')
    assert result.code == 0
    assert 'freepool has no hosts left' in result.err
    assert '--delete-pool' in result.err
    result = command('host', 'set', '--disable', 'h2', '--delete-pool')
    assert (result.code, result.err) == (0, '')
    assert world.nova.aggregates == {}


@pytest.mark.parametrize(
    ('settings', 'warns'),
    [
        ('', True),
        ('[scheduler]\nenable_isolated_aggregate_filtering = true\n', False),
        (
            '[scheduler]\n'
            'placement_req_default_forbidden_member_prefix = reservation:\n',
            False,
        ),
        (
            '[scheduler]\n'
            'placement_req_default_forbidden_member_prefix = lease:\n',
            True,
        ),
        (
            '[isolate_aggregates]\nrequest_filters = blazar_reservation\n',
            False,
        ),
        (
            '[scheduler]\nenable_isolated_aggregate_filtering = true\n'
            '[isolate_aggregates]\nrequest_filters = reservation_prefix\n',
            True,
        ),
    ],
)
def test_a_pool_without_a_guarding_filter_is_warned_about(
    world, run, tmp_path, settings, warns
):
    path = tmp_path / 'nova.conf'
    path.write_text(settings)
    enable = ('reservation', 'host', 'set', '--enable', 'h1', '--yes')
    result = run('--config-file', str(path), *enable)
    assert result.code == 0
    assert ('no filter keeps ordinary servers out' in result.err) is warns


def test_the_name_of_the_pool_is_configured(world, run, tmp_path):
    path = tmp_path / 'nova.conf'
    path.write_text(
        '[blazar:physical:host]\naggregate_freepool_name = pool-2\n'
    )
    world.add_host('h3', enable=False)
    arguments = (
        '--config-file',
        str(path),
        'reservation',
        'host',
        'set',
        '--enable',
    )
    run(*arguments, 'h3', '--yes')
    assert world.picture()['aggregates']['pool-2'][0] == ['h3']


def test_a_reservation_that_cannot_be_read_is_named(command, run_json, world):
    run_json(*CREATE, '--id', ID)
    flavor = world.nova.flavors[ID]
    flavor['description'] = flavor['description'].replace('"amount": 1', '')
    for arguments in ((), ('-f', 'json')):
        result = command('list', *arguments)
        assert f'Reservation {ID} has a flavor' in result.err
        assert result.code == 1
    result = command('reconcile', '--yes')
    assert f'Reservation {ID} has a flavor' in result.err
    assert result.code == 3


def test_a_reservation_is_named_by_its_name(command, run_json):
    run_json(*CREATE, '--id', ID, '--name', 'course')
    assert run_json('show', 'course')['id'] == ID
    assert run_json('set', 'course', '--amount', '2')['amount'] == 2
    assert run_json('set', 'course', '--end', '9d')['end']
    [repaired] = run_json('repair', 'course')['reservations']
    assert repaired['id'] == ID
    run_json(*CREATE, '--id', OTHER, '--name', 'course')
    for action in (('show',), ('set', '--amount', '1'), ('end',)):
        result = command(action[0], 'course', *action[1:])
        assert result.code == 1
        assert ID in result.err
        assert OTHER in result.err
    run_json('set', OTHER, '--name', 'other')
    assert run_json('end', 'course')['state'] == 'ended'
    result = command('end', 'course')
    assert result.code == 1
    assert 'course' in result.err


def end():
    """Ask this process to end."""
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_watch_writes_a_line_for_each_change(command, run_json, world):
    run_json(*CREATE, '--id', ID)
    run_json(*CREATE, '--id', OTHER)

    def change():
        world.wire.meddle = None
        reservations.update(world.new_store(), OTHER, times.now(), amount=2)
        world.wire.meddle = meddle

    rounds = iter([lambda: None, change, end])

    def meddle(method, url):
        # The query for the first page of compute nodes.
        if 'os-hypervisors' in url and 'marker' not in url:
            next(rounds)()

    world.wire.meddle = meddle
    result = command('reconcile', '--watch', '1')
    assert (result.code, result.err) == (0, '')
    assert result.out.splitlines() == [
        f'{ID}: active, 1 of 1 slot on h1 (1)',
        f'{OTHER}: active, 1 of 1 slot on h2 (1)',
        f'{OTHER}: active, 2 of 2 slots on h2 (2)',
    ]


def test_a_watch_heals_slots_on_failed_hosts(
    command, run_json, world, monkeypatch
):
    run_json(*CREATE, '--id', ID)
    world.fail_host('h1')
    reads = []
    monkeypatch.setattr(
        failed_hosts.time, 'monotonic', lambda: 30 * len(reads)
    )

    def meddle(method, url):
        # The first round also records that the host is down.
        if 'os-hypervisors' in url and 'marker' not in url:
            reads.append(url)
            if len(reads) > 4:
                end()

    world.wire.meddle = meddle
    result = command('reconcile', '--watch', '1', '--heal-after', '60')
    assert result.code == 0
    assert result.out.splitlines() == [
        f'{ID}: active, 1 of 1 slot on h1 (1)',
        f'{ID}: active, 1 of 1 slot on h2 (1)',
    ]
    assert command('reconcile', '--heal-after', '60').code == 2


def test_the_cleaning_time_is_metadata_of_the_pool(run, world):
    [pool] = world.nova.aggregates.values()
    pool['metadata']['reservation_cleaning_time'] = '60'

    def reserve(start):
        return run(
            *('reservation', *CREATE),
            *('--amount', '4', '--start', start, '--end', '1h', '--yes'),
        ).code

    codes = [
        reserve(f'2127-03-01T{time}Z')
        for time in ('08:00', '09:00', '09:01', '06:59:30')
    ]
    assert codes == [0, 1, 0, 1]
