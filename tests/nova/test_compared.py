# SPDX-License-Identifier: Apache-2.0
"""The statements on the page "Compared with" are true."""

import pathlib
import re
from types import SimpleNamespace

from blazarnova.scheduler.filters import blazar_filter
from nova import context as nova_context
from nova import objects
import nova.conf
from nova.scheduler import filters, request_filter
from nova.scheduler.filters import (
    aggregate_image_properties_isolation,
    aggregate_instance_extra_specs,
    aggregate_multitenancy_isolation,
    isolated_hosts_filter,
)
from oslo_config import fixture as config_fixture
import pytest
from test_in_tree import engine, store  # noqa: F401

from isolate_aggregates import testing
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.nova.host_filter import IsolatedAggregatesFilter

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / 'doc/source/admin/compared.rst').read_text('utf-8')

# The implementation of each row of the first table.
HOST_FILTERS = {
    'isolate-aggregates': IsolatedAggregatesFilter,
    'AggregateMultiTenancyIsolation': (
        aggregate_multitenancy_isolation.AggregateMultiTenancyIsolation
    ),
    'AggregateImagePropertiesIsolation': (
        aggregate_image_properties_isolation.AggregateImagePropertiesIsolation
    ),
    'AggregateInstanceExtraSpecsFilter': (
        aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter
    ),
    'IsolatedHostsFilter': isolated_hosts_filter.IsolatedHostsFilter,
    'BlazarFilter': blazar_filter.BlazarFilter,
}


def table(title):
    """Return the rows of the first table below a title, without its head."""
    section = re.split(rf'^{re.escape(title)}\n=+\n', PAGE, flags=re.M)[1]
    rows = re.search(r'\.\. list-table::\n(.+?)\n\n\S', section, re.S)[1]
    return [
        [
            cell.strip().strip('`')
            for cell in re.split(r'^     - ', row, flags=re.M)
        ]
        for row in re.split(r'^   \* - ', rows, flags=re.M)[2:]
    ]


def host(*metadatas, name='host1'):
    """Return the host state for a host in some aggregates."""
    return SimpleNamespace(
        host=name,
        aggregates=[
            objects.Aggregate(id=number, name=f'a{number}', metadata=metadata)
            for number, metadata in enumerate(metadatas, start=1)
        ],
    )


def request(project='acme', image=None, zone=None, **extra_specs):
    """Return a request spec of Nova."""
    return objects.RequestSpec(
        project_id=project,
        image=image,
        availability_zone=zone,
        flavor=objects.Flavor(name='f', extra_specs=extra_specs),
        scheduler_hints={},
    )


def image(**properties):
    """Return an image in the format of nova-scheduler."""
    number = properties.pop('id', '155d900f-4e14-4e4c-a73d-069cbf4541e6')
    return objects.ImageMeta(
        id=number,
        properties=objects.ImageMetaProps.from_dict(properties),
    )


@pytest.fixture(scope='module', autouse=True)
def _objects():
    objects.register_all()


@pytest.fixture
def conf():
    """Nova's configuration."""
    with config_fixture.Config(nova.conf.CONF) as fixture:
        yield fixture


def test_each_row_of_the_table_is_known():
    rows = {row[0] for row in table('At a glance')}
    of_requests = {
        "Nova's ``isolate_aggregates",
        'limit_tenants_to_placement_aggregate',
        'Availability zones',
    }
    assert rows == {*HOST_FILTERS, *of_requests}


@pytest.mark.parametrize('name', HOST_FILTERS)
def test_the_table_shows_which_host_filters_run_at_a_rebuild(name):
    [row] = [row for row in table('At a glance') if row[0] == name]
    asked = {'yes': True, 'no': False}[row[4]]
    assert HOST_FILTERS[name].RUN_ON_REBUILD is asked


def test_novas_request_filters_do_not_run_for_a_rebuild():
    shown = {row[0]: row[4] for row in table('At a glance')}
    source = pathlib.Path(request_filter.__file__).with_name('manager.py')
    text = ' '.join(source.read_text('utf-8').split())
    assert (
        'if not is_rebuild: try: request_filter.process_reqspec('
        'context, spec_obj)'
    ) in text
    assert shown["Nova's ``isolate_aggregates"] == 'no'
    assert shown['limit_tenants_to_placement_aggregate'] == 'no'
    assert shown['Availability zones'] == 'no'


