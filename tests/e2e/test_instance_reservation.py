# SPDX-License-Identifier: Apache-2.0
"""The life cycle of instance reservations without Blazar.

As the page "Reservations" tells operators, without Blazar.
"""

import time
import uuid

from clients import host_of
import pytest

POOL = {'host1', 'host2'}
NOT_YET = 3
# More than the end of a reservation takes, also on a busy machine.
SECONDS = 300


@pytest.fixture
def reservations(admin):
    """Run a command of reservations."""

    def run(*words):
        return admin.run('isolation', 'reservation', *words)

    return run


@pytest.fixture
def hosts(cloud, reservations):
    """Two hosts enabled for reservations, until the end."""
    enabled = reservations('host', 'set', '--enable', *sorted(POOL))
    assert enabled.returncode == 0, enabled.stderr
    yield POOL
    words = ('--disable', '--delete-pool', '--yes')
    gone = reservations('host', 'set', *words, *sorted(POOL))
    assert gone.returncode == 0, gone.stderr


@pytest.fixture
def reserved(cloud, admin, hosts, reservations):
    """A reservation of a tenant, of one slot on each of these hosts."""
    found = str(uuid.uuid4())
    project = cloud.sdk.identity.find_project('demo').id
    admin(
        *('isolation', 'reservation', 'create', '--id', found),
        *('--project', project, '--amount', '2', '--affinity', 'different'),
        *('--vcpus', '1', '--ram', '64', '--disk', '1'),
    )
    yield found
    end(reservations, found)
    # The history stays for accountants.
    for flavor in cloud.admin.flavors.list(is_public=None):
        if flavor.name.startswith('reservation:history.'):
            flavor.delete()


@pytest.fixture
def tenants(reserved, tenants):
    """The same; what they make is gone before the reservation ends."""
    return tenants


def test_the_life_of_an_instance_reservation(
    cloud, admin, demo, stranger, reservations, hosts, reserved, tenants
):
    flavor = f'reservation:{reserved}'
    plain, linux = cloud.flavor('plain'), cloud.image('linux')

    def slots():
        shown = admin.json('isolation', 'reservation', 'show', reserved)
        return shown['slots'], shown['used']

    # Nobody else gets there: not by an ordinary flavor, nor with the trait of
    # such hosts on an image, nor with a flavor that is somebody else's.
    assert host_of(tenants.boot(demo, plain, linux)) == 'host3'
    claims = tenants.image(
        demo, 'claims', 'trait:CUSTOM_RESERVATION_HOST=required'
    )
    assert refusal(tenants.boot(demo, plain, claims))
    refused = stranger.run(
        *('server', 'create', '--flavor', flavor, '--image', linux),
        *('--nic', 'none', cloud.name('stranger')),
    )
    assert refused.returncode == 1
    assert flavor in refused.stderr

    # The owner has as many servers as there are slots, and no more.
    servers = [tenants.boot(demo, flavor, linux) for _ in range(2)]
    assert {host_of(server) for server in servers} == hosts
    assert slots() == (2, 2)
    assert refusal(tenants.boot(demo, flavor, linux))

    # Who leaves makes room.
    demo('server', 'delete', '--wait', servers[0].id)
    assert slots() == (2, 1)
    again = tenants.boot(demo, flavor, linux)
    assert host_of(again) == host_of(servers[0])

    # Hosts with slots stay what they are.
    kept = reservations('host', 'set', '--disable', *sorted(hosts))
    assert kept.returncode == 1
    assert reserved in kept.stdout + kept.stderr

    # With the reservation its servers end, and its flavor.
    end(reservations, reserved)
    left = {server.id for server in all_servers(cloud)}
    assert not left & {servers[1].id, again.id}
    gone = demo.run('flavor', 'show', flavor)
    assert gone.returncode == 1
    disabled = reservations('host', 'set', '--disable', *sorted(hosts))
    assert disabled.returncode == 0, disabled.stderr
    open_to_all = admin(
        *('isolation', 'candidate', 'list', '--flavor', plain),
        *('-f', 'value', '-c', 'Host'),
    )
    assert set(open_to_all.split()) == {'host1', 'host2', 'host3'}
    assert admin.json('isolation', 'reservation', 'list')['reservations'] == []


def end(reservations, lease):
    """End a reservation, if there is one, and wait until it is over."""
    until = time.monotonic() + SECONDS
    while reservations('end', '--yes', lease).returncode == NOT_YET:
        assert time.monotonic() < until
        time.sleep(1)


def refusal(server):
    """Return whether a server got no host."""
    return (
        server.status == 'ERROR' and 'No valid host' in server.fault['message']
    )


def all_servers(cloud):
    return cloud.admin.servers.list(search_opts={'all_tenants': True})
