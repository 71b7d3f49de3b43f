# SPDX-License-Identifier: Apache-2.0
"""Domains and their projects, as a real Keystone answers.

An answer without a project would have ``sync`` shut its servers out, so what
Keystone does not show must be an error.
"""

import dataclasses

import pytest
from real_keystone import RealKeystone

from isolate_aggregates import exception
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.domains import Project
from isolate_aggregates_tools.identity import KeystoneClient

pytest.importorskip('keystone')
pytestmark = pytest.mark.slow


@dataclasses.dataclass
class Identity:
    """What an administrator does with Keystone, and how we read it."""

    service: RealKeystone
    url: str

    @property
    def reader(self):
        """Our client, with the rights of the administrator."""
        return KeystoneClient(Connection(self.service.session(self.url)))

    def create(self, kind, **values):
        """Create a domain, a project or a user; return its id."""
        answer = self.service.session(self.url).post(
            f'{self.url}/{kind}s', json={kind: values}
        )
        return str(answer.json()[kind]['id'])

    def update(self, kind, id_, **values):
        """Change what was created."""
        self.service.session(self.url).patch(
            f'{self.url}/{kind}s/{id_}', json={kind: values}
        )

    def delete(self, kind, id_):
        """Delete what was created."""
        self.service.session(self.url).delete(f'{self.url}/{kind}s/{id_}')


@pytest.fixture(scope='module')
def service(tmp_path_factory):
    """A Keystone that is not served yet."""
    return RealKeystone(tmp_path_factory.mktemp('keystone'))


@pytest.fixture(scope='module')
def keystone(service):
    """A Keystone that returns all projects."""
    with service.serving() as url:
        yield Identity(service, url)


def test_a_domain_has_all_its_projects_and_no_others(keystone):
    sales = keystone.create('domain', name='Sales & more/50%')
    other = keystone.create('domain', name='other')
    keystone.create('project', name='theirs', domain_id=other)
    parent = keystone.create('project', name='parent', domain_id=sales)
    projects = {
        parent,
        keystone.create('project', name='off', domain_id=sales, enabled=False),
        keystone.create(
            'project', name='below', domain_id=sales, parent_id=parent
        ),
    }
    domain = keystone.reader.domain('Sales & more/50%')
    assert (domain.id, domain.projects) == (sales, projects)
    assert keystone.reader.domain(sales) == domain
    assert keystone.reader.domain_of_id(sales.upper()) is None


def test_created_and_deleted_projects_are_followed(keystone):
    lab = keystone.create('domain', name='lab')
    assert keystone.reader.domain(lab).projects == set()
    first = keystone.create('project', name='first', domain_id=lab)
    assert keystone.reader.domain(lab).projects == {first}
    second = keystone.create('project', name='second', domain_id=lab)
    keystone.delete('project', first)
    assert keystone.reader.domain(lab).projects == {second}


def test_a_disabled_domain_keeps_its_projects_until_it_is_deleted(keystone):
    closing = keystone.create('domain', name='closing')
    project = keystone.create('project', name='last', domain_id=closing)
    keystone.update('domain', closing, enabled=False)
    assert keystone.reader.domain(closing).projects == {project}
    keystone.delete('domain', closing)
    assert keystone.reader.domain_of_id(closing) is None
    with pytest.raises(errors.NotFound, match='closing'):
        keystone.reader.domain('closing')


def test_a_user_who_may_not_see_a_domain_is_told_so(keystone):
    hidden = keystone.create('domain', name='hidden')
    keystone.create('project', name='some', domain_id=hidden)
    user = keystone.create(
        'user', name='tenant', domain_id='default', password='secret'
    )
    member = keystone.create('project', name='mine', domain_id='default')
    session = keystone.service.session(keystone.url)
    [role] = session.get(f'{keystone.url}/roles?name=member').json()['roles']
    session.put(
        f'{keystone.url}/projects/{member}/users/{user}/roles/{role["id"]}'
    )
    reader = KeystoneClient(
        Connection(
            keystone.service.session(keystone.url, 'tenant', project_id=member)
        )
    )
    with pytest.raises(exception.ServiceDenied):
        reader.domain_of_id(hidden)


def test_all_domains_and_projects_have_names(keystone):
    named = keystone.create('domain', name='named & more')
    project = keystone.create(
        'project', name='off', domain_id=named, enabled=False
    )
    known = keystone.reader.everything()
    assert known.domains['default'] == 'Default'
    assert known.domains[named] == 'named & more'
    assert Project(project, 'off', named) in known.projects


def test_a_part_of_a_long_list_is_refused(service, keystone):
    large = keystone.create('domain', name='large')
    for number in range(3):
        keystone.create('project', name=f'p-{number}', domain_id=large)
    with (
        service.serving(list_limit='2') as url,
        pytest.raises(exception.ServiceError, match='list_limit'),
    ):
        Identity(service, url).reader.domain_of_id(large)
    # With a limit of 3, Keystone would mark the whole list as a part, too.
    with service.serving(list_limit='4') as url:
        domain = Identity(service, url).reader.domain_of_id(large)
        assert domain is not None
        assert len(domain.projects) == 3
