# SPDX-License-Identifier: Apache-2.0
"""Computes which requests may use which hosts, regardless of capacity.

A request may use a host unless a configured request filter excludes it, or the
host lacks a required trait or has a forbidden one. The hosts of an aggregate
are those in Nova.

Each conclusion of a filter, and each trait, excludes a set of hosts. Requests
share most of these sets, and hosts that are in the same ones are a group.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
from typing import NamedTuple

from isolate_aggregates import exception, text
from isolate_aggregates.aggregates import Lock
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.constraints import Forbid
from isolate_aggregates.filters.destination import Conclusion, Destination
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement.provider import nodes_by_host
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.request import Request, resources
from isolate_aggregates.tools.simulator.index import ProviderIndex, ProviderSet


@dataclasses.dataclass(frozen=True)
class Objection:
    """Why a request may not use hosts.

    :param filter_name: The request filter that excludes the hosts; None for a
        trait of the request itself, or if the request is invalid.
    :param cause: The cause, without a full stop.
    :param aggregates: The names of the forbidden aggregates that the hosts
        are in; empty if no aggregate is forbidden.
    """

    filter_name: str | None
    kind: str
    cause: str
    aggregates: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The reason, without a full stop."""
        if not self.aggregates:
            return self.cause
        return f'{text.named("aggregate", self.aggregates)}: {self.cause}'


# By kind of objection.
_TRAIT_CAUSES = {
    'required-trait': 'has no {}, which the request requires',
    'forbidden-trait': 'has {}, which the request forbids',
}


@dataclasses.dataclass(frozen=True)
class Group:
    """Hosts that are equal for all requests.

    :param hosts: Their names, sorted. If a compute service has several nodes,
        the name of the node follows in brackets.
    :param aggregates: The uuids of the host aggregates that at least one of
        the hosts is in.
    """

    hosts: tuple[str, ...]
    aggregates: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Row:
    """The access of a request to all hosts.

    :param objections: The objections for each group of hosts, in the order of
        the groups. The request may use a group without objections.
    """

    request: Request
    objections: tuple[tuple[Objection, ...], ...]


@dataclasses.dataclass(frozen=True)
class Matrix:
    """The access of requests to hosts.

    :param groups: Groups of all hosts, sorted by their first host.
    :param services: The names of the hosts of each compute service.
    """

    groups: tuple[Group, ...]
    rows: tuple[Row, ...]
    services: Mapping[str, tuple[str, ...]]


def requests(
    flavors: Iterable[Flavor],
    images: Sequence[Image | None] = (),
    project_id: str | None = None,
) -> list[Request]:
    """Return a request for each flavor, or for each flavor with each image.

    :param images: The images; if empty, the requests have no image.
    """
    return [
        Request(flavor, image, project_id)
        for flavor, image in itertools.product(flavors, images or (None,))
    ]


def matrix(
    snapshot: Snapshot,
    pipeline: Pipeline,
    all_requests: Iterable[Request],
    locks: Iterable[Lock],
) -> Matrix:
    """Return which request may use which host.

    :param all_requests: The requests. An invalid request may use no host.
    :param locks: The locks. All hosts of a group are behind the same ones.
    """
    hosts = _Hosts(snapshot)
    exclusions = [
        (request, tuple(_exclusions(request, pipeline, hosts)))
        for request in all_requests
    ]
    for lock in locks:
        hosts.members(frozenset(a.uuid for a in lock.aggregates))
    names = {
        node.uuid: host if len(some) == 1 else f'{host} ({node.name})'
        for host, some in nodes_by_host(snapshot.providers).items()
        for node in some
    }
    table = _Table(hosts, names)
    return Matrix(
        table.groups,
        tuple(Row(request, table.row(some)) for request, some in exclusions),
        {
            host: tuple(names[node.uuid] for node in nodes)
            for host, nodes in nodes_by_host(snapshot.providers).items()
        },
    )


