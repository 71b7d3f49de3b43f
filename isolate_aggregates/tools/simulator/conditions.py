# SPDX-License-Identifier: Apache-2.0
"""The conditions of a query, each with the providers that meet it.

Every function takes the index and returns a set of providers. The simulator
intersects these sets; ``inspect.explain`` looks at them one by one to find the
condition that excludes a provider. The query parameters are those of
``GET /allocation_candidates`` and ``GET /resource_providers`` in the
`Placement API reference <https://docs.openstack.org/api-ref/placement/>`_.
"""

from collections.abc import Iterable

from isolate_aggregates.tools.placement.group import RequestGroup
from isolate_aggregates.tools.simulator.index import ProviderIndex, ProviderSet


def fitting(
    index: ProviderIndex, resource_class: str, amount: int
) -> ProviderSet:
    """Return the providers that can allocate an amount of a resource class.

    ``resources``: the free capacity suffices, and the amount respects
    ``min_unit``, ``max_unit`` and ``step_size`` of the inventory.
    """
    stock = index.stocks.get(resource_class)
    if stock is None:
        return 0
    accepting = stock.accepting(amount)
    return accepting and accepting & stock.with_free(amount)


def with_any_trait(index: ProviderIndex, traits: Iterable[str]) -> ProviderSet:
    """Return the providers that have at least one of the traits.

    ``required=in:A,B`` selects these providers, ``required=!A,!B`` all
    others.
    """
    providers = 0
    for trait in traits:
        providers |= index.with_trait(trait)
    return providers


def with_traits(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return the providers that each have all traits a group requires.

    ``required=A,B`` requires both traits, ``required=in:A,B`` at least one.
    If the parameter is repeated, all its values must be met.
    """
    providers = index.everyone
    for choice in required(group):
        providers &= with_any_trait(index, choice)
    return providers


def required(group: RequestGroup) -> list[frozenset[str]]:
    """Return a group's required traits as sets; one of each set suffices."""
    single = (frozenset([trait]) for trait in sorted(group.required_traits))
    return [*single, *group.any_traits]


def in_aggregates(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return the providers that are in the aggregates a group requires.

    ``member_of``: the provider is a member of at least one aggregate of each
    parameter. It must meet all of them itself; the membership of its root does
    not count here.
    """
    providers = index.everyone
    for choice in group.aggregates:
        providers &= index.in_any_aggregate(choice)
    return providers


def spanning(index: ProviderIndex, providers: ProviderSet) -> ProviderSet:
    """Return the providers, and for each root among them its whole tree.

    In the unsuffixed group, the aggregates of a root apply to its whole tree:
    ``member_of`` is met if the provider or its root is a member, and
    ``member_of=!in:`` excludes the provider if either is. In suffixed groups
    only the provider's own membership counts (specification *Filtering by
    aggregate membership*).
    """
    return providers | index.trees_of(providers & index.roots)


def in_tree(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return the providers in the tree that a group requires.

    ``in_tree``: the tree of the provider with that uuid, root or not.
    """
    if group.in_tree is None:
        return index.everyone
    return index.tree_with(group.in_tree)


def meeting_all(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return the providers that each meet all conditions of a group."""
    providers = with_traits(index, group) & in_aggregates(index, group)
    providers &= ~with_any_trait(index, group.forbidden_traits)
    providers &= ~index.in_any_aggregate(group.forbidden_aggregates)
    providers &= in_tree(index, group)
    for resource_class, amount in group.resources.items():
        providers &= fitting(index, resource_class, amount)
    return providers


def roots_with(
    index: ProviderIndex, required: Iterable[str], forbidden: Iterable[str]
) -> ProviderSet:
    """Return the roots that meet ``root_required``.

    ``root_required=A,!B``: the root of the tree has all required and no
    forbidden traits, no matter which providers of the tree serve the groups.
    """
    providers = index.roots & ~with_any_trait(index, forbidden)
    for trait in required:
        providers &= index.with_trait(trait)
    return providers
