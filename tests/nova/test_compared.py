# SPDX-License-Identifier: Apache-2.0
"""What the page "Compared with" says of rebuilds and our filters is true."""

import csv
import pathlib
import re
from types import SimpleNamespace

from blazarnova.scheduler.filters import blazar_filter
from nova import objects
import nova.conf
from nova.scheduler import filters, request_filter
from nova.scheduler.filters import (
    aggregate_image_properties_isolation,
    aggregate_instance_extra_specs,
    aggregate_multitenancy_isolation,
    isolated_hosts_filter,
)
import pytest

from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.nova.host_filter import IsolatedAggregatesFilter
from isolate_aggregates_tools import testing

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


def table():
    """Return the rows of the table that compares all, without its head."""
    rows = re.search(r'\.\. csv-table::\n.+?\n\n(.+?)\n\n', PAGE, re.S)[1]
    return [
        [cell.strip('`') for cell in row]
        for row in csv.reader(
            map(str.strip, rows.splitlines()), skipinitialspace=True
        )
    ]


def host(*metadatas):
    """Return the host state for a host in some aggregates."""
    return SimpleNamespace(
        aggregates=[
            objects.Aggregate(id=number, name=f'a{number}', metadata=metadata)
            for number, metadata in enumerate(metadatas, start=1)
        ],
    )


@pytest.fixture(scope='module', autouse=True)
def _objects():
    objects.register_all()


def test_each_row_of_the_table_is_known():
    rows = {row[0] for row in table()}
    of_requests = {
        "Nova's ``isolate_aggregates",
        'limit_tenants_to_placement_aggregate',
        'Availability zones',
    }
    assert rows == {*HOST_FILTERS, *of_requests}


@pytest.mark.parametrize('name', HOST_FILTERS)
def test_the_table_shows_which_host_filters_run_at_a_rebuild(name):
    [row] = [row for row in table() if row[0] == name]
    asked = {'yes': True, 'no': False}[row[4]]
    assert HOST_FILTERS[name].RUN_ON_REBUILD is asked


def test_novas_request_filters_do_not_run_for_a_rebuild():
    shown = {row[0]: row[4] for row in table()}
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
    spec = objects.RequestSpec(project_id='acme')
    assert theirs.host_passes(host(*metadatas), spec)
    assert not theirs.host_passes(host(*metadatas[1:]), spec)

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


def test_the_limit_of_candidates_is_the_default():
    assert nova.conf.CONF.scheduler.max_placement_results == 1000
    assert not filters.BaseHostFilter.RUN_ON_REBUILD
