# SPDX-License-Identifier: Apache-2.0
"""Computes which requests may use which hosts, regardless of capacity.

A request may use a host unless a configured request filter excludes it, or the
host lacks a required trait or has a forbidden one. The hosts of an aggregate
are those in Nova.

Each request is evaluated once, and hosts that are equal for all requests are
evaluated together.
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import itertools

from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.inspect.rules import HostGroup, Objection, Rules
from isolate_aggregates.placement.provider import nodes_by_host
from isolate_aggregates.placement.simulator.index import ProviderIndex
from isolate_aggregates.request import Flavor, Image, Request


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
    """

    groups: tuple[HostGroup, ...]
    rows: tuple[Row, ...]


def requests(
    flavors: Iterable[Flavor],
    images: Sequence[Image] = (),
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
    snapshot: Snapshot, pipeline: Pipeline, asked: Iterable[Request]
) -> Matrix:
    """Return which request may use which host.

    :param asked: The requests. An invalid request may use no host.
    :raises FilterError: if a filter fails.
    """
    rules = [Rules.of(one, pipeline, snapshot.index) for one in asked]
    groups = tuple(_groups(snapshot, rules))
    return Matrix(
        groups,
        tuple(
            Row(one.request, tuple(one.objections(group) for group in groups))
            for one in rules
        ),
    )


def _groups(snapshot: Snapshot, rules: Sequence[Rules]) -> Iterator[HostGroup]:
    index = ProviderIndex(snapshot.providers)
    traits = _holders(
        index, frozenset().union(*(one.required for one in rules))
    )
    trees = _holders_of_trees(
        index, frozenset().union(*(one.trees for one in rules))
    )
    forbidden = frozenset().union(*(one.root_traits for one in rules))
    aggregates = snapshot.index.aggregates_of
    names = _names(snapshot)
    dropping = [each for one in rules for each in one.dropping]
    alike: dict[HostGroup, list[str]] = {}
    for number, node in enumerate(index.providers):
        if not node.host:
            continue
        group = HostGroup(
            hosts=(),
            aggregates=aggregates.get(node.host, frozenset()),
            traits=traits.get(number, frozenset()),
            root_traits=forbidden & node.traits,
            trees=trees.get(number, frozenset()),
            dropped=frozenset(
                (objection, why)
                for objection in dropping
                if (why := objection(node.host))
            ),
        )
        alike.setdefault(group, []).append(names[node.uuid])
    yield from sorted(
        (
            dataclasses.replace(group, hosts=tuple(sorted(hosts)))
            for group, hosts in alike.items()
        ),
        key=lambda group: group.hosts,
    )


def _names(snapshot: Snapshot) -> dict[str, str]:
    """Return the name to show for each compute node, by uuid."""
    return {
        node.uuid: host if len(some) == 1 else f'{host} ({node.name})'
        for host, some in nodes_by_host(snapshot.providers).items()
        for node in some
    }


def _holders(
    index: ProviderIndex, traits: Iterable[str]
) -> dict[int, frozenset[str]]:
    """Return the traits in each tree and of its sharing providers, by root."""
    found: dict[int, set[str]] = {}
    for trait in traits:
        having = index.with_trait(trait)
        roots = index.roots_of(having)
        for lender in index.members(having & index.sharing):
            roots |= index.borrowers[lender]
        for root in index.members(roots):
            found.setdefault(root, set()).add(trait)
    return {root: frozenset(held) for root, held in found.items()}


def _holders_of_trees(
    index: ProviderIndex, providers: Iterable[str]
) -> dict[int, frozenset[str]]:
    """Return which of the given providers are in each tree, by root."""
    found: dict[int, set[str]] = {}
    for uuid in providers:
        if uuid in index.numbers:
            root = index.root_of[index.numbers[uuid]]
            found.setdefault(root, set()).add(uuid)
    return {root: frozenset(held) for root, held in found.items()}
