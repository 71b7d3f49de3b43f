# SPDX-License-Identifier: Apache-2.0
"""Combines the ways to serve each request group into candidates.

Conditions on several groups are checked here: ``group_policy``,
``same_subtree``, and the capacity that groups on one provider have to share.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
import functools
import itertools
import operator

from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.simulator.groups import Pick, Serving
from isolate_aggregates_tools.simulator.index import ProviderIndex, ProviderSet

# One pick for each group, in the order of the groups.
Combination = tuple[Pick, ...]


def combinations(
    index: ProviderIndex,
    request: ResourceRequest,
    servings: Sequence[Serving],
) -> Iterator[Combination]:
    """Return every combination that serves all groups with one anchor.

    They are ordered by anchor, in the order of the snapshot. A combination
    that consists of sharing providers only can belong to several anchors; it
    is returned once.
    """
    anchors = index.members(_common(servings))
    around: Callable[[int], Iterable[Combination]]
    if len(servings) == 1:
        around = _of_only_group(servings[0])
    else:
        around = _Merger(index, request, servings).around
    all_anchors = itertools.chain.from_iterable(map(around, anchors))
    return _once(all_anchors) if index.sharing else all_anchors


def _common(servings: Sequence[Serving]) -> ProviderSet:
    """Return the anchors that are possible for all groups."""
    return functools.reduce(
        operator.and_, (serving.anchors for serving in servings)
    )


def _of_only_group(serving: Serving) -> Callable[[int], Iterable[Combination]]:
    """Return the combinations if there is only one group: its picks."""
    return lambda anchor: zip(serving.around(anchor), strict=True)


def local_anchors(
    index: ProviderIndex,
    request: ResourceRequest,
    servings: Sequence[Serving],
) -> ProviderSet:
    """Return the anchors with a candidate that uses their own tree."""
    around = _Merger(index, request, servings).around
    return index.set_of(
        anchor
        for anchor in index.members(_common(servings))
        if any(
            index.root_of[number] == anchor
            for combination in around(anchor)
            for pick in combination
            for number in pick
        )
    )


def node_anchors(
    index: ProviderIndex,
    request: ResourceRequest,
    servings: Sequence[Serving],
) -> ProviderSet:
    """Return the anchors with a candidate that Nova takes.

    Nova looks up candidates by compute node, which is the root of a tree. It
    skips a host if no candidate allocates anything from that provider.
    """
    around = _Merger(index, request, servings).around
    anchors = _common(servings)
    certain = 0
    if len(servings) == 1 and servings[0].amounts:
        certain = anchors & servings[0].alone
    return certain | index.set_of(
        anchor
        for anchor in index.members(anchors & ~certain)
        if any(
            number == anchor
            for combination in around(anchor)
            for serving, pick in zip(servings, combination, strict=True)
            for number, _ in serving.shares(pick)
        )
    )


def _once(combinations: Iterable[Combination]) -> Iterator[Combination]:
    earlier: set[Combination] = set()
    for combination in combinations:
        if combination not in earlier:
            earlier.add(combination)
            yield combination


class _Merger:
    """Combines the picks that groups have for the same anchor."""

    def __init__(
        self,
        index: ProviderIndex,
        request: ResourceRequest,
        servings: Sequence[Serving],
    ) -> None:
        self._index = index
        self._servings = servings
        self._isolate = request.group_policy == 'isolate'
        suffixes = [serving.group.suffix for serving in servings]
        self._subtrees = [
            [suffixes.index(suffix) for suffix in sorted(same_subtree)]
            for same_subtree in request.same_subtree
        ]
        demands = Counter(
            rc for serving in servings for rc, _ in serving.amounts
        )
        self._contested = {rc for rc, groups in demands.items() if groups > 1}

    def around(self, anchor: int) -> Iterator[Combination]:
        """Return the combinations for an anchor."""
        picks = [serving.around(anchor) for serving in self._servings]
        if self._isolate or self._contested or self._subtrees:
            return self._extended(picks, ())
        return itertools.product(*picks)

    def _extended(
        self, picks: Sequence[Sequence[Pick]], start: Combination
    ) -> Iterator[Combination]:
        """Yield the combinations that start with the chosen picks."""
        if len(start) == len(picks):
            if self._in_subtrees(start):
                yield start
            return
        for pick in picks[len(start)]:
            combination = (*start, pick)
            if self._keeps_apart(combination) and self._fits(combination):
                yield from self._extended(picks, combination)

    def _keeps_apart(self, combination: Combination) -> bool:
        """Return whether the last pick respects ``group_policy=isolate``.

        No two suffixed groups may be served by the same provider. The policy
        does not apply to the unsuffixed group.
        """
        if (
            not self._isolate
            or not self._servings[len(combination) - 1].group.suffix
        ):
            return True
        [*others, last] = zip(self._servings, combination, strict=False)
        return all(
            pick[0] != last[1][0]
            for serving, pick in others
            if serving.group.suffix
        )

    def _fits(self, combination: Combination) -> bool:
        """Return whether the providers have capacity for all groups together.

        If several groups take the same resource class from one provider, the
        sum must be free there. The sum is one allocation, so ``max_unit``
        applies to it as well.
        """
        if not self._contested:
            return True
        totals: dict[tuple[int, str], int] = defaultdict(int)
        for serving, pick in zip(self._servings, combination, strict=False):
            for number, (rc, amount) in serving.shares(pick):
                if rc in self._contested:
                    totals[number, rc] += amount
        for (number, rc), amount in totals.items():
            inventory = self._index.providers[number].inventories[rc]
            free = inventory.capacity - self._index.used(number, rc)
            if amount > min(inventory.max_unit, free):
                return False
        return True

    def _in_subtrees(self, combination: Combination) -> bool:
        """Return whether the picks respect ``same_subtree``.

        One of the providers that serve these groups must be the ancestor of
        all the others; a single provider qualifies too.
        """
        for positions in self._subtrees:
            numbers = {combination[position][0] for position in positions}
            if not any(
                all(number in self._index.ancestry(other) for other in numbers)
                for number in numbers
            ):
                return False
        return True
