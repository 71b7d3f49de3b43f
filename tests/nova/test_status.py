# SPDX-License-Identifier: Apache-2.0
"""The upgrade check, each check by itself and the program as a whole."""

from importlib import metadata
import os
import pathlib
import subprocess
import sys
from urllib import parse

from cases import cases
from keystoneauth1 import adapter, session, token_endpoint
import nova.conf
import nova.conf.database
import nova.conf.scheduler
from nova.db.api import models
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_upgradecheck.upgradecheck import Code
import pytest
import sqlalchemy

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates import options as tools_options
from isolate_aggregates.nova import registration
from isolate_aggregates.nova.source import NovaDatabaseSource
from isolate_aggregates.upgrade_check.checks import Checks

PLUGIN = [
    'nova.scheduler.filters.all_filters',
    'isolate_aggregates.nova.all_filters',
]


@pytest.fixture
def conf():
    """Nova's configuration with the plugin switched on."""
    fixture = config_fixture.Config(nova.conf.CONF)
    fixture.setUp()
    tools_options.register_opts(fixture.conf)
    fixture.config(
        available_filters=PLUGIN,
        enabled_filters=['ComputeFilter', 'IsolatedAggregatesFilter'],
        group='filter_scheduler',
    )
    fixture.config(enable_isolated_aggregate_filtering=True, group='scheduler')
    fixture.config(
        request_filters=['isolate_aggregates', 'blazar_reservation'],
        aggregate_source='file',
        cloud_file='examples/windows-licensing.yaml',
        group=ia_conf.GROUP,
    )
    yield fixture
    fixture.cleanUp()


def result_of(conf, name):
    found = Checks(conf.conf).result(name)
    return found.code, found.details


def test_a_configured_scheduler_passes(conf):
    assert result_of(conf, 'Nova')[0] == Code.SUCCESS
    assert result_of(conf, 'Registration') == (Code.SUCCESS, None)
    assert result_of(conf, 'Request filters') == (
        Code.SUCCESS,
        'Request filters: isolate_aggregates, blazar_reservation.',
    )
    assert result_of(conf, 'Aggregate source') == (
        Code.SUCCESS,
        '2 host aggregates.',
    )


@pytest.mark.parametrize(
    ('version', 'code'),
    [
        ('30.1.0', Code.FAILURE),
        ('31.0.0', Code.SUCCESS),
        ('34.0.0', Code.SUCCESS),
        ('35.0.0', Code.WARNING),
    ],
)
def test_nova_must_be_a_supported_release(conf, monkeypatch, version, code):
    monkeypatch.setattr(metadata, 'version', lambda name: version)
    assert result_of(conf, 'Nova')[0] == code


def test_without_nova_nothing_can_be_checked(conf, monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, 'version', absent)
    assert result_of(conf, 'Nova')[0] == Code.FAILURE
    checks = Checks(conf.conf)
    made = [(name, result.code) for name, result in checks.told()]
    assert made == [
        ('Nova', Code.FAILURE),
        # It needs only the options of this package.
        ('Names in the configuration', Code.SUCCESS),
        ('Records of servers', Code.WARNING),
    ]


def test_a_plugin_that_is_not_available_is_a_failure(conf):
    conf.config(available_filters=PLUGIN[:1], group='filter_scheduler')
    code, details = result_of(conf, 'Registration')
    assert code == Code.FAILURE
    assert 'lacks isolate_aggregates.nova.all_filters' in details


def test_a_rebuild_without_guard_is_a_warning(conf):
    conf.config(enabled_filters=['ComputeFilter'], group='filter_scheduler')
    code, details = result_of(conf, 'Registration')
    assert code == Code.WARNING
    assert 'lacks IsolatedAggregatesFilter' in details


def test_the_in_tree_filter_beside_ours_is_a_warning(conf):
    conf.config(request_filters=['isolate_tenants'], group=ia_conf.GROUP)
    code, details = result_of(conf, 'Request filters')
    assert code == Code.WARNING
    assert details.startswith("Nova's in-tree isolate_aggregates runs in")


