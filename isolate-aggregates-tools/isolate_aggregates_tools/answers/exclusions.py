# SPDX-License-Identifier: Apache-2.0
"""The set of hosts that each part of a request excludes, with the reason.

What counts is what the cloud answers with every host empty: a host that
Placement offers then, and no host filter of Nova drops, is not excluded.
"""

from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import functools
import operator
from typing import NamedTuple

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.constraints import (
    Conclusion,
    Destination,
    Forbid,
    LazyForbid,
)
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.answers.deciding import decided
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.request import (
    Request,
    asking,
    constraints,
    resources,
)
from isolate_aggregates_tools.request.constraints import Objection
from isolate_aggregates_tools.simulator.index import Groups, ProviderSet

_NO_CANDIDATE = (
    'Placement offers no candidate on it, even when it is empty; explain says '
    'why'
)


_Aggregates = tuple[Aggregate, ...]
# All nodes by Placement's members and by Nova's, and both of each group.
_Members = tuple[
    ProviderSet,
    ProviderSet,
    Sequence[tuple[frozenset[str], tuple[int, int]]],
]


class Exclusion(NamedTuple):
    """The hosts that a request may not use for one reason.

    :param nodes: The number of the set of their compute nodes.
    :param wanted: The same if Placement had the members of host aggregates
        that Nova has; they differ while its mirror of them is incomplete.
    :param uuids: The forbidden aggregates.
    :param trait: The trait that they lack or have.
    :param host_filter: The host filter of Nova that would object as well.
    :param is_dropped: Whether a host filter drops them after Placement.
    """

    nodes: int
    wanted: int
    filter_name: str | None
    kind: str
    cause: str = ''
    uuids: frozenset[str] = frozenset()
    trait: str = ''
    host_filter: str = ''
    is_dropped: bool = False


class _Part(NamedTuple):
    """A part of a request that excludes hosts, for one or many reasons.

    :param numbers: Of each reason, the numbers of the sets of nodes.
    :param nodes: All nodes that it excludes.
    :param wanted: The same by Nova's members of aggregates.
    :param make: Returns the exclusions, one for each reason.
    :param key: With equal keys and causes, they are equal.
    """

    numbers: Sequence[tuple[int, int]]
    nodes: ProviderSet
    wanted: ProviderSet
    make: Callable[[], Iterable[Exclusion]]
    key: Hashable
    cause: str = ''
    is_dropped: bool = False


class Excluded:
    """The hosts that a request may not use.

    :param offered: The nodes that Placement offers.
    """

    def __init__(
        self, hosts: 'HostSets', parts: Sequence[_Part], offered: ProviderSet
    ) -> None:
        self._hosts, self._parts, self._offered = hosts, parts, offered
        self.nodes = hosts.index.nodes & ~offered
        self.unenforced_nodes: ProviderSet = 0
        self._rest = self.nodes
        # All sets get their numbers now, as hosts are grouped by them.
        for part in parts:
            self._rest &= ~part.nodes
            if part.is_dropped:
                self.nodes |= part.nodes
                continue
            if part.nodes & offered:
                for number, _ in part.numbers:
                    hosts.number(hosts.sets[number] & ~offered)
            if part.wanted & offered and not hosts.agree:
                self.unenforced_nodes |= part.wanted & offered
                for _, number in part.numbers:
                    hosts.number(hosts.sets[number] & offered)
        hosts.number(self._rest)

    def likeness(self, flavor: str, image: str) -> Hashable:
        """Return a key; with equal keys, only texts of the flavor differ.

        :param flavor: How causes name the flavor.
        :param image: The name of the image; empty if there is none.
        """
        return (
            self._offered,
            tuple(image.split(flavor)),
            tuple(
                (each.key, *each.cause.split(flavor)) for each in self._parts
            ),
        )

    def exclusions(self) -> Iterator[Exclusion]:
        """Yield the hosts that it may not use, for each reason."""
        hosts = self._hosts
        for part in self._parts:
            is_offered = part.nodes & self._offered and not part.is_dropped
            for each in part.make():
                nodes = hosts.sets[each.nodes]
                if is_offered and nodes & self._offered:
                    nodes &= ~self._offered
                    each = each._replace(nodes=hosts.number(nodes))
                if nodes or each.is_dropped:
                    yield each
        if self._rest:
            number = hosts.number(self._rest)
            yield Exclusion(
                number, number, None, 'no-candidate', _NO_CANDIDATE
            )

    def unenforced(self) -> Iterator[Exclusion]:
        """Yield what it would not use if Placement had Nova's members."""
        hosts = self._hosts
        for part in self._parts if self.unenforced_nodes else ():
            if part.wanted & self._offered and not part.is_dropped:
                for each in part.make():
                    if nodes := hosts.sets[each.wanted] & self._offered:
                        yield each._replace(nodes=hosts.number(nodes))


