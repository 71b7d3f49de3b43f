# SPDX-License-Identifier: Apache-2.0
"""Tells what is known of the images of servers that exist.

Nova returns only the properties that it knows itself, and no traits; an answer
without properties does not mean that the image has none.
"""

from collections.abc import Callable
import dataclasses

from isolate_aggregates.request import Image
from isolate_aggregates.request.extra_specs import TRAIT_PREFIX
from isolate_aggregates.request.placed import Placed
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.mirrored import nova_image


@dataclasses.dataclass(frozen=True)
class ServerImage:
    """The image of a server.

    :param image: The image, with the properties that are known.
    :param is_whole: Whether these are all of its properties.
    """

    image: Image
    is_whole: bool


def image_id(server: Server) -> str:
    """Return the id of the image of a server; empty if that is not known.

    That of a volume is not known, unless nova-scheduler has recorded it.
    """
    return (server.placed and server.placed.image) or server.image_id or ''


class ServerImages:
    """Completes what Nova tells of images by what Glance does.

    :param image: Returns the image with an id, or raises NotFound.
    """

    def __init__(self, image: Callable[[str], Image]) -> None:
        self._image = image
        # None for those that are gone.
        self._read: dict[str, Image | None] = {}

    def of(self, server: Server) -> ServerImage:
        """Return the image of a server.

        That of a volume is not known, nor is one that is no longer in Glance,
        unless nova-scheduler has recorded with what it has placed the server.
        """
        number = image_id(server)
        if number and number not in self._read:
            try:
                self._read[number] = self._image(number)
            except errors.NotFound:
                # Servers outlive their images.
                self._read[number] = None
        found = self._read.get(number)
        image = found or Image('', number)
        if server.placed is not None:
            return _as_placed(server.placed, found)
        told = server.image_properties
        if told is not None:
            others = {
                name: value
                for name, value in image.properties.items()
                if name not in nova_image.TOLD
            }
            image = dataclasses.replace(image, properties={**others, **told})
        return ServerImage(image, found is not None)


def _as_placed(placed: Placed, found: Image | None) -> ServerImage:
    """Return the image that a server was placed with, as it was then.

    :param found: As it is in Glance now; None if it is not there.
    """
    image = found or Image('', placed.image)
    properties = placed.all_properties
    if placed.properties is None:
        # No filter needed any; the server was not rebuilt without a record.
        properties |= {
            name: value
            for name, value in image.properties.items()
            if not name.startswith(TRAIT_PREFIX)
        }
    return ServerImage(
        dataclasses.replace(image, properties=properties),
        found is not None or placed.properties is not None,
    )
