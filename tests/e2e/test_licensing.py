# SPDX-License-Identifier: Apache-2.0
"""Windows licensing: licensed hosts run only servers that need a license.

See `Support filtering of allocation_candidates by forbidden aggregates
<https://specs.openstack.org/openstack/nova-specs/specs/train/implemented/placement-req-filter-forbidden-aggregates.html>`_.
"""

import pytest

TRAIT = 'CUSTOM_LICENSED_WINDOWS'
TAG = {f'trait:{TRAIT}': 'required'}
UNLICENSED = {'host2', 'host3'}
# The first that has traits.
VERSION = ('--os-placement-api-version', '1.6')


@pytest.fixture
def licensed(cloud):
    """An aggregate with one of the three hosts."""
    return cloud.aggregate('win', ('host1',))


@pytest.fixture
def with_trait(admin):
    """Add the trait to a host without our commands."""
    admin(*VERSION, 'trait', 'create', TRAIT)
    [host] = admin.json('resource', 'provider', 'list', '--name', 'host1')
    command = (*VERSION, 'resource', 'provider', 'trait')
    found = admin.json(*command, 'list', host['uuid'])
    # It replaces the whole list.
    kept = [f'--trait={trait["name"]}' for trait in found]
    admin(*command, 'set', host['uuid'], *kept, f'--trait={TRAIT}')
    yield
    admin(*command, 'set', host['uuid'], *kept)
    admin(*VERSION, 'trait', 'delete', TRAIT)


@pytest.mark.smoke
def test_our_commands_lock_hosts_and_give_out_the_key(
    cloud, admin, licensed, lock
):
    lock(licensed, TRAIT)
    plain, windows = cloud.flavor('plain'), cloud.flavor('windows')
    image = cloud.image('image')

    admin('isolation', 'key', 'add', '--flavor', windows, '--trait', TRAIT)
    assert cloud.place('windows', windows, image) == 'host1'
    for number in range(3):
        assert cloud.place(f'linux{number}', plain, image) in UNLICENSED

    admin('isolation', 'key', 'remove', '--flavor', windows, '--trait', TRAIT)
    assert cloud.place('late', windows, image) in UNLICENSED


def test_tags_set_by_hand_do_the_same(cloud, licensed, with_trait):
    flavor = cloud.flavor('plain')
    windows, linux = cloud.image('windows', TAG), cloud.image('linux')
    licensed.set_metadata(TAG)

    assert cloud.place('windows', flavor, windows) == 'host1'
    for number in range(3):
        assert cloud.place(f'linux{number}', flavor, linux) in UNLICENSED


def test_windows_is_refused_when_licensed_hosts_are_full(
    cloud, licensed, with_trait
):
    licensed.set_metadata(TAG)
    windows = cloud.image('windows', TAG)
    # More than a host has.
    large = cloud.flavor('large', ram=100_000)

    server = cloud.settle(cloud.boot('windows', large, windows))

    assert server.status == 'ERROR'
    assert 'No valid host' in server.fault['message']
