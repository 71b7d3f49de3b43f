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

from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement.provider import nodes_by_host
from isolate_aggregates.request import Flavor, Image, Request
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.matrix.rules import (
    EquivalentHosts,
    Objection,
    Rules,
)
from isolate_aggregates.tools.simulator.index import ProviderIndex


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

    groups: tuple[EquivalentHosts, ...]
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
    snapshot: Snapshot, pipeline: Pipeline, all_requests: Iterable[Request]
) -> Matrix:
    """Return which request may use which host.

    :param all_requests: The requests. An invalid request may use no host.
    """
    rules = [
        Rules.of(request, pipeline, snapshot.index) for request in all_requests
    ]
    groups = tuple(_groups(snapshot, rules))
    return Matrix(
        groups,
        tuple(
            Row(each.request, tuple(map(each.objections, groups)))
            for each in rules
        ),
    )


def _groups(
    snapshot: Snapshot, rules: Sequence[Rules]
) -> Iterator[EquivalentHosts]:
    index = ProviderIndex(snapshot.providers)
    traits = _holders(
        index, frozenset().union(*(each.required for each in rules))
    )
    trees = _holders_of_trees(
        index, frozenset().union(*(each.trees for each in rules))
    )
    forbidden = frozenset().union(*(each.root_traits for each in rules))
    aggregates = snapshot.index.aggregates_of
    names = _names(snapshot)
    dropping = [objection for each in rules for objection in each.dropping]
    alike: dict[EquivalentHosts, list[str]] = {}
    for number, node in enumerate(index.providers):
        if not node.host:
            continue
        group = EquivalentHosts(
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
    by_root: dict[int, set[str]] = {}
    for trait in traits:
        holders = index.with_trait(trait)
        roots = index.roots_of(holders)
        for provider in index.members(holders & index.sharing):
            roots |= index.anchors_of[provider]
        for root in index.members(roots):
            by_root.setdefault(root, set()).add(trait)
    return {root: frozenset(names) for root, names in by_root.items()}


def _holders_of_trees(
    index: ProviderIndex, providers: Iterable[str]
) -> dict[int, frozenset[str]]:
    """Return which of the given providers are in each tree, by root."""
    by_root: dict[int, set[str]] = {}
    for uuid in providers:
        if uuid in index.numbers:
            root = index.root_of[index.numbers[uuid]]
            by_root.setdefault(root, set()).add(uuid)
    return {root: frozenset(members) for root, members in by_root.items()}
