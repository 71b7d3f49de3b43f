# SPDX-License-Identifier: Apache-2.0
"""Audits and metrics include reservations."""

import datetime
import json

import pytest
import reservation_world
from reservation_world import HOUR, PROJECT
from samples import parsed

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import names
from isolate_aggregates_tools.cloud.live import live_cloud
from isolate_aggregates_tools.commands import reservations as commands
from isolate_aggregates_tools.placement import inventories

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
OTHER = '5e28e52b-941e-48c3-82d8-5f0ad1bf722f'
GPU = 'trait:CUSTOM_GPU_POOL'
SHAPE = reservations.Shape(4, 64)

pytestmark = pytest.mark.usefixtures('two_hosts', 'operated', 'no_images')


class NoImages:
    """A Glance without images."""

    def images(self):
        """Return the images."""
        return []


@pytest.fixture
def no_images(monkeypatch):
    """Let the cloud have no images."""
    monkeypatch.setattr(live_cloud.LiveCloud, 'glance', NoImages())


@pytest.fixture
def command(run, tmp_path):
    """Run a command in a cloud that isolates."""
    path = tmp_path / 'nova.conf'
    path.write_text(
        '[scheduler]\nenable_isolated_aggregate_filtering = true\n'
    )
    return lambda *arguments: reservation_world.typed(
        run, '--config-file', str(path), *arguments
    )


@pytest.fixture
def now():
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


@pytest.fixture
def findings(command):
    """Audit; return the exit status and the findings about reservations."""

    def audit(*arguments):
        result = command('audit', '-f', 'json', *arguments)
        return result.code, [
            finding
            for finding in json.loads(result.out)['findings']
            if finding['kind'].startswith('reservation-')
        ]

    return audit


@pytest.fixture
def metrics(command, tmp_path):
    """Export metrics; return those about reservations."""

    def export(*arguments):
        path = tmp_path / 'cloud.prom'
        result = command('exporter', '--output', str(path), *arguments)
        assert result.code == 0, result.err
        return {
            (name.removeprefix('isolate_aggregates_'), *labels): value
            for (name, *labels), value in parsed(path.read_text()).items()
            if name.startswith('isolate_aggregates_reservation')
        }

    return export


def lock(world, *hosts):
    world.nova.create_aggregate({}, {'aggregate': {'name': 'gpu-hosts'}})
    world.nova.aggregates[max(world.nova.aggregates)].update(
        hosts=list(hosts), metadata={GPU: 'required'}
    )


def create(world, now, start, end=None, amount=2, id=ID):
    """Create a reservation as if it had been done before its start."""
    reservation = reservations.new(
        PROJECT,
        amount,
        SHAPE,
        now + start,
        end and now + end,
        reservation_id=id,
    )
    return reservations.create(world.store, reservation, now + start - HOUR)


def is_of_listing(url):
    """Return whether a call is made only to list reservations."""
    return f'{names.MARKER}%3A1' in url


def text(time):
    return time.isoformat(timespec='seconds')


def test_an_end_that_nothing_carries_out_is_found(
    world, now, command, findings, metrics
):
    create(world, now, -2 * HOUR, -HOUR)
    reservations.reconcile_all(world.store, now - 1.5 * HOUR)
    code, [finding] = findings()
    assert code == 4
    assert {
        'kind': 'reservation-not-reconciled',
        'severity': 'warning',
        'subject': f'reservation {ID}',
        'problem': f'ended at {text(now - HOUR)}, and its slots are still '
        'open; reservation reconcile does not seem to run',
        'consequence': 'servers of the project can still be booted there, and '
        'what is reserved there next may not start',
        'repairs': [
            {
                'command': 'isolate-aggregates reservation reconcile',
                'text': '',
                'opens': [],
                'safe': False,
            }
        ],
    }.items() <= finding.items()
    values = metrics()
    assert values['reservations_late', 'end'] == 1
    assert values['reservations_late', 'start'] == 0
    assert values['reservations', 'ending'] == 1
    assert command('reservation', 'reconcile').code == 0
    assert findings()[1] == []
    assert metrics()['reservations_late', 'end'] == 0


