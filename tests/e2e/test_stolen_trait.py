# SPDX-License-Identifier: Apache-2.0
"""A tenant sets the trait of a lock on their own image."""

from clients import host_of
import pytest

TRAIT = 'CUSTOM_STOLEN_WINDOWS'

# As documented on the page "Tenants and security".
FLAVORS_ALONE = """\
[isolate_aggregates]
trait_sources = flavor
"""


@pytest.fixture
def flavors_alone(plane):
    """A cloud in which only flavors open locks."""
    folder = plane.settings.etc / 'nova' / 'nova.conf.d'
    setting = folder / 'isolation-3.conf'
    setting.write_text(FLAVORS_ALONE)
    restart(plane)
    yield
    setting.unlink()
    restart(plane)


@pytest.fixture
def licensed(cloud, lock):
    """An aggregate of one of the hosts, locked."""
    aggregate = cloud.aggregate('win', ('host1',))
    lock(aggregate, TRAIT)
    return aggregate


@pytest.fixture
def stolen(licensed, tenants, demo):
    """An image that a tenant has made."""
    return tenants.image(demo, 'stolen', f'trait:{TRAIT}=required')


def test_by_default_a_tenants_image_opens_the_lock_and_audit_reports_it(
    cloud, admin, tenants, demo, licensed, stolen
):
    flavor = cloud.flavor('plain')

    assert host_of(tenants.boot(demo, flavor, stolen)) == 'host1'
    message = admin.run('isolation', 'audit', '-f', 'json')
    assert message.returncode == 4
    assert 'tenant-image-opens' in message.stdout
    assert stolen in message.stdout


def test_a_tenants_image_opens_nothing_when_only_flavors_count(
    flavors_alone, cloud, admin, tenants, demo, licensed, stolen
):
    plain, windows = cloud.flavor('plain'), cloud.flavor('windows')
    admin('isolation', 'key', 'add', '--flavor', windows, '--trait', TRAIT)
    linux = cloud.image('linux')

    server = tenants.boot(demo, plain, stolen)
    assert server.status == 'ERROR'
    assert 'No valid host' in server.fault['message']
    # With the key it does no harm, and without both nothing has changed.
    assert host_of(tenants.boot(demo, windows, stolen)) == 'host1'
    assert host_of(tenants.boot(demo, windows, linux)) == 'host1'
    assert host_of(tenants.boot(demo, plain, linux)) in {'host2', 'host3'}
    message = admin.run('isolation', 'audit', '-f', 'json')
    assert 'tenant-image-opens' not in message.stdout


def restart(plane):
    """Let the scheduler read its configuration anew."""
    plane.stop('nova-scheduler')
    plane.start('nova-scheduler')
