# SPDX-License-Identifier: Apache-2.0
"""Computes which requests may use which hosts, regardless of capacity.

A request may use a host that the cloud would offer if every host was empty.
Requests share most of the sets of hosts that their parts exclude, and hosts
that are in the same ones are a group.
"""

from collections.abc import (
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
import dataclasses
import functools
import itertools
from typing import NamedTuple

from isolate_aggregates import text
from isolate_aggregates.aggregates import Lock
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.answers.exclusions import (
    Excluded,
    Exclusion,
    HostSets,
    excluded,
)
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement.provider import nodes_by_host
from isolate_aggregates_tools.request import Request
from isolate_aggregates_tools.simulator.index import ProviderSet


class Objection(NamedTuple):
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


Cells = tuple[tuple[Objection, ...], ...]

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

    :param closed: The places of the groups that it may not use.
    :param unenforced_at: The places of those that it may use, but could not if
        Placement had the members of aggregates that Nova has.
    """

    request: Request
    closed: Set[int]
    unenforced_at: Set[int]
    # There may be many objections: a table shows none, and nothing keeps them.
    _table: '_Table' = dataclasses.field(repr=False)
    _excluded: Excluded = dataclasses.field(repr=False)

    @property
    def flavor(self) -> str:
        """How causes name the flavor."""
        return f'flavor {self.request.flavor.name}'

    @property
    def likeness(self) -> Hashable:
        """A key; objections with equal ones differ only in the flavor."""
        image = self.request.image
        return self._excluded.likeness(
            self.flavor, image.name if image else ''
        )

    @property
    def objections(self) -> Cells:
        """The objections for each group of hosts, in their order."""
        return self._table.cells(self._excluded.exclusions())

    @property
    def unenforced(self) -> Cells:
        """In the same way, what is not enforced; empty if nothing is."""
        return (
            self._table.cells(self._excluded.unenforced())
            if self.unenforced_at
            else ()
        )

    @property
    def terms(self) -> Sequence[tuple[Objection, Sequence[int]]]:
        """Each objection with the places of the groups that have it.

        First those that are the first one of their groups, and so on.
        """
        return [
            (objection, places)
            for (_, objection), places in self._table.terms(
                self._excluded.exclusions()
            )
        ]


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
    builder: Requests,
    flavors: Iterable[Flavor],
    images: Sequence[Image | None] = (),
    project_id: str | None = None,
) -> list[Request]:
    """Return a request for each flavor, or for each flavor with each image.

    :param builder: Builds the requests.
    :param images: The images; if empty, the requests have no image.
    """
    return [
        builder.new(flavor, image, project_id)
        for flavor, image in itertools.product(flavors, images or (None,))
    ]


def matrix(
    snapshot: Snapshot,
    pipeline: Pipeline,
    all_requests: Iterable[Request],
    locks: Iterable[Lock],
    offers: Offers | None = None,
) -> Matrix:
    """Return which request may use which host.

    :param all_requests: The requests. An invalid request may use no host.
    :param locks: The locks. All hosts of a group are behind the same ones.
    :param offers: What the cloud offers if all hosts are empty, if known.
    """
    hosts = HostSets(snapshot, offers)
    exclusions = [
        (request, excluded(request, pipeline, hosts))
        for request in all_requests
    ]
    for lock in locks:
        hosts.members_in_nova(frozenset(a.uuid for a in lock.aggregates))
    nodes = nodes_by_host(snapshot.providers)
    names = {
        node.uuid: host if len(some) == 1 else f'{host} ({node.name})'
        for host, some in nodes.items()
        for node in some
    }
    table = _Table(hosts, names)
    return Matrix(
        table.groups,
        tuple(
            Row(
                request,
                table.places(some.nodes),
                table.places(some.unenforced_nodes),
                table,
                some,
            )
            for request, some in exclusions
        ),
        {
            host: tuple([names[node.uuid] for node in some])
            for host, some in nodes.items()
        },
    )


class _Table:
    """The groups of hosts, and the objections for them.

    :param names: The names of compute nodes, by uuid.
    """

    def __init__(self, hosts: HostSets, names: Mapping[str, str]) -> None:
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
                (_group(hosts, nodes, names), nodes[0], numbers)
                for numbers, nodes in alike.items()
            ),
            key=lambda each: each[0].hosts,
        )
        self.groups = tuple(group for group, *_ in groups)
        self._index = hosts.index
        # By a node of each group, which stands for the others.
        self._place_of = {
            node: place for place, (_, node, _) in enumerate(groups)
        }
        self._first_nodes = hosts.index.set_of(self._place_of)
        self._every_place = frozenset(range(len(groups)))
        self._marked: dict[int, list[int]] = {}
        for place, (*_, marked_by) in enumerate(groups):
            for number in marked_by:
                self._marked.setdefault(number, []).append(place)
        # Most requests have the same.
        self._places: dict[int, Sequence[int]] = {}
        self._known: dict[ProviderSet, Set[int]] = {}
        self._named: dict[tuple[int, frozenset[str]], tuple[str, ...]] = {}
        self._merged = functools.cache(_of_traits)

    def places(self, nodes: ProviderSet) -> Set[int]:
        """Return the places of groups, all nodes of which are in a set."""
        if nodes not in self._known:
            some = nodes & self._first_nodes
            others = self._first_nodes & ~nodes
            self._known[nodes] = (
                self._places_with(some)
                if some.bit_count() <= others.bit_count()
                else self._every_place - self._places_with(others)
            )
        return self._known[nodes]

    def _places_with(self, nodes: ProviderSet) -> frozenset[int]:
        return frozenset(self._place_of[n] for n in self._index.members(nodes))

    def cells(self, exclusions: Iterable[Exclusion]) -> Cells:
        """Return the objections of a request for each group."""
        cells: list[list[Objection]] = [[] for _ in self.groups]
        for (_, objection), places in self.terms(exclusions):
            for place in places:
                cells[place].append(objection)
        return tuple(map(tuple, cells))

    def terms(
        self, exclusions: Iterable[Exclusion]
    ) -> Sequence[tuple[tuple[int, Objection], Sequence[int]]]:
        """Return the places of the groups that have an objection.

        Each with its number among those of the groups.
        """
        found: dict[tuple[int, Objection], list[int]] = {}
        counts = [0] * len(self.groups)

        def add(place: int, objection: Objection) -> None:
            key = counts[place], objection
            counts[place] += 1
            found.setdefault(key, []).append(place)

        # Those of traits and of host filters come after those of the query.
        last: dict[int, list[Exclusion]] = {}
        for each in exclusions:
            comes_last = each.trait or each.is_dropped or each.host_filter
            for place in self._places_of(each.nodes):
                if comes_last:
                    last.setdefault(place, []).append(each)
                if not (each.trait or each.is_dropped):
                    names = self._names_of(place, each.uuids)
                    add(place, _objection(each, names))
        for place, some in last.items():
            for objection in self._last(some):
                add(place, objection)
        for places in found.values():
            places.sort()
        return sorted(found.items(), key=lambda item: (item[0][0], item[1][0]))

    def _last(self, exclusions: Sequence[Exclusion]) -> Iterator[Objection]:
        """Yield the objections of traits, and of host filters."""
        traits: dict[str, list[str]] = {}
        for each in exclusions:
            if each.trait:
                traits.setdefault(each.kind, []).append(each.trait)
        for kind, names in traits.items():
            yield self._merged(kind, tuple(names))
        # A host filter would only repeat these.
        said = {each.host_filter for each in exclusions}
        for each in exclusions:
            if each.is_dropped and each.filter_name not in said:
                yield _objection(each)

    def _places_of(self, number: int) -> Sequence[int]:
        if number not in self._places:
            marked = self._marked.get(number, ())
            self._places[number] = (
                sorted({*range(len(self.groups))}.difference(marked))
                if number in self._inverted
                else marked
            )
        return self._places[number]

    def _names_of(self, place: int, uuids: frozenset[str]) -> tuple[str, ...]:
        key = place, uuids
        if key not in self._named:
            here = uuids & self.groups[place].aggregates
            self._named[key] = tuple(sorted(self._names[one] for one in here))
        return self._named[key]


def _objection(each: Exclusion, names: tuple[str, ...] = ()) -> Objection:
    """Return an objection, with the names of the hosts' aggregates."""
    return Objection(each.filter_name, each.kind, each.cause, names)


def _group(
    hosts: HostSets, nodes: Iterable[int], names: Mapping[str, str]
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
