# SPDX-License-Identifier: Apache-2.0
"""The plugin is what Nova loads, and a request passes few files of it."""

import itertools
import pathlib
import re

import pytest
from starting import starts

ROOT = pathlib.Path(__file__).parents[2]
# What only programs of their own and tests need, and the tools.
ELSEWHERE = (
    'aggregates.tags',
    'derived',
    'filter_sets',
    'nova.manage',
    'options',
    'programs',
    'request.plain',
    'request.trait_requirements',
    'suggestions',
    'testing',
    'upgrade_check',
)

DEFAULT = """
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = isolate_aggregates.nova.all_filters
enabled_filters = ComputeFilter, IsolatedAggregatesFilter
"""
ALL = (
    DEFAULT
    + """
[scheduler]
enable_isolated_aggregate_filtering = true
limit_tenants_to_placement_aggregate = true
[isolate_aggregates]
request_filters = isolate_aggregates, reservation_prefix, isolate_tenants,
    blazar_reservation, aggregate_instance_extra_specs
shadow_filters = isolate_tenants
aggregate_source = novaclient
auth_type = none
endpoint_override = http://localhost:1/
"""
)


ON_SQLITE = (
    DEFAULT
    + """
[scheduler]
enable_isolated_aggregate_filtering = true
[api_database]
connection = sqlite:///{}/nova.sqlite
"""
)


# What records need, and nobody else.
OF_RECORDS = {
    'isolate_aggregates.record',
    'isolate_aggregates.examination',
    'isolate_aggregates.nova.records',
    'isolate_aggregates.nova.recorder',
    'isolate_aggregates.nova.shadow',
}
# It is imported with the first request without a host.
AT_FIRST_FAILURE = {'isolate_aggregates.examination'}


def plugin():
    """Return the modules of the plugin with their files."""
    package = ROOT / 'isolate_aggregates'
    files = {}
    for path in package.rglob('*.py'):
        parts = path.relative_to(package.parent).with_suffix('').parts
        name = '.'.join(parts).removesuffix('.__init__')
        if not f'{name}.'.startswith(
            tuple(f'{package.name}.{one}.' for one in ELSEWHERE)
        ):
            files[name] = path
    return files


def walked(directory, options=''):
    """Return what ``walk.py`` prints, with options of this package."""
    path = directory / 'nova.conf'
    path.write_text(ON_SQLITE.format(directory) + options, 'utf-8')
    return starts(path, 'walk.py')


@pytest.fixture(scope='module')
def too_long(tmp_path_factory):
    """Return what is loaded with a query that is too long."""
    limit = '[isolate_aggregates]\nmax_query_length = 400\n'
    directory = tmp_path_factory.mktemp('too-long')
    return {*walked(directory, limit)['modules']}


@pytest.fixture(scope='module')
def loaded(tmp_path_factory, too_long):
    """Return what Nova loads, with all options of ours."""
    directory = tmp_path_factory.mktemp('start')
    path = directory / 'nova.conf'
    path.write_text(
        f'{ALL}scheduler_metrics_directory = {directory}\n', 'utf-8'
    )
    found = starts(path)
    return {*found['modules'], *found['of_nova_api'], *too_long}


def test_nova_loads_every_module_of_the_plugin(loaded):
    assert sorted(plugin().keys() - loaded) == sorted(AT_FIRST_FAILURE)


def test_nova_loads_no_other_module_of_ours(loaded):
    assert sorted(loaded - plugin().keys()) == []


def test_without_records_nothing_of_them_is_loaded(tmp_path):
    found = walked(tmp_path, '[isolate_aggregates]\ndecisions = none\n')
    assert not OF_RECORDS & {*found['modules']}


def test_a_default_request_loads_no_more_than_it_needs(tmp_path, too_long):
    """Neither what shortens queries, nor filters that are off."""
    found = walked(tmp_path)
    only_if_too_long = too_long - {*found['modules']}
    assert 'isolate_aggregates.query_limit.shortener' in only_if_too_long
    assert not {
        f'isolate_aggregates.filters.{name}'
        for name in ('isolate_tenants', 'blazar_reservation')
    } & {*found['modules']}
    files = plugin()
    lines = sum(
        len(files[name].read_text('utf-8').splitlines())
        for name in found['modules']
    )
    changes = sum(a != b for a, b in itertools.pairwise(found['files']))
    page = ROOT / 'doc/source/contributor/architecture.rst'
    text = ' '.join(page.read_text('utf-8').split())
    said = re.search(
        r'loads (\d) thousand lines.* passes (\d+) files, and a call goes to '
        r'another file (\d+) times',
        text,
    )
    assert said, page
    assert (
        round(lines / 1000),
        len(set(found['files'])),
        changes,
    ) == tuple(map(int, said.groups()))
