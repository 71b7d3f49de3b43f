# SPDX-License-Identifier: Apache-2.0
"""What is kept in Nova and Placement, and how they are reached."""

import datetime

from live import OWNER, class_of
import pytest

from isolate_aggregates_reservations.blazar.settings import connect
from isolate_aggregates_reservations.reservation import Shape

RESERVATION = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
END = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ('host', 'prefix', 'version', 'url'),
    [
        pytest.param(
            'keystone', '', 'v3', 'http://keystone:5000/v3', id='plain'
        ),
        pytest.param(
            'keystone',
            'identity',
            'v3',
            'http://keystone:5000/identity/v3',
            id='below a path',
        ),
        pytest.param(
            'keystone', '', '', 'http://keystone:5000', id='of any version'
        ),
        pytest.param('::1', '', 'v3', 'http://[::1]:5000/v3', id='IPv6'),
    ],
)
def test_the_keystone_url_comes_from_blazar_conf(
    conf, host, prefix, version, url
):
    for name, value in (
        ('os_auth_host', host),
        ('os_auth_port', '5000'),
        ('os_auth_prefix', prefix),
        ('os_auth_version', version),
    ):
        conf.set_override(name, value)
    auth_url = connect(conf).nova.session.auth.auth_url
    for name in ('host', 'port', 'prefix', 'version'):
        conf.clear_override(f'os_auth_{name}')
    assert auth_url == url


def test_endpoint_types_are_read_per_service(conf):
    conf.set_override('endpoint_type', 'public', 'nova')
    connections = connect(conf)
    conf.clear_override('endpoint_type', 'nova')
    assert connections.nova.interface == ('public',)
    assert connections.placement.interface == ('internal',)
    assert connections.nova.session is connections.placement.session


def test_a_host_that_lost_its_reservation_provider_gets_it_back(blazar, cloud):
    uuid = cloud.providers()['blazar_host1']
    cloud.call('DELETE', f'placement/resource_providers/{uuid}')
    lease, reservation = blazar.reserve(amount=2, affinity=True)

    blazar.pass_time()

    assert cloud.slots(reservation) == {'host1': (2, 0)}
    cloud.boot(OWNER, reservation)
    blazar.end(lease)


@pytest.mark.parametrize('known_as', ['host1', 'host1.example.org'])
def test_a_renamed_host_keeps_its_slots(blazar, cloud, known_as):
    """Whether or not Blazar knows the new name."""
    backend = blazar.plugin.backend
    backend.prepare(RESERVATION, Shape(1, 64, 1), END)
    backend.publish(RESERVATION, {'host1': 2})
    before = cloud.providers()
    path = f'placement/resource_providers/{before["host1"]}'
    cloud.call('PUT', path, {'name': 'host1.example.org'})
    try:
        backend.publish(RESERVATION, {known_as: 1})
        assert backend.slots(RESERVATION) == {'host1.example.org': 1}
        assert len(cloud.providers()) == len(before)
        assert backend.finish(RESERVATION) is None
        assert backend.slots(RESERVATION) == {}
    finally:
        cloud.call('PUT', path, {'name': 'host1'})


def test_a_flavor_has_the_size_of_a_slot(blazar, cloud):
    backend = blazar.plugin.backend
    shape = Shape(1, 64, 1, 2, 3, {'hw:cpu_policy': 'x'})
    backend.prepare(RESERVATION, shape, END)
    backend.prepare(RESERVATION, Shape(2, 64, 1, 2, 3), END)

    found = cloud.call('GET', f'compute/flavors/{RESERVATION}')['flavor']
    assert (found['vcpus'], found['ram'], found['disk']) == (2, 64, 1)
    assert (found['OS-FLV-EXT-DATA:ephemeral'], found['swap']) == (2, 3)
    assert found['extra_specs'] == {f'resources:{class_of(RESERVATION)}': '1'}
    assert not found['os-flavor-access:is_public']
    assert backend.finish(RESERVATION) is None
    assert cloud.left() == []


def test_changed_slots_are_repaired_after_a_restart(blazar, cloud):
    lease, reservation = blazar.reserve(amount=2, affinity=True)
    blazar.pass_time()
    blazar.plugin.backend.publish(reservation, {'host2': 5})
    assert cloud.slots(reservation) == {'host2': (5, 0)}

    type(blazar.plugin)().complete()

    assert cloud.slots(reservation) == {'host1': (2, 0)}
    blazar.end(lease)
