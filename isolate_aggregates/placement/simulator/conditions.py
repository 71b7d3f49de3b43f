# SPDX-License-Identifier: Apache-2.0
"""The conditions a query can name, and the providers that meet each.

Every function takes the index and returns a set of providers, so that the
sets can be combined here and looked at one by one to find out what keeps a
provider out. The quoted parameters are those of ``GET /allocation_candidates``
and ``GET /resource_providers`` in the `Placement API reference
<https://docs.openstack.org/api-ref/placement/>`_.
"""

from collections.abc import Iterable

from isolate_aggregates.placement.group import RequestGroup
from isolate_aggregates.placement.simulator.index import (
    ProviderIndex,
    ProviderSet,
)


def fitting(
    index: ProviderIndex, resource_class: str, amount: int
) -> ProviderSet:
    """Return the providers that can give an amount of a resource class.

    ``resources``: enough is left, and the amount is one that the inventory
    gives out at once.
    """
    stock = index.stocks.get(resource_class)
    if stock is None:
        return 0
    accepting = stock.accepting(amount)
    return accepting and accepting & stock.with_free(amount)


def with_any_trait(index: ProviderIndex, traits: Iterable[str]) -> ProviderSet:
    """Return the providers that have at least one of some traits.

    ``required=in:A,B`` wants them, ``required=!A,!B`` wants the others.
    """
    found = 0
    for trait in traits:
        found |= index.with_trait(trait)
    return found


def with_traits(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return the providers that alone have all traits a group requires.

    ``required=A,B`` wants all, ``required=in:A,B`` one of them; repeated, all
    of the parameters count.
    """
    found = index.everyone
    for choice in required(group):
        found &= with_any_trait(index, choice)
    return found


def required(group: RequestGroup) -> list[frozenset[str]]:
    """Return the required traits of a group as sets to have one of each."""
    single = (frozenset([trait]) for trait in sorted(group.required_traits))
    return [*single, *group.any_traits]


def in_any_aggregate(
    index: ProviderIndex, aggregates: Iterable[str]
) -> ProviderSet:
    """Return the members of at least one of some aggregates.

    ``member_of=in:A,B`` wants them, ``member_of=!in:A,B`` the others.

    :param aggregates: Uuids of the aggregates.
    """
    found = 0
    for aggregate in aggregates:
        found |= index.in_aggregate(aggregate)
    return found


def in_aggregates(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return the providers that are themselves where a group must be.

    ``member_of``: of each repeated parameter, a member of one aggregate. One
    provider has to meet all parameters: what its root is a member of does not
    make up for one that it misses.
    """
    found = index.everyone
    for choice in group.aggregates:
        found &= in_any_aggregate(index, choice)
    return found


def spanning(index: ProviderIndex, providers: ProviderSet) -> ProviderSet:
    """Return some providers, and whole trees instead of roots.

    In the group without a suffix, what a root is a member of spans its tree:
    ``member_of`` is met by a provider or by its root, and neither may be in
    an aggregate of ``member_of=!in:``. In groups with a suffix each provider
    counts for itself (specification *Filtering by aggregate membership*).

    :param providers: The members of aggregates.
    """
    return providers | index.trees_of(providers & index.roots)


def in_tree(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return the providers that are in the tree a group must be in.

    ``in_tree``: the tree of the provider with that uuid, root or not.
    """
    if group.in_tree is None:
        return index.everyone
    return index.tree_with(group.in_tree)


def meeting_all(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return the providers that each meet all conditions of a group."""
    found = with_traits(index, group) & in_aggregates(index, group)
    found &= ~with_any_trait(index, group.forbidden_traits)
    found &= ~in_any_aggregate(index, group.forbidden_aggregates)
    found &= in_tree(index, group)
    for resource_class, amount in group.resources.items():
        found &= fitting(index, resource_class, amount)
    return found


def roots_with(
    index: ProviderIndex, required: Iterable[str], forbidden: Iterable[str]
) -> ProviderSet:
    """Return the roots that have and lack the right traits.

    ``root_required=A,!B``: the root of the tree has all of the required
    traits and none of the forbidden ones, whatever serves the groups.
    """
    found = index.roots & ~with_any_trait(index, forbidden)
    for trait in required:
        found &= index.with_trait(trait)
    return found
