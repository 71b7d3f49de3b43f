# SPDX-License-Identifier: Apache-2.0
"""Answers as Glance: images and their properties."""

from collections.abc import Mapping
import dataclasses
import re
from typing import Any

from oslo_utils import strutils

from isolate_aggregates.request import Image
from isolate_aggregates_tools.rehearse.exchange import (
    Answer,
    Document,
    Refused,
    Request,
    Unknown,
    check_query,
    has_more,
    page,
)
from isolate_aggregates_tools.rehearse.world import World

_MADE = '2026-01-01T00:00:00Z'
# The fields that a cloud file has.
_FIELDS = (
    *('name', 'owner', 'visibility', 'disk_format', 'min_ram', 'min_disk'),
)
# Those that it does not have.
_FIXED: Mapping[str, Any] = {
    'status': 'active',
    'tags': [],
    'protected': False,
    'os_hidden': False,
    'container_format': 'bare',
    'checksum': None,
    'os_hash_algo': None,
    'os_hash_value': None,
    'virtual_size': None,
    'created_at': _MADE,
    'updated_at': _MADE,
    'schema': '/v2/schemas/image',
}
_ORDER = ('sort', 'sort_key', 'sort_dir')
_KNOWN = (
    *('name', 'id', 'limit', 'marker', 'visibility', 'os_hidden', 'owner'),
    *('status', 'member_status', *_ORDER),
)


class Images:
    """The images of the cloud that is held."""

    def __init__(self, world: World) -> None:
        self._world = world

    def answer(self, asked: Request) -> Answer:
        path = asked.path.rstrip('/')
        if asked.method == 'GET' and path in ('', '/versions', '/v2'):
            version = {
                'id': 'v2.16',
                'status': 'CURRENT',
                'links': [{'rel': 'self', 'href': f'{asked.url}/v2/'}],
            }
            status = 200 if path == '/versions' else 300
            return Answer(status, {'versions': [version]})
        if path == '/v2/images' and asked.method == 'GET':
            return self._list(asked)
        if match := re.fullmatch('/v2/images/([^/]+)', path):
            if asked.method == 'GET':
                return Answer(200, _document(self._image(match[1])))
            if asked.method == 'PATCH':
                return self._patch(self._image(match[1]), asked.body)
        raise Unknown

    def _list(self, asked: Request) -> Answer:
        query = asked.query
        check_query(query, _KNOWN, 'images')
        if query.get('status', 'active') != 'active':
            raise Unknown('images that are not active')
        for key in ('name', 'owner'):
            if query.get(key, '').startswith(('in:', 'like:')):
                raise Unknown(f'images by several values of {key}')
        wanted = query.get('id', '').removeprefix('in:').split(',')
        # A cloud file does not tell hidden images from others.
        is_hidden = strutils.bool_from_string(query.get('os_hidden'))
        found = [
            _document(one)
            for one in self._world.snapshot.images
            if not is_hidden
            and ('id' not in query or one.id in wanted)
            and all(
                query.get(key, getattr(one, key)) == getattr(one, key)
                for key in ('name', 'owner')
            )
            and _is_visible(one, query.get('visibility'))
        ]
        if 'name' in query or len(found) < 2:
            # As their order does not matter.
            pass
        elif any(key in query for key in _ORDER):
            found = _sorted(found, query)
        some = list(page(found, query))
        document: dict[str, Any] = {
            'images': some,
            'first': '/v2/images',
            'schema': '/v2/schemas/images',
        }
        if has_more(some, query):
            words = {**query, 'marker': some[-1]['id']}
            text = '&'.join(f'{key}={word}' for key, word in words.items())
            document['next'] = f'/v2/images?{text}'
        return Answer(200, document)

    def _patch(self, old: Image, steps: Document) -> Answer:
        fields: dict[str, Any] = {}
        properties = dict(old.properties)
        for step in steps:
            key = step['path'].removeprefix('/')
            key = key.replace('~1', '/').replace('~0', '~')
            if key in _FIXED:
                raise Unknown(f'a change of {key} of an image')
            if key in _FIELDS:
                fields[key] = step['value']
            elif step['op'] == 'remove':
                if key not in properties:
                    raise Refused(409, f'there is no property {key}')
                del properties[key]
            elif step['op'] == 'replace' and key not in properties:
                raise Refused(409, f'there is no property {key}')
            elif not isinstance(step['value'], str):
                raise Refused(400, f'{step["value"]!r} is not of type string')
            else:
                properties[key] = step['value']
        new = dataclasses.replace(old, properties=properties, **fields)
        if new != old:
            self._world.change(old, new)
        return Answer(200, _document(new))

    def _image(self, key: str) -> Image:
        for one in self._world.snapshot.images:
            if one.id == key:
                return one
        raise Refused(404, f'no image found with id {key}')


def _is_visible(one: Image, wanted: str | None) -> bool:
    """Return whether a list has an image; others have none of a community."""
    visibility = one.visibility or 'public'
    if wanted is None:
        return visibility != 'community'
    return wanted in ('all', visibility)


def _sorted(
    documents: list[dict[str, Any]], query: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return documents in an order that a cloud file has, too."""
    order = query.get('sort') or ':'.join(
        query.get(key, default)
        for key, default in (('sort_key', 'name'), ('sort_dir', 'asc'))
    )
    key, _, direction = order.partition(':')
    if key not in ('name', 'id') or ',' in order:
        raise Unknown(f'the order of images by {order}')
    return sorted(
        documents, key=lambda one: one[key], reverse=direction == 'desc'
    )


def _document(one: Image) -> dict[str, Any]:
    return {
        **_FIXED,
        'id': one.id,
        'self': f'/v2/images/{one.id}',
        'file': f'/v2/images/{one.id}/file',
        'size': one.size,
        **{key: getattr(one, key) for key in _FIELDS},
        'visibility': one.visibility or 'public',
        **one.properties,
    }
