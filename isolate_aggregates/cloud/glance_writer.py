# SPDX-License-Identifier: Apache-2.0
"""Writes properties of images into Glance.

By JSON patches, see `Update image
<https://docs.openstack.org/api-ref/image/v2/#update-image>`_.
"""

from typing import Any
from urllib import parse

from isolate_aggregates import exception
from isolate_aggregates.cloud.glance import GlanceReader, root
from isolate_aggregates.request import Image
from isolate_aggregates.rest import client
from isolate_aggregates.rest.connection import Connection

_PATCH = 'application/openstack-images-v2.1-json-patch'


class GlanceWriter:
    """Glance, as far as it is written here.

    :param connection: How to reach it.
    :param retry_delay: Seconds to wait before each retry; None for half a
        second before the first one and twice as long before each further.
    """

    def __init__(
        self, connection: Connection, retry_delay: float | None = None
    ) -> None:
        self._service = client.Service(
            'Glance', connection.adapter('image'), retry_delay
        )
        self._reader = GlanceReader(connection, retry_delay)

    def set_property(self, image: Image, key: str, value: str) -> None:
        """Set one property of an image; the others stay.

        :param image: The image.
        :param key: The key.
        :param value: The value.
        :raises ServiceNotFound: if the image is gone.
        :raises ServiceDenied: if the property is protected.
        :raises ServiceError: if it can not be done.
        """
        # In place of what is there, if anything is.
        self._patch(image, {'op': 'add', 'path': _at(key), 'value': value})

    def unset_property(self, image: Image, key: str) -> None:
        """Take one property off an image, unless it is gone already.

        :param image: The image.
        :param key: The key.
        :raises ServiceNotFound: if the image is gone.
        :raises ServiceDenied: if the property is protected.
        :raises ServiceError: if it can not be done.
        """
        try:
            self._patch(image, {'op': 'remove', 'path': _at(key)})
        except exception.ServiceConflict:
            # Glance's answer for a property that is not there, among others.
            if key in self._reader.image(image.id).properties:
                raise

    def _patch(self, image: Image, operation: dict[str, Any]) -> None:
        number = parse.quote(image.id, safe='')
        self._service.request(
            'PATCH',
            f'{root(self._service)}/images/{number}',
            json=[operation],
            content_type=_PATCH,
        )


def _at(key: str) -> str:
    """Return where a property is (RFC 6901)."""
    return f'/{key.replace("~", "~0").replace("/", "~1")}'
