# SPDX-License-Identifier: Apache-2.0
"""Leases that a real Blazar made are kept without it."""

import json
import pathlib
import runpy

from blazar.db import api as db_api
from live import OWNER, STRANGER
import pytest
import yaml

from isolate_aggregates_reservations.blazar.exceptions import (
    ReservationNotKept,
)

SCRIPT = (
    pathlib.Path(__file__).parents[3]
    / 'doc/source/admin/import_from_blazar.py'
)
BLAZARS_OWN = ('physical.host.plugin', 'virtual.instance.plugin')
OURS = (
    'physical.host.plugin',
    'virtual.instance.placement',
    'flavor.instance.placement',
)


@pytest.fixture
def operator(program, endpoint, tmp_path, monkeypatch):
    """Return a function that runs a command as the operator of the cloud."""
    clouds = {
        'mine': {
            'auth': {
                'auth_url': f'http://{endpoint}/identity/v3',
                'username': 'admin',
                'password': 'any',
                'project_name': 'service',
                'user_domain_name': 'Default',
                'project_domain_name': 'Default',
            },
            'region_name': 'RegionOne',
        }
    }
    path = tmp_path / 'clouds.yaml'
    path.write_text(yaml.safe_dump({'clouds': clouds}))
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(path))
    monkeypatch.setenv('OS_CLOUD', 'mine')
    return program


@pytest.fixture
def imported(operator, tmp_path, capsys):
    """Return a function that runs the script and returns what it says."""
    main = runpy.run_path(str(SCRIPT))['main']

    def run_it(*arguments, code=0):
        assert main([*arguments, str(tmp_path / 'blazar.conf')]) == code
        lines = capsys.readouterr().out.splitlines()
        return dict(line.split(' ', 1) for line in lines)

    return run_it


def check_report(result):
    """Only the lock is reported, which an import leaves to the operator."""
    for line in result.err.splitlines():
        assert 'aggregate freepool lacks its lock' in line


def listed(operator):
    result = operator('list', '-f', 'json')
    assert result.code == 0
    check_report(result)
    document = json.loads(result.out)['reservations']
    return {one['id']: one for one in document}


def end(operator, cloud, *reservations):
    for reservation in reservations:
        operator('end', '--yes', reservation)
    cloud.wait_until_gone()
    check_report(operator('reconcile'))
    assert operator('list', '-f', 'value').out == ''


def state(cloud):
    """Return all that an import might change."""
    flavors = cloud.call('GET', 'compute/flavors/detail?is_public=None')
    leases = [
        {key: str(value) for key, value in sorted(lease.items())}
        for lease in db_api.lease_list()
    ]
    return (
        flavors['flavors'],
        # A revision of a record has none.
        [
            slots
            for flavor in cloud.flavors()
            if (slots := cloud.slots(flavor))
        ],
        cloud.call('GET', 'compute/os-aggregates')['aggregates'],
        cloud.groups(),
        cloud.servers(),
        leases,
        db_api.host_allocation_get_all_by_values(),
    )


@pytest.mark.parametrize('plugins', [OURS, BLAZARS_OWN])
def test_imported_leases_keep_their_servers_and_slots(
    start, cloud, operator, imported, plugins
):
    blazar = start(plugins=plugins)
    lease, running = blazar.reserve(amount=2, vcpus=5, affinity=False)
    blazar.pass_time()
    _, coming = blazar.reserve(2, vcpus=5, affinity=True, start=60, end=90)
    server = cloud.boot(OWNER, running)
    before = state(cloud)

    assert imported() == dict.fromkeys(
        (running, coming), 'would be taken over'
    )
    assert state(cloud) == before

    done = dict.fromkeys((running, coming), 'was taken over')
    assert imported('--yes') == done

    after = state(cloud)
    # Blazar's own is as it was, and so are servers and the pool.
    assert after[1:] == before[1:]
    check_report(operator('reconcile'))
    kept = listed(operator)
    assert kept[running]['state'] == 'active'
    assert kept[running]['project'] == OWNER
    assert kept[running]['affinity'] == 'different'
    assert kept[running]['shape']['vcpus'] == 5
    assert (kept[running]['slots'], kept[running]['used']) == (2, 1)
    assert (kept[coming]['state'], kept[coming]['slots']) == ('planned', 2)
    row = db_api.lease_get(lease)
    assert kept[running]['end'] == f'{row["end_date"].isoformat()}+00:00'
    assert [kept[one]['problems'] for one in kept] == [[], []]
    there = state(cloud)
    assert imported('--yes') == done
    check_report(operator('reconcile'))
    assert state(cloud) == there
    # The owner notices nothing.
    assert cloud.wait(server['id'], 'ACTIVE')
    cloud.boot(OWNER, running)
    assert cloud.is_refused(STRANGER, running)

    end(operator, cloud, running, coming)
    for one in cloud.call('GET', 'compute/os-aggregates')['aggregates']:
        if one['name'] != 'freepool':
            remove_aggregate(cloud, one)
    remove_groups(cloud)


