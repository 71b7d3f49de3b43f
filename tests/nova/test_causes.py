# SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong in a nova.conf, the upgrade check says it once."""

import pathlib

from cases import cases
import nova.conf
from oslo_config import fixture as config_fixture
from oslo_upgradecheck.upgradecheck import Code
import pytest

from isolate_aggregates import options
from isolate_aggregates.upgrade_check import checks, status

ROOT = pathlib.Path(__file__).parents[2]
RIGHT = f"""\
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = isolate_aggregates.nova.all_filters
enabled_filters = ComputeFilter,IsolatedAggregatesFilter
[scheduler]
enable_isolated_aggregate_filtering = true
[isolate_aggregates]
request_filters = isolate_aggregates
servers_recorded = true
aggregate_source = file
cloud_file = {ROOT}/examples/windows-licensing.yaml
"""
SWITCH = 'enable_isolated_aggregate_filtering = true\n'
AVAILABLE = 'available_filters = isolate_aggregates.nova.all_filters\n'
# The checks that need nothing else, and all others.
ALONE = {'Nova', 'Names in the configuration', 'Records of servers'}
BEHIND_START = {*checks.CHECKS} - ALONE - {'Start'}


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Return a function that checks the text of a nova.conf.

    It returns the results except for success: code, details and names of the
    checks. Placement answers as it should.
    """
    conf = nova.conf.CONF
    for name in ('Placement', 'Query limit'):
        answered = checks.CHECKS[name]._replace(
            make=lambda _: checks.Result(Code.SUCCESS)
        )
        monkeypatch.setitem(checks.CHECKS, name, answered)

    def of_text(text):
        path = tmp_path / 'nova.conf'
        path.write_text(text)
        options.register_opts(conf)
        conf(
            [f'--config-file={path}'],
            default_config_files=[],
            default_config_dirs=[],
        )
        return [
            (name, result.code, result.details)
            for name, result in checks.Checks(conf).told()
            if result.code != Code.SUCCESS
        ]

    with config_fixture.Config(conf):
        yield of_text
    conf.clear()


def test_a_correct_file_is_answered_with_success(told):
    assert told(RIGHT) == []


@cases(
    ('right', 'wrong', 'name', 'code', 'said'),
    {
        'a misspelt option': (
            SWITCH,
            SWITCH.replace('enable_isolated', 'enable_isolate'),
            'Names in the configuration',
            Code.FAILURE,
            '(did you mean enable_isolated_aggregate_filtering?)',
        ),
        'an option in another section': (
            f'[scheduler]\n{SWITCH}',
            f'[pci]\n{SWITCH}',
            'Names in the configuration',
            Code.FAILURE,
            'has no effect there; move it to [scheduler]',
        ),
        'a misspelt section': (
            '[isolate_aggregates]\nrequest_filters = isolate_aggregates\n',
            '[isolated_aggregates]\nrequest_filters = isolate_aggregates\n'
            '[isolate_aggregates]\nrequest_filters = isolate_aggregates\n',
            'Names in the configuration',
            Code.WARNING,
            '(did you mean isolate_aggregates?)',
        ),
        'a filter that is off': (
            SWITCH,
            SWITCH.replace('true', 'false'),
            'Request filters',
            Code.WARNING,
            'has isolate_aggregates, which does not run while',
        ),
        'no filter': (
            'request_filters = isolate_aggregates',
            'request_filters =',
            'Request filters',
            Code.WARNING,
            "Nova's in-tree isolate_aggregates runs in addition",
        ),
        'an unknown filter': (
            'request_filters = isolate_aggregates',
            'request_filters = isolate_agregates',
            'Start',
            Code.FAILURE,
            'isolate_agregates is not installed',
        ),
        'the plugin is not available': (
            AVAILABLE,
            '',
            'Registration',
            Code.FAILURE,
            'available_filters lacks isolate_aggregates.nova.all_filters',
        ),
        'an unknown host filter': (
            '= ComputeFilter',
            '= ComputFilter',
            'Start',
            Code.FAILURE,
            'ComputFilter (did you mean ComputeFilter?)',
        ),
        'a module that does not exist': (
            'isolate_aggregates.nova.all_filters',
            'isolate_aggregates.all_filters',
            'Start',
            Code.FAILURE,
            'isolate_aggregates.all_filters, which cannot be loaded (module '
            "'isolate_aggregates' has no attribute 'all_filters')",
        ),
        'no credentials': (
            'aggregate_source = file',
            'aggregate_source = novaclient',
            'Start',
            Code.FAILURE,
            '[isolate_aggregates] auth_type is not set',
        ),
        'an unknown kind of credentials': (
            'aggregate_source = file',
            'aggregate_source = novaclient\nauth_type = passwort',
            'Start',
            Code.FAILURE,
            '[isolate_aggregates] auth_type',
        ),
        'no database': (
            'aggregate_source = file',
            'aggregate_source = nova',
            'Aggregate source',
            Code.FAILURE,
            '[api_database] connection',
        ),
        'a database without a driver': (
            'aggregate_source = file',
            'aggregate_source = nova\n[api_database]\n'
            'connection = postgresql+pg8000://db/nova_api\n'
            '[isolate_aggregates]',
            'Aggregate source',
            Code.FAILURE,
            '[api_database] connection cannot be used',
        ),
        'an unknown source': (
            'aggregate_source = file',
            'aggregate_source = files',
            'Start',
            Code.FAILURE,
            'files',
        ),
        'a cloud file that does not exist': (
            'windows-licensing.yaml',
            'none.yaml',
            'Aggregate source',
            Code.FAILURE,
            'none.yaml cannot be read: No such file or directory',
        ),
        'a cloud file that is none': (
            'examples/windows-licensing.yaml',
            'README.rst',
            'Aggregate source',
            Code.FAILURE,
            'README.rst',
        ),
        'no number': (
            '[scheduler]\n',
            '[scheduler]\nmax_placement_results = many\n',
            'Start',
            Code.FAILURE,
            "[scheduler] max_placement_results cannot be used: 'many'",
        ),
        'a number that is too small': (
            '[isolate_aggregates]\n',
            '[isolate_aggregates]\nmax_query_length = -5\n',
            'Start',
            Code.FAILURE,
            '[isolate_aggregates] max_query_length cannot be used',
        ),
        'neither true nor false': (
            SWITCH,
            SWITCH.replace('true', 'maybe'),
            'Start',
            Code.FAILURE,
            'enable_isolated_aggregate_filtering cannot be used',
        ),
        'no records': (
            'servers_recorded = true',
            '',
            'Records of servers',
            Code.WARNING,
            'run "isolate-aggregates-manage record"',
        ),
    },
)
def test_a_mistake_is_told_once(told, right, wrong, name, code, said):
    assert right in RIGHT
    [(found, how_bad, details)] = told(RIGHT.replace(right, wrong))
    assert (found, how_bad) == (name, code)
    assert said in details
    if name == 'Start':
        _, _, others = details.partition('these fail or cannot be made: ')
        assert {*others.rstrip('.').split(', ')} == BEHIND_START


@pytest.mark.parametrize(
    'arguments',
    [
        ('--config-file', 'a.conf', 'upgrade', 'check'),
        ('upgrade', '--config-file', 'a.conf', 'check'),
        ('upgrade', 'check', '--config-file', 'a.conf'),
    ],
)
def test_a_file_may_be_named_behind_the_command(arguments):
    assert status._files_first(arguments) == [
        *('--config-file', 'a.conf', 'upgrade', 'check')
    ]
    joined = ('upgrade', 'check', '--json', '--config-dir=a')
    assert status._files_first(joined) == [joined[-1], *joined[:-1]]
