# SPDX-License-Identifier: Apache-2.0
"""Which providers can serve one request group.

A candidate has an *anchor*: the root of the tree it belongs to. All its
resources come from that tree and from providers that share with it, and the
groups of one request have to be served around one anchor.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import itertools

from isolate_aggregates.placement.group import RequestGroup
from isolate_aggregates.simulator import conditions
from isolate_aggregates.simulator.index import ProviderIndex, ProviderSet

# Who serves a group: one provider that does so alone, or the providers of each
# of its resource classes, in their order.
Pick = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Serving:
    """All the ways to serve one request group.

    :param group: The group.
    :param classes: Its resource classes.
    :param picks: By anchor the picks of providers.
    """

    group: RequestGroup
    classes: tuple[str, ...]
    picks: Mapping[int, Sequence[Pick]]

    def amounts(self, pick: Pick) -> Iterator[tuple[int, str, int]]:
        """Yield who gives how much of which resource class.

        :param pick: One of the picks.
        """
        givers = pick * len(self.classes) if len(pick) == 1 else pick
        for number, resource_class in zip(givers, self.classes, strict=True):
            yield number, resource_class, self.group.resources[resource_class]


def serve(
    index: ProviderIndex, group: RequestGroup, anchors: ProviderSet
) -> Serving:
    """Return all the ways to serve a group.

    :param index: The providers.
    :param group: The group.
    :param anchors: The roots that may be anchors.
    """
    classes = tuple(sorted(group.resources))
    if group.suffix:
        picks = _by_one(index, group, anchors)
    else:
        picks = _by_tree(index, group, classes, anchors)
    return Serving(group, classes, picks)


def single_providers(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return the providers that alone meet all conditions of a group.

    So it is for a group with a suffix (specification *Granular Resource
    Request Syntax*).

    A group without resources only names a provider, for ``same_subtree``. The
    service does not look at its ``in_tree``, and finds nobody unless the group
    requires a trait or an aggregate; forbidding some is not enough. The API
    reference says neither.

    :param index: The providers.
    :param group: The group.
    """
    if group.resources:
        return conditions.alone(index, group)
    if not conditions.required(group) and not group.aggregates:
        return 0
    return conditions.alone(index, dataclasses.replace(group, in_tree=None))


def _by_one(
    index: ProviderIndex,
    group: RequestGroup,
    anchors: ProviderSet,
) -> dict[int, list[Pick]]:
    """Return the ways of a group with a suffix.

    A provider serves its own tree and, if it shares, every tree it shares
    with. That ``in_tree`` names its tree keeps it from neither.
    """
    picks: dict[int, list[Pick]] = defaultdict(list)
    may_be_anchor = index.flags(anchors)
    for number in index.members(single_providers(index, group)):
        pick = (number,)
        if may_be_anchor[index.root_of[number]]:
            picks[index.root_of[number]].append(pick)
        if number in index.borrowers:
            for root in index.members(index.borrowers[number] & anchors):
                picks[root].append(pick)
    return picks


def local_providers(
    index: ProviderIndex, group: RequestGroup, anchors: ProviderSet
) -> ProviderSet:
    """Return who may give to the group without a suffix in its own tree.

    :param index: The providers.
    :param group: The group.
    :param anchors: The roots that may be anchors.
    """
    found = conditions.in_tree(index, group)
    if anchors != index.roots:
        found &= index.trees_of(anchors)
    if group.aggregates:
        inside = conditions.in_aggregates(index, group)
        found &= conditions.spanning(index, inside)
    outside = conditions.in_any_aggregate(index, group.forbidden_aggregates)
    found &= ~conditions.spanning(index, outside)
    return found & ~conditions.with_any_trait(index, group.forbidden_traits)


def lenders(index: ProviderIndex, group: RequestGroup) -> ProviderSet:
    """Return who may give to the group without a suffix in other trees.

    A sharing provider has to be a member of the aggregates itself, and with
    ``in_tree`` nothing comes from another tree.

    :param index: The providers.
    :param group: The group.
    """
    if group.in_tree is not None:
        return 0
    found = index.sharing & conditions.in_aggregates(index, group)
    found &= ~conditions.in_any_aggregate(index, group.forbidden_aggregates)
    return found & ~conditions.with_any_trait(index, group.forbidden_traits)


def _by_tree(
    index: ProviderIndex,
    group: RequestGroup,
    classes: tuple[str, ...],
    anchors: ProviderSet,
) -> dict[int, list[Pick]]:
    """Return the ways of the group without a suffix.

    Each resource class may come from another provider of the tree, or from
    one that shares with it. Of those that give something, none has a forbidden
    trait, and together they have the required ones (specification *Nested
    Resource Providers - Allocation Candidates*). A root without such helpers
    gives all or nothing.
    """
    local = local_providers(index, group, anchors)
    sharing = lenders(index, group)
    fitting = [
        conditions.fitting(
            index, resource_class, group.resources[resource_class]
        )
        for resource_class in classes
    ]
    outside = conditions.in_any_aggregate(index, group.forbidden_aggregates)
    served, helped = anchors & ~outside, 0
    for fit in fitting:
        served &= _served(index, fit & local, fit & sharing)
        helped |= _served(index, fit & local & ~index.roots, fit & sharing)
    able = conditions.with_traits(index, group)
    picks: dict[int, list[Pick]] = {
        root: [(root,)] for root in index.members(served & ~helped & able)
    }
    served &= helped
    options = [
        _options(index, fit & local, fit & sharing, served) for fit in fitting
    ]
    wanted = [
        index.flags(conditions.with_any_trait(index, choice))
        for choice in conditions.required(group)
    ]
    for root in index.members(served):
        found = [
            givers if len(set(givers)) > 1 else givers[:1]
            for givers in itertools.product(*(by[root] for by in options))
            if all(any(has[number] for number in givers) for has in wanted)
        ]
        if found:
            picks[root] = found
    return picks


def _served(
    index: ProviderIndex, local: ProviderSet, sharing: ProviderSet
) -> ProviderSet:
    """Return the roots that a resource class can be served around."""
    roots = index.roots_of(local)
    for number in index.members(sharing):
        roots |= index.borrowers[number]
    return roots


def _options(
    index: ProviderIndex,
    local: ProviderSet,
    sharing: ProviderSet,
    roots: ProviderSet,
) -> dict[int, list[int]]:
    """Return by root the providers that can give a resource class to it."""
    givers: dict[int, list[int]] = defaultdict(list)
    for number in index.members(local & index.trees_of(roots)):
        givers[index.root_of[number]].append(number)
    for number in index.members(sharing):
        for root in index.members(index.borrowers[number] & roots):
            givers[root].append(number)
    return givers
