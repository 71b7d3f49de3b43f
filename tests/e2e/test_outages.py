# SPDX-License-Identifier: Apache-2.0
"""The effects when a service is down for a while."""

import os
import time

from clients import host_of, launched, now
from control_plane.settings import HOSTS
import pytest

TAG = {'trait:CUSTOM_OUTAGE': 'required'}

# The stories stop services for so many seconds, or for longer.
SECONDS = float(os.environ.get('E2E_OUTAGE') or 60)
PATIENCE = 300


@pytest.fixture
def locked(cloud):
    """A locked aggregate with two of the three hosts, which nothing opens."""
    return cloud.aggregate('locked', ('host1', 'host2'), TAG)


@pytest.fixture
def stop(plane):
    """Stop services; they are started again at the end of the test."""
    stopped = []

    def stop_one(name):
        stopped.append(name)
        plane.stop(name)

    yield stop_one
    for name in stopped:
        plane.start(name)


def complaint(result):
    """Return the one line that a command fails with."""
    assert result.returncode != 0
    [line] = result.stderr.splitlines()
    return line


@pytest.mark.smoke
def test_without_nova_api_the_scheduler_keeps_hosts_apart(
    plane, cloud, admin, locked, stop
):
    flavor, image = cloud.flavor('plain'), cloud.image('image')
    # Without a conductor, requests wait in a queue.
    stop('nova-conductor')
    servers = [cloud.boot(f'server{n}', flavor, image) for n in range(3)]
    stop('nova-api')
    down_at = time.monotonic()

    plane.start('nova-conductor')
    message = complaint(admin.run('isolation', 'lock', 'list'))
    wait_until_built(plane, servers)
    time.sleep(max(0, SECONDS - (time.monotonic() - down_at)))
    up_at = now()
    plane.start('nova-api')

    assert 'Nova' in message
    assert plane.settings.url('nova-api') in message
    for server in map(cloud.settle, servers):
        assert host_of(server) == 'host3'
        assert launched(server) < up_at


def test_a_boot_fails_only_while_placement_is_down(
    plane, cloud, admin, locked, stop
):
    flavor, image = cloud.flavor('plain'), cloud.image('image')
    stop('placement')
    down_at = time.monotonic()

    failed = cloud.settle(cloud.boot('during', flavor, image))
    message = complaint(
        admin.run('isolation', 'candidate', 'list', '--flavor', flavor)
    )
    time.sleep(max(0, SECONDS - (time.monotonic() - down_at)))
    plane.start('placement')

    assert failed.status == 'ERROR'
    assert 'No valid host' in failed.fault['message']
    assert 'Placement' in message
    assert plane.settings.url('placement') in message
    assert cloud.place('after', flavor, image) == 'host3'


def test_a_restarted_scheduler_serves_pending_requests(
    plane, cloud, locked, stop
):
    flavor, image = cloud.flavor('plain'), cloud.image('image')
    assert cloud.place('before', flavor, image) == 'host3'
    stop('nova-scheduler')

    server = cloud.boot('during', flavor, image)
    plane.start('nova-scheduler')

    assert host_of(cloud.settle(server)) == 'host3'
    assert cloud.place('after', flavor, image) == 'host3'


def test_two_schedulers_keep_hosts_apart(plane, cloud, locked):
    flavor, image = cloud.flavor('plain'), cloud.image('image')
    second = plane.add_scheduler()
    try:
        servers = [cloud.boot(f'server{n}', flavor, image) for n in range(8)]
        hosts = {host_of(cloud.settle(server)) for server in servers}
    finally:
        plane.stop(second)

    assert hosts == {'host3'}
    for name in ('nova-scheduler', second):
        assert served(plane.log(name), servers)


def wait_until_built(plane, servers):
    """Wait until nova-compute has logged it, as Nova's API is down."""
    until = time.monotonic() + PATIENCE
    left = {server.id for server in servers}
    while left:
        assert time.monotonic() < until, left
        time.sleep(0.2)
        built = [
            line
            for host in HOSTS
            for line in plane.log(host).read_text('utf-8').splitlines()
            if 'seconds to build instance' in line
        ]
        left = {one for one in left if not any(one in line for line in built)}


def served(log, servers):
    """Return whether a scheduler received a request for these servers."""
    asked = [
        line
        for line in log.read_text('utf-8').splitlines()
        if 'Starting to schedule for instances' in line
    ]
    return any(server.id in line for line in asked for server in servers)
