# SPDX-License-Identifier: Apache-2.0
"""Which providers can serve one request group.

A candidate has an *anchor*: the root of the tree it belongs to. All its
resources come from that tree and from providers that share with it, and the
groups of one request must be served around one anchor.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
import itertools

from isolate_aggregates.placement.group import RequestGroup
from isolate_aggregates.placement.simulator import conditions
from isolate_aggregates.placement.simulator.index import (
    ProviderIndex,
    ProviderSet,
)

# Who serves a group: one provider alone, or one for each of its resource
# classes in their order.
Pick = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Serving:
    """All the ways to serve one request group.

    :param amounts: Its resource classes with their amounts, in their order.
    :param anchors: Where it may be served; elsewhere it cannot.
    :param around: Gives the picks for an anchor, perhaps none.
    """

    group: RequestGroup
    amounts: tuple[tuple[str, int], ...]
    anchors: ProviderSet
    around: Callable[[int], Sequence[Pick]]

    def shares(self, pick: Pick) -> Iterator[tuple[int, tuple[str, int]]]:
        """Return which provider of a pick gives what."""
        givers: Iterable[int]
        givers = itertools.repeat(pick[0]) if len(pick) == 1 else pick
        return zip(givers, self.amounts, strict=False)


def serve(
    index: ProviderIndex, group: RequestGroup, anchors: ProviderSet
) -> Serving:
    """Return all the ways to serve a group.

    :param anchors: The roots that may be anchors.
    """
    if group.suffix:
        return _by_one(index, group, anchors)
    return _by_tree(index, group, anchors)


class Givers:
    """The providers that have something to give, around each anchor.

    :param local: Those that give in their own tree.
    :param lending: The sharing ones that give in the trees they share with.
    """

    def __init__(
        self, index: ProviderIndex, local: ProviderSet, lending: ProviderSet
    ) -> None:
        self.anchors = _reached(index, local, lending)
        self._trees = index.trees
        self._local = index.flags(local)
        self._lending = [
            (number, index.flags(index.borrowers[number]))
            for number in index.members(lending)
        ]

    def around(self, root: int) -> list[int]:
        """Return those that give around an anchor."""
        local, lending = self._local, self._lending
        found = [number for number in self._trees[root] if local[number]]
        if lending:
            found += [number for number, roots in lending if roots[root]]
        return found


def _reached(
    index: ProviderIndex, local: ProviderSet, lending: ProviderSet
) -> ProviderSet:
    """Return the roots that some providers can give something to."""
    roots = index.roots_of(local)
    for number in index.members(lending):
        roots |= index.borrowers[number]
    return roots


def single_providers(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return the providers that alone meet all conditions of a group.

    So it is for a group with a suffix (specification *Granular Resource
    Request Syntax*).

    A group without resources only names a provider, for ``same_subtree``. The
    service does not look at its ``in_tree``, and finds none unless the group
    requires a trait or an aggregate; forbidding some is not enough. The API
    reference says neither.
    """
    if group.resources:
        return conditions.meeting_all(index, group)
    if not conditions.required(group) and not group.aggregates:
        return 0
    return conditions.meeting_all(
        index, dataclasses.replace(group, in_tree=None)
    )


def _by_one(
    index: ProviderIndex, group: RequestGroup, anchors: ProviderSet
) -> Serving:
    """Return the ways to serve a group with a suffix.

    A provider serves its own tree and, if it shares, every tree it shares
    with. That ``in_tree`` names its tree keeps it from neither.
    """
    found = single_providers(index, group)
    givers = Givers(index, found, found & index.sharing)
    return Serving(
        group,
        _amounts(group),
        givers.anchors & anchors,
        lambda root: [(number,) for number in givers.around(root)],
    )


def local_providers(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return who may give to the group without a suffix in its own tree."""
    found = conditions.in_tree(index, group)
    if group.aggregates:
        inside = conditions.in_aggregates(index, group)
        found &= conditions.spanning(index, inside)
    outside = conditions.in_any_aggregate(index, group.forbidden_aggregates)
    found &= ~conditions.spanning(index, outside)
    return found & ~conditions.with_any_trait(index, group.forbidden_traits)


def lenders(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return who may give to the group without a suffix in other trees.

    A sharing provider must be a member of the aggregates itself, and with
    ``in_tree`` nothing comes from another tree.
    """
    if group.in_tree is not None:
        return 0
    found = index.sharing & conditions.in_aggregates(index, group)
    found &= ~conditions.in_any_aggregate(index, group.forbidden_aggregates)
    return found & ~conditions.with_any_trait(index, group.forbidden_traits)


def _by_tree(
    index: ProviderIndex, group: RequestGroup, anchors: ProviderSet
) -> Serving:
    """Return the ways to serve the group without a suffix.

    Each resource class may come from another provider of the tree, or from
    one that shares with it. Of those that give something, none has a forbidden
    trait, and together they have the required ones (specification *Nested
    Resource Providers - Allocation Candidates*).
    """
    local = local_providers(index, group)
    lending = lenders(index, group)
    outside = conditions.in_any_aggregate(index, group.forbidden_aggregates)
    anchors &= ~outside
    amounts = _amounts(group)
    helpers, sources = 0, []
    for resource_class, amount in amounts:
        fit = conditions.fitting(index, resource_class, amount)
        sources.append(Givers(index, fit & local, fit & lending))
        anchors &= sources[-1].anchors
        helpers |= _reached(index, fit & local & ~index.roots, fit & lending)
    # A root without a sharing provider gives all or nothing.
    by_itself = conditions.with_traits(index, group) & ~helpers
    anchors &= by_itself | helpers
    helped = index.flags(helpers)
    wanted = [
        index.flags(conditions.with_any_trait(index, choice))
        for choice in conditions.required(group)
    ]

    def around(root: int) -> Sequence[Pick]:
        if not helped[root]:
            return index.single_picks[root]
        return [
            givers if len(set(givers)) > 1 else givers[:1]
            for givers in itertools.product(
                *(source.around(root) for source in sources)
            )
            if all(any(has[number] for number in givers) for has in wanted)
        ]

    return Serving(group, amounts, anchors, around)


def _amounts(group: RequestGroup) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(group.resources.items()))