class _Exclusion(NamedTuple):
    """The hosts that a request may not use for one reason.

    :param nodes: The number of the set of their compute nodes.
    :param uuids: The forbidden aggregates, of which the objection names those
        that the hosts are in.
    :param trait: The trait that they lack or have; objections merge them.
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

    def objection(self, names: tuple[str, ...] = ()) -> Objection:
        """Return the objection, with the names of aggregates."""
        return Objection(self.filter_name, self.kind, self.cause, names)


def _exclusions(
    request: Request, pipeline: Pipeline, hosts: '_Hosts'
) -> Iterator[_Exclusion]:
    """Yield the hosts that each part of a request excludes."""
    try:
        group = resources.resource_request(request).group()
        destination = decide(request, hosts.aggregates, pipeline).destination
        required = request.required_traits
    except exception.InvalidRequest as exc:
        problem = str(exc).rstrip('.')
        yield _Exclusion(hosts.all_nodes, None, 'invalid-request', problem)
        return
    for conclusion in destination.conclusions:
        yield from _concluded(conclusion, hosts)
    for trait in sorted(required):
        nodes = hosts.without(trait)
        yield _Exclusion(nodes, None, 'required-trait', trait=trait)
    # Suffixed groups are ignored: another provider of the tree may serve them.
    for trait in sorted(group.forbidden_traits if group.resources else ()):
        nodes = hosts.root_with(trait)
        yield _Exclusion(nodes, None, 'forbidden-trait', trait=trait)


def _concluded(
    conclusion: Conclusion, hosts: '_Hosts'
) -> Iterator[_Exclusion]:
    """Yield the hosts that a conclusion excludes, from the query and after."""
    name, kind = conclusion.filter_name, conclusion.kind
    constraint = conclusion.constraint
    if isinstance(constraint, Forbid):
        # Name only those aggregates that the hosts are in.
        uuids = frozenset([each.uuid for each in constraint.aggregates])
        nodes, cause = hosts.members(uuids), str(constraint.cause)
        yield _Exclusion(nodes, name, kind, cause, uuids)
        return
    # Not Conclusion.alone, which is kept.
    alone = Destination()
    constraint.narrow(alone)
    yield _Exclusion(
        hosts.excluded(alone),
        name,
        kind,
        constraint.reason,
        host_filter=conclusion.host_filter,
    )
    for drops in alone.host_objections:
        for why, nodes in hosts.dropped(drops).items():
            cause = f'dropped after Placement: {why}'
            yield _Exclusion(nodes, name, kind, cause, is_dropped=True)


class _Hosts:
    """The compute nodes, and the sets of them that requests tell apart."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.aggregates = snapshot.index
        self.index = ProviderIndex(snapshot.providers)
        self.sets: list[ProviderSet] = []
        self._numbers: dict[ProviderSet, int] = {}
        members: dict[str, list[int]] = {}
        for host, node in self.index.hosts:
            for uuid in snapshot.index.aggregates_of.get(host, ()):
                members.setdefault(uuid, []).append(node)
        self._in = {u: self.index.set_of(some) for u, some in members.items()}
        self.all_nodes = self._number(self.index.nodes)
        # Cached, as most requests have the same.
        self.members = functools.cache(self._members)
        self.without = functools.cache(self._without)
        self.root_with = functools.cache(self._root_with)
        self.dropped = functools.cache(self._dropped)

    def excluded(self, alone: Destination) -> int:
        """Return the nodes that a conclusion excludes from the query."""
        if alone.refusals:
            return self.all_nodes
        allowed = self.index.nodes
        if alone.forbidden_aggregates:
            allowed &= ~self.sets[self.members(alone.forbidden_aggregates)]
        for choice in alone.required_aggregates:
            allowed &= self.sets[self.members(choice)]
        if alone.in_tree:
            tree = self.index.tree_with(alone.in_tree)
            allowed &= self.sets[self._number(tree)]
        for trait in alone.root_required:
            allowed &= self.sets[self.root_with(trait)]
        for trait in alone.root_forbidden:
            allowed &= ~self.sets[self.root_with(trait)]
        return self._number(~allowed)

    def _number(self, nodes: ProviderSet) -> int:
        """Return the number of the set of those that are compute nodes."""
        nodes &= self.index.nodes
        if nodes not in self._numbers:
            self._numbers[nodes] = len(self.sets)
            self.sets.append(nodes)
        return self._numbers[nodes]

    def _members(self, uuids: frozenset[str]) -> int:
        """Return the nodes in at least one of some aggregates, as in Nova."""
        nodes = 0
        for uuid in uuids & self._in.keys():
            nodes |= self._in[uuid]
        return self._number(nodes)

    def _root_with(self, trait: str) -> int:
        return self._number(self.index.with_trait(trait))

    def _without(self, trait: str) -> int:
        """Return the nodes whose servers find a trait on no provider."""
        holders = self.index.with_trait(trait)
        roots = self.index.roots_of(holders)
        for provider in self.index.members(holders & self.index.sharing):
            roots |= self.index.anchors_of[provider]
        return self._number(~roots)

    def _dropped(self, drops: Callable[[str], str]) -> Mapping[str, int]:
        """Return the nodes that a host filter drops, by reason."""
        nodes: dict[str, list[int]] = {}
        for host, node in self.index.hosts:
            if why := drops(host):
                nodes.setdefault(why, []).append(node)
        return {
            why: self._number(self.index.set_of(some))
            for why, some in nodes.items()
        }


