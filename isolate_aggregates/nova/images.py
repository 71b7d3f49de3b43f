# SPDX-License-Identifier: Apache-2.0
"""The image properties that request filters declare, inside Nova.

``nova.objects.ImageMetaProps`` keeps the properties that Nova knows, some of
them converted, and drops the rest, such as ``reservation:<id>``. What it keeps
as it was is taken from there; the rest is read from Glance.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
import functools
import threading
import time

from keystoneauth1 import exceptions as ks_exceptions
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.image import glance
from nova.objects import fields

from isolate_aggregates import exception
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates.request.properties import Declared

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
    ) -> Mapping[str, str] | None:
        """Return the properties of an image; None if they cannot be had.

        Servers outlive their images and still have to be moved, and host
        filters are given no credentials, without which Glance is not asked.

        :param context: The context of the request, whose credentials are
            used: who cannot see an image cannot use what it says.
        :param image_id: The id of the image.
        :raises ServiceError: if Glance gives no usable answer.
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
            return None
        except (
            nova_exception.NovaException,
            ks_exceptions.ClientException,
        ) as exc:
            raise exception.ServiceError(
                'Glance', None, f'cannot be asked for image {image_id}: {exc}'
            ) from exc
        properties = {
            key: str(value)
            for key, value in image.get('properties', {}).items()
            if value is not None
        }
        with self._lock:
            self._known[image_id] = self._clock(), properties
            self._known.move_to_end(image_id)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        return properties


# Returns all properties of an image by its id, None if they cannot be had.
Read = Callable[[str], Mapping[str, str] | None]


def properties(
    image: objects.ImageMeta, declared: Declared, read: Read
) -> Mapping[str, str]:
    """Return the required traits and the declared properties of an image.

    :param image: The image as Nova keeps it.
    :param declared: The properties that request filters declare.
    :param read: Reads them all; called at most once, and only if something is
        declared that Nova does not keep as it is in Glance.
    :raises RequestRefused: if a property cannot be had that is more than a
        key.
    """
    kept = image.properties if 'properties' in image else None
    traits = kept.get('traits_required', []) if kept else []
    found = {f'{TRAIT_PREFIX}{trait}': REQUIRED for trait in traits}
    elsewhere = declared.patterns - _verbatim()
    image_id = image.id if 'id' in image else None
    in_glance = read(image_id) if elsewhere and image_id else None
    if in_glance is not None:
        # What is required was settled when the server was asked for.
        return found | {
            name: value
            for name, value in declared.among(in_glance).items()
            if not name.startswith(TRAIT_PREFIX)
        }
    missing = sorted(
        pattern
        for pattern in declared.needed
        if pattern not in objects.ImageMetaProps.fields
    )
    if missing:
        raise exception.RequestRefused(
            [
                f'the image properties {", ".join(missing)} cannot be read: '
                'the image is gone, not visible to the project, or known only '
                'from a volume'
            ]
        )
    for name in sorted(declared.patterns):
        value = kept.get(name) if kept and name in kept.fields else None
        if value is not None:
            found[name] = str(value)
    return found


@functools.cache
def _verbatim() -> frozenset[str]:
    """Return the names of properties that Nova keeps as they are in Glance.

    Others it converts, or takes from another property with an older name.
    """
    props = objects.ImageMetaProps
    renamed = props._legacy_property_map.values()
    return frozenset(
        name
        for name, field in props.fields.items()
        if type(field) is fields.StringField and name not in renamed
    )
