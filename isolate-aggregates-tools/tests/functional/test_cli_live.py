# SPDX-License-Identifier: Apache-2.0
"""``isolate-aggregates`` against a live cloud, from credentials to answer.

The cloud is the Windows licensing example: Keystone, Nova and Glance answer
as the real ones do, Placement is the real one.
"""

import json
import textwrap

from cases import cases
from http_fakes import AUTH_URL, CREDENTIALS, GLANCE, NOVA, PASSWORD, TOKEN
from live_example import ISOLATE
import pytest

from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.domains import Keystone

WINDOWS = ('--flavor', 'm1.small', '--image', 'windows-2022')
LINUX = ('--flavor', 'm1.small', '--image', 'debian-12')
LINUX_QUERY = (
    'limit=1000'
    '&member_of=%21in%3A2a451f34-a46c-59cb-8bd8-52a5c083071d'
    '&resources=DISK_GB%3A20%2CMEMORY_MB%3A2048%2CVCPU%3A1'
    '&root_required=%21COMPUTE_STATUS_DISABLED\n'
)


@pytest.fixture
def in_clouds_yaml(without_configuration, tmp_path, monkeypatch):
    """Give the credentials as the cloud ``mine`` of ``clouds.yaml``."""
    path = tmp_path / 'clouds.yaml'
    cloud = {'auth': CREDENTIALS, 'region_name': 'RegionOne'}
    path.write_text(json.dumps({'clouds': {'mine': cloud, 'other': {}}}))
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(path))


def in_configuration(auth=CREDENTIALS):
    lines = [f'{name} = {value}' for name, value in auth.items()]
    return '\n'.join(
        ['[isolate_aggregates]', 'auth_type = password', *lines, ISOLATE]
    )


def hosts(result):
    return [host['name'] for host in json.loads(result.out)['hosts']]


@pytest.mark.usefixtures('in_environment')
def test_credentials_of_the_environment_are_enough(run, live, config):
    arguments = (
        '--config-file',
        config(ISOLATE),
        'candidate',
        'list',
        '-f',
        'json',
    )
    linux = run(*arguments, *LINUX)
    assert (linux.code, linux.err) == (0, '')
    assert hosts(linux) == ['linux-1', 'linux-2']
    assert hosts(run(*arguments, *WINDOWS)) == ['win-1', 'win-2']


@pytest.mark.usefixtures('in_clouds_yaml')
def test_a_cloud_of_clouds_yaml_is_enough(run, live, config):
    linux = run(
        *('--config-file', config(ISOLATE), '--os-cloud', 'mine'),
        *('candidate', 'list', '-f', 'json', *LINUX),
    )
    assert (linux.code, linux.err) == (0, '')
    assert hosts(linux) == ['linux-1', 'linux-2']


def test_the_only_cloud_of_clouds_yaml_need_not_be_named(
    run, live, in_clouds_yaml, tmp_path, config
):
    (tmp_path / 'clouds.yaml').write_text(
        json.dumps({'clouds': {'mine': {'auth': CREDENTIALS}}})
    )
    result = run(
        '--config-file',
        config(ISOLATE),
        'candidate',
        'list',
        '--query',
        *LINUX,
    )
    assert (result.code, result.out) == (0, LINUX_QUERY)


def test_credentials_of_the_configuration_file_are_enough(run, live, config):
    linux = run(
        *('--config-file', config(in_configuration())),
        *('candidate', 'list', '-f', 'json', *LINUX),
    )
    assert (linux.code, linux.err) == (0, '')
    assert hosts(linux) == ['linux-1', 'linux-2']


@pytest.mark.usefixtures('in_environment')
def test_the_environment_takes_precedence_over_the_configuration(
    run, live, config
):
    elsewhere = {**CREDENTIALS, 'auth_url': 'http://elsewhere.test/v3'}
    path = config(in_configuration(elsewhere))
    result = run('--config-file', path, 'candidate', 'list', '--query', *LINUX)
    assert (result.code, result.out) == (0, LINUX_QUERY)


