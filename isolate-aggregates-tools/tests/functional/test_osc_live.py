# SPDX-License-Identifier: Apache-2.0
"""``openstack isolation ...`` against a live cloud, run by the real client.

Keystone, Nova and Glance are fakes, Placement is real. The client handles
credentials and regions.
"""

import json
import pathlib

from cases import cases
from http_fakes import (
    AUTH_URL,
    CREDENTIALS,
    NOVA,
    PASSWORD,
    TOKEN,
)
from live_example import ISOLATE
import pytest
import requests
import requests_mock
from sentences import sentence
import yaml

LINUX = ('--flavor', 'm1.small', '--image', 'debian-12')
WINDOWS = ('--flavor', 'm1.small', '--image', 'windows-2022')


@pytest.fixture
def clouds(without_configuration, tmp_path, monkeypatch, config):
    """Write ``clouds.yaml`` with the cloud ``mine``."""

    def write(auth=CREDENTIALS, **settings):
        cloud = {
            'auth': auth,
            'isolation_config_file': config(ISOLATE),
            **settings,
        }
        path = tmp_path / 'clouds.yaml'
        path.write_text(yaml.safe_dump({'clouds': {'mine': cloud}}))
        monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(path))

    return write


@pytest.fixture
def ask(openstack):
    """Run ``candidate list`` with options of the client."""

    def ask_cloud(*options, command='candidate list'):
        form = ('-f', 'json') if command == 'candidate list' else ()
        return openstack(
            *('--os-cloud', 'mine', *options),
            *('isolation', *command.split(), *form, *LINUX),
        )

    return ask_cloud


def hosts(result):
    """Return the hosts that a run has found."""
    assert (result.code, result.err) == (0, '')
    return [host['name'] for host in json.loads(result.out)['hosts']]


# Credentials


@pytest.mark.usefixtures('in_environment')
def test_credentials_of_the_environment_are_enough(openstack, live, config):
    option = ('--os-isolation-config-file', config(ISOLATE))
    arguments = (*option, 'isolation', 'candidate', 'list', '-f', 'json')
    assert hosts(openstack(*arguments, *LINUX)) == ['linux-1', 'linux-2']
    assert hosts(openstack(*arguments, *WINDOWS)) == ['win-1', 'win-2']


def test_a_cloud_of_clouds_yaml_is_enough(ask, live, clouds):
    clouds()
    assert hosts(ask()) == ['linux-1', 'linux-2']


def test_a_command_of_the_client_uses_one_token(ask, live, clouds, http):
    clouds()
    assert hosts(ask())
    issued = [r for r in http.request_history if r.path == '/v3/auth/tokens']
    assert [request.method for request in issued] == ['POST']


def test_options_of_the_client_take_precedence_over_clouds_yaml(
    ask, live, clouds
):
    clouds({**CREDENTIALS, 'auth_url': 'http://elsewhere.test/v3'})
    assert hosts(ask('--os-auth-url', AUTH_URL)) == ['linux-1', 'linux-2']


# How the services are called


@pytest.mark.parametrize('option', ['--os-region-name', '--os-interface'])
def test_region_and_interface_are_those_of_the_client(
    ask, live, clouds, option
):
    clouds()
    value = {'--os-region-name': 'Mars', '--os-interface': 'admin'}[option]
    message = sentence(ask(option, value, command='candidate list --query'))
    assert message.startswith('Nova has no endpoint in the service catalog: ')
    assert value in message
    right = {'--os-region-name': 'RegionOne', '--os-interface': 'public'}
    assert hosts(ask(option, right[option])) == ['linux-1', 'linux-2']


@cases(
    ('settings', 'seconds'),
    {
        'by default': ({}, 60),
        'as configured': ({'api_timeout': 5}, 5),
    },
)
def test_each_request_has_a_timeout(
    ask, live, clouds, http, settings, seconds
):
    clouds(**settings)
    http.reset_mock()
    assert hosts(ask())
    services = {'nova.test', 'glance.test'}
    requests = [r for r in http.request_history if r.hostname in services]
    assert {request.hostname for request in requests} == services
    assert {request.timeout for request in requests} == {seconds}


def test_insecure_disables_certificate_checks(ask, live, clouds, http):
    clouds()
    http.reset_mock()
    assert hosts(ask('--insecure'))
    assert {request.verify for request in http.request_history} == {False}


def test_no_secret_is_shown_even_when_debugging(openstack, live, clouds):
    clouds()
    result = openstack(
        *(
            '--debug',
            '--os-cloud',
            'mine',
            'isolation',
            'candidate',
            'list',
            '--query',
            *LINUX,
        )
    )
    # There is something to look at.
    assert 'X-Auth-Token' in result.err
    assert PASSWORD not in result.out + result.err
    assert TOKEN not in result.out + result.err


def test_a_cloud_file_needs_no_cloud_that_works(openstack, clouds, http):
    clouds({})
    root = pathlib.Path(__file__).parents[3]
    example = str(root / 'examples/windows-licensing.yaml')
    result = openstack(
        *(
            '--os-cloud',
            'mine',
            'isolation',
            'candidate',
            'list',
            '--query',
            *LINUX,
        ),
        *('--snapshot', example),
    )
    assert (result.code, result.err) == (0, '')
    assert http.request_history == []


# Errors


def test_a_wrong_password_is_one_sentence(ask, clouds, keystone):
    clouds({**CREDENTIALS, 'password': 'wrong'})
    assert sentence(ask(command='candidate list --query')) == (
        f'Keystone at {AUTH_URL} does not accept the credentials: The request '
        'you have made requires authentication; check the user, the password, '
        'the project and their domains.'
    )


def test_an_unreachable_keystone_is_one_sentence(ask, clouds, http):
    refused = ConnectionRefusedError(111, 'Connection refused')
    http.register_uri(
        requests_mock.ANY,
        requests_mock.ANY,
        exc=requests.exceptions.ConnectionError(refused),
    )
    clouds()
    message = sentence(ask(command='candidate list --query'))
    assert message.startswith(f'Keystone at {AUTH_URL} cannot be reached: ')


def test_missing_rights_are_one_sentence(ask, clouds, live, http):
    clouds()
    http.get(
        f'{NOVA}/os-aggregates',
        status_code=403,
        json={'forbidden': {'message': 'Policy does not allow it.'}},
    )
    assert sentence(ask(command='candidate list --query')) == (
        f'Nova at {NOVA} denied GET /os-aggregates (403): Policy does not '
        'allow it; use credentials with the admin or service role.'
    )


@cases(
    'text',
    {
        'no YAML': 'clouds: [',
        'other clouds': 'clouds: {other: {}}',
    },
)
def test_an_unknown_cloud_is_one_sentence(ask, clouds, tmp_path, text):
    clouds()
    (tmp_path / 'clouds.yaml').write_text(text)
    assert (
        sentence(ask(command='candidate list --query'))
        == 'Cloud mine was not found.'
    )


def test_an_unreadable_clouds_yaml_is_one_sentence(
    openstack, clouds, tmp_path
):
    clouds()
    path = tmp_path / 'clouds.yaml'
    path.write_text('clouds:\n  mine: [\n')
    assert sentence(
        openstack('isolation', 'candidate', 'list', '--query', *LINUX)
    ) == (
        f'The file {path} cannot be read: line 3: invalid YAML; put '
        'values with special characters in quotes.'
    )