def excluded(
    request: Request, pipeline: Pipeline, hosts: 'HostSets'
) -> Excluded:
    """Return the hosts that a request may not use."""
    try:
        decision = decided(request, hosts.aggregates, pipeline)
        parts = list(_of_parts(request, decision, hosts))
        offered = hosts.offered(request, decision)
    except errors.InvalidRequest as exc:
        problem = str(exc).rstrip('.')
        nodes = hosts.all_nodes
        whole = Exclusion(nodes, nodes, None, 'invalid-request', problem)
        parts, offered = [_single(whole, hosts)], 0
    return Excluded(hosts, parts, offered)


def _of_parts(
    request: Request, decision: Decision, hosts: 'HostSets'
) -> Iterator[_Part]:
    """Yield the parts of a request."""
    for conclusion in decision.destination.yielded:
        name, constraint = conclusion.filter_name, conclusion.constraint
        if isinstance(constraint, LazyForbid) and constraint.groups:
            yield _of_groups(name, constraint, constraint.groups, hosts)
            continue
        for part in constraint.parts:
            for each in _concluded(Conclusion(name, part), hosts):
                yield _single(each, hosts)
    group = resources.resource_request(request).group()
    for trait in sorted(request.required_traits):
        nodes = hosts.without(trait)
        yield _single(
            Exclusion(nodes, nodes, None, 'required-trait', trait=trait), hosts
        )
    # Suffixed groups are ignored: another provider of the tree may serve them.
    for trait in sorted(group.forbidden_traits if group.resources else ()):
        nodes = hosts.root_with(trait)
        yield _single(
            Exclusion(nodes, nodes, None, 'forbidden-trait', trait=trait),
            hosts,
        )


def _single(each: Exclusion, hosts: 'HostSets') -> _Part:
    """Return a part with one reason."""
    return _Part(
        [(each.nodes, each.wanted)],
        hosts.sets[each.nodes],
        hosts.sets[each.wanted],
        lambda: [each],
        each._replace(cause=''),
        each.cause,
        each.is_dropped,
    )


def _of_groups(
    name: str,
    constraint: LazyForbid,
    groups: tuple[_Aggregates, ...],
    hosts: 'HostSets',
) -> _Part:
    """Return a part with hundreds of reasons, made when they are needed."""
    nodes, wanted, members = hosts.members_of_all(groups)

    def make() -> Iterator[Exclusion]:
        # Not the parts, which are kept: there may be hundreds of thousands.
        for part, (uuids, found) in zip(
            constraint.make(), members, strict=True
        ):
            kind = Conclusion(name, part).kind
            yield Exclusion(*found, name, kind, str(part.cause), uuids)

    numbers = [found for _, found in members]
    return _Part(numbers, nodes, wanted, make, (name, id(groups)))


def _concluded(
    conclusion: Conclusion, hosts: 'HostSets'
) -> Iterator[Exclusion]:
    """Yield the hosts that a conclusion excludes, from the query and after."""
    name, kind = conclusion.filter_name, conclusion.kind
    constraint = conclusion.constraint
    if isinstance(constraint, Forbid):
        uuids, found = hosts.members_of(constraint.aggregates)
        cause = str(constraint.cause)
        yield Exclusion(*found, name, kind, cause, uuids)
        return
    # Not Conclusion.alone, which is kept.
    alone = Destination()
    alone.add(constraint, name)
    yield Exclusion(
        *hosts.excluded(alone),
        name,
        kind,
        constraint.reason,
        host_filter=conclusion.host_filter,
    )
    for drops in constraints.objections(alone):
        for why, nodes in hosts.dropped(drops).items():
            cause = f'dropped after Placement: {why}'
            yield Exclusion(nodes, nodes, name, kind, cause, is_dropped=True)


