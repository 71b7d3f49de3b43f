# SPDX-License-Identifier: Apache-2.0
"""Properties of images, as our commands and an audit change them in Glance."""

import re
import subprocess

from control_plane import bootstrap
import pytest

from isolate_aggregates import exception
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_tools.cloud.live.glance import GlanceClient

TRAIT = 'CUSTOM_IMAGE_WINDOWS'
KEY = f'trait:{TRAIT}'


@pytest.fixture
def locked(cloud, lock):
    """An aggregate of one of the hosts, locked."""
    aggregate = cloud.aggregate('win', ('host1',))
    lock(aggregate, TRAIT)
    return aggregate


@pytest.fixture
def glance(plane):
    """Return the Glance that a user reads and writes."""

    def of(user):
        session = bootstrap.connect(plane.settings, user).session
        return GlanceClient(Connection(session))

    return of


def test_a_key_is_granted_to_an_image_and_revoked(cloud, admin, locked):
    flavor, image = cloud.flavor('plain'), cloud.image('windows')
    words = ('--image', image, '--trait', TRAIT)

    admin('isolation', 'key', 'add', *words)
    assert cloud.sdk.image.find_image(image).properties[KEY] == 'required'
    assert cloud.place('licensed', flavor, image) == 'host1'
    assert 'Nothing to do' in admin('isolation', 'key', 'add', *words)

    admin('isolation', 'key', 'remove', *words)
    assert KEY not in cloud.sdk.image.find_image(image).properties
    assert 'Nothing to do' in admin('isolation', 'key', 'remove', *words)
    assert cloud.place('unlicensed', flavor, image) in {'host2', 'host3'}


def test_the_repair_printed_by_an_audit_revokes_the_key(
    plane, cloud, admin, locked
):
    image = cloud.image('stolen', {KEY: 'required'}, user='demo')
    owned = cloud.sdk.image.find_image(image).id

    # That is a decision, so it is not done by itself.
    message = admin.run('isolation', 'audit', '--fix', '--yes')
    assert image in message.stdout
    assert KEY in cloud.sdk.image.find_image(owned).properties

    [repair] = re.findall(f'openstack image unset .* {image}', message.stdout)
    subprocess.run(
        ['bash', '-c', f'. {plane.settings.openrc} && {repair}'],
        check=True,
    )
    assert KEY not in cloud.sdk.image.find_image(owned).properties
    message = admin.run('isolation', 'audit')
    assert image not in message.stdout


def test_any_key_can_be_set_and_removed_twice(cloud, glance):
    images = glance('admin')
    image = images.image(cloud.image('image', {'other': 'stays'}))

    for key in ('a/b', 'c~d', 'trait:CUSTOM_É'):
        images.set_property(image, key, 'one')
        images.set_property(image, key, 'two')
        assert images.image(image.id).properties[key] == 'two'
        images.unset_property(image, key)
        # Only Glance rejects it.
        images.unset_property(image, key)
    found = images.image(image.id).properties
    assert found['other'] == 'stays'
    assert not {'a/b', 'c~d', 'trait:CUSTOM_É'} & set(found)


def test_glance_refuses_users_who_do_not_own_the_image(cloud, glance):
    images = glance('demo')
    image = images.image(cloud.image('image'))
    with pytest.raises(exception.ServiceDenied):
        images.set_property(image, KEY, 'required')
