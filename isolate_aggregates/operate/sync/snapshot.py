# SPDX-License-Identifier: Apache-2.0
"""How things are: what sync has to know of Nova and Placement.

Little is read, so that sync can run often: the aggregates and compute nodes
of Nova, the list of resource providers and the list of traits, one answer that
tells the traits of most compute nodes, and the aggregates of each root.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent import futures
import dataclasses
from typing import Any

import os_traits

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.cloud import save
from isolate_aggregates.cloud.nova import NovaReader
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.operate.sync import marks
from isolate_aggregates.placement import providers
from isolate_aggregates.placement.client import (
    PlacementClient,
    ProviderSummary,
)
from isolate_aggregates.placement.provider import Provider

Track = Callable[[Iterator[Any], int], Iterable[Any]]


@dataclasses.dataclass(frozen=True)
class SyncSnapshot:
    """Nova and Placement at one moment.

    :param nodes: The compute nodes that have a resource provider, with their
        traits and aggregates.
    :param traits: The names of all traits that Placement knows.
    :param problems: What does not fit together, one sentence each.
    :param others: The other root providers that are members of aggregates,
        such as those that share their resources.
    """

    index: AggregateIndex
    nodes: tuple[Provider, ...]
    traits: frozenset[str]
    problems: tuple[str, ...] = ()
    others: tuple[Provider, ...] = ()


def untracked(found: Iterator[Any], total: int) -> Iterable[Any]:
    """Show no progress."""
    return found


def read(
    nova: NovaReader, placement: PlacementClient, track: Track = untracked
) -> SyncSnapshot:
    """Read how things are in a live cloud.

    :param track: Shows progress: takes what comes one by one, and how many
        will come, and gives it back.
    :raises IsolateAggregatesError: if anything can not be read.
    """
    index = AggregateIndex(nova.aggregates())
    nodes = nova.compute_nodes()
    hosts = None if nodes is None else {n.uuid: n.host for n in nodes}
    listed = placement.resource_providers()
    known = save.summaries(placement)
    # A compute node is the root of its tree.
    roots = [e for e in listed if not e['parent_provider_uuid']]
    with futures.ThreadPoolExecutor(save.PARALLEL) as pool:
        found = pool.map(
            lambda entry: _node(
                entry, hosts, placement, known.get(entry['uuid'])
            ),
            roots,
        )
        read_roots = [node for node in track(found, len(roots)) if node]
    read_roots.sort(key=lambda node: node.name)
    strays = [e for e in roots if hosts is not None and e['uuid'] not in hosts]
    return SyncSnapshot(
        index=index,
        nodes=tuple(node for node in read_roots if node.host is not None),
        traits=providers.known_traits(placement),
        problems=tuple(
            _stray(e['name']) for e in strays if _is_marked(e, known)
        ),
        others=_others(read_roots),
    )


def of_snapshot(snapshot: Snapshot) -> SyncSnapshot:
    """Return how things are in a snapshot."""
    return SyncSnapshot(
        index=snapshot.index,
        nodes=tuple(p for p in snapshot.providers if p.host),
        traits=frozenset(os_traits.get_traits()).union(
            *(p.traits for p in snapshot.providers)
        ),
        others=_others(p for p in snapshot.providers if p.parent is None),
    )


def _others(roots: Iterable[Provider]) -> tuple[Provider, ...]:
    return tuple(p for p in roots if p.host is None and p.aggregates)


def _node(
    entry: Mapping[str, Any],
    hosts: Mapping[str, str] | None,
    placement: PlacementClient,
    summary: ProviderSummary | None,
) -> Provider | None:
    """Read a root provider; None if it is gone by now."""
    uuid = entry['uuid']
    try:
        if summary:
            traits = summary.traits
        elif hosts is not None and uuid not in hosts:
            # Its traits are not for sync to change.
            traits = frozenset()
        else:
            traits = providers.traits(placement, uuid)
        host = save.host_of(entry, traits, hosts)
        members = providers.aggregates(placement, uuid)
    except exception.ServiceNotFound:
        return None
    return Provider(
        uuid, entry['name'], host=host, traits=traits, aggregates=members
    )


def _is_marked(
    entry: Mapping[str, Any], known: Mapping[str, ProviderSummary]
) -> bool:
    summary = known.get(entry['uuid'])
    return bool(summary and marks.marked_traits(summary.traits))


def _stray(name: str) -> str:
    return (
        f'resource provider {name}: has traits that sync put there, but Nova '
        'lists no compute node of it, so they stay; look whether its cell can '
        'be reached, or delete the provider if the host is gone'
    )
