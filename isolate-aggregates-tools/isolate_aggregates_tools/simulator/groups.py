# SPDX-License-Identifier: Apache-2.0
"""Finds the providers that can serve one request group.

Each condition of a query has a function of its own, which takes the index and
returns the providers that meet it; explain looks at them one by one to find
the one that excludes a provider. The query parameters are those of ``GET
/allocation_candidates`` and ``GET /resource_providers`` in the `Placement API
reference <https://docs.openstack.org/api-ref/placement/>`_.

Each candidate has an *anchor*: the root of one provider tree. All its
resources come from that tree and from sharing providers that share with it.
All groups of a request must be served with the same anchor.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
import itertools

from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools.placement.group import RequestGroup
from isolate_aggregates_tools.simulator.index import ProviderIndex, ProviderSet

# The providers that serve a group: one for all its resource classes, or one
# per resource class in the order of Serving.amounts.
Pick = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Serving:
    """All ways to serve one request group.

    :param amounts: The resource classes and amounts of the group, sorted.
    :param anchors: The anchors that may have picks; all others have none.
    :param around: Returns the picks of an anchor; there may be none.
    :param alone: Anchors that have one pick, themselves.
    """

    group: RequestGroup
    amounts: tuple[tuple[str, int], ...]
    anchors: ProviderSet
    around: Callable[[int], Sequence[Pick]]
    alone: ProviderSet = 0

    def shares(self, pick: Pick) -> Iterator[tuple[int, tuple[str, int]]]:
        """Return each provider of a pick with what is allocated from it."""
        providers: Iterable[int]
        providers = itertools.repeat(pick[0]) if len(pick) == 1 else pick
        return zip(providers, self.amounts, strict=False)


def serve(
    index: ProviderIndex, group: RequestGroup, anchors: ProviderSet
) -> Serving:
    """Return all ways to serve a group."""
    if group.suffix:
        return _by_one(index, group, anchors)
    return _by_tree(index, group, anchors)


class UsableProviders:
    """The usable providers of each anchor.

    :param local: Providers that can be used in their own tree.
    :param sharing: Sharing providers that can be used in the trees that they
        share with.
    """

    def __init__(
        self, index: ProviderIndex, local: ProviderSet, sharing: ProviderSet
    ) -> None:
        self.anchors = _reached(index, local, sharing)
        self._index = index
        self._local = local
        self._sharing = sharing

    @lazy_property
    def _flags(self) -> tuple[bytes, list[tuple[int, bytes]]]:
        index = self._index
        return index.flags(self._local), [
            (number, index.flags(index.anchors_of[number]))
            for number in index.members(self._sharing)
        ]

    def around(self, root: int) -> list[int]:
        """Return the usable providers of an anchor."""
        local, sharing = self._flags
        trees = self._index.trees
        numbers = [number for number in trees[root] if local[number]]
        if sharing:
            numbers += [number for number, roots in sharing if roots[root]]
        return numbers


def _reached(
    index: ProviderIndex, local: ProviderSet, sharing: ProviderSet
) -> ProviderSet:
    """Return the roots of all trees in which a provider can be used."""
    roots = index.roots_of(local)
    for number in index.members(sharing) if sharing else ():
        roots |= index.anchors_of[number]
    return roots


def single_providers(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return the providers that each meet all conditions of a suffixed group.

    A suffixed group is served by a single provider (specification *Granular
    Resource Request Syntax*).

    A group without resources only selects a provider for ``same_subtree``.
    For such a group, Placement ignores ``in_tree`` and finds no provider
    unless the group requires a trait or an aggregate; forbidden traits and
    aggregates alone do not suffice. This is not in the API reference; it was
    found by comparing with a real Placement.
    """
    if group.resources:
        return meeting_all(index, group)
    if not required(group) and not group.aggregates:
        return 0
    return meeting_all(index, dataclasses.replace(group, in_tree=None))


def _by_one(
    index: ProviderIndex, group: RequestGroup, anchors: ProviderSet
) -> Serving:
    """Return the ways to serve a suffixed group.

    A provider serves its own tree and, if it is a sharing provider, every
    tree that it shares with. This holds with ``in_tree`` too.
    """
    single = single_providers(index, group)
    providers = UsableProviders(index, single, single & index.sharing)
    return Serving(
        group,
        _amounts(group),
        providers.anchors & anchors,
        lambda root: [(number,) for number in providers.around(root)],
    )


def local_providers(
    index: ProviderIndex, group: RequestGroup, outside: ProviderSet
) -> ProviderSet:
    """Return the providers the unsuffixed group may use in their own tree.

    :param outside: The members of the aggregates that the group forbids.
    """
    providers = in_tree(index, group)
    if group.aggregates:
        inside = in_aggregates(index, group)
        providers &= spanning(index, inside)
    providers &= ~spanning(index, outside)
    return providers & ~with_any_trait(index, group.forbidden_traits)


def sharing_providers(
    index: ProviderIndex, group: RequestGroup, outside: ProviderSet
) -> ProviderSet:
    """Return the providers the unsuffixed group may use in other trees.

    A sharing provider must be a member of the required aggregates itself. With
    ``in_tree``, no provider of another tree may be used.

    :param outside: The members of the aggregates that the group forbids.
    """
    if group.in_tree is not None:
        return 0
    providers = index.sharing & in_aggregates(index, group)
    providers &= ~outside
    return providers & ~with_any_trait(index, group.forbidden_traits)


def _by_tree(
    index: ProviderIndex, group: RequestGroup, anchors: ProviderSet
) -> Serving:
    """Return the ways to serve the unsuffixed group.

    Each resource class may come from a different provider of the tree or from
    a provider that shares with it. No provider that is used may have a
    forbidden trait; together they must have all required traits (specification
    *Nested Resource Providers - Allocation Candidates*).
    """
    outside = index.in_any_aggregate(group.forbidden_aggregates)
    local = local_providers(index, group, outside)
    sharing = sharing_providers(index, group, outside)
    anchors &= ~outside
    amounts = _amounts(group)
    helpers, sources = 0, []
    for resource_class, amount in amounts:
        fit = fitting(index, resource_class, amount)
        sources.append(UsableProviders(index, fit & local, fit & sharing))
        anchors &= sources[-1].anchors
        helpers |= _reached(index, fit & local & ~index.roots, fit & sharing)
    # Without usable children or sharing providers, the root must provide all
    # resource classes and traits itself.
    by_itself = with_traits(index, group) & ~helpers
    anchors &= by_itself | helpers
    alone = anchors & ~helpers
    if not helpers:
        # The flags of all providers take longer than the rest of a query.
        return Serving(
            group, amounts, anchors, index.single_picks.__getitem__, alone
        )
    has_helper = index.flags(helpers)
    holding = [
        index.flags(with_any_trait(index, choice))
        for choice in required(group)
    ]

    def around(root: int) -> Sequence[Pick]:
        if not has_helper[root]:
            return index.single_picks[root]
        return [
            providers if len(set(providers)) > 1 else providers[:1]
            for providers in itertools.product(
                *(source.around(root) for source in sources)
            )
            if all(any(has[number] for number in providers) for has in holding)
        ]

    return Serving(group, amounts, anchors, around, alone)


def _amounts(group: RequestGroup) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(group.resources.items()))


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
