# SPDX-License-Identifier: Apache-2.0
"""Tells what is known of the images of servers that exist.

Nova returns only the properties that it knows itself, and no traits; an answer
without properties does not mean that the image has none.
"""

from collections.abc import Callable
import dataclasses

from isolate_aggregates.request import Image
from isolate_aggregates.tools import errors
from isolate_aggregates.tools.compute.servers import Server
from isolate_aggregates.tools.mirrored import nova_image


@dataclasses.dataclass(frozen=True)
class ServerImage:
    """The image of a server.

    :param image: The image, with the properties that are known.
    :param is_whole: Whether these are all of its properties.
    """

    image: Image
    is_whole: bool


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

        That of a volume is not known, nor is one that is no longer in Glance.
        """
        number = server.image_id or ''
        if number and number not in self._read:
            try:
                self._read[number] = self._image(number)
            except errors.NotFound:
                # Servers outlive their images.
                self._read[number] = None
        found = self._read.get(number)
        image = found or Image('', number)
        told = server.image_properties
        if told is not None:
            others = {
                name: value
                for name, value in image.properties.items()
                if name not in nova_image.TOLD
            }
            image = dataclasses.replace(image, properties={**others, **told})
        return ServerImage(image, found is not None)
