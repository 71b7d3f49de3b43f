# SPDX-License-Identifier: Apache-2.0
"""Messages if a service or Keystone does not answer."""

from http import HTTPStatus
import socket

from cases import cases
from http_fakes import (
    AUTH_URL,
    HTML,
    LONG,
    PLACEMENT,
    client,
    connection,
    failing,
    service,
)
from keystoneauth1 import adapter, session
from keystoneauth1.identity.generic import password as generic_password
import pytest
import requests
import requests_mock

from isolate_aggregates import exception


def test_an_unknown_host_name_is_reported(monkeypatch):
    def unknown(*_args, **_kwargs):
        raise socket.gaierror(-2, 'Name or service not known')

    monkeypatch.setattr(socket, 'getaddrinfo', unknown)
    error = failing(service(client('http://placement.nowhere')))
    assert isinstance(error, exception.ServiceUnreachable)
    assert str(error) == (
        'Placement at http://placement.nowhere cannot be reached: Name or '
        'service not known; check that it is running and that this is its '
        'address.'
    )


def test_a_missing_ca_file_is_named():
    link = client('https://placement.test')
    link.session.verify = '/nowhere/ca.pem'
    assert str(failing(service(link))) == (
        'Placement at https://placement.test cannot be asked: Could not '
        'find a suitable TLS CA certificate bundle, invalid path: '
        '/nowhere/ca.pem.'
    )


@cases(
    ('status', 'headers', 'path', 'kind'),
    {
        'Apache says 414': (414, {}, LONG, exception.QueryTooLong),
        '414 is clear': (414, {}, '/traits', exception.QueryTooLong),
        'gunicorn says 400': (400, HTML, LONG, exception.QueryTooLong),
        'others say 431': (431, HTML, LONG, exception.QueryTooLong),
        'proxies of uWSGI say 502': (502, HTML, LONG, exception.QueryTooLong),
        '400, but short': (400, HTML, '/traits', exception.BadQuery),
        '400 of Placement itself': (
            400,
            {'Content-Type': 'application/json'},
            LONG,
            exception.BadQuery,
        ),
        '502, but short': (502, HTML, '/traits', exception.ServiceError),
        '500, though long': (500, HTML, LONG, exception.ServiceFailed),
    },
)
def test_answers_to_long_queries_are_recognized(
    http, status, headers, path, kind
):
    http.get(requests_mock.ANY, status_code=status, headers=headers, text='{}')
    assert type(failing(service(client(PLACEMENT)), path)) is kind


def test_a_too_long_query_is_reported_with_its_length_and_repair(http):
    http.get(requests_mock.ANY, status_code=414, headers=HTML)
    assert str(failing(service(client(PLACEMENT)), LONG)) == (
        'Placement at http://placement.test answered 414: the query of 4,014 '
        'bytes is too long. By default the maximum is about 1,600 for uWSGI, '
        '4,050 for gunicorn, 8,150 for Apache and 14,700 for HAProxy; '
        '"isolate-aggregates-status upgrade check" measures it. Raise that '
        'limit, or set [isolate_aggregates] max_query_length below it.'
    )


