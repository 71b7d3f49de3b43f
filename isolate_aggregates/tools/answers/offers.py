# SPDX-License-Identifier: Apache-2.0
"""What a cloud offers, by the Placement simulator."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Set
import dataclasses
import hashlib
import itertools
import uuid

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

# Of what the uuids are made that stand for several aggregates.
_ALIKE = uuid.UUID('b0a6a3a4-8c53-4c43-9d5b-2f9d3e0b7a55')

# The fewest aggregates for which one stands: with fewer, nothing is gained.
_MANY = 4


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
        self._found: dict[Hashable, ProviderSet] = {}
        # By identity; the questions are kept, so that it stays theirs.
        self._usable: dict[int, tuple[Question, ProviderSet]] = {}
        self._known_nodes: dict[frozenset[str], ProviderSet] = {}
        self._members = frozenset[str]().union(
            *{provider.aggregates for provider in snapshot.providers}
        )
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
        flags = self.index.flags(nodes)
        return frozenset(itertools.compress(self.index.host_of, flags))

    def nodes(self, queries: Iterable[ResourceRequest]) -> ProviderSet:
        """Return their compute nodes, numbered as the providers are."""
        queries = tuple(map(self._short, queries))
        key = _key(queries)
        if key not in self._found:
            is_hopeless = all(map(self._is_hopeless, queries))
            self._found[key] = 0 if is_hopeless else self._nodes(queries)
        return self._found[key]

    def key(self, queries: Iterable[ResourceRequest]) -> Hashable:
        """Return a key; queries with equal keys have equal answers."""
        return _key(map(self._short, queries))

    def _is_hopeless(self, query: ResourceRequest) -> bool:
        """Return whether a query requires a trait that no provider has."""
        return not query.all_required_traits <= self.index.traits

    def _nodes(self, queries: Iterable[ResourceRequest]) -> ProviderSet:
        roots = 0
        try:
            for query in queries:
                roots |= self._simulator.hosts(query)
        except exception.BadQuery:
            return 0
        return roots & self.index.nodes

    @lazy_property
    def _alike(self) -> list[tuple[str, frozenset[str]]]:
        """The aggregates with equal metadata, each with one that has all."""
        members: dict[Hashable, list[str]] = {}
        for each in self._aggregates:
            if each.uuid in self._members:
                alike = frozenset(each.metadata.items())
                members.setdefault(alike, []).append(each.uuid)
        pairs = [
            (str(uuid.uuid5(_ALIKE, ' '.join(uuids))), frozenset(uuids))
            for uuids in members.values()
            if len(uuids) >= _MANY
        ]
        for together, uuids in pairs:
            self.index.unite(together, uuids)
        return pairs

    @lazy_property
    def _others(self) -> frozenset[str]:
        """The other aggregates, also those that only Placement has."""
        return self._members.difference(*(uuids for _, uuids in self._alike))

    def _short(self, query: ResourceRequest) -> ResourceRequest:
        """Return a query that names one aggregate for all that are alike.

        There can be thousands, which filters mostly forbid together, and the
        simulator checks each.
        """
        return _forbidding(query, self._shortened)

    def _shortened(self, forbidden: Set[str]) -> set[str]:
        if len(forbidden) < 2:
            return {*forbidden}
        short = set(self._others & forbidden)
        for together, uuids in self._alike:
            some = uuids & forbidden
            short |= {together} if len(some) == len(uuids) else some
        return short

    def relevant(self, query: ResourceRequest) -> ResourceRequest:
        """Return a query without forbidden aggregates that nothing is in.

        There can be thousands, and the simulator checks each.
        """
        return _forbidding(query, lambda some: set(self._members & some))


def _forbidding(
    query: ResourceRequest, changed: Callable[[Set[str]], set[str]]
) -> ResourceRequest:
    """Return a query with other forbidden aggregates."""
    return dataclasses.replace(
        query,
        groups={
            suffix: dataclasses.replace(
                group, forbidden_aggregates=changed(group.forbidden_aggregates)
            )
            for suffix, group in query.groups.items()
        },
    )


def _key(queries: Iterable[ResourceRequest]) -> Hashable:
    params = [query.to_queryparams() for query in queries]
    # They can name hundreds of aggregates.
    return hashlib.sha256(repr(params).encode()).digest()


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