def test_auth_type_none_takes_precedence_over_the_configuration(
    run, live, config, monkeypatch
):
    monkeypatch.setenv('OS_AUTH_TYPE', 'none')
    monkeypatch.setenv('OS_COMPUTE_ENDPOINT_OVERRIDE', NOVA)
    monkeypatch.setenv('OS_IMAGE_ENDPOINT_OVERRIDE', GLANCE)
    elsewhere = {**CREDENTIALS, 'auth_url': 'http://elsewhere.test/v3'}
    path = config(in_configuration(elsewhere))
    result = run('--config-file', path, 'candidate', 'list', '--query', *LINUX)
    assert (result.code, result.out) == (0, LINUX_QUERY)


def test_the_configuration_takes_precedence_over_an_unnamed_cloud(
    run, live, in_clouds_yaml, tmp_path, config
):
    elsewhere = {**CREDENTIALS, 'auth_url': 'http://elsewhere.test/v3'}
    (tmp_path / 'clouds.yaml').write_text(
        json.dumps({'clouds': {'other': {'auth': elsewhere}}})
    )
    path = config(in_configuration())
    result = run('--config-file', path, 'candidate', 'list', '--query', *LINUX)
    assert (result.code, result.out) == (0, LINUX_QUERY)


def test_a_token_and_endpoints_do_without_keystone(run, live, config, http):
    linux = run(
        *('--config-file', config(ISOLATE)),
        *('--os-auth-type', 'admin_token', '--os-token', TOKEN),
        *('--os-endpoint', NOVA),
        *('--os-compute-endpoint-override', NOVA),
        *('--os-image-endpoint-override', GLANCE),
        *('--os-placement-endpoint-override', live.placement_url),
        *('candidate', 'list', '-f', 'json', *LINUX),
    )
    assert (linux.code, linux.err) == (0, '')
    assert hosts(linux) == ['linux-1', 'linux-2']
    assert not [r for r in http.request_history if 'keystone' in r.url]


def test_without_authentication_only_endpoints_are_needed(run, live, config):
    result = run(
        *('--config-file', config(ISOLATE), '--os-auth-type', 'none'),
        *('--os-compute-endpoint-override', NOVA),
        *('--os-image-endpoint-override', GLANCE),
        *('candidate', 'list', '--query', *LINUX),
    )
    assert (result.code, result.err) == (0, '')
    assert result.out == LINUX_QUERY


@pytest.mark.usefixtures('in_environment')
@cases(
    ('options', 'seconds'),
    {
        'by default': ((), 60),
        'as configured': (('--timeout', '5'), 5),
    },
)
def test_each_request_has_a_timeout(run, live, config, http, options, seconds):
    http.reset_mock()
    run(
        *options, '--config-file', config(ISOLATE), 'candidate', 'list', *LINUX
    )
    requests = http.request_history
    hosts = {request.hostname for request in requests}
    assert hosts >= {'keystone.test', 'nova.test', 'glance.test'}
    assert {request.timeout for request in requests} == {seconds}


@pytest.mark.usefixtures('in_environment')
@cases(
    ('host', 'found'),
    {
        'an open one': ('linux-2', ['linux-2']),
        'a locked one': ('win-1', []),
    },
)
def test_a_requested_host_is_looked_up_in_nova(run, live, config, host, found):
    result = run(
        *('--config-file', config(ISOLATE), 'candidate', 'list', '-f', 'json'),
        *(*LINUX, '--host', host),
    )
    assert hosts(result) == found