class HostSets:
    """The compute nodes, and the sets of them that requests tell apart.

    :param offers: What the cloud offers if all hosts are empty, if known.
    """

    def __init__(
        self, snapshot: Snapshot, offers: Offers | None = None
    ) -> None:
        self.aggregates = snapshot.index
        self._offers = offers or Offers(snapshot)
        self.index = self._offers.index
        self.sets: list[ProviderSet] = []
        self._numbers: dict[ProviderSet, int] = {}
        self._uuids = frozenset(each.uuid for each in snapshot.index)
        nova, providers = snapshot.index.aggregates_of, self.index.providers
        # Whether it does not matter whose members count.
        nowhere = frozenset[str]()
        self.agree = all(
            nova.get(host, nowhere) == providers[node].aggregates
            or nova.get(host, nowhere)
            == providers[node].aggregates & self._uuids
            for host, node in self.index.hosts
        )
        self.all_nodes = self.number(self.index.nodes)
        # Most requests ask for the same.
        self._members: dict[frozenset[str], tuple[int, int]] = {}
        # By identity; the aggregates are kept, so that it stays theirs.
        self._known: dict[
            int, tuple[_Aggregates, frozenset[str], tuple[int, int]]
        ] = {}
        self._known_groups: dict[
            int, tuple[tuple[_Aggregates, ...], _Members]
        ] = {}
        self._without: dict[str, int] = {}

    @lazy_property
    def _in_nova(self) -> Groups:
        """The nodes in each aggregate, by Nova."""
        nova = self.aggregates.aggregates_of
        return Groups(
            self.index,
            (
                (uuid, node)
                for host, node in self.index.hosts
                for uuid in nova.get(host, ())
            ),
        )

    def excluded(self, alone: Destination) -> tuple[int, int]:
        """Return the nodes that a conclusion excludes from the query.

        :returns: Those by Placement's members of aggregates, and by Nova's.
        """
        if alone.refusals:
            return self.all_nodes, self.all_nodes
        allowed = self.index.nodes
        if provider := constraints.tree(alone):
            allowed &= self.index.tree_with(provider)
        for trait in constraints.required_root(alone):
            allowed &= self.sets[self.root_with(trait)]
        for trait in constraints.forbidden_root(alone):
            allowed &= ~self.sets[self.root_with(trait)]
        found = []
        for who in (0, 1):
            some = allowed
            if alone.forbidden_aggregates:
                forbidden = self.members(alone.forbidden_aggregates)[who]
                some &= ~self.sets[forbidden]
            for choice in alone.required_aggregates:
                some &= self.sets[self.members(choice)[who]]
            found.append(self.number(~some))
        by_placement, by_nova = found
        return by_placement, by_nova

    def number(self, nodes: ProviderSet) -> int:
        """Return the number of the set of those that are compute nodes."""
        nodes &= self.index.nodes
        if nodes not in self._numbers:
            self._numbers[nodes] = len(self.sets)
            self.sets.append(nodes)
        return self._numbers[nodes]

    def members(self, uuids: frozenset[str]) -> tuple[int, int]:
        """Return the nodes in at least one of some aggregates.

        :returns: Those by Placement's members of aggregates, and by Nova's.
        """
        if uuids not in self._members:
            # Others are of Placement only.
            found = self.number(
                self.index.in_any_aggregate(uuids & self._uuids)
            )
            self._members[uuids] = (
                found,
                found if self.agree else self.members_in_nova(uuids),
            )
        return self._members[uuids]

    def members_of(
        self, aggregates: _Aggregates
    ) -> tuple[frozenset[str], tuple[int, int]]:
        """Return the uuids of aggregates, and the nodes in one of them."""
        # Locks keep theirs for all requests.
        key = id(aggregates)
        if key not in self._known:
            uuids = frozenset([each.uuid for each in aggregates])
            self._known[key] = aggregates, uuids, self.members(uuids)
        _, uuids, nodes = self._known[key]
        return uuids, nodes

    def members_of_all(self, groups: tuple[_Aggregates, ...]) -> _Members:
        """Return the nodes in any of groups of aggregates, and in each."""
        key = id(groups)
        if key not in self._known_groups:
            each = [self.members_of(one) for one in groups]
            nodes = {of_placement for _, (of_placement, _) in each}
            wanted = {of_nova for _, (_, of_nova) in each}
            found = self._union(nodes)
            by_nova = found if wanted == nodes else self._union(wanted)
            self._known_groups[key] = groups, (found, by_nova, each)
        _, members = self._known_groups[key]
        return members

    def _union(self, numbers: Iterable[int]) -> ProviderSet:
        return functools.reduce(
            operator.or_, map(self.sets.__getitem__, numbers), 0
        )

    def members_in_nova(self, uuids: frozenset[str]) -> int:
        """Return the nodes in at least one of some aggregates, by Nova."""
        if self.agree:
            _, nodes = self.members(uuids)
            return nodes
        return self.number(self._in_nova.any_of(uuids))

    def root_with(self, trait: str) -> int:
        """Return the nodes that have a trait themselves."""
        return self.number(self.index.with_trait(trait))

    def without(self, trait: str) -> int:
        """Return the nodes whose servers find a trait on no provider."""
        if trait not in self._without:
            holders = self.index.with_trait(trait)
            roots = self.index.roots_of(holders)
            for provider in self.index.members(holders & self.index.sharing):
                roots |= self.index.anchors_of[provider]
            self._without[trait] = self.number(~roots)
        return self._without[trait]

    def dropped(self, drops: Objection) -> Mapping[str, int]:
        """Return the nodes that a host filter drops, by reason."""
        nodes = self._offers.dropped(drops, self.index.nodes)
        return {why: self.number(some) for why, some in nodes.items()}

    def offered(self, request: Request, decision: Decision) -> ProviderSet:
        """Return the nodes that Placement offers when every host is empty."""
        if decision.destination.refusals:
            return 0
        return self._offers.nodes(asking.every(decision, request))
