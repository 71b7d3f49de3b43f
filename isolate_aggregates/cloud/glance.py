# SPDX-License-Identifier: Apache-2.0
"""Reads images from Glance's API.

novaclient knows images only for its own lookups, a page at most, and says so;
the same session asks Glance directly. See the `Image API reference
<https://docs.openstack.org/api-ref/image/v2/>`_.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib import parse

from oslo_utils import uuidutils

from isolate_aggregates import exception, service
from isolate_aggregates.cloud.connection import Connection
from isolate_aggregates.request import Image

# What Glance itself says of an image; all other keys are custom properties,
# which stand beside them.
_CORE = frozenset({
    'checksum', 'container_format', 'created_at', 'direct_url',
    'disk_format', 'file', 'id', 'locations', 'min_disk', 'min_ram', 'name',
    'os_hash_algo', 'os_hash_value', 'os_hidden', 'owner', 'protected',
    'schema', 'self', 'size', 'status', 'stores', 'tags', 'updated_at',
    'virtual_size', 'visibility',
})  # fmt: skip

_PAGE = 1000


class GlanceReader:
    """Glance, as far as it is read here.

    :param connection: How to reach it.
    :param retry_delay: Seconds to wait before the first retry.
    """

    def __init__(
        self, connection: Connection, retry_delay: float = 0.5
    ) -> None:
        self._service = service.Service(
            'Glance', connection.adapter('image'), retry_delay
        )

    def images(self) -> list[Image]:
        """Return all images the credentials can see.

        :raises ServiceError: if Glance gives no usable answer.
        """
        return list(self._list({}))

    def image(self, name: str) -> Image:
        """Return an image.

        :param name: Its id or its name; an id goes first.
        :raises NotFound: if there is none.
        :raises NotUnique: if several images have the name.
        :raises ServiceError: if Glance gives no usable answer.
        """
        if uuidutils.is_uuid_like(name):
            path = f'{self._root}/images/{name}'
            answer = self._service.request('GET', path, accept=(200, 404))
            if answer.status_code == 200:
                return self._image(self._service.decode(answer, path))
        found = list(self._list({'name': name}))
        if not found:
            raise exception.NotFound(
                'image', name, f'Glance at {self._service.endpoint}'
            )
        if len(found) > 1:
            raise exception.NotUnique('image', name, [i.id for i in found])
        return found[0]

    @property
    def _root(self) -> str:
        # The catalog may or may not name the version.
        endpoint = (self._service.endpoint or '').rstrip('/')
        return '' if endpoint.endswith('/v2') else '/v2'

    def _list(self, params: Mapping[str, str]) -> Iterator[Image]:
        marker: Mapping[str, str] = {}
        while True:
            query = {**params, **marker, 'limit': str(_PAGE)}
            path = f'{self._root}/images?{parse.urlencode(query)}'
            document = self._service.get(path)
            page = [self._image(found) for found in document.get('images', [])]
            yield from page
            if not page or not document.get('next'):
                return
            marker = {'marker': page[-1].id}

    def _image(self, found: Mapping[str, Any]) -> Image:
        try:
            return Image(
                name=found['name'] or '',
                id=found['id'],
                owner=found.get('owner'),
                visibility=found.get('visibility'),
                properties={
                    key: str(value)
                    for key, value in found.items()
                    if key not in _CORE and value is not None
                },
            )
        except (LookupError, TypeError, AttributeError) as exc:
            raise exception.ServiceError(
                'Glance',
                self._service.endpoint,
                f'described an image without {exc}; is this the right '
                'endpoint?',
            ) from exc
