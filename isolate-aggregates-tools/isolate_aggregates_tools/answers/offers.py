# SPDX-License-Identifier: Apache-2.0
"""What a cloud offers, by the Placement simulator."""

from collections.abc import Hashable, Iterable, Mapping, Set
import dataclasses
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools.answers.deciding import Question
from isolate_aggregates_tools.capacity import Packing
from isolate_aggregates_tools.cloud.snapshot import Snapshot, provider_index
from isolate_aggregates_tools.mirrored.compute_services import HostsObjection
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.request import constraints
from isolate_aggregates_tools.request.constraints import Objection
from isolate_aggregates_tools.simulator import Simulator
from isolate_aggregates_tools.simulator.index import (
    Moved,
    ProviderIndex,
    ProviderSet,
)

# The most kinds of aggregates that are looked at together.
_BLOCK = 30


class Offers:
    """The hosts that Placement offers.

    :param in_use: Whether what is in use counts, or all hosts are empty.
    :param before: The offers of the cloud before a change, of which those are
        taken over that it does not affect; with the same ``in_use``.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        in_use: bool = False,
        before: 'Offers | None' = None,
    ) -> None:
        self._of = _offered_by(snapshot)
        moved: Moved | None = None
        if before:
            index, moved = before.index.after(snapshot.providers)
        else:
            index = provider_index(snapshot, in_use)
        self._simulator = Simulator(
            index, snapshot.traits, snapshot.resource_classes
        )
        # By the query without its aggregates.
        self._found: dict[
            Hashable, tuple[ResourceRequest, ProviderSet | None]
        ] = {}
        # By identity; the questions are kept, so that it stays theirs.
        self._usable: dict[int, tuple[Question, ProviderSet]] = {}
        self._known_nodes: dict[frozenset[str], ProviderSet] = {}
        self._known_members: dict[frozenset[str], ProviderSet] = {}
        # The same by identity: these sets can be large.
        self._members_by_id: dict[int, tuple[frozenset[str], ProviderSet]] = {}
        self._kinds: _Kinds = (
            before._kinds
            if before and before._kinds.aggregates is snapshot.aggregates
            else _Kinds(snapshot.aggregates)
        )
        self._members_of_kind: dict[frozenset[str], ProviderSet] = {}
        if before and moved:
            self._take_over(before, moved)

    def _take_over(self, before: 'Offers', moved: Moved) -> None:
        """Take over what a change does not affect."""
        self._members_of_kind = {
            uuids: members
            for uuids, members in before._members_of_kind.items()
            if uuids.isdisjoint(moved.aggregates)
        }
        *_, classes_before = before._of
        *_, classes = self._of
        shares = before.index.sharing or self.index.sharing
        if classes != classes_before or shares:
            return
        traits = moved.traits | (before.traits ^ self.traits)
        self._found = {
            key: (query, nodes)
            for key, (query, nodes) in before._found.items()
            if traits.isdisjoint(query.traits)
            and not any(
                group.aggregates or group.forbidden_aggregates
                for group in query.groups.values()
            )
        }

    @property
    def index(self) -> ProviderIndex:
        """The providers."""
        return self._simulator.index

    @property
    def traits(self) -> frozenset[str]:
        """The traits that exist; Placement rejects queries with others."""
        return self._simulator.traits

    def is_of(self, snapshot: Snapshot) -> bool:
        """Return whether a cloud has the same providers."""
        return self._of == _offered_by(snapshot)

    def hosts(self, question: Question | None) -> frozenset[str]:
        """Return the hosts that servers may use."""
        return self.hosts_of(self.usable(question))

    def usable(self, question: Question | None) -> ProviderSet:
        """Return the compute nodes that servers may use."""
        if question is None:
            return 0
        if id(question) not in self._usable:
            self._usable[id(question)] = question, self.once(question)
        _, nodes = self._usable[id(question)]
        return nodes

    def once(self, question: Question) -> ProviderSet:
        """Return the same as :meth:`usable`, and do not keep the question."""
        nodes = self.nodes(question.queries)
        return self.kept(nodes, question.destination)

    def kept(
        self, nodes: ProviderSet, destination: Destination
    ) -> ProviderSet:
        """Return the compute nodes that no host filter of Nova drops."""
        for objection in constraints.objections(destination):
            for dropped in self.dropped(objection, nodes).values():
                nodes &= ~dropped
        return nodes

    def dropped(
        self, objection: Objection, nodes: ProviderSet
    ) -> Mapping[str, ProviderSet]:
        """Return which of some compute nodes a host filter drops, by reason.

        Each reason is that of at least one.
        """
        if isinstance(objection, HostsObjection):
            dropped = nodes & self._nodes_of(objection.hosts)
            return {objection.text: dropped} if dropped else {}
        by_reason: dict[str, list[int]] = {}
        for node in self.index.members(nodes):
            if why := objection(self.index.host_of[node]):
                by_reason.setdefault(why, []).append(node)
        return {why: self.index.set_of(n) for why, n in by_reason.items()}

    def _nodes_of(self, hosts: frozenset[str]) -> ProviderSet:
        """Return the compute nodes of hosts, the same for each request."""
        if hosts not in self._known_nodes:
            self._known_nodes[hosts] = self.index.set_of(
                node for host, node in self.index.hosts if host in hosts
            )
        return self._known_nodes[hosts]

    def hosts_of(self, nodes: ProviderSet) -> frozenset[str]:
        """Return the names of the hosts of compute nodes."""
        host_of = self.index.host_of
        return frozenset(host_of[node] for node in self.index.members(nodes))

    def nodes(self, queries: Iterable[ResourceRequest]) -> ProviderSet:
        """Return their compute nodes, numbered as the providers are."""
        nodes = 0
        for query in queries:
            allowed, rest = self._apart(query)
            key = tuple(rest.to_queryparams())
            if key not in self._found:
                self._found[key] = rest, self._offered(rest)
            _, offered = self._found[key]
            if offered is None:
                return 0
            nodes |= offered & allowed
        return nodes

    def key(self, queries: Iterable[ResourceRequest]) -> Hashable:
        """Return a key; queries with equal keys have equal answers."""
        return tuple(
            (allowed, *rest.to_queryparams())
            for allowed, rest in map(self._apart, queries)
        )

    def _offered(self, query: ResourceRequest) -> ProviderSet | None:
        """Return the nodes of a query; None if Placement rejects it."""
        try:
            return self._simulator.hosts(query) & self.index.nodes
        except exception.BadQuery:
            return None

    def _apart(
        self, query: ResourceRequest
    ) -> tuple[ProviderSet, ResourceRequest]:
        """Return what its aggregates leave of a query, and the rest of it.

        There can be thousands, but few sets of them. They are part of the
        query if they decide about more than whole trees.
        """
        group = query.groups.get('')
        if group is None:
            return self.index.nodes, query
        allowed = self.index.nodes
        without: dict[str, Any] = {}
        outside = self._members_of(group.forbidden_aggregates)
        if not outside & self._not_whole:
            allowed &= ~outside
            without['forbidden_aggregates'] = frozenset[str]()
        inside = [self._members_of(one) for one in group.aggregates]
        if not self.index.sharing and not any(
            some & ~self.index.roots for some in inside
        ):
            for some in inside:
                allowed &= some
            without['aggregates'] = []
        alone = dataclasses.replace(group, **without)
        return allowed, dataclasses.replace(
            query, groups={**query.groups, '': alone}
        )

    @lazy_property
    def _not_whole(self) -> ProviderSet:
        """The providers that do not stand for their tree alone."""
        return self.index.sharing | self.index.everyone & ~self.index.roots

    def _members_of(self, aggregates: Set[str]) -> ProviderSet:
        """Return the members of at least one of some aggregates."""
        if id(aggregates) in self._members_by_id:
            _, members = self._members_by_id[id(aggregates)]
            return members
        uuids = frozenset(aggregates)
        if uuids not in self._known_members:
            self._known_members[uuids] = self._united(uuids)
        members = self._known_members[uuids]
        # Others could be changed.
        if uuids is aggregates:
            self._members_by_id[id(uuids)] = uuids, members
        return members

    def _united(self, uuids: frozenset[str]) -> ProviderSet:
        members, known = 0, self._members_of_kind
        for kind in self._kinds.of(uuids):
            if kind not in known:
                known[kind] = self.index.in_any_aggregate(kind)
            members |= known[kind]
        return members

    def relevant(self, query: ResourceRequest) -> ResourceRequest:
        """Return a query without forbidden aggregates that nothing is in.

        There can be thousands, and the simulator checks each.
        """
        return dataclasses.replace(
            query,
            groups={
                suffix: dataclasses.replace(
                    group,
                    forbidden_aggregates=self._members
                    & group.forbidden_aggregates,
                )
                for suffix, group in query.groups.items()
            },
        )

    @lazy_property
    def _members(self) -> frozenset[str]:
        """The aggregates in Placement that have members."""
        return frozenset[str]().union(
            *{provider.aggregates for provider in self.index.providers}
        )


class _Kinds:
    """The aggregates with equal metadata: filters decide about them together.

    They are in blocks, as mostly all of a block are among some aggregates.
    """

    def __init__(self, aggregates: tuple[Aggregate, ...]) -> None:
        self.aggregates = aggregates
        # By identity; the sets are kept, so that it stays theirs.
        self._known: dict[int, tuple[frozenset[str], list[frozenset[str]]]]
        self._known = {}

    def of(self, uuids: frozenset[str]) -> list[frozenset[str]]:
        """Return sets of aggregates, which together are some aggregates."""
        if id(uuids) not in self._known:
            self._known[id(uuids)] = uuids, self._divided(uuids)
        _, kinds = self._known[id(uuids)]
        return kinds

    def _divided(self, uuids: frozenset[str]) -> list[frozenset[str]]:
        found = [
            kind
            for whole, *kinds in self._blocks
            for kind in ([whole] if whole <= uuids else kinds)
            if kind <= uuids
        ]
        if sum(map(len, found)) < len(uuids):
            found.append(uuids.difference(*found))
        return found

    @lazy_property
    def _blocks(self) -> list[list[frozenset[str]]]:
        """The kinds in blocks, after the whole of each."""
        alike: dict[Hashable, list[str]] = {}
        for each in self.aggregates:
            key = frozenset(each.metadata.items())
            alike.setdefault(key, []).append(each.uuid)
        kinds = [frozenset(uuids) for uuids in alike.values()]
        return [
            [frozenset[str]().union(*some), *some]
            for start in range(0, len(kinds), _BLOCK)
            for some in [kinds[start : start + _BLOCK]]
        ]


def _offered_by(snapshot: Snapshot) -> tuple[Any, ...]:
    return snapshot.providers, snapshot.traits, snapshot.resource_classes


def room(
    snapshot: Snapshot,
    question: Question | None,
    offers: Offers,
    index: ProviderIndex | None = None,
) -> int:
    """Return the number of servers for which there is room now.

    :param offers: The offers of the cloud.
    :param index: The index of the same providers; None for that of the cloud.
    """
    if question is None:
        return 0
    first, *fallbacks = map(offers.relevant, question.queries)
    try:
        packing = Packing(
            snapshot, first, question.destination, fallbacks, index
        )
    except exception.BadQuery:
        return 0
    return packing.total()