def test_blazars_filter_beside_ours_is_a_warning(conf):
    conf.config(
        available_filters=[
            *PLUGIN,
            'blazarnova.scheduler.filters.blazar_filter.BlazarFilter',
        ],
        enabled_filters=['BlazarFilter', 'IsolatedAggregatesFilter'],
        group='filter_scheduler',
    )
    code, details = result_of(conf, 'Request filters')
    assert code == Code.WARNING
    assert details.startswith('BlazarFilter repeats')


def test_no_filter_at_all_is_a_warning(conf):
    conf.config(enable_isolated_aggregate_filtering=False, group='scheduler')
    conf.config(request_filters=['isolate_aggregates'], group=ia_conf.GROUP)
    assert result_of(conf, 'Request filters')[0] == Code.WARNING


def test_a_filter_that_is_not_installed_is_a_failure(conf):
    conf.config(request_filters=['nonesuch'], group=ia_conf.GROUP)
    code, details = result_of(conf, 'Start')
    assert code == Code.FAILURE
    assert 'nonesuch is not installed' in details
    assert result_of(conf, 'Request filters') == (code, details)


def test_a_module_is_no_host_filter(conf):
    conf.config(
        available_filters=[*PLUGIN, 'nova.scheduler.filters.all_hosts_filter'],
        group='filter_scheduler',
    )
    code, details = result_of(conf, 'Start')
    assert code == Code.FAILURE
    assert details.startswith(
        '[filter_scheduler] available_filters names '
        'nova.scheduler.filters.all_hosts_filter, which cannot be loaded ('
    )


def test_a_directory_where_nothing_can_be_counted_is_a_warning(conf, tmp_path):
    def start(directory):
        conf.config(scheduler_metrics_directory=directory, group=ia_conf.GROUP)
        return result_of(conf, 'Start')

    assert start(str(tmp_path)) == (Code.SUCCESS, None)
    # The check is no worker, so it leaves no counts.
    assert list(tmp_path.iterdir()) == []
    assert start(f'{tmp_path}/gone') == (
        Code.WARNING,
        f'[isolate_aggregates] scheduler_metrics_directory is {tmp_path}/gone,'
        ' where nothing can be written (No such file or directory), so '
        'nothing is counted for Prometheus.',
    )


def test_tags_for_a_filter_that_is_off_are_a_warning(conf):
    assert result_of(conf, 'Switched-off filters') == (Code.SUCCESS, None)
    conf.config(enable_isolated_aggregate_filtering=False, group='scheduler')
    code, details = result_of(conf, 'Switched-off filters')
    assert code == Code.WARNING
    assert details.startswith(
        'aggregate win-hosts: the tags for the request filter '
        'isolate_aggregates have no effect'
    )
    conf.config(cloud_file='/nonexistent.yaml', group=ia_conf.GROUP)
    assert result_of(conf, 'Switched-off filters')[0] == Code.FAILURE


def test_a_tag_that_does_not_work_is_a_warning(conf, tmp_path):
    path = tmp_path / 'cloud.yaml'
    path.write_text(
        'version: 1\naggregates:\n- name: typo\n'
        '  metadata: {"trait:CUSTOM_A": " required"}\n'
    )
    conf.config(cloud_file=str(path), group=ia_conf.GROUP)
    assert result_of(conf, 'Switched-off filters') == (
        Code.WARNING,
        'aggregate typo: trait:CUSTOM_A= required isolates nothing; the '
        "value must be 'required'.",
    )


def test_a_source_that_cannot_be_read_is_a_failure(conf):
    conf.config(cloud_file='/nonexistent.yaml', group=ia_conf.GROUP)
    assert result_of(conf, 'Aggregate source') == (
        Code.FAILURE,
        '/nonexistent.yaml cannot be read: No such file or directory.',
    )


