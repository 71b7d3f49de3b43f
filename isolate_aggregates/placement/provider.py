# SPDX-License-Identifier: Apache-2.0
"""Resource providers and their inventories, as plain values."""

from collections.abc import Iterable, Mapping
import dataclasses

import os_traits

# Placement's own default for max_unit, the largest integer it stores.
MAX_INT = 2**31 - 1


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

    @property
    def capacity(self) -> int:
        """How much may be given out in all.

        ``(total - reserved) * allocation_ratio``, and a fraction of a unit
        cannot be allocated (API reference, *Resource provider inventories*).
        """
        return int((self.total - self.reserved) * self.allocation_ratio)


@dataclasses.dataclass(frozen=True)
class Provider:
    """A resource provider.

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

    def free(self, resource_class: str) -> int:
        """Return how much is left; less than nothing if too much is in use.

        :param resource_class: A class that it has an inventory of.
        """
        used = self.usages.get(resource_class, 0)
        return self.inventories[resource_class].capacity - used


def nodes_by_host(
    providers: Iterable[Provider],
) -> dict[str, tuple[Provider, ...]]:
    """Return the compute nodes among providers, by compute service."""
    found: dict[str, list[Provider]] = {}
    for provider in providers:
        if provider.host:
            found.setdefault(provider.host, []).append(provider)
    return {host: tuple(nodes) for host, nodes in found.items()}


def trees(providers: Iterable[Provider]) -> dict[str, list[Provider]]:
    """Return the providers of each tree, by the uuid of its root.

    :param providers: The providers; parents before children.
    :returns: In their order, so the root is the first of its tree.
    """
    roots: dict[str, str] = {}
    found: dict[str, list[Provider]] = {}
    for provider in providers:
        root = roots.get(provider.parent or '', provider.uuid)
        roots[provider.uuid] = root
        found.setdefault(root, []).append(provider)
    return found
