# SPDX-License-Identifier: Apache-2.0
"""A server on a licensed host is rebuilt from other images."""

from clients import host_of
import pytest

TRAIT = 'CUSTOM_REBUILT_WINDOWS'
RUNNING = 1


@pytest.fixture
def windows(cloud, admin, lock):
    """Two images with the key to the only licensed host."""
    lock(cloud.aggregate('win', ('host1',)), TRAIT)
    names = cloud.image('windows-2022'), cloud.image('windows-2025')
    for name in names:
        admin('isolation', 'key', 'add', '--image', name, '--trait', TRAIT)
    return names


def test_a_licensed_server_rebuilds_only_into_a_licensed_image(
    cloud, demo, windows
):
    old, new = windows
    flavor, linux = cloud.flavor('plain'), cloud.image('linux')
    server = cloud.settle(cloud.boot('server', flavor, old))
    assert host_of(server) == 'host1'

    result = demo.run(
        *('server', 'rebuild', '--image', linux, '--wait', server.id)
    )
    assert result.returncode == 1
    refused = cloud.admin.servers.get(server.id)
    # Nova reports this for any refused rebuild; the guest is unchanged.
    assert refused.status == 'ERROR'
    assert 'No valid host' in refused.fault['message']
    assert of_guest(refused) == of_guest(server)

    demo('server', 'rebuild', '--image', new, '--wait', server.id)
    rebuilt = cloud.admin.servers.get(server.id)
    assert rebuilt.status == 'ACTIVE'
    assert rebuilt.image['id'] == cloud.sdk.image.find_image(new).id
    assert host_of(rebuilt) == 'host1'


def of_guest(server):
    """Return what a rebuild changes, of a guest that runs."""
    assert getattr(server, 'OS-EXT-STS:power_state') == RUNNING
    return (
        server.image['id'],
        getattr(server, 'OS-EXT-SRV-ATTR:host'),
        getattr(server, 'OS-SRV-USG:launched_at'),
    )
