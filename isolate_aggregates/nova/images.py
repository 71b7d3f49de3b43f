# SPDX-License-Identifier: Apache-2.0
"""Looks up the image properties that Nova does not keep.

``nova.objects.ImageMetaProps`` keeps the properties Nova knows and drops the
rest, such as ``reservation:<id>``; they are in Glance.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
import threading
import time

from keystoneauth1 import exceptions as ks_exceptions
from nova import context as nova_context
from nova import exception as nova_exception
from nova.image import glance

from isolate_aggregates import exception

_MOST = 512  # images
_TTL = 30.0  # seconds


class ImageProperties:
    """The properties of images, by id, remembered for half a minute.

    :param clock: Tells the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = glance.API()
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[float, Mapping[str, str]]] = (
            OrderedDict()
        )

    def get(
        self, context: nova_context.RequestContext, image_id: str
    ) -> Mapping[str, str]:
        """Return the properties of an image; none if it is gone.

        Servers outlive their images and still have to be moved. One that is
        not seen to name a reservation is kept out of all of them. So is one
        that is moved or rebuilt when nobody's credentials are at hand: host
        filters are given none, and Glance is not asked without.

        :param context: The context of the request, whose credentials are
            used: who can not see an image can not use what it says.
        :param image_id: The id of the image.
        :raises ServiceError: if they can not be read.
        """
        with self._lock:
            read_at, properties = self._known.get(image_id, (None, {}))
        if read_at is not None and self._clock() - read_at < _TTL:
            return properties
        try:
            image = self._api.get(context, image_id)
        except (
            nova_exception.ImageNotFound,
            ks_exceptions.AuthorizationFailure,
        ):
            return {}
        except (
            nova_exception.NovaException,
            ks_exceptions.ClientException,
        ) as exc:
            raise exception.ServiceError(
                'Glance', None, f'can not be asked for image {image_id}: {exc}'
            ) from exc
        properties = {
            key: str(value)
            for key, value in image.get('properties', {}).items()
        }
        with self._lock:
            self._known[image_id] = self._clock(), properties
            self._known.move_to_end(image_id)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        return properties