def test_novas_tenant_filter_accepts_any_aggregate_and_ours_does_not():
    theirs = HOST_FILTERS['AggregateMultiTenancyIsolation']()
    metadatas = {'filter_tenant_id': 'acme'}, {'filter_tenant_id': 'other'}
    assert theirs.host_passes(host(*metadatas), request('acme'))
    assert not theirs.host_passes(host(*metadatas[1:]), request('acme'))

    cloud = testing.make_snapshot(
        [
            testing.make_aggregate(f'a{number}', metadata, ['host1'])
            for number, metadata in enumerate(metadatas)
        ],
        [testing.make_compute_node('host1')],
    )
    asked = testing.make_request(project_id='acme')
    ours = {'isolate_tenants': IsolateTenants()}
    assert testing.hosts_for(asked, cloud, ours) == []


def test_an_image_without_the_property_passes_the_image_filter():
    theirs = HOST_FILTERS['AggregateImagePropertiesIsolation']()
    windows = host({'os_distro': 'windows'})
    for properties, passes in (
        ({}, True),
        ({'os_distro': 'windows'}, True),
        ({'os_distro': 'debian'}, False),
    ):
        question = request(image=image(**properties))
        assert theirs.host_passes(windows, question) is passes


def test_the_extra_specs_filter_directs_but_does_not_isolate():
    theirs = HOST_FILTERS['AggregateInstanceExtraSpecsFilter']()
    key = 'aggregate_instance_extra_specs:ssd'
    ssd, other = host({'ssd': 'true'}), host()
    assert theirs.host_passes(ssd, request(**{key: 'true'}))
    assert not theirs.host_passes(other, request(**{key: 'true'}))
    assert theirs.host_passes(ssd, request())


@pytest.mark.parametrize(
    ('value', 'wanted', 'passes'),
    [
        ('4', '>= 3', True),
        ('2', '>= 3', False),
        ('text', 's== text', True),
        ('b', '<or> a <or> b', True),
    ],
)
def test_the_extra_specs_filter_compares_values(value, wanted, passes):
    theirs = HOST_FILTERS['AggregateInstanceExtraSpecsFilter']()
    assert theirs.host_passes(host({'n': value}), request(n=wanted)) is passes


def test_isolated_hosts_take_only_isolated_images(conf):
    own, foreign = image(), image(id='a2459075-d96c-40d5-893e-577ff92e721c')
    conf.config(
        group='filter_scheduler',
        isolated_hosts=['licensed'],
        isolated_images=[own.id],
    )
    theirs = HOST_FILTERS['IsolatedHostsFilter']()
    licensed, other = host(name='licensed'), host(name='other')
    passing = {
        ('licensed', 'own'): theirs.host_passes(licensed, request(image=own)),
        ('other', 'own'): theirs.host_passes(other, request(image=own)),
        ('licensed', 'foreign'): theirs.host_passes(
            licensed, request(image=foreign)
        ),
        # From a volume, with any contents.
        ('licensed', None): theirs.host_passes(licensed, request()),
        ('other', None): theirs.host_passes(other, request()),
    }
    assert {key for key, passes in passing.items() if passes} == {
        ('licensed', 'own'),
        ('other', None),
    }


TENANTS = Aggregate(
    '00000001-0000-4000-8000-000000000000',
    'acme-hosts',
    {'filter_tenant_id': 'acme'},
    id=1,
)
ZONE = Aggregate(
    '00000002-0000-4000-8000-000000000000',
    'building-1',
    {'availability_zone': 'az-1'},
    id=2,
)


def concluded(one, spec):
    """Return what a request filter of Nova requires and forbids."""
    spec.requested_destination = objects.Destination()
    one(nova_context.get_admin_context(), spec)
    destination = spec.requested_destination
    return (
        destination.aggregates if 'aggregates' in destination else None
    ) or [], destination.forbidden_aggregates or set()


def test_the_tenant_option_directs_projects_but_does_not_isolate(
    engine,  # noqa: F811
    conf,
):
    store(engine, [TENANTS, ZONE])
    conf.config(group='scheduler', limit_tenants_to_placement_aggregate=True)
    limit = request_filter.require_tenant_aggregate
    assert concluded(limit, request('acme')) == ([TENANTS.uuid], set())
    assert concluded(limit, request('other')) == ([], set())


def test_a_zone_directs_only_requests_that_name_it(engine):  # noqa: F811
    store(engine, [TENANTS, ZONE])
    zones = request_filter.map_az_to_placement_aggregate
    assert concluded(zones, request(zone='az-1')) == ([ZONE.uuid], set())
    assert concluded(zones, request()) == ([], set())


def test_the_limit_of_candidates_is_the_default():
    assert nova.conf.CONF.scheduler.max_placement_results == 1000
    assert not filters.BaseHostFilter.RUN_ON_REBUILD