PLACEMENT = 'http://placement.test'


NO_PROVIDERS = {
    'url': f'{PLACEMENT}/resource_providers',
    'json': {'resource_providers': []},
}


def adapter_of(service):
    return adapter.Adapter(
        session.Session(auth=token_endpoint.Token(PLACEMENT, 'token')),
        service_type=service,
    )


@cases(
    ('answer', 'code', 'said'),
    {
        'new': ({'json': {'resource_providers': []}}, Code.SUCCESS, None),
        'too old': (
            {
                'status_code': 406,
                'json': {'errors': [{'max_version': '1.30'}]},
            },
            Code.FAILURE,
            'Placement at http://placement.test offers microversions up to '
            '1.30; forbidding aggregates needs 1.32 (Train).',
        ),
    },
)
def test_placement_must_support_forbidden_aggregates(
    conf, monkeypatch, requests_mock, answer, code, said
):
    requests_mock.get(f'{PLACEMENT}/resource_providers', **answer)
    monkeypatch.setattr('nova.utils.get_ksa_adapter', adapter_of)
    assert result_of(conf, 'Placement') == (code, said)


@pytest.mark.parametrize(
    ('configured', 'code', 'said'),
    [
        (4000, Code.SUCCESS, 'max_query_length = 4000 fits.'),
        (1500, Code.SUCCESS, 'max_query_length = 1500 is safe; with 3900'),
        (8000, Code.FAILURE, 'cannot be scheduled; set it to 3900, or'),
        (0, Code.FAILURE, 'cannot be scheduled; set it to 3900, or'),
    ],
)
def test_the_measured_limit_is_compared_with_the_configured_one(
    conf, monkeypatch, requests_mock, configured, code, said
):
    def answer(request, context):
        if len(parse.urlsplit(request.url).query) > 4058:
            context.status_code = 414
        return {'allocation_requests': [], 'provider_summaries': {}}

    requests_mock.get(f'{PLACEMENT}/allocation_candidates', json=answer)
    requests_mock.get(**NO_PROVIDERS)
    monkeypatch.setattr('nova.utils.get_ksa_adapter', adapter_of)
    conf.config(max_query_length=configured, group=ia_conf.GROUP)
    found, details = result_of(conf, 'Query limit')
    assert found == code
    assert said in details


def test_a_limit_that_cannot_be_found_is_a_failure(
    conf, monkeypatch, requests_mock
):
    requests_mock.get(f'{PLACEMENT}/allocation_candidates', status_code=503)
    requests_mock.get(**NO_PROVIDERS)
    monkeypatch.setattr('nova.utils.get_ksa_adapter', adapter_of)
    code, details = result_of(conf, 'Query limit')
    assert code == Code.FAILURE
    assert 'with 503' in details


def cloud_of(tmp_path, hosts):
    """Return a file with aggregates that are locked alike."""
    lines = ['version: 1', 'providers:']
    for host in sorted(set(hosts) - {None}):
        lines.append(f'- {{name: {host}, host: {host}, inventories: {{}}}}')
    lines.append('aggregates:')
    for number, host in enumerate(hosts):
        lines.append(
            f'- {{name: a{number}, hosts: [{host or ""}], '
            'metadata: {"trait:CUSTOM_A": required}}'
        )
    path = tmp_path / 'cloud.yaml'
    path.write_text('\n'.join(lines))
    return str(path)


