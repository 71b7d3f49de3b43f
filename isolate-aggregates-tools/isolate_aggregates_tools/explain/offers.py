# SPDX-License-Identifier: Apache-2.0
"""Computes the hosts that Placement would offer, without their candidates.

The rules are the simulator's. If request groups are independent of each other,
it is enough to know that each can be served. This takes only a few operations
on sets of providers for the whole cloud.
"""

from collections import Counter
from collections.abc import Sequence
import copy
import functools
import itertools

from isolate_aggregates_tools.explain.splitting import DividedRequest
from isolate_aggregates_tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)
from isolate_aggregates_tools.simulator import groups, merge
from isolate_aggregates_tools.simulator.index import (
    ProviderIndex,
    ProviderSet,
    Stock,
)

# The anchors with which a group can be served, and those of them whose own
# tree can provide some of the resources.
_Anchors = tuple[ProviderSet, ProviderSet]


class Offers:
    """Computes the hosts that would be offered for variants of a request.

    ``index`` is that of the providers, with stocks of the placeholder classes.
    """

    def __init__(
        self, providers: ProviderIndex, request: DividedRequest
    ) -> None:
        index = self.index = copy.copy(providers)
        index.stocks = {**index.stocks, **_waived(index, request)}
        # Cached, as the same sets occur for most variants.
        self._roots_of = functools.cache(index.roots_of)
        self._fitting = functools.cache(
            functools.partial(groups.fitting, index)
        )

    def among(
        self, hosts: ProviderSet, request: ResourceRequest
    ) -> ProviderSet:
        """Return the hosts that have an allocation candidate.

        A candidate counts for the host that is its anchor, and only if it uses
        the host's own tree, as in :meth:`Simulator.hosts`.
        """
        roots, giving = hosts & self._right_roots(request), 0
        for group in request.groups.values():
            serve = self._by_one if group.suffix else self._by_tree
            possible, local = serve(group, roots)
            roots &= possible
            giving |= local
        roots &= giving
        if roots and _depend(request):
            servings = [
                groups.serve(self.index, group, roots)
                for group in request.groups.values()
            ]
            roots &= merge.local_anchors(self.index, request, servings)
        return roots

    def on_node(
        self, hosts: ProviderSet, request: ResourceRequest
    ) -> ProviderSet:
        """Return the offered hosts that Nova does not skip.

        :param hosts: Hosts that have an allocation candidate.
        """
        index = self.index
        elsewhere = hosts
        for resource_class in request.merged_resources():
            stock = index.stocks.get(resource_class)
            if stock and elsewhere:
                # Where only the root has a class, it is allocated from there.
                below = stock.providers & ~index.roots
                elsewhere &= self._reached(
                    below, stock.providers & index.sharing
                )
        if not elsewhere:
            return hosts
        servings = [
            groups.serve(index, group, elsewhere)
            for group in request.groups.values()
        ]
        return (hosts & ~elsewhere) | (
            elsewhere & merge.node_anchors(index, request, servings)
        )

    def _right_roots(self, request: ResourceRequest) -> ProviderSet:
        return groups.roots_with(
            self.index, request.root_required, request.root_forbidden
        )

    def _by_one(self, group: RequestGroup, anchors: ProviderSet) -> _Anchors:
        """Serve a suffixed group: a single provider serves it."""
        providers = groups.single_providers(self.index, group)
        sharing = providers & self.index.sharing
        return self._reached(providers, sharing), self._roots_of(providers)

    def _by_tree(self, group: RequestGroup, anchors: ProviderSet) -> _Anchors:
        """Serve the unsuffixed group: several providers may serve it."""
        index = self.index
        outside = index.in_any_aggregate(group.forbidden_aggregates)
        local = groups.local_providers(index, group, outside)
        sharing = groups.sharing_providers(index, group, outside)
        roots, anybody = anchors & ~outside, 0
        sources = []
        for resource_class, amount in group.resources.items():
            fit = self._fitting(resource_class, amount)
            roots &= self._reached(fit & local, fit & sharing)
            anybody |= fit
            sources.append((fit & local, fit & sharing))
        # If a usable provider of the tree has all required traits, the traits
        # of the other providers do not matter.
        able = groups.with_traits(index, group)
        sure = roots & self._roots_of(anybody & local & able)
        holders = [
            groups.with_any_trait(index, choice)
            for choice in groups.required(group)
        ]
        if not holders:
            return roots, sure
        unsure = roots & ~sure
        for has in holders:
            some = anybody & has
            unsure &= self._reached(some & local, some & sharing)
        if not unsure:
            return sure, sure
        providers = [
            groups.UsableProviders(index, *source) for source in sources
        ]
        together, of_its_own = _together(index, unsure, providers, holders)
        return sure | together, sure | of_its_own

    def _reached(
        self, local: ProviderSet, sharing: ProviderSet
    ) -> ProviderSet:
        """Return the roots of all trees in which the providers can be used."""
        roots = self._roots_of(local)
        if sharing:
            for number, anchors in self.index.anchors_of.items():
                if sharing >> number & 1:
                    roots |= anchors
        return roots


