# SPDX-License-Identifier: Apache-2.0
"""Glance's API: the images and their properties.

It is called directly: openstacksdk fails to list an image with a property such
as ``connection``, which any user can set, and converts the values of some
properties. See the `Image API reference
<https://docs.openstack.org/api-ref/image/v2/>`_.
"""

from collections.abc import Mapping
import operator
from typing import Any
from urllib import parse

from oslo_utils import uuidutils

from isolate_aggregates import exception
from isolate_aggregates.request import Image
from isolate_aggregates.rest import paging
from isolate_aggregates_tools import api_client, errors

# Glance's own attributes of an image. All other keys are custom properties.
_CORE = frozenset({
    'checksum', 'container_format', 'created_at', 'direct_url',
    'disk_format', 'file', 'id', 'locations', 'min_disk', 'min_ram', 'name',
    'os_hash_algo', 'os_hash_value', 'os_hidden', 'owner', 'protected',
    'schema', 'self', 'size', 'status', 'stores', 'tags', 'updated_at',
    'virtual_size', 'visibility',
})  # fmt: skip

# What it needs of a flavor.
_NEEDS = ('min_ram', 'min_disk', 'size')

# The filters of the lists that together have all images that a server can boot
# from. Without filters, Glance lists no hidden images and no community images
# of other projects, not even to administrators. Any user can make an image
# such. Older releases of Glance take os_hidden for a property, which no image
# has.
_LISTS: tuple[Mapping[str, str], ...] = (
    {},
    {'os_hidden': 'true'},
    {'visibility': 'community'},
    {'visibility': 'community', 'os_hidden': 'true'},
)

_PATCH = 'application/openstack-images-v2.1-json-patch'


class GlanceClient(api_client.ApiClient):
    """Glance's API."""

    NAME = 'Glance'
    TYPE = 'image'

    def images(self) -> list[Image]:
        """Return all images that are visible to the user."""
        images: dict[str, Image] = {}
        for filters in _LISTS:
            for image in self._list(filters):
                images.setdefault(image.id, image)
        return list(images.values())

    def image(self, name: str) -> Image:
        """Return an image.

        :param name: Its id or name; an id takes precedence. Hidden images and
            community images count only if no other image has the name.
        """
        if uuidutils.is_uuid_like(name):
            path = f'{self._root}/images/{name}'
            answer = self._service.request('GET', path, accept=(200, 404))
            if answer.status_code == 200:
                return self._service.parsed(
                    path, _image, self._service.decode(answer, path)
                )
        for filters in _LISTS:
            images = [
                image
                for image in self._list({**filters, 'name': name})
                # Some databases compare names case-insensitively.
                if image.name == name
            ]
            if len(images) > 1:
                raise errors.NotUnique(
                    'image', name, [image.id for image in images]
                )
            if images:
                return images[0]
        raise errors.NotFound(
            'image', name, f'Glance at {self._service.endpoint}'
        )

    def set_property(self, image: Image, key: str, value: str) -> None:
        """Set one property of an image; others do not change.

        :raises ServiceDenied: if the property is protected.
        """
        # "add" also replaces an existing value.
        self._patch(image, {'op': 'add', 'path': _at(key), 'value': value})

    def unset_property(self, image: Image, key: str) -> None:
        """Remove one property from an image, unless it is already gone.

        :raises ServiceDenied: if the property is protected.
        """
        try:
            self._patch(image, {'op': 'remove', 'path': _at(key)})
        except exception.ServiceConflict:
            # Glance also answers so if the property does not exist.
            if key in self.image(image.id).properties:
                raise

    def _list(self, filters: Mapping[str, str]) -> list[Image]:
        """Return the images that a list with filters has."""
        return paging.whole(
            lambda: self._service.paged(
                f'{self._root}/images',
                lambda document: list(map(_image, document['images'])),
                operator.attrgetter('id'),
                filters,
                has_more=lambda document: bool(document.get('next')),
            ),
            exception.BadQuery,
        )

    def _patch(self, image: Image, operation: dict[str, Any]) -> None:
        """Change an image with a JSON patch.

        See `Update image
        <https://docs.openstack.org/api-ref/image/v2/#update-image>`_.
        """
        self._service.request(
            'PATCH',
            f'{self._root}/images/{parse.quote(image.id, safe="")}',
            json=[operation],
            content_type=_PATCH,
        )

    @property
    def _root(self) -> str:
        return api_client.root(self._service, 'v2')


def _image(document: Mapping[str, Any]) -> Image:
    return Image(
        name=document.get('name') or '',
        id=document['id'],
        owner=document.get('owner'),
        visibility=document.get('visibility'),
        disk_format=document.get('disk_format'),
        # Glance has no size for an image without data.
        **{key: document.get(key) or 0 for key in _NEEDS},
        properties={
            key: str(value)
            for key, value in document.items()
            if key not in _CORE and value is not None
        },
    )


def _at(key: str) -> str:
    """Return the JSON pointer of a property (RFC 6901)."""
    return f'/{key.replace("~", "~0").replace("/", "~1")}'
