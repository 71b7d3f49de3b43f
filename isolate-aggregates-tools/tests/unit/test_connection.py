# SPDX-License-Identifier: Apache-2.0
"""The connection that a configuration file describes."""

import textwrap
import time

from cases import cases
from http_fakes import (
    AUTH_URL,
    NOVA,
    PASSWORD,
    TOKEN,
    FakeKeystone,
)
from oslo_config import cfg
import pytest

from isolate_aggregates import exception
from isolate_aggregates import options as tools_options
from isolate_aggregates.compute import NovaApi
from isolate_aggregates.rest import connection
from isolate_aggregates_tools.cli import credentials

CREDENTIALS = f"""
auth_type = password
auth_url = {AUTH_URL}
username = admin
password = {PASSWORD}
project_name = admin
user_domain_id = default
project_domain_id = default
"""


def described(path, text):
    """Return the configuration that a file with this text gives."""
    path = path / 'nova.conf'
    path.write_text(textwrap.dedent(text), 'utf-8')
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([f'--config-file={path}'])
    return conf


def refused(path, text):
    with pytest.raises(exception.ConfigError) as caught:
        connection.from_conf(described(path, text))
    return str(caught.value)


@cases(
    'text',
    {
        'in their own group': f'[isolate_aggregates]\n{CREDENTIALS}',
        'those that nova.conf has for Placement': (
            '[isolate_aggregates]\nauth_section = placement\n'
            f'[placement]\n{CREDENTIALS}'
        ),
    },
)
def test_credentials_of_the_configuration_give_a_token_and_endpoints(
    keystone, tmp_path, text
):
    conf = described(tmp_path, text)
    assert credentials._is_configured(conf)
    result = connection.from_conf(conf)
    assert result.session.get_token() == TOKEN
    assert result.adapter('compute').get_endpoint() == NOVA


def test_region_and_interfaces_choose_the_endpoint(http, tmp_path):
    FakeKeystone(http, {'placement': 'http://elsewhere.test'}, 'RegionTwo')
    conf = described(
        tmp_path,
        '[isolate_aggregates]\nregion_name = RegionTwo\n'
        f'valid_interfaces = admin, public\n{CREDENTIALS}',
    )
    result = connection.from_conf(conf)
    assert (result.region_name, result.interface) == (
        'RegionTwo',
        ('admin', 'public'),
    )
    endpoint = result.adapter('placement').get_endpoint()
    assert endpoint == 'http://elsewhere.test'


@cases(
    ('line', 'seconds'),
    {
        'by default': ('', 60),
        'as configured': ('timeout = 5', 5),
    },
)
def test_requests_have_a_timeout(tmp_path, line, seconds):
    text = f'[isolate_aggregates]\n{line}\n{CREDENTIALS}'
    result = connection.from_conf(described(tmp_path, text))
    assert result.session.timeout == seconds


def test_given_endpoints_take_precedence_over_the_catalog(keystone, tmp_path):
    result = connection.from_conf(
        described(tmp_path, f'[isolate_aggregates]\n{CREDENTIALS}')
    )
    result.endpoints['compute'] = 'http://tunnel.test'
    assert result.adapter('compute').get_endpoint() == 'http://tunnel.test'


def test_a_configuration_without_credentials_has_none(conf):
    assert not credentials._is_configured(conf)


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        pytest.param(
            '',
            '[isolate_aggregates] auth_type is not set, so there are no '
            'credentials for Nova and Placement; set it, and also auth_url, '
            'username, password and project_name.',
            id='nothing at all',
        ),
        pytest.param(
            '[isolate_aggregates]\nauth_section = placement\n[placement]\n',
            '[placement] auth_type is not set, so there are no credentials '
            'for Nova and Placement; set it, and also auth_url, username, '
            'password and project_name.',
            id='nothing in the section named',
        ),
        pytest.param(
            '[isolate_aggregates]\nauth_type = kerberos9\n',
            '[isolate_aggregates] auth_type cannot be used: The plugin '
            'kerberos9 could not be found.',
            id='an unknown auth type',
        ),
        pytest.param(
            '[isolate_aggregates]\nauth_type = password\n',
            '[isolate_aggregates] auth_type cannot be used: Auth plugin '
            'requires parameters which were not given: auth_url.',
            id='an option it needs is missing',
        ),
        *(
            pytest.param(
                f'[isolate_aggregates]\n{CREDENTIALS}password = {value}\n',
                '[isolate_aggregates] auth_type cannot be used: one of its '
                'options has a $ without the name of an option; write $$ for '
                'a dollar sign.',
                id=f'a dollar sign: {value}',
            )
            for value in ('pa$word', 'pa$word.x')
        ),
    ],
)
def test_invalid_credentials_are_refused_with_the_reason(tmp_path, text, said):
    assert refused(tmp_path, text) == f'Configuration option {said}'


@pytest.mark.parametrize(
    ('deadline', 'waited'),
    [(0.1, 1), (5, 1), (20, 5), (600, 10), (None, 10)],
)
def test_all_retries_begin_before_nobody_waits_for_them_any_more(
    http, keystone, tmp_path, monkeypatch, deadline, waited
):
    """A service that is away for a moment is read in time after that."""
    conf = described(tmp_path, f'[isolate_aggregates]\n{CREDENTIALS}')
    nova = NovaApi(connection.from_conf(conf, deadline))
    waits = []
    monkeypatch.setattr(time, 'sleep', waits.append)
    away = {'status_code': 503, 'headers': {'Retry-After': '3600'}}
    back = {'json': {'aggregates': []}}
    http.get(f'{NOVA}/os-aggregates', [away, away, away, back])
    assert nova.aggregates() == []
    assert waits == [waited] * 3