def _waived(index: ProviderIndex, request: DividedRequest) -> dict[str, Stock]:
    """Return the stock of each placeholder class for a waived amount.

    All providers that have the resource class have the placeholder, whatever
    their free capacity. In a suffixed group, which a single provider serves,
    so have the providers of the group's other resource classes. In a tree
    without any of them the root has it. So the amount never excludes a host,
    but the traits and aggregates of the providers still can.
    """
    stocks: dict[str, Stock] = {}
    for amount in request.amounts:
        classes = {amount.resource_class}
        if amount.suffix:
            classes |= request.classes[amount.suffix]
        holders = 0
        for resource_class in classes & index.stocks.keys():
            holders |= index.stocks[resource_class].providers
        holders |= index.roots & ~index.roots_of(holders)
        stocks[amount.waived] = _Endless(holders)
    return stocks


class _Endless(Stock):
    """A stock in which every provider has enough for any amount."""

    def __init__(self, providers: ProviderSet) -> None:
        self.providers = providers

    def with_free(self, amount: int) -> ProviderSet:
        return self.providers

    def accepting(self, amount: int) -> ProviderSet:
        return self.providers


def _together(
    index: ProviderIndex,
    roots: ProviderSet,
    sources: Sequence[groups.UsableProviders],
    holders: Sequence[ProviderSet],
) -> _Anchors:
    """Find the anchors where one provider per class has all traits together.

    :param sources: The usable providers of each resource class.
    :param holders: The providers that have each required trait.
    """
    has = [index.flags(providers) for providers in holders]
    every, own = (1 << len(has)) - 1, 1 << len(has)

    def brings(number: int, root: int) -> int:
        local = own if index.root_of[number] == root else 0
        return local | sum(flags[number] << n for n, flags in enumerate(has))

    possible, of_its_own = [], []
    for root in index.members(roots):
        brought = {0}
        for source in sources:
            ways = {brings(number, root) for number in source.around(root)}
            brought = {old | new for old in brought for new in ways}
        if any(way & every == every for way in brought):
            possible.append(root)
        if every | own in brought:
            of_its_own.append(root)
    return index.set_of(possible), index.set_of(of_its_own)


def _depend(request: ResourceRequest) -> bool:
    """Return whether the ways to serve the groups depend on each other."""
    suffixes = [suffix for suffix in request.groups if suffix]
    counts = Counter(
        itertools.chain.from_iterable(
            group.resources for group in request.groups.values()
        )
    )
    return (
        (request.group_policy == 'isolate' and len(suffixes) > 1)
        or any(len(subtree) > 1 for subtree in request.same_subtree)
        or any(count > 1 for count in counts.values())
    )
