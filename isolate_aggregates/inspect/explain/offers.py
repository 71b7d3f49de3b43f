# SPDX-License-Identifier: Apache-2.0
"""Which hosts Placement would offer, without saying in which ways.

The rules are the simulator's. Where groups do not depend on each other it is
enough to know that there is a way, and that takes a few operations on sets of
providers for the whole cloud.
"""

from collections import Counter
from collections.abc import Sequence
import functools
import itertools

from isolate_aggregates.inspect.explain.divided import DividedRequest
from isolate_aggregates.placement.group import RequestGroup, ResourceRequest
from isolate_aggregates.placement.simulator import conditions, groups, merge
from isolate_aggregates.placement.simulator.index import (
    ProviderIndex,
    ProviderSet,
    Stock,
)

# The roots around which a group can be served, and those of them whose own
# tree can give a part.
_Served = tuple[ProviderSet, ProviderSet]


class Offers:
    """Tells which hosts would be offered for a divided request.

    :param divided: The request; its amounts may be waived.
    """

    def __init__(self, index: ProviderIndex, divided: DividedRequest) -> None:
        self._index = index
        index.stocks = {**index.stocks, **_waived(index, divided)}
        # The same few sets come up again and again.
        self._roots_of = functools.cache(index.roots_of)
        self._fitting = functools.cache(
            functools.partial(conditions.fitting, index)
        )

    def among(
        self, hosts: ProviderSet, request: ResourceRequest
    ) -> ProviderSet:
        """Return the hosts that some candidate takes from.

        Of a provider that shares with others its own tree counts only for a
        candidate around it.

        :param hosts: The root providers to look at.
        """
        served, giving = hosts & self._right_roots(request), 0
        for group in request.groups.values():
            serve = self._by_one if group.suffix else self._by_tree
            possible, local = serve(group, served)
            served &= possible
            giving |= local
        served &= giving
        if served and _depend(request):
            servings = [
                groups.serve(self._index, group, served)
                for group in request.groups.values()
            ]
            served &= merge.local_anchors(self._index, request, servings)
        return served

    def _right_roots(self, request: ResourceRequest) -> ProviderSet:
        return conditions.roots_with(
            self._index, request.root_required, request.root_forbidden
        )

    def _by_one(self, group: RequestGroup, anchors: ProviderSet) -> _Served:
        """Serve a group with a suffix: one provider does it all."""
        found = groups.single_providers(self._index, group)
        lending = found & self._index.sharing
        return self._reached(found, lending), self._roots_of(found)

    def _by_tree(self, group: RequestGroup, anchors: ProviderSet) -> _Served:
        """Serve the group without a suffix: several may do it together."""
        index = self._index
        local = groups.local_providers(index, group)
        lending = groups.lenders(index, group)
        outside = conditions.in_any_aggregate(
            index, group.forbidden_aggregates
        )
        served, anybody = anchors & ~outside, 0
        sources = []
        for resource_class, amount in group.resources.items():
            fit = self._fitting(resource_class, amount)
            served &= self._reached(fit & local, fit & lending)
            anybody |= fit
            sources.append((fit & local, fit & lending))
        # Where one of the tree has all traits, anybody may give the rest.
        able = conditions.with_traits(index, group)
        sure = served & self._roots_of(anybody & local & able)
        wanted = [
            conditions.with_any_trait(index, choice)
            for choice in conditions.required(group)
        ]
        if not wanted:
            return served, sure
        unsure = served & ~sure
        for has in wanted:
            some = anybody & has
            unsure &= self._reached(some & local, some & lending)
        if not unsure:
            return sure, sure
        givers = [groups.Givers(index, *source) for source in sources]
        together, of_its_own = _together(index, unsure, givers, wanted)
        return sure | together, sure | of_its_own

    def _reached(
        self, local: ProviderSet, lending: ProviderSet
    ) -> ProviderSet:
        """Return the roots that some providers can give something to."""
        roots = self._roots_of(local)
        if lending:
            for number, borrowers in self._index.borrowers.items():
                if lending >> number & 1:
                    roots |= borrowers
        return roots


def _waived(index: ProviderIndex, divided: DividedRequest) -> dict[str, Stock]:
    """Return who has what stands for the amounts that are not asked for.

    All that have any of what the group asks for or, as the group without a
    suffix may be served by several, of that resource class. The root stands
    for a tree without one. So it never is the amount that matters, but it
    still does who would give it.
    """
    found: dict[str, Stock] = {}
    for amount in divided.amounts:
        classes = {amount.resource_class}
        if amount.suffix:
            classes |= divided.classes[amount.suffix]
        holders = 0
        for resource_class in classes & index.stocks.keys():
            holders |= index.stocks[resource_class].providers
        holders |= index.roots & ~index.roots_of(holders)
        found[amount.waived] = _Endless(holders)
    return found


class _Endless(Stock):
    """A stock from which no more is ever taken than it has.

    :param providers: Who has it.
    """

    def __init__(self, providers: ProviderSet) -> None:
        self.providers = providers

    def with_free(self, amount: int) -> ProviderSet:
        """Return all who have it."""
        return self.providers

    def accepting(self, amount: int) -> ProviderSet:
        """Return all who have it."""
        return self.providers


def _together(
    index: ProviderIndex,
    roots: ProviderSet,
    sources: Sequence[groups.Givers],
    wanted: Sequence[ProviderSet],
) -> _Served:
    """Return where one giver of each source has all that is wanted.

    :param roots: The roots to look around.
    :param sources: Who can give each resource class.
    :param wanted: Who has each of the traits.
    """
    has = [index.flags(providers) for providers in wanted]
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
    """Return whether how one group is served matters to another."""
    suffixes = [suffix for suffix in request.groups if suffix]
    asked = Counter(
        itertools.chain.from_iterable(
            group.resources for group in request.groups.values()
        )
    )
    return (
        (request.group_policy == 'isolate' and len(suffixes) > 1)
        or any(len(subtree) > 1 for subtree in request.same_subtree)
        or any(count > 1 for count in asked.values())
    )
