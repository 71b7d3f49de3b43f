# SPDX-License-Identifier: Apache-2.0
"""What a cloud offers, by the Placement simulator."""

from collections.abc import Hashable, Iterable, Mapping, Set
import dataclasses
import itertools
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.tools.answers.deciding import Question
from isolate_aggregates.tools.capacity import Packing
from isolate_aggregates.tools.cloud.snapshot import Snapshot, provider_index
from isolate_aggregates.tools.mirrored.compute_services import HostsObjection
from isolate_aggregates.tools.placement.group import ResourceRequest
from isolate_aggregates.tools.request import constraints
from isolate_aggregates.tools.request.constraints import Objection
from isolate_aggregates.tools.simulator import Simulator
from isolate_aggregates.tools.simulator.index import ProviderIndex, ProviderSet

# The most kinds of aggregates that are looked at together.
_BLOCK = 30


class Offers:
    """The hosts that Placement offers.

    :param in_use: Whether what is in use counts, or all hosts are empty.
    """

    def __init__(self, snapshot: Snapshot, in_use: bool = False) -> None:
        self._of = _offered_by(snapshot)
        self._simulator = Simulator(
            provider_index(snapshot)
            if in_use
            else ProviderIndex(snapshot.providers, in_use=False),
            snapshot.traits,
            snapshot.resource_classes,
        )
        # By the query without its aggregates.
        self._found: dict[Hashable, ProviderSet | None] = {}
        # By identity; the questions are kept, so that it stays theirs.
        self._usable: dict[int, tuple[Question, ProviderSet]] = {}
        self._known_nodes: dict[frozenset[str], ProviderSet] = {}
        self._known_members: dict[frozenset[str], ProviderSet] = {}
        self._aggregates = snapshot.aggregates

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
            nodes = self.nodes(question.queries)
            self._usable[id(question)] = (
                question,
                self.kept(nodes, question.destination),
            )
        _, nodes = self._usable[id(question)]
        return nodes

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
                self._found[key] = self._offered(rest)
            offered = self._found[key]
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
        if not outside & (self.index.sharing | ~self.index.roots):
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

    def _members_of(self, aggregates: Set[str]) -> ProviderSet:
        """Return the members of at least one of some aggregates."""
        uuids = frozenset(aggregates)
        if uuids not in self._known_members:
            members, known = 0, []
            for whole, *parts in self._alike:
                # Mostly all of a block are among them.
                for alike, more in [whole] if whole[0] <= uuids else parts:
                    if alike <= uuids:
                        members |= more
                        known.append(alike)
            if sum(map(len, known)) < len(uuids):
                rest = uuids.difference(*known)
                members |= self.index.in_any_aggregate(rest)
            self._known_members[uuids] = members
        return self._known_members[uuids]

    @lazy_property
    def _alike(self) -> list[list[tuple[frozenset[str], ProviderSet]]]:
        """The aggregates with equal metadata, with their members.

        Filters decide about them together. They are in blocks, of which the
        first part is the whole of the others.
        """
        alike: dict[Hashable, list[str]] = {}
        for each in self._aggregates:
            key = frozenset(each.metadata.items())
            alike.setdefault(key, []).append(each.uuid)
        blocks = []
        kinds = [*alike.values()]
        for start in range(0, len(kinds), _BLOCK):
            some = kinds[start : start + _BLOCK]
            blocks.append(
                [
                    (frozenset(uuids), self.index.in_any_aggregate(uuids))
                    for uuids in ([*itertools.chain(*some)], *some)
                ]
            )
        return blocks

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


def _offered_by(snapshot: Snapshot) -> object:
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
