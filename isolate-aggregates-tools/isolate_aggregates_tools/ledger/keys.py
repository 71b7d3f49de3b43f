# SPDX-License-Identifier: Apache-2.0
"""Finds the locks that servers have the keys to, by the request filters."""

from collections.abc import Callable, Iterable
import dataclasses

from oslo_config import cfg

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import LoadedFilter, Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools import errors, filter_keys
from isolate_aggregates_tools.answers import requests
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.request import Request
from isolate_aggregates_tools.server_images import ServerImage, ServerImages

# The most kinds of servers to remember.
_MOST = 16_384


@dataclasses.dataclass(frozen=True)
class _Alone:
    """A lock of one aggregate, as if it had no other lock."""

    name: str
    uuid: str
    index: AggregateIndex
    pipeline: Pipeline

    @property
    def reads_images(self) -> bool:
        """Whether an image can open it."""
        return any(
            'image' in filter_keys.sources(one.request_filter)
            or one.image_properties.patterns
            for one in self.pipeline.filters
        )


class Keys:
    """Tells which locks a server has the keys to.

    :param aggregates: The locked aggregates; a lock counts as opened if one of
        its aggregates is.
    :param image: Returns the image with an id, or raises NotFound.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        aggregates: Iterable[Aggregate],
        image: Callable[[str], Image],
    ) -> None:
        self._filters = loading.load(conf)
        self._locks = [
            alone
            for aggregate in aggregates
            for alone in _alone(aggregate, self._filters)
        ]
        self._reads_images = any(lock.reads_images for lock in self._locks)
        self._images = ServerImages(image)
        self._remembered: dict[object, frozenset[str] | None] = {}

    @property
    def has_locks(self) -> bool:
        """Whether there are locks to have keys to."""
        return bool(self._locks)

    def of(
        self, server: Server, flavor: Flavor | None
    ) -> frozenset[str] | None:
        """Return the names of the locks; None if they are not known.

        So it is without the flavor, or if a lock stays closed that properties
        of the image may open, not all of which are known.

        :param flavor: The flavor, which may be an earlier one of the server.
        """
        if flavor is None:
            return None
        known = (
            self._images.of(server)
            if self._reads_images
            else ServerImage(Image('', ''), is_whole=True)
        )
        kind = (
            server.project_id,
            frozenset(flavor.extra_specs.items()),
            known.is_whole,
            frozenset(known.image.properties.items()),
            frozenset(server.scheduler_hints.items()),
        )
        if kind not in self._remembered:
            request = requests.bare(
                flavor,
                known.image,
                project_id=server.project_id,
                scheduler_hints=server.scheduler_hints,
                is_accepted=True,
            )
            names = frozenset(
                lock.name for lock in self._locks if _opens(request, lock)
            )
            is_known = known.is_whole or all(
                lock.name in names or not lock.reads_images
                for lock in self._locks
            )
            if len(self._remembered) == _MOST:
                self._remembered.clear()
            self._remembered[kind] = names if is_known else None
        return self._remembered[kind]


def names_of(
    aggregate: Aggregate, filters: Iterable[LoadedFilter]
) -> frozenset[str]:
    """Return the names of the locks of an aggregate."""
    return frozenset(
        lock.name
        for lock in Pipeline(tuple(filters)).locks(AggregateIndex([aggregate]))
    )


def _alone(
    aggregate: Aggregate, filters: Iterable[LoadedFilter]
) -> Iterable[_Alone]:
    index = AggregateIndex([aggregate])
    for one in filters:
        pipeline = Pipeline((one,))
        for lock in pipeline.locks(index):
            stripped = dataclasses.replace(
                aggregate, metadata=_metadata(aggregate, lock)
            )
            yield _Alone(
                lock.name, aggregate.uuid, AggregateIndex([stripped]), pipeline
            )


def _metadata(aggregate: Aggregate, lock: Lock) -> dict[str, str]:
    """Return the metadata without other locks of the same family."""
    return {
        key: value
        for key, value in aggregate.metadata.items()
        if lock.name not in aggregate.metadata
        or key == lock.name
        or not key.startswith(lock.family)
    }


def _opens(request: Request, lock: _Alone) -> bool:
    try:
        destination = lock.pipeline.evaluate(request, lock.index)
        destination.check()
    except (errors.InvalidRequest, exception.RequestRefused):
        return False
    return lock.uuid not in destination.forbidden_aggregates