@cases(
    ('status', 'body', 'said'),
    {
        '401': (
            401,
            '{"error": {"message": "Expired.", "code": 401}}',
            'does not accept the token of GET /traits (401): Expired; check '
            'the credentials, and [keystone_authtoken] of the service.',
        ),
        '403': (
            403,
            '{"errors": [{"detail": "Access was denied.\\n\\n placement:'
            'traits:list is forbidden.  "}]}',
            'denied GET /traits (403): placement:traits:list is forbidden; '
            'use credentials with the admin or service role.',
        ),
        '404 that says no more than that': (
            404,
            '{"errors": [{"detail": "The resource could not be found.\\n\\n '
            '  "}]}',
            'answered GET /traits with 404: The resource could not be found.',
        ),
        'a flat message': (
            409,
            '{"code": "409 Conflict", "message": "Changed by another."}',
            'answered GET /traits with 409: Changed by another.',
        ),
        'a page in HTML': (
            500,
            '<html><head><title>500</title></head></html>',
            'answered GET /traits with 500: Internal Server Error.',
        ),
        'plain text': (
            500,
            'Out of\nmemory.',
            'answered GET /traits with 500: Out of memory.',
        ),
        '400': (
            400,
            '{"errors": [{"detail": "Malformed.\\n\\n No such trait: X.  "}]}',
            'rejected the request as invalid (400): No such trait: X.',
        ),
        'JSON of another shape': (
            500,
            '{"errors": []}',
            'answered GET /traits with 500: {"errors": []}.',
        ),
        'JSON that is not an object': (
            500,
            '["a list"]',
            'answered GET /traits with 500: ["a list"].',
        ),
        'no reason': (
            500,
            '{"errors": [{"detail": " "}]}',
            'answered GET /traits with 500: no reason was given.',
        ),
    },
)
def test_an_error_quotes_the_message_of_the_service(http, status, body, said):
    http.get(
        f'{PLACEMENT}/traits',
        status_code=status,
        reason=HTTPStatus(status).phrase,
        text=body,
    )
    error = failing(service(client(PLACEMENT)))
    assert str(error) == f'Placement at http://placement.test {said}'


@cases(
    'body',
    {
        'not JSON': '<html>Welcome to nginx</html>',
        'half of it': '{"traits": [',
        'no object': '["HW_NIC"]',
        'nothing': '',
    },
)
def test_an_answer_that_is_not_a_json_object_is_shown(http, body):
    http.get(f'{PLACEMENT}/traits', text=body)
    assert str(failing(service(client(PLACEMENT)))) == (
        'Placement at http://placement.test answered /traits with something '
        f'that is not a JSON object: {body!r}; is this the right endpoint?'
    )


def test_an_answer_with_parts_missing_names_the_part(http):
    link = service(client(PLACEMENT))
    with pytest.raises(exception.ServiceError) as caught:
        link.parsed('/traits', lambda found: found['traits'], {})
    assert str(caught.value) == (
        'Placement at http://placement.test answered /traits with JSON that '
        "lacks expected data: KeyError('traits'); is this the right endpoint?"
    )


def test_a_long_query_is_not_repeated_in_full(http):
    http.get(requests_mock.ANY, status_code=500, headers=HTML)
    message = str(failing(service(client(PLACEMENT)), LONG))
    assert len(message) < 250


# Keystone


@pytest.fixture
def through_keystone(keystone):
    return service(connection().adapter('placement'))


def test_a_wrong_password_is_a_refusal_by_keystone(keystone):
    error = failing(service(connection('wrong').adapter('placement')))
    assert isinstance(error, exception.ServiceDenied)
    assert str(error) == (
        'Keystone at http://keystone.test/v3 does not accept the credentials: '
        'The request you have made requires authentication; check the user, '
        'the password, the project and their domains.'
    )


@cases(
    ('answer', 'said'),
    {
        'an error': (
            {'status_code': 500, 'headers': HTML},
            'answered 500: Internal Server Error; check the auth URL and the '
            'credentials.',
        ),
        'no answer': (
            {'exc': requests.ConnectTimeout},
            'does not answer in time; check whether it is overloaded, or '
            'allow more seconds with --timeout or [isolate_aggregates] '
            'timeout.',
        ),
        'JSON, but no token': (
            {'json': {'token': {'expires_at': '2099-01-01T00:00:00Z'}}},
            "gave no token: KeyError('x-subject-token'); check the auth URL "
            'and the credentials.',
        ),
        'not Keystone at all': (
            {'text': '<html>Welcome to nginx</html>'},
            'gave no token: Invalid response from server; check the auth URL '
            'and the credentials.',
        ),
    },
)
def test_errors_of_keystone_are_not_blamed_on_placement(
    http, through_keystone, answer, said
):
    http.post(f'{AUTH_URL}/auth/tokens', **answer)
    error = failing(through_keystone)
    assert str(error) == f'Keystone at http://keystone.test/v3 {said}'


