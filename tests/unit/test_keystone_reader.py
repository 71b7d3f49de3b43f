# SPDX-License-Identifier: Apache-2.0
"""Projects are found by id or name, and what may not be asked is said so."""

from collections.abc import Callable
import dataclasses
import json
from typing import Any

from http_fakes import AUTH_URL, TOKEN, FakeKeystone, connection
from keystoneauth1 import session, token_endpoint
from live_example import ISOLATE, Live
import pytest
import requests_mock

from isolate_aggregates import exception
from isolate_aggregates.cloud.keystone import KeystoneReader
from isolate_aggregates.rest.connection import Connection

PROJECTS = f'{AUTH_URL}/projects'
DOMAINS = f'{AUTH_URL}/domains'
ACME = '0a4f1e2b3c4d5e6f708192a3b4c5d6e7'
OTHER = '1b5f1e2b3c4d5e6f708192a3b4c5d6e7'
SALES = '2c6f1e2b3c4d5e6f708192a3b4c5d6e7'

Run = Callable[..., Any]


class FakeProjects:
    """Keystone's projects and domains, as far as they are read.

    :param http: Where it is to answer.
    """

    def __init__(self, http: requests_mock.Mocker) -> None:
        self.projects = [
            {'id': ACME, 'name': 'acme', 'domain_id': 'default'},
            {'id': OTHER, 'name': 'acme', 'domain_id': SALES},
            {'id': '3d' * 16, 'name': 'a&b=c/d', 'domain_id': 'default'},
            {'id': '4e' * 16, 'name': 'Lab', 'domain_id': 'default'},
            {'id': '5f' * 16, 'name': '6a' * 16, 'domain_id': 'default'},
        ]
        self.domains = [
            {'id': 'default', 'name': 'Default'},
            {'id': SALES, 'name': 'sales'},
        ]
        http.get(PROJECTS, json=lambda r, c: self._list('projects', r))
        http.get(DOMAINS, json=lambda r, c: self._list('domains', r))
        missing = {'error': {'code': 404, 'message': 'Could not find it.'}}
        for kind in ('projects', 'domains'):
            http.get(
                requests_mock.ANY,
                status_code=404,
                json=missing,
                additional_matcher=lambda r, kind=kind: r.url.startswith(
                    f'{AUTH_URL}/{kind}/'
                ),
            )
            for each in getattr(self, kind):
                url = f'{AUTH_URL}/{kind}/{each["id"]}'
                http.get(url, json={kind[:-1]: each})

    def _list(self, kind: str, request: Any) -> Any:
        # As MySQL compares.
        [name] = request.qs['name']
        [domain] = request.qs.get('domain_id', [None])
        return {
            kind: [
                each
                for each in getattr(self, kind)
                if each['name'].lower() == name.lower()
                and domain in (None, each.get('domain_id'))
            ]
        }


@pytest.fixture
def projects(
    http: requests_mock.Mocker, keystone: FakeKeystone
) -> FakeProjects:
    """A Keystone with projects of the same name in two domains."""
    return FakeProjects(http)


def reader() -> KeystoneReader:
    """Return a reader that does not wait before it tries again."""
    return KeystoneReader(connection(), retry_delay=0.001)


@pytest.mark.parametrize(
    ('name', 'domain', 'found'),
    [
        pytest.param(ACME, None, ACME, id='an id'),
        pytest.param('acme', 'default', ACME, id='a name and a domain id'),
        pytest.param('acme', 'Default', ACME, id='a name and a domain name'),
        pytest.param('acme', SALES, OTHER, id='a name and a domain uuid'),
        pytest.param('acme', 'sales', OTHER, id='the other domain'),
        pytest.param('a&b=c/d', None, '3d' * 16, id='what URLs are made of'),
        pytest.param('6a' * 16, None, '5f' * 16, id='a name like an id'),
    ],
)
def test_a_project_is_found(
    projects: FakeProjects, name: str, domain: str | None, found: str
) -> None:
    assert reader().project(name, domain) == found


@pytest.mark.parametrize('name', ['lab', 'LAB', 'nobody', '7b' * 16])
def test_a_project_of_another_name_is_not_found(
    projects: FakeProjects, name: str
) -> None:
    with pytest.raises(exception.NotFound) as caught:
        reader().project(name)
    assert str(caught.value) == (
        f'There is no project with the name or id {name!r} in Keystone at '
        f'{AUTH_URL}.'
    )


def test_a_domain_that_is_not_there_is_said_so(
    projects: FakeProjects,
) -> None:
    with pytest.raises(exception.NotFound) as caught:
        reader().project('acme', 'mars')
    assert caught.value.kind == 'domain'


def test_a_name_in_several_domains_is_not_guessed(
    projects: FakeProjects,
) -> None:
    with pytest.raises(exception.NotUnique) as caught:
        reader().project('acme')
    assert caught.value.ids == (
        f'{ACME} (domain default)',
        f'{OTHER} (domain {SALES})',
    )


# Whom Keystone does not let look


