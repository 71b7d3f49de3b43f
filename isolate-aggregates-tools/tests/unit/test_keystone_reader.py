# SPDX-License-Identifier: Apache-2.0
"""Projects are found by id or name; denied requests are reported."""

from cases import cases
from fake_projects import ACME, DOMAINS, OTHER, PROJECTS, SALES, FakeProjects
from http_fakes import AUTH_URL, TOKEN, connection
from keystoneauth1 import session, token_endpoint
import pytest
import requests_mock

from isolate_aggregates import exception
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_tools import errors
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.domains import Project
from isolate_aggregates_tools.identity import Domain, KeystoneClient


@pytest.fixture
def projects(http, keystone):
    """A Keystone with projects of the same name in two domains."""
    return FakeProjects(http)


def reader():
    """Return a reader of the cloud of these tests."""
    return KeystoneClient(connection())


@cases(
    ('name', 'domain', 'project_id'),
    {
        'an id': (ACME, None, ACME),
        'as MySQL compares ids': (ACME.upper(), None, ACME),
        'and those of domains': ('acme', SALES.upper(), OTHER),
        'a name and a domain id': ('acme', 'default', ACME),
        'a name and a domain name': ('acme', 'Default', ACME),
        'a name and a domain uuid': ('acme', SALES, OTHER),
        'the other domain': ('acme', 'sales', OTHER),
        'what URLs are made of': ('a&b=c/d', None, '3d' * 16),
        'a name like an id': ('6a' * 16, None, '5f' * 16),
    },
)
def test_a_project_is_found(projects, name, domain, project_id):
    assert reader().project(name, domain) == project_id


@pytest.mark.parametrize('name', ['lab', 'LAB', 'nobody', '7b' * 16])
def test_a_project_of_another_name_is_not_found(projects, name):
    with pytest.raises(errors.NotFound) as caught:
        reader().project(name)
    assert str(caught.value) == (
        f'There is no project with the name or id {name!r} in Keystone at '
        f'{AUTH_URL}.'
    )


def test_a_missing_domain_is_named(projects):
    with pytest.raises(errors.NotFound) as caught:
        reader().project('acme', 'mars')
    assert caught.value.kind == 'domain'


def test_a_name_in_several_domains_is_not_guessed(projects):
    with pytest.raises(tools_errors.NotUnique) as caught:
        reader().project('acme')
    assert caught.value.ids == (
        f'{ACME} (domain default)',
        f'{OTHER} (domain {SALES})',
    )


# Whom Keystone does not let look


@pytest.fixture
def denied(http, keystone):
    """Deny all requests for projects and domains."""
    http.get(
        requests_mock.ANY,
        status_code=403,
        json={'error': {'code': 403, 'message': 'You are not authorized.'}},
        additional_matcher=lambda request: request.url.startswith(
            (PROJECTS, DOMAINS)
        ),
    )


@pytest.mark.usefixtures('denied')
def test_without_permission_an_id_is_used_unchanged():
    assert reader().project(ACME) == ACME


@pytest.mark.usefixtures('denied')
@cases(
    ('domain', 'what'),
    {
        'a project': (None, "project 'acme'"),
        'of a domain id': ('default', "project 'acme'"),
        'of a domain name': ('sales', "domain 'sales'"),
    },
)
def test_without_rights_a_name_is_refused(domain, what):
    with pytest.raises(exception.ServiceDenied) as caught:
        reader().project('acme', domain)
    assert str(caught.value) == (
        f'Keystone at {AUTH_URL} does not let these credentials look up the '
        f'{what} (403); give its id, or use credentials with the admin role.'
    )


def without_keystone():
    """Return a reader with a token that is not from Keystone."""
    auth = token_endpoint.Token('http://nova.test/v2.1', TOKEN)
    return KeystoneClient(Connection(session.Session(auth)))


def test_without_keystone_an_id_is_used_unchanged(http):
    assert without_keystone().project(ACME) == ACME
    assert http.request_history == []


def test_without_keystone_a_name_is_refused(http):
    with pytest.raises(exception.ServiceError) as caught:
        without_keystone().project('acme')
    assert str(caught.value) == (
        "Keystone cannot be asked for the project 'acme': this auth type "
        'does not use Keystone; give the id.'
    )


# Answers that are of no use


@cases(
    ('answer', 'said'),
    {
        '500': ({'status_code': 500, 'text': 'oops'}, 'with 500: oops'),
        'no JSON': ({'text': '<html>'}, 'is not a JSON object'),
        'no id': (
            {'json': {'projects': [{'name': 'acme'}]}},
            "lacks expected data: KeyError('id')",
        ),
    },
)
def test_a_failed_request_is_not_an_empty_list(http, keystone, answer, said):
    http.get(PROJECTS, **answer)
    with pytest.raises(exception.ServiceError) as caught:
        reader().project('acme')
    assert said in str(caught.value)


def test_a_domain_has_its_projects(projects):
    domain = reader().domain('sales')
    assert domain == Domain(SALES, 'sales', frozenset({OTHER}))
    assert reader().domain_of_id(SALES) == domain


def test_a_missing_domain_is_not_an_empty_one(projects):
    assert reader().domain_of_id('7b' * 16) is None
    with pytest.raises(errors.NotFound):
        reader().domain('7b' * 16)


@pytest.mark.parametrize(
    'part', [{'truncated': True}, {'links': {'next': f'{PROJECTS}?page=2'}}]
)
def test_a_part_of_the_projects_is_an_error(projects, http, part):
    listed = {'projects': [{'id': OTHER, 'domain_id': SALES}], **part}
    http.get(f'{PROJECTS}?domain_id={SALES}', json=listed)
    with pytest.raises(exception.ServiceError, match='only a part'):
        reader().domain_of_id(SALES)


def test_all_projects_have_their_names(projects):
    known = reader().everything()
    assert known.domains == {'default': 'Default', SALES: 'sales'}
    assert known.projects[:2] == (
        Project(ACME, 'acme', 'default'),
        Project(OTHER, 'acme', SALES),
    )


@pytest.mark.parametrize('path', [DOMAINS, PROJECTS])
@pytest.mark.parametrize(
    'answer',
    [
        {'status_code': 403},
        {'json': {'domains': [], 'projects': [], 'truncated': True}},
        {'json': {}},
    ],
)
def test_some_of_the_names_are_not_all(projects, http, path, answer):
    http.get(path, **answer)
    with pytest.raises(exception.ServiceError):
        reader().everything()


@pytest.mark.parametrize('status', [401, 403, 500, 503])
@pytest.mark.parametrize('path', [f'{DOMAINS}/{SALES}', PROJECTS])
def test_a_denied_or_failed_answer_is_not_an_empty_domain(
    projects, http, path, status
):
    http.get(path, status_code=status)
    with pytest.raises(exception.IsolateAggregatesError):
        reader().domain_of_id(SALES)
