# SPDX-License-Identifier: Apache-2.0
"""Answers as Keystone: tokens, the catalog, and the projects of the file."""

from collections.abc import Iterable, Mapping
import re
import secrets
from typing import Any

from isolate_aggregates_tools.domains import Keystone, Project
from isolate_aggregates_tools.rehearse.exchange import (
    Answer,
    Refused,
    Request,
    Unknown,
    check_query,
)
from isolate_aggregates_tools.rehearse.world import World

REGION = 'RegionOne'
USER = 'admin'
_DOMAIN = {'id': 'default', 'name': 'Default'}
# That of the tool, where the cloud has no such project.
_PROJECT = Project('ad0000000000000000000000000000ad', USER, _DOMAIN['id'])
# What a cloud file does not say of projects, domains and services.
_PLAIN: Mapping[str, Any] = {'enabled': True, 'description': ''}
_ISSUED = '2026-01-01T00:00:00.000000Z'
_EXPIRES = '2099-01-01T00:00:00.000000Z'

# By type; whatever is not held is answered with an error that says so.
_SERVICES: Mapping[str, tuple[str, str]] = {
    'identity': ('keystone', '/identity/v3'),
    'compute': ('nova', '/compute/v2.1'),
    'placement': ('placement', '/placement'),
    'image': ('glance', '/image'),
    **{
        kind: (name, f'/not-held/{name}')
        for kind, name in (
            ('network', 'neutron'),
            ('block-storage', 'cinder'),
            ('volumev3', 'cinderv3'),
            ('object-store', 'swift'),
            ('orchestration', 'heat'),
            ('baremetal', 'ironic'),
            ('load-balancer', 'octavia'),
            ('dns', 'designate'),
            ('key-manager', 'barbican'),
            ('reservation', 'blazar'),
            ('instance-ha', 'masakari'),
            ('accelerator', 'cyborg'),
        )
    },
}


def own_project(known: Keystone | None) -> Project:
    """Return the project that the tool works in."""
    key = _PROJECT.name, _PROJECT.domain
    projects = known.projects if known else ()
    some = (one for one in projects if (one.name, one.domain) == key)
    return next(some, _PROJECT)


class Identity:
    """Keystone's API: one administrator, whose password is new each time.

    :param url: The URL of the local API.
    :param regions: The names of the regions that tools may ask for.
    """

    def __init__(
        self, world: World, url: str, regions: Iterable[str] = ()
    ) -> None:
        self._world = world
        self._url = url
        self._regions = sorted({REGION, *regions})
        self._known = world.before.keystone
        # Its names, or the ids that the file names anywhere.
        known = self._known or Keystone(
            {},
            tuple(
                Project(key, key, _DOMAIN['id'])
                for key in sorted(world.projects)
            ),
        )
        self._domains = {_DOMAIN['id']: _DOMAIN['name'], **known.domains}
        self._project = own_project(self._known)
        self._projects = dict.fromkeys((*known.projects, self._project))
        self.password = secrets.token_urlsafe(16)
        self.token = secrets.token_urlsafe(24)

    def answer(self, asked: Request) -> Answer:
        path = asked.path.rstrip('/')
        if path in ('', '/v3') and asked.method == 'GET':
            return self._versions(path)
        if path == '/v3/auth/tokens' and asked.method == 'POST':
            self._check(asked.body)
            headers = {'X-Subject-Token': self.token}
            return Answer(201, {'token': self._token()}, headers)
        if asked.method != 'GET':
            raise Unknown
        if path == '/v3/auth/tokens':
            headers = {'X-Subject-Token': self.token}
            return Answer(200, {'token': self._token()}, headers)
        return self._list(asked, path)

    def _versions(self, path: str) -> Answer:
        version = {
            'id': 'v3.14',
            'status': 'stable',
            'updated': '2020-04-07T00:00:00Z',
            'links': [{'rel': 'self', 'href': f'{self._url}/identity/v3/'}],
            'media-types': [],
        }
        if path:
            return Answer(200, {'version': version})
        return Answer(300, {'versions': {'values': [version]}})

    def _list(self, asked: Request, path: str) -> Answer:
        match = re.fullmatch('/v3/(?:auth/)?([a-z]+)(?:/([^/]+))?', path)
        kinds = {
            'projects': [
                {
                    'id': one.id,
                    'name': one.name,
                    'domain_id': one.domain,
                    'is_domain': False,
                    'parent_id': one.domain,
                    **_PLAIN,
                }
                for one in self._projects
            ],
            'domains': [
                {'id': key, 'name': name, **_PLAIN}
                for key, name in self._domains.items()
            ],
            'regions': [
                {'id': name, 'description': '', 'parent_region_id': None}
                for name in self._regions
            ],
            'services': [
                {'id': name, 'type': kind, 'name': name, **_PLAIN}
                for kind, (name, _) in _SERVICES.items()
            ],
        }
        if not match or match[1] not in kinds:
            raise Unknown
        kind, key = match[1], match[2]
        found = [
            {**one, 'links': {'self': self._link(kind, one['id'])}}
            for one in kinds[kind]
        ]
        if key:
            for one in found:
                if one['id'] == key:
                    return Answer(200, {kind[:-1]: one})
            if kind == 'projects' and not self._known:
                # It may well exist, with nothing in the file.
                raise Unknown(f'whether there is a project {key}')
            raise Refused(404, f'could not find {kind[:-1]}: {key}')
        check_query(asked.query, ('name', 'domain_id', 'type'), kind)
        some = [
            one
            for one in found
            if all(one.get(k, v) == v for k, v in asked.query.items())
        ]
        if (
            kind == 'projects'
            and not self._known
            and not some
            and 'name' in asked.query
        ):
            raise Unknown(f'the id of project {asked.query["name"]}')
        links = {'self': self._link(kind), 'next': None, 'previous': None}
        return Answer(200, {kind: some, 'links': links})

    def _link(self, kind: str, key: str = '') -> str:
        return f'{self._url}/identity/v3/{kind}/{key}'.rstrip('/')

    def _check(self, body: Any) -> None:
        """Check that the tool has no other credentials."""
        identity = body['auth']['identity']
        [method, *others] = identity['methods']
        given = identity.get(method, {})
        is_right = (
            given.get('user', {}).get('password') == self.password
            if method == 'password'
            else method == 'token' and given.get('id') == self.token
        )
        if others or not is_right:
            raise Unknown(
                f'credentials ({method}) other than those of the rehearsal'
            )

    def _token(self) -> dict[str, Any]:
        key = _DOMAIN['id']
        domain = {'id': key, 'name': self._domains[key]}
        return {
            'methods': ['password'],
            'user': {
                'id': 'ad' * 16,
                'name': USER,
                'domain': domain,
                'password_expires_at': None,
            },
            'project': {
                'id': self._project.id,
                'name': USER,
                'domain': domain,
            },
            'roles': [
                {'id': name, 'name': name}
                for name in ('admin', 'member', 'reader')
            ],
            'is_domain': False,
            'issued_at': _ISSUED,
            'expires_at': _EXPIRES,
            'audit_ids': ['rehearsal'],
            'catalog': [
                {
                    'id': name,
                    'type': kind,
                    'name': name,
                    'endpoints': [
                        {
                            'id': f'{name}-{interface}-{region}',
                            'interface': interface,
                            'region': region,
                            'region_id': region,
                            'url': self._url + path,
                        }
                        for interface in ('public', 'internal', 'admin')
                        for region in self._regions
                    ],
                }
                for kind, (name, path) in _SERVICES.items()
            ],
        }