@cases(
    ('hosts', 'limit', 'code', 'said'),
    {
        'short enough': (
            ['h1', 'h2', 'h3'],
            3500,
            Code.SUCCESS,
            'At most 3 aggregates are forbidden.',
        ),
        'shortened': (
            ['h1', 'h2', 'h3'],
            142,
            Code.SUCCESS,
            'Of 3 forbidden aggregates, a query names 1; rollups stand for 2, '
            'and 0 are left to IsolatedAggregatesFilter. With a larger '
            'max_query_length, which the web server in front of Placement has '
            'to take, it names more.',
        ),
        'no room': (
            ['h1', 'h2', 'h3'],
            60,
            Code.WARNING,
            'Of 3 forbidden aggregates, a query names 0; rollups stand for 0, '
            'and 3 are left to IsolatedAggregatesFilter. With a larger '
            'max_query_length, which the web server in front of Placement has '
            'to take, it names more.',
        ),
        'too long': (
            ['h1', 'h2', 'h3'],
            9,
            Code.FAILURE,
            'Request refused: the query to Placement would take 10 bytes for '
            '0 required aggregates and the resources, more than '
            '[isolate_aggregates] max_query_length = 9; raise '
            'max_query_length, and the limit of the web server in front of '
            'Placement.',
        ),
    },
)
def test_queries_must_fit(conf, tmp_path, hosts, limit, code, said):
    conf.config(
        enabled_filters=['IsolatedAggregatesFilter'], group='filter_scheduler'
    )
    conf.config(
        cloud_file=cloud_of(tmp_path, hosts),
        max_query_length=limit,
        request_filters=['isolate_aggregates'],
        group=ia_conf.GROUP,
    )
    assert result_of(conf, 'Query length') == (code, said)


def test_without_the_host_filter_queries_have_to_fit_as_they_are(
    conf, tmp_path
):
    conf.config(
        cloud_file=cloud_of(tmp_path, ['h1', 'h2']),
        max_query_length=60,
        request_filters=['isolate_aggregates'],
        group=ia_conf.GROUP,
    )
    conf.config(enabled_filters=['ComputeFilter'], group='filter_scheduler')
    code, message = result_of(conf, 'Query length')
    assert code is Code.FAILURE
    assert 'without IsolatedAggregatesFilter' in message


