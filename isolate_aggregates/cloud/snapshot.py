# SPDX-License-Identifier: Apache-2.0
"""A cloud at one moment, as plain values."""

from collections.abc import Mapping
import dataclasses
import functools
from typing import TypeVar

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.request import ComputeHost, Flavor, Image

_T = TypeVar('_T', Flavor, Image)


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """Everything that decides where servers may go.

    :param origin: Where it comes from, for messages.
    :param providers: All resource providers; parents before children.
    :param settings: Scheduler settings of the cloud, by ``(group, option)``.
    :param placement_aggregates: Names of aggregates that only Placement
        knows, by uuid.
    :param traits: Custom traits that exist although no provider has them.
    :param resource_classes: Custom resource classes that exist although no
        provider has an inventory of them.
    """

    origin: str
    aggregates: tuple[Aggregate, ...] = ()
    providers: tuple[Provider, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    images: tuple[Image, ...] = ()
    settings: Mapping[tuple[str, str], object] = dataclasses.field(
        default_factory=dict
    )
    placement_aggregates: Mapping[str, str] = dataclasses.field(
        default_factory=dict
    )
    traits: frozenset[str] = frozenset()
    resource_classes: frozenset[str] = frozenset()

    @functools.cached_property
    def index(self) -> AggregateIndex:
        """The index of the host aggregates."""
        return AggregateIndex(self.aggregates)

    def flavor(self, name: str) -> Flavor:
        """Return the flavor of an id or, if there is none, of a name.

        :raises NotFound: if there is none.
        """
        return self._find('flavor', name, self.flavors)

    def image(self, name: str) -> Image:
        """Return the image of an id or, if there is none, of a name.

        :raises NotFound: if there is none.
        :raises NotUnique: if several images have the name.
        """
        return self._find('image', name, self.images)

    def requested_host(self, name: str) -> ComputeHost:
        """Return a host with its compute nodes, none if it is unknown.

        :param name: The name of a compute service or of a compute node.
        """
        nodes = [provider for provider in self.providers if provider.host]
        found = [node.uuid for node in nodes if node.host == name] or [
            node.uuid for node in nodes if node.name == name
        ]
        return ComputeHost(name, tuple(found))

    def _find(self, kind: str, name: str, things: tuple[_T, ...]) -> _T:
        found = [thing for thing in things if thing.id == name] or [
            thing for thing in things if thing.name == name
        ]
        if not found:
            names = [thing.name for thing in things]
            raise exception.NotFound(kind, name, self.origin, names)
        if len(found) > 1:
            raise exception.NotUnique(kind, name, [t.id for t in found])
        return found[0]