@pytest.fixture
def denied(http: requests_mock.Mocker, keystone: FakeKeystone) -> None:
    """Let nobody look for projects or domains."""
    http.get(
        requests_mock.ANY,
        status_code=403,
        json={'error': {'code': 403, 'message': 'You are not authorized.'}},
        additional_matcher=lambda request: request.url.startswith(
            (PROJECTS, DOMAINS)
        ),
    )


@pytest.mark.usefixtures('denied')
def test_without_rights_an_id_is_taken_as_it_is() -> None:
    assert reader().project(ACME) == ACME


@pytest.mark.usefixtures('denied')
@pytest.mark.parametrize(
    ('domain', 'what'),
    [
        pytest.param(None, "project 'acme'", id='a project'),
        pytest.param('default', "project 'acme'", id='of a domain id'),
        pytest.param('sales', "domain 'sales'", id='of a domain name'),
    ],
)
def test_without_rights_a_name_is_refused(
    domain: str | None, what: str
) -> None:
    with pytest.raises(exception.ServiceDenied) as caught:
        reader().project('acme', domain)
    assert str(caught.value) == (
        f'Keystone at {AUTH_URL} does not let these credentials look for the '
        f'{what} (403); give its id, or use credentials with the admin role.'
    )


def without_keystone() -> KeystoneReader:
    """Return a reader with a token that is not from Keystone."""
    auth = token_endpoint.Token('http://nova.test/v2.1', TOKEN)
    return KeystoneReader(Connection(session.Session(auth)))


def test_without_keystone_an_id_is_taken_as_it_is(
    http: requests_mock.Mocker,
) -> None:
    assert without_keystone().project(ACME) == ACME
    assert http.request_history == []


def test_without_keystone_a_name_is_refused(
    http: requests_mock.Mocker,
) -> None:
    with pytest.raises(exception.ServiceError) as caught:
        without_keystone().project('acme')
    assert str(caught.value) == (
        "Keystone can not be asked for the project 'acme': this auth type "
        'goes without Keystone; give the id.'
    )


# Answers that are of no use


@pytest.mark.parametrize(
    ('answer', 'said'),
    [
        pytest.param(
            {'status_code': 500, 'text': 'oops'}, 'with 500: oops', id='500'
        ),
        pytest.param({'text': '<html>'}, 'is not a JSON object', id='no JSON'),
        pytest.param(
            {'json': {'projects': [{'name': 'acme'}]}},
            "lacks what it should have: KeyError('id')",
            id='no id',
        ),
    ],
)
def test_what_could_not_be_read_is_not_taken_for_nothing(
    http: requests_mock.Mocker,
    keystone: FakeKeystone,
    answer: dict[str, Any],
    said: str,
) -> None:
    http.get(PROJECTS, **answer)
    with pytest.raises(exception.ServiceError) as caught:
        reader().project('acme')
    assert said in str(caught.value)


# From the command line


@pytest.fixture
def kept(
    in_environment: None,
    live: Live,
    http: requests_mock.Mocker,
    config: Callable[[str], str],
) -> str:
    """Keep linux-1 for a project; return the configuration that heeds it."""
    FakeProjects(http)
    closed, rack = live.nova.aggregates
    live.nova.aggregates[:] = [
        closed,
        dataclasses.replace(rack, metadata={'filter_tenant_id': OTHER}),
    ]
    filters = 'isolate_aggregates, isolate_tenants'
    return config(
        f'{ISOLATE}[isolate_aggregates]\nrequest_filters = {filters}\n'
    )


@pytest.mark.parametrize(
    ('asked', 'found'),
    [
        pytest.param(('acme', '--project-domain', 'sales'), 2, id='name'),
        pytest.param((OTHER,), 2, id='id'),
        pytest.param(('acme', '--project-domain', 'Default'), 1, id='other'),
        pytest.param(('Lab',), 1, id='another name'),
    ],
)
@pytest.mark.parametrize('program', ['isolate-aggregates', 'openstack'])
def test_a_project_may_be_named_on_the_command_line(
    run: Run,
    openstack: Run,
    kept: str,
    program: str,
    asked: tuple[str, ...],
    found: int,
) -> None:
    ask = ('candidates', '-f', 'json', '--flavor', 'm1.small', '--project')
    if program == 'openstack':
        option = ('--os-isolation-config-file', kept)
        finished = openstack(*option, 'isolation', *ask, *asked)
    else:
        finished = run('--config-file', kept, *ask, *asked)
    assert (finished.code, finished.err) == (0, '')
    hosts = [host['name'] for host in json.loads(finished.out)['hosts']]
    assert hosts == ['linux-1', 'linux-2'][-found:]


def test_a_name_in_several_domains_is_said_with_its_ids(
    run: Run, kept: str
) -> None:
    finished = run(
        *('--config-file', kept, 'query', '--flavor', 'm1.small'),
        *('--project', 'acme'),
    )
    assert (finished.code, finished.out) == (1, '')
    assert finished.err == (
        f"The project name 'acme' is not unique; name one of {ACME} (domain "
        f'default), {OTHER} (domain {SALES}) instead.\n'
    )
