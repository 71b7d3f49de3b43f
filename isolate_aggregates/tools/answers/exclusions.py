# SPDX-License-Identifier: Apache-2.0
"""The set of hosts that each part of a request excludes, with the reason.

What counts is what the cloud answers with every host empty: a host that
Placement offers then, and no host filter of Nova drops, is not excluded.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import enum
import functools
from typing import NamedTuple

from isolate_aggregates import exception
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.constraints import Forbid
from isolate_aggregates.filters.destination import (
    Conclusion,
    Destination,
    ExplainedDestination,
)
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.tools.answers.deciding import decided
from isolate_aggregates.tools.answers.offers import Offers
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.request import (
    Request,
    asking,
    constraints,
    resources,
)
from isolate_aggregates.tools.simulator.index import ProviderIndex, ProviderSet

_NO_CANDIDATE = (
    'Placement offers no candidate on it, even when it is empty; explain says '
    'why'
)


class Members(enum.Enum):
    """Whose members of a host aggregate count.

    They differ while Nova's mirror in Placement is incomplete.
    """

    PLACEMENT = 'placement'
    NOVA = 'nova'


class Exclusion(NamedTuple):
    """The hosts that a request may not use for one reason.

    :param nodes: The number of the set of their compute nodes.
    :param uuids: The forbidden aggregates.
    :param trait: The trait that they lack or have.
    :param host_filter: The host filter of Nova that would object as well.
    :param is_dropped: Whether a host filter drops them after Placement.
    """

    nodes: int
    filter_name: str | None
    kind: str
    cause: str = ''
    uuids: frozenset[str] = frozenset()
    trait: str = ''
    host_filter: str = ''
    is_dropped: bool = False


@dataclasses.dataclass(frozen=True)
class Excluded:
    """The hosts that a request may not use.

    :param exclusions: The hosts that it may not use, for each reason.
    :param unenforced: Those that it would not use if Placement had the members
        that Nova has.
    """

    exclusions: Sequence[Exclusion]
    unenforced: Sequence[Exclusion] = ()


def excluded(
    request: Request, pipeline: Pipeline, hosts: 'HostSets'
) -> Excluded:
    """Return the hosts that a request may not use."""
    try:
        decision = decided(request, hosts.aggregates, pipeline)
        parts = list(_of_parts(request, decision, hosts, Members.PLACEMENT))
        offered = hosts.offered(request, decision)
    except exception.InvalidRequest as exc:
        problem = str(exc).rstrip('.')
        return Excluded(
            [Exclusion(hosts.all_nodes, None, 'invalid-request', problem)]
        )
    exclusions = list(_limited(parts, hosts, ~offered))
    known = offered
    for each in exclusions:
        known |= hosts.sets[each.nodes]
    rest = hosts.index.nodes & ~known
    if rest:
        exclusions.append(
            Exclusion(hosts.number(rest), None, 'no-candidate', _NO_CANDIDATE)
        )
    if hosts.agree:
        return Excluded(exclusions)
    wanted = _of_parts(request, decision, hosts, Members.NOVA)
    return Excluded(
        exclusions,
        [
            each
            for each in _limited(wanted, hosts, offered)
            if not each.is_dropped
        ],
    )


def _limited(
    parts: Iterable[Exclusion], hosts: 'HostSets', to: ProviderSet
) -> Iterator[Exclusion]:
    """Limit exclusions by the query to some of the hosts."""
    for each in parts:
        if each.is_dropped:
            yield each
        elif nodes := hosts.sets[each.nodes] & to:
            yield each._replace(nodes=hosts.number(nodes))


def _of_parts(
    request: Request, decision: Decision, hosts: 'HostSets', by: Members
) -> Iterator[Exclusion]:
    """Yield the hosts that each part of a request excludes."""
    for conclusion in decision.destination.conclusions:
        yield from _concluded(conclusion, hosts, by)
    group = resources.resource_request(request).group()
    for trait in sorted(request.required_traits):
        nodes = hosts.without(trait)
        yield Exclusion(nodes, None, 'required-trait', trait=trait)
    # Suffixed groups are ignored: another provider of the tree may serve them.
    for trait in sorted(group.forbidden_traits if group.resources else ()):
        nodes = hosts.root_with(trait)
        yield Exclusion(nodes, None, 'forbidden-trait', trait=trait)


def _concluded(
    conclusion: Conclusion, hosts: 'HostSets', by: Members
) -> Iterator[Exclusion]:
    """Yield the hosts that a conclusion excludes, from the query and after."""
    name, kind = conclusion.filter_name, conclusion.kind
    constraint = conclusion.constraint
    if isinstance(constraint, Forbid):
        uuids = frozenset([each.uuid for each in constraint.aggregates])
        nodes, cause = hosts.members(uuids, by), str(constraint.cause)
        yield Exclusion(nodes, name, kind, cause, uuids)
        return
    # Not Conclusion.alone, which is kept.
    alone = ExplainedDestination()
    alone.add(constraint, name)
    yield Exclusion(
        hosts.excluded(alone, by),
        name,
        kind,
        constraint.reason,
        host_filter=conclusion.host_filter,
    )
    for drops in constraints.objections(alone):
        for why, nodes in hosts.dropped(drops).items():
            cause = f'dropped after Placement: {why}'
            yield Exclusion(nodes, name, kind, cause, is_dropped=True)


class HostSets:
    """The compute nodes, and the sets of them that requests tell apart."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.aggregates = snapshot.index
        self.index = ProviderIndex(snapshot.providers)
        self.sets: list[ProviderSet] = []
        self._numbers: dict[ProviderSet, int] = {}
        known = frozenset(aggregate.uuid for aggregate in snapshot.index)
        nova, providers = snapshot.index.aggregates_of, self.index.providers
        self._in = {
            Members.NOVA: self._grouped(
                (nova.get(host, ()), node) for host, node in self.index.hosts
            ),
            Members.PLACEMENT: self._grouped(
                (providers[node].aggregates & known, node)
                for _, node in self.index.hosts
            ),
        }
        # Whether it does not matter whose members count.
        self.agree = self._in[Members.NOVA] == self._in[Members.PLACEMENT]
        self.all_nodes = self.number(self.index.nodes)
        # Cached, as most requests have the same.
        self.members = functools.cache(self._members)
        self.without = functools.cache(self._without)
        self.root_with = functools.cache(self._root_with)
        self.dropped = functools.cache(self._dropped)

    def _grouped(
        self, nodes: Iterable[tuple[Iterable[str], int]]
    ) -> Mapping[str, ProviderSet]:
        """Return the nodes in each aggregate."""
        members: dict[str, list[int]] = {}
        for uuids, node in nodes:
            for uuid in uuids:
                members.setdefault(uuid, []).append(node)
        return {u: self.index.set_of(some) for u, some in members.items()}

    def excluded(self, alone: Destination, by: Members) -> int:
        """Return the nodes that a conclusion excludes from the query."""
        if alone.refusals:
            return self.all_nodes
        allowed = self.index.nodes
        if alone.forbidden_aggregates:
            allowed &= ~self.sets[self.members(alone.forbidden_aggregates, by)]
        for choice in alone.required_aggregates:
            allowed &= self.sets[self.members(choice, by)]
        if provider := constraints.tree(alone):
            allowed &= self.index.tree_with(provider)
        for trait in constraints.required_root(alone):
            allowed &= self.sets[self.root_with(trait)]
        for trait in constraints.forbidden_root(alone):
            allowed &= ~self.sets[self.root_with(trait)]
        return self.number(~allowed)

    def number(self, nodes: ProviderSet) -> int:
        """Return the number of the set of those that are compute nodes."""
        nodes &= self.index.nodes
        if nodes not in self._numbers:
            self._numbers[nodes] = len(self.sets)
            self.sets.append(nodes)
        return self._numbers[nodes]

    def _members(self, uuids: frozenset[str], by: Members) -> int:
        """Return the nodes in at least one of some aggregates."""
        nodes, members = 0, self._in[by]
        for uuid in uuids & members.keys():
            nodes |= members[uuid]
        return self.number(nodes)

    def _root_with(self, trait: str) -> int:
        return self.number(self.index.with_trait(trait))

    def _without(self, trait: str) -> int:
        """Return the nodes whose servers find a trait on no provider."""
        holders = self.index.with_trait(trait)
        roots = self.index.roots_of(holders)
        for provider in self.index.members(holders & self.index.sharing):
            roots |= self.index.anchors_of[provider]
        return self.number(~roots)

    def _dropped(self, drops: Callable[[str], str]) -> Mapping[str, int]:
        """Return the nodes that a host filter drops, by reason."""
        nodes: dict[str, list[int]] = {}
        for host, node in self.index.hosts:
            if why := drops(host):
                nodes.setdefault(why, []).append(node)
        return {
            why: self.number(self.index.set_of(some))
            for why, some in nodes.items()
        }

    def offered(self, request: Request, decision: Decision) -> ProviderSet:
        """Return the nodes that Placement offers when every host is empty."""
        if decision.destination.refusals:
            return 0
        return self._offers.nodes(asking.every(decision, request))

    @lazy_property
    def _offers(self) -> Offers:
        return Offers(self._snapshot)
