# SPDX-License-Identifier: Apache-2.0
"""How many more servers of each request fit on each host, for the page."""

from collections.abc import Mapping, Sequence
import dataclasses

from isolate_aggregates import exception
from isolate_aggregates_tools.capacity import Packing
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.matrix.matrix import Matrix, Row
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.placement.provider import nodes_by_host
from isolate_aggregates_tools.request import resources

# Numbers, of which more would make the page large and slow to write.
MOST = 200_000


@dataclasses.dataclass(frozen=True)
class Rooms:
    """Numbers of servers, of rows and hosts that have the same only once.

    :param kinds: The kind of each host, in the order of the groups.
    :param lines: Of each line, the number of servers by kind of host.
    :param rows: The line of each row; None where Placement would reject it.
    """

    kinds: Sequence[int]
    lines: Sequence[Sequence[int]]
    rows: Sequence[int | None]


def rooms(snapshot: Snapshot, matrix: Matrix) -> Rooms | None:
    """Return how many servers fit; None if that is not known of each host.

    Whether a request may use a host is not considered. Without any usage the
    occupancy is not known, and what hosts share has no number for each.
    """
    if not any(p.usages for p in snapshot.providers) or any(
        p.is_sharing for p in snapshot.providers
    ):
        return None
    hosts = [host for group in matrix.groups for host in group.hosts]
    queries = [_queries(row) for row in matrix.rows]
    keys = [tuple(q.to_querystring() for q in each) for each in queries]
    if len(set(keys)) * len(hosts) > MOST:
        return None
    names = {
        node.uuid: name
        for service, nodes in nodes_by_host(snapshot.providers).items()
        for name, node in zip(matrix.services[service], nodes, strict=True)
    }
    fits = {
        key: found
        for key, each in dict(zip(keys, queries, strict=True)).items()
        if (found := _fits(snapshot, each, names)) is not None
    }
    alike: dict[tuple[int, ...], int] = {}
    kinds = [
        alike.setdefault(
            tuple(found.get(host, 0) for found in fits.values()), len(alike)
        )
        for host in hosts
    ]
    places = {key: place for place, key in enumerate(fits)}
    lines = list(zip(*alike, strict=True))
    return Rooms(kinds, lines, [places.get(key) for key in keys])


def _queries(row: Row) -> list[ResourceRequest]:
    """Return the queries without what filters add; empty if there are none."""
    try:
        return [
            resources.resource_request(each) for each in row.request.variants
        ]
    except exception.IsolateAggregatesError:
        return []


def _fits(
    snapshot: Snapshot,
    queries: Sequence[ResourceRequest],
    names: Mapping[str, str],
) -> dict[str, int] | None:
    """Return the number of servers by name of the host, where any fit."""
    if not queries:
        return None
    first, *fallbacks = queries
    try:
        packing = Packing(snapshot, first, None, fallbacks)
    except exception.BadQuery:
        return None
    return {names[fit.provider]: fit.servers for fit in packing.fitting()}