class _Table:
    """The groups of hosts, and the objections for them.

    :param names: The names of compute nodes, by uuid.
    """

    def __init__(self, hosts: _Hosts, names: Mapping[str, str]) -> None:
        self._names = {a.uuid: a.name for a in hosts.aggregates}
        # Of a large set, the other nodes are marked.
        marks: dict[int, list[int]] = {
            node: [] for node in hosts.index.members(hosts.index.nodes)
        }
        self._inverted = set()
        for number, nodes in enumerate(hosts.sets):
            marked = nodes
            if 2 * nodes.bit_count() > len(marks):
                marked = hosts.index.nodes & ~nodes
                self._inverted.add(number)
            for node in hosts.index.members(marked):
                marks[node].append(number)
        alike: dict[tuple[int, ...], list[int]] = {}
        for node, numbers in marks.items():
            alike.setdefault(tuple(numbers), []).append(node)
        groups = sorted(
            (
                (_group(hosts, nodes, names), numbers)
                for numbers, nodes in alike.items()
            ),
            key=lambda each: each[0].hosts,
        )
        self.groups = tuple(group for group, _ in groups)
        self._marked: dict[int, list[int]] = {}
        for place, (_, marked_by) in enumerate(groups):
            for number in marked_by:
                self._marked.setdefault(number, []).append(place)
        # Cached, as most requests have the same.
        self._places = functools.cache(self._places_of)
        self._named = functools.cache(self._names_of)
        self._merged = functools.cache(_of_traits)

    def row(
        self, exclusions: Iterable[_Exclusion]
    ) -> tuple[tuple[Objection, ...], ...]:
        """Return the objections of a request for each group."""
        cells: dict[int, list[_Exclusion]] = {}
        for each in exclusions:
            for place in self._places(each.nodes):
                cells.setdefault(place, []).append(each)
        return tuple(
            tuple(self._objections(place, cells[place]))
            if place in cells
            else ()
            for place in range(len(self.groups))
        )

    def _objections(
        self, place: int, exclusions: Sequence[_Exclusion]
    ) -> Iterator[Objection]:
        """Yield those of the query, of traits, and of host filters."""
        traits: dict[str, list[str]] = {}
        dropped = []
        for each in exclusions:
            if each.trait:
                traits.setdefault(each.kind, []).append(each.trait)
            elif each.is_dropped:
                dropped.append(each)
            else:
                yield each.objection(self._named(place, each.uuids))
        for kind, names in traits.items():
            yield self._merged(kind, tuple(names))
        if dropped:
            # A host filter would only repeat these.
            said = {each.host_filter for each in exclusions}
            for each in dropped:
                if each.filter_name not in said:
                    yield each.objection()

    def _places_of(self, number: int) -> Sequence[int]:
        marked = self._marked.get(number, ())
        if number not in self._inverted:
            return marked
        return sorted({*range(len(self.groups))}.difference(marked))

    def _names_of(self, place: int, uuids: frozenset[str]) -> tuple[str, ...]:
        uuids &= self.groups[place].aggregates
        return tuple(sorted(self._names[uuid] for uuid in uuids))


def _group(
    hosts: _Hosts, nodes: Iterable[int], names: Mapping[str, str]
) -> Group:
    of = hosts.aggregates.aggregates_of
    return Group(
        tuple(sorted(names[hosts.index.uuids[node]] for node in nodes)),
        frozenset[str]().union(
            *(of.get(hosts.index.host_of[node], ()) for node in nodes)
        ),
    )


def _of_traits(kind: str, traits: tuple[str, ...]) -> Objection:
    """Return one objection for all traits."""
    names = text.named('trait', traits, most=None)
    return Objection(None, kind, _TRAIT_CAUSES[kind].format(names))