def remove_aggregate(cloud, aggregate):
    path = f'compute/os-aggregates/{aggregate["id"]}'
    for host in aggregate['hosts']:
        cloud.call('POST', f'{path}/action', {'remove_host': {'host': host}})
    cloud.call('DELETE', path)


def remove_groups(cloud):
    path = 'compute/os-server-groups'
    for found in cloud.call('GET', f'{path}?all_projects=True')[
        'server_groups'
    ]:
        cloud.call('DELETE', f'{path}/{found["id"]}')


def test_flavor_reservations_keep_the_properties_of_the_flavor(
    blazar, cloud, operator, imported
):
    body = {'name': 'large', 'id': 'large', 'ram': 64, 'vcpus': 5, 'disk': 1}
    made = {'flavor': {**body, 'OS-FLV-EXT-DATA:ephemeral': 1}}
    cloud.call('POST', 'compute/flavors', made, accept=409)
    specs = {'extra_specs': {'hw:numa_nodes': '1'}}
    cloud.call('POST', 'compute/flavors/large/os-extra_specs', specs)
    _, reservation = blazar.reserve(
        amount=2, resource_type='flavor:instance', flavor_id='large'
    )
    blazar.pass_time()

    imported('--yes')

    kept = listed(operator)[reservation]
    assert kept['shape']['ephemeral'] == 1
    assert kept['properties'] == {'hw:numa_nodes': '1'}
    assert kept['slots'] == 2
    end(operator, cloud, reservation)


def test_leases_that_cannot_be_imported_are_named(
    blazar, cloud, operator, imported
):
    lease, reservation = blazar.reserve_hosts(1, start=60, end=90)
    leases = {'hosts': lease}
    ids = {'hosts': reservation}
    leases['due'], ids['due'] = blazar.reserve(1, start=0)
    for name in ('ended', 'gone', 'fits', 'large'):
        leases[name], ids[name] = blazar.reserve(1, start=60, end=120)
    backend = blazar.plugin.backend
    backend.mark_end(ids['ended'], 'an operator')
    cloud.call('DELETE', f'compute/flavors/{ids["gone"]}')
    # More than there is room for.
    row = blazar.reservation(ids['large'])['resource_id']
    db_api.instance_reservation_update(row, {'amount': 9999})

    results = imported('--yes', code=3)

    stays = {
        'hosts': 'only Blazar keeps reservations of physical:host',
        'due': 'its lease is due, and Blazar has not started it yet',
        'ended': 'it is being ended by an operator',
        'gone': f'Nova has no flavor reservation:{ids["gone"]}',
    }
    assert results == {
        **{ids[k]: f'stays with Blazar: {v}' for k, v in stays.items()},
        ids['fits']: 'was taken over',
        ids['large']: 'was taken over',
    }
    result = operator('reconcile', '-f', 'json')
    assert result.code == 3
    kept = {one['id']: one for one in json.loads(result.out)['reservations']}
    assert kept.keys() == {ids['fits'], ids['large']}
    # Their random ids decide which of them gets slots first.
    assert kept[ids['fits']]['missing'] in (0, 1)
    assert kept[ids['large']]['missing'] > 0
    db_api.instance_reservation_update(row, {'amount': 1})
    end(operator, cloud, ids['fits'], ids['large'])
    for name in ('hosts', 'due', 'ended', 'gone'):
        blazar.end(leases[name])


def test_a_running_blazar_cannot_end_imported_reservations(
    blazar, cloud, operator, imported
):
    lease, reservation = blazar.reserve(amount=1, end=30)
    deleted, other = blazar.reserve(amount=1, end=30)
    blazar.pass_time()
    servers = [cloud.boot(OWNER, one) for one in (reservation, other)]
    imported('--yes')

    with pytest.raises(ReservationNotKept, match='belongs to another Blazar'):
        blazar.delete(deleted)
    blazar.pass_time(30)
    blazar.complete()

    assert sorted(cloud.servers()) == sorted(s['id'] for s in servers)
    assert not cloud.is_refused(OWNER, reservation)
    end(operator, cloud, reservation, other)
    assert blazar.status(lease) == 'TERMINATED'


def test_hosts_outside_the_pool_are_named(blazar, cloud, imported, operator):
    lease, reservation = blazar.reserve(amount=1)
    blazar.pass_time()
    cloud.take_from_freepool('host1')

    assert imported('--yes', code=3) == {
        reservation: 'stays with Blazar: host1 is not in freepool, see '
        '[blazar:physical:host] aggregate_freepool_name'
    }
    blazar.end(lease)