@pytest.fixture
def nova_conf(tmp_path):
    """A nova.conf with a database that has aggregates' tables."""
    database = f'sqlite:///{tmp_path}/nova_api.db'
    models.BASE.metadata.create_all(sqlalchemy.create_engine(database))
    path = tmp_path / 'nova.conf'
    path.write_text(
        f'[api_database]\nconnection = {database}\n'
        '[placement]\n'
        'auth_type = none\n'
        'endpoint_override = http://127.0.0.1:9\n'
        '[filter_scheduler]\n'
        'available_filters = nova.scheduler.filters.all_filters\n'
        'available_filters = isolate_aggregates.nova.all_filters\n'
        'enabled_filters = IsolatedAggregatesFilter\n'
        '[scheduler]\n'
        'enable_isolated_aggregate_filtering = true\n'
    )
    return path


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        pytest.param(
            '[isolate_aggregates]\naggregate_source = nova',
            ['0 host aggregates'],
            id='database',
        ),
        pytest.param(
            '[isolate_aggregates]\naggregate_source = novaclient',
            ['[isolate_aggregates] auth_type'],
            id='no credentials',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            '[isolate_aggregates]\nmax_query_length = long',
            ['[isolate_aggregates] max_query_length cannot be used'],
            id='a value that cannot be used',
        ),
        pytest.param(
            '[isolate_aggregates]\nmax_query_length =',
            ['[isolate_aggregates] max_query_length is empty'],
            id='an empty value',
        ),
        pytest.param(
            '[api_database]\nconnection = postgresql+pg8000://db/nova_api',
            ['[api_database] connection cannot be used'],
            id='a driver that is not installed',
        ),
    ],
)
def test_the_program_reads_nova_conf_and_ends_with_the_worst_result(
    nova_conf, options, said
):
    # osprofiler is installed with Glance and Keystone; Nova's database then
    # needs its options.
    metadata.version('osprofiler')
    with nova_conf.open('a') as file:
        file.write(f'{options}\n')
    command = [
        sys.executable,
        '-m',
        'isolate_aggregates.upgrade_check.status',
    ]
    result = subprocess.run(
        [*command, '--config-file', nova_conf, 'upgrade', 'check'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'Traceback' not in result.stdout + result.stderr
    # Placement does not answer.
    assert result.returncode == 2
    told = ' '.join(result.stdout.replace('|', ' ').split())
    for part in said:
        assert part in told
    assert 'Query length' in told
    assert 'run "isolate-aggregates-manage record", and then set' in told


def test_a_nova_conf_that_cannot_be_read_is_reported(tmp_path):
    missing = tmp_path / 'nova.conf'
    result = subprocess.run(
        [
            *(
                sys.executable,
                '-m',
                'isolate_aggregates.upgrade_check.status',
            ),
            *('--config-file', missing, 'upgrade', 'check'),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'Traceback' not in result.stderr
    assert str(missing) in result.stderr
    assert result.returncode == 255


def check_in(home, *arguments):
    """Run the program with the files of nova-scheduler in a home directory."""
    result = subprocess.run(
        [
            *(
                sys.executable,
                '-m',
                'isolate_aggregates.upgrade_check.status',
            ),
            *arguments,
            *('upgrade', 'check'),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, 'HOME': str(home)},
    )
    assert 'Traceback' not in result.stdout + result.stderr
    return result


@pytest.mark.parametrize(
    'name', ['nova-scheduler.conf', 'nova-scheduler.conf.d/mine.conf']
)
def test_files_of_nova_scheduler_alone_are_read(nova_conf, name):
    home = nova_conf.parent
    path = home / '.nova' / name
    path.parent.mkdir(parents=True)
    nova_conf.rename(home / '.nova' / 'nova.conf')
    path.write_text('[isolate_aggregates]\nrequest_filters = nonesuch\n')
    assert 'nonesuch is not installed' in ' '.join(
        check_in(home).stdout.replace('|', ' ').split()
    )


@pytest.mark.parametrize('is_named', [False, True])
def test_a_file_that_is_not_utf_8_is_named(nova_conf, is_named):
    home = nova_conf.parent
    path = home / '.nova' / 'nova-scheduler.conf'
    path.parent.mkdir()
    path.write_bytes('# für Nova'.encode('latin-1'))
    result = check_in(
        home, *(['--config-file', str(path)] if is_named else [])
    )
    assert result.returncode == 255
    assert result.stderr == (
        f'The configuration {path} cannot be read: it is not UTF-8 text.\n'
    )


@pytest.mark.parametrize('words', [['--help'], ['upgrade', 'check']])
def test_results_that_cannot_be_written_are_one_sentence(words):
    with open('/dev/full', 'w') as full:
        result = subprocess.run(
            [
                *(
                    sys.executable,
                    '-m',
                    'isolate_aggregates.upgrade_check.status',
                ),
                *words,
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (result.returncode, result.stderr) == (
        255,
        'The output cannot be written: No space left on device.\n',
    )


def test_a_missing_database_configuration_is_a_failure(conf):
    with pytest.raises(exception.ConfigError) as caught:
        NovaDatabaseSource(conf.conf, None).aggregates()
    assert caught.value.option == '[api_database] connection'


def test_the_sample_for_nova_scheduler_passes_the_checks():
    root = pathlib.Path(__file__).parents[2]
    sample = root / 'etc/isolate-aggregates/nova-scheduler.conf.sample'
    conf = cfg.ConfigOpts()
    nova.conf.database.register_opts(conf)
    nova.conf.scheduler.register_opts(conf)
    tools_options.register_opts(conf)
    conf(
        [f'--config-file={sample}'],
        default_config_files=[],
        default_config_dirs=[],
    )
    checks = Checks(conf)
    assert checks._check_start().details is None
    assert checks._check_registration().code == Code.SUCCESS
    assert checks._check_filters().details == (
        'Request filters: isolate_aggregates.'
    )
    assert isinstance(registration.source(conf), NovaDatabaseSource)
