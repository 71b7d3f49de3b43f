# SPDX-License-Identifier: Apache-2.0
"""Finds projects and domains with Keystone's API.

It uses the auth URL, because the service catalog may have no Keystone endpoint
for the configured region or interface. See the `Identity API reference
<https://docs.openstack.org/api-ref/identity/v3/#projects>`_.
"""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any, TypeVar
from urllib import parse

from keystoneauth1 import adapter
from keystoneauth1.identity import base
from oslo_utils import uuidutils

from isolate_aggregates import exception
from isolate_aggregates.rest import client
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_tools import api_client, errors
from isolate_aggregates_tools.domains import Keystone, Project

_T = TypeVar('_T')


@dataclasses.dataclass(frozen=True)
class Domain:
    """A domain of Keystone.

    :param projects: The ids of its projects, including disabled ones.
    """

    id: str
    name: str
    projects: frozenset[str] = frozenset()


# The only domain id that is not a uuid.
_DEFAULT_DOMAIN = 'default'


class KeystoneClient:
    """Keystone's API for projects."""

    def __init__(self, connection: Connection) -> None:
        auth = connection.session.auth
        self._address = (
            auth.auth_url
            if isinstance(auth, base.BaseIdentityPlugin)
            else None
        )
        self._service = client.Service(
            'Keystone',
            adapter.Adapter(
                connection.session,
                service_type='identity',
                endpoint_override=self._address,
            ),
        )

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id of a project.

        If there is no Keystone, or it denies the request, an argument that
        looks like an id is returned unchanged.

        :param name: Its id or name; an id takes precedence.
        :raises ServiceDenied: if the user may not look up names.
        """
        project_id = uuidutils.is_uuid_like(name) and self._id('project', name)
        if project_id:
            return project_id
        query = {'name': name}
        if domain:
            query['domain_id'] = self._domain(domain)
        projects = self._named('project', query)
        if len(projects) > 1:
            ids = [f'{p["id"]} (domain {p["domain_id"]})' for p in projects]
            raise errors.NotUnique('project', name, ids)
        return str(projects[0]['id'])

    def domain(self, name: str) -> Domain:
        """Return a domain with all its projects.

        :param name: Its id or name; an id takes precedence.
        :raises NotFound: if there is no such domain.
        """
        domain = self.domain_of_id(self._domain(name))
        if domain is None:
            raise errors.NotFound(
                'domain', name, f'Keystone at {self._service.endpoint}'
            )
        return domain

    def domain_of_id(self, domain_id: str) -> Domain | None:
        """Return the domain with an id and its projects; None if unknown.

        :raises ServiceError: if Keystone cannot be asked, or does not answer
            for all projects.
        """
        self._check_address()
        path = f'{self._root}/domains/{parse.quote(domain_id, safe="")}'
        # Asked first: a list of projects would be empty without an error if
        # the credentials may not see the domain.
        answer = self._service.request('GET', path, accept=(200, 404))
        if answer.status_code == 404:
            return None
        actual, name = self._service.parsed(
            path,
            lambda document: (
                str(document['domain']['id']),
                str(document['domain']['name']),
            ),
            self._service.decode(answer, path),
        )
        # Some databases compare ids case-insensitively.
        if actual != domain_id:
            return None
        projects = self._listed(
            f'projects?{parse.urlencode({"domain_id": actual})}',
            f'projects of domain {actual}',
            lambda document: frozenset(
                str(each['id'])
                for each in document['projects']
                if each['domain_id'] == actual
            ),
        )
        return Domain(actual, name, projects)

    def everything(self) -> Keystone:
        """Return all domains and projects.

        :raises ServiceError: if Keystone cannot be asked, or does not list all
            of them.
        """
        self._check_address()
        return Keystone(
            self._listed(
                'domains',
                'domains',
                lambda document: {
                    str(each['id']): str(each['name'])
                    for each in document['domains']
                },
            ),
            self._listed(
                'projects',
                'projects',
                lambda document: tuple(
                    Project(
                        str(each['id']),
                        str(each['name']),
                        str(each['domain_id']),
                    )
                    for each in document['projects']
                ),
            ),
        )

    def _check_address(self) -> None:
        if not self._address:
            raise exception.ServiceError(
                'Keystone',
                None,
                'cannot be asked for domains: this auth type does not use '
                'Keystone.',
            )

    def _listed(
        self, path: str, what: str, parse_list: Callable[[Any], _T]
    ) -> _T:
        """Return a list that must be whole.

        :param what: What is listed, in the plural.
        """
        path = f'{self._root}/{path}'

        def parsed(document: Any) -> _T:
            # Keystone may answer with a part of a long list.
            links = document.get('links') or {}
            if document.get('truncated') or links.get('next'):
                raise exception.ServiceError(
                    'Keystone',
                    self._service.endpoint,
                    f'returns only a part of the {what}; raise its '
                    'list_limit.',
                )
            return parse_list(document)

        answer = self._service.request('GET', path)
        return self._service.parsed(
            path, parsed, self._service.decode(answer, path)
        )

    def _domain(self, name: str) -> str:
        is_like_id = uuidutils.is_uuid_like(name) or name == _DEFAULT_DOMAIN
        domain_id = is_like_id and self._id('domain', name)
        return domain_id or str(self._named('domain', {'name': name})[0]['id'])

    def _id(self, kind: str, name: str) -> str | None:
        """Return an id, unchanged if it cannot be checked; None if unknown.

        Some databases compare ids case-insensitively, but Nova does not.
        """
        if not self._address:
            return name
        path = f'{self._root}/{kind}s/{parse.quote(name, safe="")}'
        answer = self._service.request('GET', path, accept=(200, 403, 404))
        if answer.status_code == 404:
            return None
        if answer.status_code == 403:
            return name
        return self._service.parsed(
            path,
            lambda document: str(document[kind]['id']),
            self._service.decode(answer, path),
        )

    def _named(
        self, kind: str, query: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        """Return the objects with a name."""
        if not self._address:
            raise exception.ServiceError(
                'Keystone',
                None,
                f'cannot be asked for the {kind} {query["name"]!r}: this auth '
                'type does not use Keystone; give the id.',
            )
        path = f'{self._root}/{kind}s?{parse.urlencode(query)}'
        answer = self._service.request('GET', path, accept=(200, 403))
        if answer.status_code == 403:
            raise exception.ServiceDenied(
                'Keystone',
                self._service.endpoint,
                f'does not let these credentials look up the {kind} '
                f'{query["name"]!r} (403); give its id, or use credentials '
                'with the admin role.',
            )
        # Some databases compare names case-insensitively.
        objects = self._service.parsed(
            path,
            lambda document: [
                {'id': each['id'], 'domain_id': each.get('domain_id')}
                for each in document[f'{kind}s']
                if each['name'] == query['name']
            ],
            self._service.decode(answer, path),
        )
        if not objects:
            raise errors.NotFound(
                kind, query['name'], f'Keystone at {self._service.endpoint}'
            )
        return objects

    @property
    def _root(self) -> str:
        return api_client.root(self._service, 'v3')
