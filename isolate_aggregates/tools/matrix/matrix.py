# SPDX-License-Identifier: Apache-2.0
"""Computes which requests may use which hosts, regardless of capacity.

A request may use a host unless a configured request filter excludes it, or the
host lacks a required trait or has a forbidden one. The hosts of an aggregate
are those in Nova.

Each request is evaluated once. Hosts that are equal for all requests are
evaluated together, also if they are in different aggregates with equal locks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import itertools

from isolate_aggregates.aggregates import Lock
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement.provider import Provider, nodes_by_host
from isolate_aggregates.request import Flavor, Image, Request
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.matrix.rules import (
    EquivalentHosts,
    Names,
    Objection,
    Rules,
    SharedSets,
    equivalent_aggregates,
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
    :param services: The names of the hosts of each compute service.
    """

    groups: tuple[EquivalentHosts, ...]
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
    shared: SharedSets = {}
    rules = [
        Rules.of(request, pipeline, snapshot.index, shared)
        for request in all_requests
    ]
    names = _names(snapshot)
    groups = tuple(_groups(snapshot, rules, locks, names))
    of_aggregates = Names(snapshot.index)
    return Matrix(
        groups,
        tuple(
            Row(each.request, tuple(each.objections(groups, of_aggregates)))
            for each in rules
        ),
        {
            host: tuple(names[node.uuid] for node in nodes)
            for host, nodes in nodes_by_host(snapshot.providers).items()
        },
    )


def _groups(
    snapshot: Snapshot,
    rules: Sequence[Rules],
    locks: Iterable[Lock],
    names: Mapping[str, str],
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
    kinds = equivalent_aggregates(
        snapshot.index,
        itertools.chain(
            *(each.aggregates for each in rules),
            ([a.uuid for a in lock.aggregates] for lock in locks),
        ),
    )
    dropping = [objection for each in rules for objection in each.dropping]
    alike: dict[EquivalentHosts, list[Provider]] = {}
    for number, node in enumerate(index.providers):
        if not node.host:
            continue
        group = EquivalentHosts(
            hosts=(),
            kinds=frozenset(
                kinds[uuid]
                for uuid in aggregates.get(node.host, ())
                if uuid in kinds
            ),
            traits=traits.get(number, frozenset()),
            root_traits=forbidden & node.traits,
            trees=trees.get(number, frozenset()),
            dropped=frozenset(
                (objection, why)
                for objection in dropping
                if (why := objection(node.host))
            ),
        )
        alike.setdefault(group, []).append(node)
    yield from sorted(
        (
            dataclasses.replace(
                group,
                hosts=tuple(sorted(names[node.uuid] for node in nodes)),
                aggregates=frozenset().union(
                    *(aggregates.get(node.host or '', ()) for node in nodes)
                ),
            )
            for group, nodes in alike.items()
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
