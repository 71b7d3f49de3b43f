# SPDX-License-Identifier: Apache-2.0
"""A cloud at one moment, as plain values."""

from collections.abc import Mapping
import dataclasses
import functools
from typing import TypeVar

import os_traits

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.request import Flavor, Image, RequestedHost

# Placement's own default for max_unit, the largest integer it stores.
MAX_INT = 2**31 - 1

_T = TypeVar('_T', Flavor, Image)


@dataclasses.dataclass(frozen=True)
class Inventory:
    """How much of a resource class a provider has, as Placement counts it.

    :param total: All there is.
    :param reserved: How much of it is not for servers.
    :param min_unit: The smallest amount of one allocation.
    :param max_unit: The largest amount of one allocation.
    :param step_size: Amounts of one allocation are multiples of this.
    :param allocation_ratio: How often the rest may be given out.
    """

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0


@dataclasses.dataclass(frozen=True)
class Provider:
    """A resource provider.

    :param uuid: Its uuid.
    :param name: Its name.
    :param parent: Uuid of its parent; None for a root.
    :param host: The compute service whose node it is; None if it is none.
    :param inventories: Inventories by resource class.
    :param usages: Used amounts by resource class.
    :param traits: Its traits.
    :param aggregates: Uuids of the Placement aggregates it is a member of.
    """

    uuid: str
    name: str
    parent: str | None = None
    host: str | None = None
    inventories: Mapping[str, Inventory] = dataclasses.field(
        default_factory=dict
    )
    usages: Mapping[str, int] = dataclasses.field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    @property
    def is_sharing(self) -> bool:
        """Whether it shares its resources with its aggregates' members."""
        return os_traits.MISC_SHARES_VIA_AGGREGATE in self.traits


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """Everything that decides where servers may go.

    :param origin: Where it comes from, for messages.
    :param aggregates: The host aggregates.
    :param providers: All resource providers; parents before children.
    :param flavors: The flavors.
    :param images: The images.
    :param settings: Scheduler settings of the cloud, by ``(group, option)``.
    :param placement_aggregates: Names of aggregates that only Placement
        knows, by uuid.
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

    @functools.cached_property
    def index(self) -> AggregateIndex:
        """The index of the host aggregates."""
        return AggregateIndex(self.aggregates)

    def flavor(self, name: str) -> Flavor:
        """Return a flavor.

        :param name: Its id or its name; an id goes first.
        :raises NotFound: if there is none.
        """
        return self._find('flavor', name, self.flavors)

    def image(self, name: str) -> Image:
        """Return an image.

        :param name: Its id or its name; an id goes first.
        :raises NotFound: if there is none.
        :raises NotUnique: if several images have the name.
        """
        return self._find('image', name, self.images)

    def requested_host(self, name: str) -> RequestedHost:
        """Return a host with its compute nodes, none if it is unknown.

        :param name: The name of a compute service or of a compute node.
        """
        nodes = [provider for provider in self.providers if provider.host]
        found = [node.uuid for node in nodes if node.host == name] or [
            node.uuid for node in nodes if node.name == name
        ]
        return RequestedHost(name, tuple(found))

    def _find(self, kind: str, name: str, things: tuple[_T, ...]) -> _T:
        found = [thing for thing in things if thing.id == name] or [
            thing for thing in things if thing.name == name
        ]
        if not found:
            raise exception.NotFound(kind, name, self.origin)
        if len(found) > 1:
            raise exception.NotUnique(kind, name, [t.id for t in found])
        return found[0]