@pytest.mark.usefixtures('in_environment')
def test_a_saved_cloud_gives_the_same_answer_as_the_live_one(
    run, live, config, tmp_path
):
    arguments = (
        '--config-file',
        config(ISOLATE),
        'candidate',
        'list',
        '-f',
        'json',
    )
    before = [run(*arguments, *LINUX), run(*arguments, *WINDOWS)]
    path = str(tmp_path / 'saved.yaml')
    saved = run(
        '--config-file', config(ISOLATE), 'snapshot', 'save', '--output', path
    )
    assert (saved.code, saved.err) == (0, '')
    saved_cloud = cloud_file.load(path)
    assert saved_cloud.keystone == Keystone({})
    services = saved_cloud.services or ()
    assert {(each.host, each.is_up) for each in services} == {
        (provider.host, True) for provider in saved_cloud.providers
    }
    settings = saved_cloud.settings
    # The release of Nova is derived from its API. Unset options stay unknown.
    assert settings['isolate_aggregates', 'nova_release'] == 31
    assert ('filter_scheduler', 'enabled_filters') not in settings
    assert ('DEFAULT', 'default_schedule_zone') not in settings
    assert saved.out == (
        'Wrote 2 aggregates, 5 resource providers, 0 servers, 3 flavors and '
        '2 images to '
        f'{path}.\n'
    )
    live.stop()
    # Its settings are in the file.
    arguments = ('candidate', 'list', '-f', 'json', '--snapshot', path)
    assert before == [run(*arguments, *LINUX), run(*arguments, *WINDOWS)]


@pytest.mark.usefixtures('in_environment')
def test_a_saved_cloud_has_the_digest_of_the_live_one(
    run, live, config, tmp_path
):
    expected = tmp_path / 'expected.yaml'
    expected.write_text(
        'version: 1\n'
        'expectations: [{flavor: m1.small, never: {aggregate: win-hosts}}]\n'
    )
    saved = str(tmp_path / 'saved.yaml')
    program = ('--config-file', config(ISOLATE))
    assert run(*program, 'snapshot', 'save', '--output', saved).code == 0
    asked = ('test', str(expected), '-f', 'json')
    told, of_file = (
        json.loads(run(*program, *asked, *more).out)
        for more in ((), ('--snapshot', saved))
    )
    assert told['cloud']['source'].startswith('live cloud with Placement at')
    assert told['cloud']['sha256'] == of_file['cloud']['sha256']
    assert told['files'] == of_file['files'][:1]


@pytest.mark.usefixtures('in_environment')
def test_names_that_keystone_does_not_show_are_left_out(
    run, live, http, config, tmp_path
):
    http.get(f'{AUTH_URL}/projects', status_code=403)
    path = str(tmp_path / 'saved.yaml')
    nova = config(ISOLATE)
    saved = run('--config-file', nova, 'snapshot', 'save', '--output', path)
    assert saved.code == 0
    assert 'The names of projects are left out' in saved.err
    assert cloud_file.load(path).keystone is None


@pytest.mark.usefixtures('in_environment')
def test_the_default_zone_is_saved(run, live, config, tmp_path):
    path = str(tmp_path / 'saved.yaml')
    nova = config('[DEFAULT]\ndefault_schedule_zone = az$$1\n')
    assert (
        run('--config-file', nova, 'snapshot', 'save', '--output', path).code
        == 0
    )
    settings = cloud_file.load(path).settings
    assert settings['DEFAULT', 'default_schedule_zone'] == 'az$1'


@pytest.mark.usefixtures('in_environment')
def test_no_secret_is_shown_or_saved_even_when_debugging(
    run, live, config, tmp_path
):
    path = tmp_path / 'saved.yaml'
    options = ('--debug', '-v', '--config-file', config(in_configuration()))
    shown = ''
    for command in (
        ('candidate', 'list', *LINUX),
        ('candidate', 'list', '--query', *LINUX),
        ('snapshot', 'save', '--output', str(path)),
        ('candidate', 'list', '--query', '--flavor', 'nobody'),
    ):
        result = run(*options, *command)
        shown += result.out + result.err
    # There is something to look at.
    assert 'X-Auth-Token' in shown
    shown += path.read_text('utf-8')
    assert PASSWORD not in shown
    assert TOKEN not in shown


@pytest.mark.usefixtures('in_environment')
def test_tagged_aggregates_without_the_option_are_warned_about(run, live):
    result = run('candidate', 'list', '--query', *LINUX)
    assert result.code == 0
    assert result.err == textwrap.dedent("""\
        Aggregates tagged trait:<NAME>=required: 1; no configuration was \
        read, so the tag counts as without effect here; specify nova.conf \
        with --config-file (openstack: --os-isolation-config-file).
    """).replace('        ', '')
