# SPDX-License-Identifier: Apache-2.0
"""What commands that create and delete objects result in.

Those that change objects are tested with the audits that advise them.
"""

from audit_clouds import configuration
import pytest

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.repairs import commands, outcome
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_snapshot,
)

WIN = make_aggregate('win', {}, ['h1'], id=7)
CLOUD = make_snapshot(
    [WIN],
    [make_compute_node('h1')],
    flavors=[Flavor('small', 'f1')],
    images=[Image('linux', 'i1')],
)


def after(*todo):
    filters = Pipeline(loading.load(configuration()))
    *_, last = outcome.outcomes(CLOUD, todo, filters)
    return last


def test_an_aggregate_is_created_and_gets_hosts_in_placement_too():
    cloud = after(
        commands.create_aggregate('new', 'az1'),
        *commands.add_hosts(make_aggregate('new'), ['h1']),
    )
    new = cloud.aggregates[-1]
    assert (new.name, new.availability_zone) == ('new', 'az1')
    assert new.metadata == {'availability_zone': 'az1'}
    assert new.hosts == {'h1'}
    [node] = cloud.providers
    assert new.uuid in node.aggregates


def test_a_second_object_with_the_name_is_refused_as_nova_does():
    assert after(commands.create_aggregate('win')) == CLOUD
    assert after(*commands.create_flavor(Flavor('small', 'f2'))) == CLOUD
    assert after(*commands.create_flavor(Flavor('other', 'f1'))) == CLOUD
    assert after(commands.create_image(Image('other', 'i1'))) == CLOUD


def test_an_aggregate_is_deleted_only_without_hosts():
    delete = commands.delete_aggregate(WIN)
    assert after(delete).aggregates == (WIN,)
    leave = commands.remove_hosts(WIN, ['h1'])
    assert after(*leave, delete).aggregates == ()


def test_a_zone_is_metadata_too():
    [aggregate] = after(commands.set_zone(WIN, 'az1')).aggregates
    assert aggregate.availability_zone == 'az1'
    assert aggregate.metadata == {'availability_zone': 'az1'}
    [aggregate] = after(
        commands.set_zone(WIN, 'az1'),
        *commands.unset(WIN, 'availability_zone'),
    ).aggregates
    assert (aggregate.availability_zone, aggregate.metadata) == (None, {})


def test_an_aggregate_is_renamed():
    [aggregate] = after(commands.rename_aggregate(WIN, 'new')).aggregates
    assert (aggregate.name, aggregate.id) == ('new', 7)


@pytest.mark.parametrize('id_', ['f2', ''])
def test_what_a_new_flavor_gets_are_steps_that_can_fail(id_):
    flavor = Flavor(
        'new', id_, 1, 2, extra_specs={'b': '2', 'a': '1'}, is_public=False,
        projects=frozenset({'p1', 'p2'}),
    )  # fmt: skip
    steps = commands.create_flavor(flavor)
    assert [commands.shown([step]) for step in steps] == [
        'openstack flavor create '
        + ('--id f2 ' if id_ else '')
        + '--vcpus 1 --ram 2 --private new',
        *(
            f'openstack flavor set {option} {id_ or "new"}'
            for option in (
                '--property a=1 --property b=2',
                '--project=p1',
                '--project=p2',
            )
        ),
    ]
    [*_, made] = after(*steps).flavors
    assert (made.name, made.extra_specs, made.projects) == (
        'new',
        flavor.extra_specs,
        flavor.projects,
    )
    [*_, made] = after(steps[0], steps[2]).flavors
    assert (made.extra_specs, made.projects) == ({}, {'p1'})


def test_flavors_and_images_are_created_and_deleted():
    flavor = Flavor('new', 'f2', 1, 2, 3, 4, 5, {'a': 'b=c'})
    image = Image(
        'new', 'i2', {'-a': 'b'}, visibility='shared', disk_format='raw',
        min_ram=1, min_disk=2,
    )  # fmt: skip
    cloud = after(
        *commands.create_flavor(flavor),
        commands.create_image(image),
        *commands.delete_flavor(CLOUD.flavors[0]),
        commands.delete_image(CLOUD.images[0]),
        commands.set_visibility(image, 'public'),
    )
    assert cloud.flavors == (flavor,)
    [new_image] = cloud.images
    assert new_image.visibility == 'public'
    assert (new_image.properties, new_image.disk_format) == (
        {'-a': 'b'},
        'raw',
    )
    assert (new_image.min_ram, new_image.min_disk) == (1, 2)
