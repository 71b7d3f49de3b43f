# SPDX-License-Identifier: Apache-2.0
"""Answers as ``nova.api.openstack.compute.flavors`` and its neighbours."""

from collections.abc import Mapping
import dataclasses
import re
from typing import Any
import uuid

from oslo_utils import strutils

from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.rehearse import schemas
from isolate_aggregates_tools.rehearse.exchange import (
    Answer,
    Refused,
    Request,
    Unknown,
    check_query,
    has_more,
    page,
)
from isolate_aggregates_tools.rehearse.world import World

# Since this microversion, Nova checks the names and values of extra specs.
_VALIDATED = 86
_TRAIT = re.compile(r'trait\d*:[A-Z0-9_]+')
_AMOUNT = re.compile(r'resources\d*:[A-Z0-9_]+')
_SIZES = ('vcpus', 'ram', 'disk', 'OS-FLV-EXT-DATA:ephemeral', 'swap')
_LEASTS = {'minRam': 'ram', 'minDisk': 'disk'}
_KNOWN = (
    *('is_public', 'limit', 'marker', 'name', 'sort_key', 'sort_dir'),
    *_LEASTS,
)


class Flavors:
    """The flavors of the cloud that is held."""

    def __init__(self, world: World) -> None:
        self._world = world
        # A cloud file has neither descriptions nor factors.
        self._descriptions: dict[str, str | None] = {}
        self._factors: dict[str, float] = {}
        self._old_names = {flavor.name for flavor in world.before.flavors}

    def list(self, asked: Request, detail: str | None) -> Answer:
        query = asked.query
        check_query(
            query,
            _KNOWN,
            'flavors',
        )
        if query.get('sort_key', 'flavorid') != 'flavorid' or (
            query.get('sort_dir', 'asc') != 'asc'
        ):
            raise Unknown('flavors in another order than that of their ids')
        if 'name' in query and asked.minor < 102:
            raise Unknown('flavors by name before 2.102')
        public = _public(query.get('is_public', 'true'))
        least = {
            field: _least(name, query[name])
            for name, field in _LEASTS.items()
            if name in query
        }
        documents = [
            self._document(one, asked)
            for one in sorted(
                self._world.snapshot.flavors, key=lambda each: each.id
            )
            if public in (None, one.is_public)
            and query.get('name', one.name) == one.name
            and all(getattr(one, k) >= v for k, v in least.items())
        ]
        some = list(page(documents, query))
        found: dict[str, Any] = {'flavors': some}
        if has_more(some, query):
            found['flavors_links'] = [_next(asked, some[-1]['id'])]
        if not detail:
            basic = ('id', 'name', 'links', 'description')
            found['flavors'] = [
                {key: one[key] for key in basic if key in one} for one in some
            ]
        return Answer(200, found)

    def show(self, asked: Request, key: str) -> Answer:
        return self._answer(self._flavor(key), asked)

    def create(self, asked: Request) -> Answer:
        schemas.check(asked.body, schemas.flavor(asked.minor))
        wanted = asked.body['flavor']
        for size in _SIZES:
            if isinstance(wanted.get(size), float):
                # Its schema takes 1.0 for an integer, its database does not.
                raise Refused(500, f'Nova fails for {size} {wanted[size]}')
        one = Flavor(
            wanted['name'].strip(),
            str(wanted.get('id') or uuid.uuid4()),
            int(wanted['vcpus']),
            int(wanted['ram']),
            int(wanted['disk']),
            int(wanted.get('OS-FLV-EXT-DATA:ephemeral', 0)),
            int(wanted.get('swap', 0)),
            is_public=strutils.bool_from_string(
                wanted.get('os-flavor-access:is_public', True)
            ),
        )
        for other in self._world.snapshot.flavors:
            if one.name == other.name or one.id == other.id:
                raise Refused(409, f'there is a flavor {other.name} already')
        factor = float(wanted.get('rxtx_factor', 1.0))
        if one.name in self._old_names and (
            wanted.get('description') or factor != 1.0
        ):
            # Tools make a flavor anew if these differ.
            self._world.doubts[
                f'whether flavor {one.name} had this description and '
                'rxtx_factor before; the cloud file has neither'
            ] = None
        self._descriptions[one.id] = wanted.get('description')
        self._factors[one.id] = factor
        self._world.add(one)
        return self._answer(one, asked)

    def update(self, asked: Request, key: str) -> Answer:
        if asked.minor < 55:
            raise Refused(404, 'the resource could not be found')
        schemas.check(asked.body, schemas.FLAVOR_UPDATE)
        one = self._flavor(key)
        self._descriptions[key] = asked.body['flavor']['description']
        return self._answer(one, asked)

    def delete(self, asked: Request, key: str) -> Answer:
        self._world.remove(self._flavor(key))
        return Answer(202)

    def list_specs(self, asked: Request, key: str) -> Answer:
        specs = dict(self._flavor(key).extra_specs)
        return Answer(200, {'extra_specs': specs})

    def show_spec(self, asked: Request, key: str, name: str) -> Answer:
        specs = self._flavor(key).extra_specs
        if name not in specs:
            raise Refused(404, f'flavor {key} has no extra spec {name}')
        return Answer(200, {name: specs[name]})

    def add_specs(self, asked: Request, key: str) -> Answer:
        schemas.check(asked.body, schemas.EXTRA_SPECS)
        return self._set(asked, key, asked.body['extra_specs'])

    def set_spec(self, asked: Request, key: str, name: str) -> Answer:
        schemas.check(asked.body, schemas.EXTRA_SPEC)
        _check_names(asked.body, asked.minor)
        if name not in asked.body:
            raise Refused(400, 'the body and the URI do not match')
        return self._set(asked, key, asked.body)

    def delete_spec(self, asked: Request, key: str, name: str) -> Answer:
        old = self._flavor(key)
        if name not in old.extra_specs:
            raise Refused(404, f'flavor {key} has no extra spec {name}')
        specs = {k: v for k, v in old.extra_specs.items() if k != name}
        self._world.change(old, dataclasses.replace(old, extra_specs=specs))
        return Answer(200)

    def list_access(self, asked: Request, key: str) -> Answer:
        one = self._flavor(key)
        if one.is_public:
            raise Refused(404, f'flavor {one.name} is public')
        return Answer(200, _access(one))

    def act(self, asked: Request, key: str) -> Answer:
        """Add or remove the access of a project."""
        body = asked.body if isinstance(asked.body, dict) else {}
        [action] = body or ['']
        if action not in schemas.FLAVOR_ACTIONS:
            raise Refused(400, f'there is no action {action}')
        schemas.check(body, schemas.FLAVOR_ACTIONS[action])
        project = body[action]['tenant']
        is_known = project in self._world.projects
        if (
            action == 'addTenantAccess'
            and self._world.before.keystone
            and not is_known
        ):
            # Nova asks Keystone, before it looks for the flavor.
            raise Refused(400, f'{project} is not a valid project')
        old = self._flavor(key)
        if action == 'addTenantAccess':
            if old.is_public and asked.minor >= 7:
                raise Refused(409, f'flavor {old.name} is public')
            if project in old.projects:
                raise Refused(409, f'project {project} has access already')
            if not is_known:
                self._world.doubts[
                    f'whether project {project} exists; Nova refuses access '
                    'for others'
                ] = None
        elif project not in old.projects:
            raise Refused(404, f'project {project} has no access')
        new = dataclasses.replace(old, projects=old.projects ^ {project})
        self._world.change(old, new)
        return Answer(200, _access(new))

    def _set(
        self, asked: Request, key: str, values: Mapping[str, Any]
    ) -> Answer:
        _check_names(values, asked.minor)
        old = self._flavor(key)
        texts = {name: str(value) for name, value in values.items()}
        specs = {**old.extra_specs, **texts}
        if specs != old.extra_specs:
            new = dataclasses.replace(old, extra_specs=specs)
            self._world.change(old, new)
        return Answer(200, asked.body)

    def _answer(self, one: Flavor, asked: Request) -> Answer:
        return Answer(200, {'flavor': self._document(one, asked)})

    def _document(self, one: Flavor, asked: Request) -> dict[str, Any]:
        minor = asked.minor
        document: dict[str, Any] = {
            'id': one.id,
            'name': one.name,
            'links': [
                {'rel': rel, 'href': f'{asked.url}/flavors/{one.id}'}
                for rel in ('self', 'bookmark')
            ],
            'vcpus': one.vcpus,
            'ram': one.ram,
            'disk': one.disk,
            'OS-FLV-EXT-DATA:ephemeral': one.ephemeral,
            'swap': one.swap if minor >= 75 else one.swap or '',
            'os-flavor-access:is_public': one.is_public,
        }
        if minor < 102:
            document['rxtx_factor'] = self._factors.get(one.id, 1.0)
            document['OS-FLV-DISABLED:disabled'] = False
        if minor >= 55:
            document['description'] = self._descriptions.get(one.id)
        if minor >= 61:
            document['extra_specs'] = dict(one.extra_specs)
        return document

    def _flavor(self, key: str) -> Flavor:
        for one in self._world.snapshot.flavors:
            if one.id == key:
                return one
        raise Refused(404, f'flavor {key} could not be found')


