# SPDX-License-Identifier: Apache-2.0
"""Errors show no password of an endpoint in the service catalog."""

from http_fakes import FakeKeystone
import pytest
import requests_mock

from isolate_aggregates.rest import client


@pytest.mark.parametrize(
    'password',
    [
        *('pa55word', 'x@pa55word', 'pa55/word', '1/pa55word', 'pa55?word'),
        *('pa55#word', 'pa55 word', 'x@/pa55word', 'pa55\\word'),
        *('pa55\u2100word', 'pa55[word', "pa55'word"),
    ],
)
@pytest.mark.parametrize('port', ['1', 'x'])
def test_a_password_in_the_service_catalog_is_not_shown(
    run, in_environment, monkeypatch, password, port
):
    # Nothing listens at this port, and the other one is invalid.
    monkeypatch.setattr(client, 'RETRIES', 0)
    url = f'http://user:{password}@127.0.0.1:{port}/v2.1'
    with requests_mock.Mocker(real_http=True) as http:
        FakeKeystone(http, {'compute': url, 'placement': url, 'image': url})
        result = run('lock', 'list')
    assert result.code == 1
    assert result.err.count('\n') == 1
    for piece in ('user', 'pa55', 'word'):
        assert piece not in result.err.replace(
            'user name and password are not shown', ''
        )
