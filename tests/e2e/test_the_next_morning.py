# SPDX-License-Identifier: Apache-2.0
"""A boot fails at night; its cause is found in the morning.

By then an operator has removed the lock, and the server is gone.
"""

import json
import time

import pytest

TRAIT = 'CUSTOM_LICENSED_WINDOWS'
HOSTS = ('host1', 'host2', 'host3')
SECONDS = 60


@pytest.fixture
def record_of(plane):
    """Wait for the record of a server in the log of nova-scheduler."""

    def wait(server):
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            for line in plane.log('nova-scheduler').open(errors='replace'):
                if 'isolate_aggregates.decisions' in line and server in line:
                    return json.loads(line[line.index('{"schema"') :])
            time.sleep(0.5)
        raise TimeoutError(f'There is no record of server {server}')

    return wait


@pytest.mark.smoke
def test_a_request_of_the_night_is_explained_in_the_morning(
    cloud, plane, admin, record_of
):
    log = str(plane.log('nova-scheduler'))
    flavor, image = cloud.flavor('plain'), cloud.image('image')
    locked = cloud.aggregate('win', HOSTS)
    lock = (locked.name, '--trait', TRAIT)
    admin('isolation', 'lock', 'create', *lock)
    try:
        server = cloud.settle(cloud.boot('night', flavor, image))
        assert server.status == 'ERROR'
        record = record_of(server.id)
    finally:
        admin('isolation', 'lock', 'delete', *lock)
    assert record['cause'] == 'locked'
    cloud.delete(server)

    morning = admin.json(
        *('isolation', 'explain', '--request', record['request']),
        *('--scheduler-log', log),
    )
    assert morning['records'] == [record]
    assert any(
        f'aggregate {locked.name}' in each
        and each.endswith('is no longer forbidden')
        for each in morning['differences']
    )
    assert morning['not_asked'] is None
    assert morning['now']['summary']['candidates'] == len(HOSTS)

    found = admin.json('isolation', 'decision', 'list', log)
    sums = {(one['by'], one['name']): one['requests'] for one in found['sums']}
    assert sums['lock', f'trait:{TRAIT}=required'] >= 1
    assert sums['flavor', flavor] == 1
