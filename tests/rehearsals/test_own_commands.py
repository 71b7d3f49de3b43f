# SPDX-License-Identifier: Apache-2.0
"""Scripts may use the commands of this package, and list hypervisors."""

import sys

import pytest

# The environment of the tests has the commands.
OWN = (sys.executable, '-m', 'isolate_aggregates_tools')


@pytest.mark.parametrize(
    ('command', 'status'),
    [
        ('lock list', 0),
        ('matrix list', 0),
        ('candidate list --flavor m1', 0),
        # It finds that nothing is isolated where nova.conf is not given.
        ('audit', 4),
        ('sync --yes', 0),
    ],
)
def test_commands_that_read_find_the_cloud(rehearsal, command, status):
    ended = rehearsal.run([*OWN, *command.split()], timeout=300)
    assert ended.status == status
    # They read nothing that the file does not have.
    assert (rehearsal.world.unknown, [*rehearsal.world.empty]) == ([], [])
    assert not rehearsal.world.steps


def test_a_lock_is_created_and_deleted(rehearsal):
    create = ('lock', 'create', 'rack', '--trait', 'CUSTOM_RACK', '--yes')
    assert rehearsal.run([*OWN, *create], timeout=300).status == 0
    rack = rehearsal.cloud.aggregates[1]
    assert rack.metadata == {'trait:CUSTOM_RACK': 'required'}
    [node] = [p for p in rehearsal.cloud.providers if p.host == 'c1']
    assert 'CUSTOM_RACK' in node.traits
    delete = ('lock', 'delete', 'rack', '--yes')
    assert rehearsal.run([*OWN, *delete], timeout=300).status == 0
    assert not rehearsal.cloud.aggregates[1].metadata
    assert (rehearsal.world.unknown, rehearsal.world.refused) == ([], [])
    assert not rehearsal.world.empty


@pytest.mark.parametrize(
    'command',
    [
        'openstack hypervisor list',
        'openstack --os-compute-api-version 2.61 hypervisor list --long',
        'openstack hypervisor stats show',
        'openstack hypervisor show c1',
        'nova hypervisor-list',
        'nova --os-compute-api-version 2.1 hypervisor-list',
        'nova --os-compute-api-version 2.61 hypervisor-stats',
    ],
)
def test_clients_find_the_hypervisors(rehearsal, command):
    assert rehearsal.run(command.split(), timeout=300).status == 0
    assert rehearsal.world.unknown == []
    asked = [call.path for call in rehearsal.world.calls]
    assert any(path.startswith('/os-hypervisors') for path in asked)


def test_groups_that_the_file_does_not_have_are_not_known(rehearsal):
    command = ('openstack', 'server', 'group', 'list', '--all-projects')
    assert rehearsal.run(command, timeout=300).status
    assert rehearsal.world.unknown == [
        'GET nova /os-server-groups: the server groups; the cloud file has '
        'none'
    ]
