# SPDX-License-Identifier: Apache-2.0
"""Resource providers and their inventories, as plain values."""

from collections.abc import Iterable, Mapping
import dataclasses

import os_traits

# Placement's default for max_unit, which is the largest integer it stores.
MAX_INT = 2**31 - 1

# The names of the child providers, and of the providers that share with the
# tree, that have a trait: by root uuid and trait.
Below = Mapping[str, Mapping[str, tuple[str, ...]]]


@dataclasses.dataclass(frozen=True)
class Inventory:
    """An inventory of a resource class.

    :param step_size: The unit of which allocations must be multiples.
    :param allocation_ratio: The overcommit ratio.
    """

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """The capacity: ``(total - reserved) * allocation_ratio``.

        It is rounded down, as a fraction of a unit cannot be allocated (API
        reference, *Resource provider inventories*).
        """
        return int((self.total - self.reserved) * self.allocation_ratio)


@dataclasses.dataclass(frozen=True)
class Provider:
    """A resource provider.

    :param parent: The uuid of its parent; None for a root.
    :param host: Its compute service; None if it is not a compute node.
    :param usages: The used amounts by resource class.
    :param aggregates: The uuids of its Placement aggregates.
    """

    uuid: str
    name: str
    parent: str | None = None
    host: str | None = None
    inventories: Mapping[str, Inventory] = dataclasses.field(
        default_factory=dict, hash=False
    )
    usages: Mapping[str, int] = dataclasses.field(
        default_factory=dict, hash=False
    )
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    @property
    def is_sharing(self) -> bool:
        """Whether it is a sharing provider."""
        return os_traits.MISC_SHARES_VIA_AGGREGATE in self.traits

    def free(self, resource_class: str) -> int:
        """Return the free amount; negative if usage exceeds the capacity."""
        used = self.usages.get(resource_class, 0)
        return self.inventories[resource_class].capacity - used


def nodes_by_host(
    providers: Iterable[Provider],
) -> dict[str, tuple[Provider, ...]]:
    """Return the providers that are compute nodes, by compute service."""
    by_host: dict[str, list[Provider]] = {}
    for provider in providers:
        if provider.host:
            by_host.setdefault(provider.host, []).append(provider)
    return {host: tuple(nodes) for host, nodes in by_host.items()}


def trees(providers: Iterable[Provider]) -> dict[str, list[Provider]]:
    """Return the providers of each tree, by the uuid of its root.

    :param providers: The providers; parents before children.
    :returns: The trees, each with its root first.
    """
    roots: dict[str, str] = {}
    by_root: dict[str, list[Provider]] = {}
    for provider in providers:
        root = roots.get(provider.parent or '', provider.uuid)
        roots[provider.uuid] = root
        by_root.setdefault(root, []).append(provider)
    return by_root


def below(providers: Iterable[Provider]) -> dict[str, tuple[Provider, ...]]:
    """Return the providers below each root that has any, by its uuid.

    :param providers: The providers; parents before children.
    """
    providers = tuple(providers)
    uuids = {provider.uuid for provider in providers}
    roots: dict[str, str] = {}
    by_root: dict[str, list[Provider]] = {}
    for provider in providers:
        if provider.parent in uuids:
            root = roots.get(provider.parent, provider.parent)
            roots[provider.uuid] = root
            by_root.setdefault(root, []).append(provider)
    return {root: tuple(some) for root, some in by_root.items()}


def helpers(providers: Iterable[Provider]) -> dict[str, tuple[Provider, ...]]:
    """Return the providers that servers on a root may use besides it.

    These are the providers below it, and those of other trees that share with
    a provider of its tree, by its uuid. Roots without any are left out.

    :param providers: The providers; parents before children.
    """
    providers = tuple(providers)
    by_root = dict(below(providers))
    sharing = [each for each in providers if each.is_sharing]
    if not sharing:
        return by_root
    root_of: dict[str, str] = {}
    members: dict[str, dict[str, None]] = {}
    for each in providers:
        root = root_of.get(each.parent or '', each.uuid)
        root_of[each.uuid] = root
        for aggregate in each.aggregates:
            members.setdefault(aggregate, {})[root] = None
    for each in sharing:
        served = dict.fromkeys(
            root
            for aggregate in sorted(each.aggregates)
            for root in members[aggregate]
            if root != root_of[each.uuid]
        )
        for root in served:
            by_root[root] = (*by_root.get(root, ()), each)
    return by_root