def _access(one: Flavor) -> dict[str, Any]:
    return {
        'flavor_access': [
            {'flavor_id': one.id, 'tenant_id': project}
            for project in sorted(one.projects)
        ]
    }


def _public(text: str) -> bool | None:
    """Return which flavors are asked for; None for all."""
    if text.lower() == 'none':
        return None
    try:
        return strutils.bool_from_string(text, strict=True)
    except ValueError:
        raise Refused(400, f'invalid is_public filter [{text}]') from None


def _least(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Refused(400, f'invalid {name} filter [{text}]') from None


def _next(asked: Request, marker: str) -> dict[str, str]:
    query = '&'.join(
        f'{key}={value}'
        for key, value in {**asked.query, 'marker': marker}.items()
    )
    return {'rel': 'next', 'href': f'{asked.url}{asked.path}?{query}'}


def _check_names(values: Mapping[str, Any], minor: int) -> None:
    """Check what Nova checks since 2.86.

    Nova has hundreds of names, and knows those of plugins; what is not surely
    right is not known.
    """
    if minor < _VALIDATED:
        return
    for name, value in values.items():
        is_right = (
            ':' not in name and not name.startswith('hide_')
            if not _TRAIT.fullmatch(name) and not _AMOUNT.fullmatch(name)
            else value in ('required', 'forbidden')
            if _TRAIT.fullmatch(name)
            else str(value).isdecimal()
        )
        if not is_right:
            raise Unknown(
                f'whether Nova accepts extra spec {name}={value} since 2.86'
            )
