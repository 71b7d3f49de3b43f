# SPDX-License-Identifier: Apache-2.0
"""Finds projects with Keystone's API.

It uses the auth URL, because the service catalog may have no Keystone endpoint
for the configured region or interface. See the `Identity API reference
<https://docs.openstack.org/api-ref/identity/v3/#projects>`_.
"""

from collections.abc import Mapping
from typing import Any
from urllib import parse

from keystoneauth1 import adapter
from keystoneauth1.identity import base
from oslo_utils import uuidutils

from isolate_aggregates import exception
from isolate_aggregates.rest import client
from isolate_aggregates.rest.connection import Connection

# The only domain id that is not a uuid.
_DEFAULT_DOMAIN = 'default'


class KeystoneClient:
    """Keystone's API for projects."""

    def __init__(
        self, connection: Connection, retry_delay: float | None = None
    ) -> None:
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
            retry_delay,
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
            raise exception.NotUnique('project', name, ids)
        return str(projects[0]['id'])

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
            raise exception.NotFound(
                kind, query['name'], f'Keystone at {self._service.endpoint}'
            )
        return objects

    @property
    def _root(self) -> str:
        return self._service.root('v3')