def test_starts_that_nothing_carries_out_are_one_finding(
    world, now, findings, metrics
):
    create(world, now, -2 * HOUR, amount=1)
    create(world, now, -HOUR, amount=1, id=OTHER)
    code, [finding] = findings()
    assert code == 4
    assert finding['kind'] == 'reservation-not-reconciled'
    assert finding['subject'] == f'reservations {ID}, {OTHER}'
    assert finding['problem'] == (
        f'started, the first at {text(now - 2 * HOUR)}, and their slots are '
        'still closed; reservation reconcile does not seem to run'
    )
    values = metrics()
    assert values['reservations_late', 'start'] == 2
    assert values['reservations', 'active'] == 2


def test_slots_that_a_later_lock_closes_are_found(
    world, now, command, findings, metrics, tmp_path
):
    create(world, now, HOUR)
    assert findings() == (findings()[0], [])
    lock(world, 'h1', 'h2')
    code, [finding] = findings()
    assert code == 4
    [host] = {name.removeprefix('blazar_') for name, _ in world.slots()}
    assert {
        'kind': 'reservation-closed',
        'severity': 'warning',
        'subject': f'reservation {ID}',
        'problem': f'has 2 slots on host {host}, which is closed to its '
        'servers: aggregate gpu-hosts: locked by trait CUSTOM_GPU_POOL, which '
        f'flavor reservation:{ID} does not require',
        'consequence': 'new servers of the reservation are refused there',
        'repairs': [
            {
                'command': f'isolate-aggregates reservation repair {ID}',
                'text': '',
                'opens': [],
                'safe': False,
            }
        ],
    }.items() <= finding.items()
    page = tmp_path / 'report.html'
    assert command('report', 'save', '--output', str(page)).code == 0
    assert finding['consequence'] in page.read_text('utf-8')
    values = metrics()
    assert values['reservation_unusable_slots', 'closed'] == 2
    assert values['reservation_unusable_slots', 'host'] == 0
    assert values['reservation_unusable_slots', 'missing'] == 0
    assert values['reservations', 'planned'] == 1


def test_each_slot_is_unusable_for_one_cause(world, now, metrics):
    create(world, now, HOUR, amount=4)
    lock(world, 'h1', 'h2')
    world.fail_host('h1')
    values = metrics()
    assert values['reservation_unusable_slots', 'closed'] == 2
    assert values['reservation_unusable_slots', 'host'] == 2
    assert values['reservation_unusable_slots', 'missing'] == 0


def test_a_reservation_without_a_record_is_found(
    world, now, findings, metrics
):
    create(world, now, HOUR)
    world.nova.flavors.clear()
    code, [finding] = findings()
    assert code == 4
    assert finding['kind'] == 'reservation-unreadable'
    assert finding['subject'] == f'reservation {ID}'
    assert finding['problem'].startswith('has no record in Nova, but 2 slots')
    assert metrics()['reservations_unreadable',] == 1


def test_more_servers_than_slots_are_found(
    world, now, command, findings, metrics
):
    create(world, now, -HOUR)
    reservations.reconcile_all(world.store, now)
    [host] = reservations.show(world.store, ID, now).hosts
    for server in ('s1', 's2'):
        assert world.boot(server, host, ID)
    assert findings()[1] == []
    assert metrics()['reservation_oversold_slots',] == 0
    # Placement accepts that an inventory shrinks below its usage.
    write_slots(world, host, 1)
    code, [finding] = findings()
    assert code == 4
    assert finding['kind'] == 'reservation-oversold'
    assert finding['subject'] == f'reservation {ID}'
    newest = sorted(world.nova.servers)[0]
    problem = f'has 1 slot for 2 servers; created last: server {newest}'
    assert finding['problem'] == f'{problem} on host {host}'
    assert metrics()['reservation_oversold_slots',] == 1
    shown = command('reservation', 'show', ID, '-f', 'json')
    start = f'host {host} {problem}; run openstack server '
    problems = json.loads(shown.out)['problems']
    assert any(problem.startswith(start) for problem in problems)


def test_nothing_of_a_reservation_without_providers_is_to_be_deleted(
    world, now, command, findings
):
    create(world, now, -HOUR)
    for host in ('h1', 'h2'):
        child = world.child(host)
        found = inventories.read(world.direct, child)
        inventories.write(
            world.direct, child, inventories.Inventories(found.generation, {})
        )
        inventories.delete_provider(world.direct, child)
    by_kind = {finding['kind']: finding for finding in findings()[1]}
    assert by_kind.keys() == {'reservation-host', 'reservation-without-slots'}
    finding = by_kind['reservation-without-slots']
    assert finding['subject'] == f'reservation {ID}'
    assert 'the next round of reservation reconcile' in finding['problem']
    [repair] = finding['repairs']
    assert repair['command'] == 'isolate-aggregates reservation reconcile'
    for _ in range(2):
        command('reservation', 'reconcile')
    assert sum(total for total, _ in world.slots().values()) == 2
    assert findings()[1] == []