def test_a_keystone_that_times_out_is_unreachable(http):
    http.get('http://keystone.test', exc=requests.ConnectTimeout)
    auth = generic_password.Password('http://keystone.test', 'admin')
    client = adapter.Adapter(session.Session(auth), service_type='placement')
    error = failing(service(client))
    assert isinstance(error, exception.ServiceUnreachable)
    assert str(error).startswith(
        'Keystone at http://keystone.test does not answer in time; '
    )


def test_a_missing_password_is_named(http, keystone):
    auth = generic_password.Password(AUTH_URL, 'admin')
    client = adapter.Adapter(session.Session(auth), service_type='placement')
    assert str(failing(service(client))) == (
        'Keystone at http://keystone.test/v3 gave no token: password is a '
        'required attribute; check the auth URL and the credentials.'
    )


def test_an_expired_token_is_renewed_once(http, through_keystone):
    http.get(
        f'{PLACEMENT}/traits',
        [{'status_code': 401}, {'json': {'traits': []}}],
    )
    assert through_keystone.get('/traits') == {'traits': []}


def test_a_token_that_cannot_be_renewed_is_keystones_refusal(
    http, through_keystone
):
    assert through_keystone.endpoint == PLACEMENT
    http.get(f'{PLACEMENT}/traits', status_code=401)
    http.post(f'{AUTH_URL}/auth/tokens', status_code=401)
    error = failing(through_keystone)
    assert isinstance(error, exception.ServiceDenied)
    assert error.service == 'Keystone'


def test_a_failed_token_renewal_is_an_error_of_keystone(http, keystone):
    link = connection()
    later = service(link.adapter('placement'))
    assert later.endpoint == PLACEMENT
    link.session.invalidate()
    http.post(f'{AUTH_URL}/auth/tokens', exc=requests.ConnectTimeout)
    error = failing(later)
    assert isinstance(error, exception.ServiceUnreachable)
    assert error.service == 'Keystone'


def test_an_endpoint_of_another_region_is_not_taken(keystone):
    link = connection(region='RegionTwo').adapter('placement')
    assert str(failing(service(link))) == (
        "Placement has no endpoint in the service catalog: ['public'] "
        'endpoint for placement service in RegionTwo region not found; check '
        'the region and the interface.'
    )


def test_without_a_catalog_an_endpoint_must_be_given():
    nowhere = adapter.Adapter(
        session.Session(client(PLACEMENT).session.auth),
        service_type='placement',
    )
    nowhere.session.auth.endpoint = None
    assert str(failing(service(nowhere))) == (
        'Placement has no endpoint: this auth type has no service catalog; '
        'specify the endpoint with --os-placement-endpoint-override.'
    )


def test_an_invalid_catalog_is_an_error_of_keystone(http, through_keystone):
    http.post(
        f'{AUTH_URL}/auth/tokens',
        json={'token': {'catalog': [7], 'methods': ['password']}},
        headers={'X-Subject-Token': 'token'},
    )
    message = str(failing(through_keystone))
    assert message.startswith(
        'Keystone at http://keystone.test/v3 gave no token: '
    )


def test_a_password_in_the_address_of_a_service_is_not_shown(http):
    http.get(requests_mock.ANY, exc=requests.ConnectionError('No route'))
    error = failing(service(client('http://admin:secret@placement.test')))
    assert str(error) == (
        'Placement at http://placement.test cannot be reached: Unable to '
        'establish connection to http://placement.test/traits: No route; '
        'check that it is running and that this is its address.'
    )


def test_a_password_in_the_auth_url_is_not_shown():
    auth_url = 'http://admin:secret@127.0.0.1:1/v3'
    auth = generic_password.Password(
        auth_url, 'admin', password='x', user_domain_id='default'
    )
    client = adapter.Adapter(session.Session(auth), service_type='placement')
    message = str(failing(service(client)))
    assert 'secret' not in message
    assert message.startswith('Keystone at http://127.0.0.1:1/v3 ')