def write_slots(world, host, total):
    """Set the total of a reservation's inventory on a host."""
    path = f'/resource_providers/{world.child(host)}/inventories'
    now = world.direct.get(path)
    now['inventories'][names.resource_class(ID)]['total'] = total
    world.direct.send('PUT', path, now)


def test_without_hosts_for_reservations_nothing_is_read(
    world, command, findings, metrics
):
    for host in ('h1', 'h2'):
        assert (
            command(
                'reservation', 'host', 'set', '--disable', host, '--yes'
            ).code
            == 0
        )
    world.wire.calls.clear()
    # The class of the hosts stays with the pool.
    assert findings()[1] == []
    assert not any(is_of_listing(url) for _, url in world.wire.calls)
    assert metrics() == {
        ('reservations_up',): 1,
        ('reservations_unreadable',): 0,
        ('reservation_oversold_slots',): 0,
        **{
            ('reservations', state): 0
            for state in ('asked', 'planned', 'active', 'ending')
        },
        **{('reservations_late', event): 0 for event in ('start', 'end')},
        **{
            ('reservation_unusable_slots', cause): 0
            for cause in ('missing', 'host', 'closed')
        },
    }


def test_reading_reservations_takes_as_many_calls_as_listing_them(
    world, now, command, metrics, monkeypatch
):
    create(world, now, HOUR)

    def calls(do):
        world.wire.calls.clear()
        do()
        return len(world.wire.calls)

    # From now on it knows the resource providers.
    metrics()

    both = calls(metrics)
    listing = calls(lambda: command('reservation', 'list'))
    with monkeypatch.context() as patch:
        patch.setattr(commands, 'may_exist', lambda snapshot: False)
        without = calls(metrics)
    assert 0 < both - without <= listing, (both, without, listing)


def test_reservations_that_cannot_be_read_leave_the_other_metrics(
    world, now, command, metrics
):
    create(world, now, HOUR)

    def fault(number):
        _, url = world.wire.calls[number - 1]
        return 'cut' if is_of_listing(url) else None

    world.wire.fault = fault
    assert metrics() == {('reservations_up',): 0}
    assert command('audit').code == 1


def test_a_cloud_file_says_nothing_about_reservations(
    world, now, command, findings, metrics, tmp_path
):
    create(world, now, -HOUR)
    [finding] = findings()[1]
    assert finding['kind'] == 'reservation-not-reconciled'
    path = str(tmp_path / 'cloud.yaml')
    assert (
        command('snapshot', 'save', '--no-servers', '--output', path).code == 0
    )
    assert findings('--snapshot', path)[1] == []
    assert metrics('--snapshot', path) == {}


def test_a_nova_that_is_too_old_has_no_reservations(
    world, command, findings, metrics
):
    world.nova.newest = '2.60'
    assert 'Rocky' in command('reservation', 'list').err
    assert findings()[1] == []
    assert metrics()['reservations_up',] == 1


def test_an_end_that_does_not_complete_is_found(world, now, findings):
    create(world, now, -2 * HOUR, -HOUR)
    [host, *_] = {name.removeprefix('blazar_') for name, _ in world.slots()}
    reservations.reconcile_all(world.store, now - 1.5 * HOUR)
    assert world.boot('s1', host, ID)
    world.nova.is_slow = True
    reservations.reconcile_all(world.store, now)
    _, [finding] = findings()
    assert finding['kind'] == 'reservation-not-ended'
    assert finding['subject'] == f'reservation {ID}'
    assert finding['problem'].startswith(f'has ended, but host {host} still')
    assert f'--down {host} nova-compute' in finding['problem']


def test_a_record_that_is_too_old_is_found(world, now, findings):
    create(world, now, -HOUR, HOUR)
    kept = world.nova.keep()
    reservations.update(world.store, ID, now, end=now + 9 * HOUR)
    world.nova.put_back(kept)
    _, [finding] = findings()
    assert finding['kind'] == 'reservation-stale'
    assert f'reservation set {ID} --end' in finding['problem']
