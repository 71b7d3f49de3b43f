# SPDX-License-Identifier: Apache-2.0
"""Computes how many more servers fit, by simulating their placement.

Servers are placed one after the other. Each claims the first candidate of its
host, as a scheduler would. With nested providers, other candidates might fit
more servers.
"""

from collections import Counter
from collections.abc import (
    Collection,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import dataclasses
import itertools

from isolate_aggregates import exception
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools import nova_candidates
from isolate_aggregates_tools.cloud.snapshot import Snapshot, provider_index
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.request import constraints
from isolate_aggregates_tools.simulator import Simulator
from isolate_aggregates_tools.simulator.index import ProviderIndex
from isolate_aggregates_tools.simulator.refusal import Refused


@dataclasses.dataclass(frozen=True)
class HostFit:
    """The number of servers that fit on a host.

    :param servers: The number of servers that fit once all previous hosts are
        full. The order matters if hosts use the same sharing providers.
    :param depends: Whether Nova may take other candidates, with which more or
        fewer servers may fit.
    """

    host: str
    provider: str
    servers: int
    depends: bool = False


def fitting_servers(
    snapshot: Snapshot,
    request: ResourceRequest,
    destination: Destination | None = None,
    fallbacks: Sequence[ResourceRequest] = (),
) -> tuple[HostFit, ...]:
    """Return how many servers fit on each candidate host.

    :param request: The request of each server, with the constraints of the
        filters. Its limit is ignored.
    :param fallbacks: Other requests for the same server, for the time when
        the first one has no candidates any more.
    :returns: The hosts that fit at least one server, sorted by name.
    """
    return Packing(snapshot, request, destination, fallbacks).fitting()


class Packing:
    """Places equal servers on the hosts of a snapshot.

    Other parameters and exceptions are those of :func:`fitting_servers`.

    :param index: The index of the same providers; None for that of the
        snapshot.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        request: ResourceRequest,
        destination: Destination | None = None,
        fallbacks: Sequence[ResourceRequest] = (),
        index: ProviderIndex | None = None,
    ) -> None:
        self._index = index or provider_index(snapshot)
        self._requests = [
            dataclasses.replace(each, limit=None)
            for each in (request, *fallbacks)
        ]
        roots = 0
        for each in self._requests:
            check_traits(snapshot, each)
            roots |= simulator(self._index, each).hosts(each)
        self._nodes = roots & self._index.nodes
        if destination and constraints.objections(destination):
            self._nodes = self._index.set_of(
                root
                for host, root in self._hosts()
                if not constraints.dropped(destination, host)
            )
        # Whether hosts with equal inventories and usages are alike.
        self._only_room_matters = (
            self._index.roots == self._index.everyone
            and not self._index.sharing
            and len(self._requests) == 1
        )
        self._named = frozenset().union(
            *(
                frozenset(group.forbidden_aggregates).union(*group.aggregates)
                for group in request.groups.values()
            )
        )
        # Cache: number of servers by likeness, for hosts without sharing
        # providers.
        self._servers_by_likeness: dict[Hashable, tuple[int, bool]] = {}

    def fitting(
        self, among: Container[str] | None = None
    ) -> tuple[HostFit, ...]:
        """Return how many servers fit on each host, sorted by name.

        :param among: The names of the hosts to consider; None for all.
        """
        return tuple(
            HostFit(host, self._index.uuids[root], servers, depends)
            for host, root, (servers, depends) in self._fits(among)
            if servers
        )

    def total(self) -> int:
        """Return how many servers fit on all hosts."""
        if not self._only_room_matters:
            return sum(servers for _, _, (servers, _) in self._fits())
        index = self._index
        rooms = Counter(
            itertools.compress(index.rooms, index.flags(self._nodes))
        )
        return sum(
            hosts * self._on_host(room, {})[0] for room, hosts in rooms.items()
        )

    def servers(self, among: Iterable[str]) -> int:
        """Return how many servers fit on some hosts, by name."""
        if self._index.sharing:
            # The hosts take from each other.
            return sum(fit.servers for fit in self.fitting(frozenset(among)))
        return sum(self._servers_by_host.get(host, 0) for host in among)

    @lazy_property
    def _servers_by_host(self) -> Mapping[str, int]:
        servers: Counter[str] = Counter()
        for fit in self.fitting():
            servers[fit.host] += fit.servers
        return servers

    def _hosts(self) -> Iterator[tuple[str, int]]:
        """Yield the hosts with the numbers of their compute nodes."""
        flags = self._index.flags(self._nodes)
        return (
            (h, number) for h, number in self._index.hosts if flags[number]
        )

    def _fits(
        self, among: Container[str] | None = None
    ) -> Iterator[tuple[str, int, tuple[int, bool]]]:
        usages: dict[str, dict[str, int]] = {}
        for host, root in self._hosts():
            if among is None or host in among:
                yield host, root, self._on_host(root, usages)

    def _on_host(
        self, root: int, usages: dict[str, dict[str, int]]
    ) -> tuple[int, bool]:
        index = self._index
        if index.sharing:
            # Shared resources are counted for the first host that uses them.
            return self._count(root, usages)
        likeness: Hashable
        if self._only_room_matters:
            likeness = index.rooms[root]
        else:
            likeness = _likeness(involved(index, root), self._named)
        if likeness not in self._servers_by_likeness:
            self._servers_by_likeness[likeness] = self._count(root, usages)
        return self._servers_by_likeness[likeness]

    def _count(
        self, number: int, usages: dict[str, dict[str, int]]
    ) -> tuple[int, bool]:
        root = self._index.providers[number]
        providers = involved(self._index, number)
        if len(providers) == 1 == len(self._requests):
            return _on_one_provider(root, self._requests[0]), False
        for each in providers:
            usages.setdefault(each.uuid, dict(each.usages))
        return _in_a_tree(providers, root, self._requests, usages)


def involved(index: ProviderIndex, number: int) -> list[Provider]:
    """Return the providers that can serve servers on a host.

    :param number: The number of its root.
    """
    if not index.sharing:
        return [index.providers[member] for member in index.trees[number]]
    sharing = [
        provider
        for provider, anchors in index.anchors_of.items()
        if anchors >> number & 1
    ]
    # Conditions on a sharing provider may depend on its whole tree.
    trees = {number, *(index.root_of[provider] for provider in sharing)}
    return [
        index.providers[member]
        for tree in sorted(trees)
        for member in index.trees[tree]
    ]


def _likeness(
    tree: Sequence[Provider], aggregates: frozenset[str]
) -> Hashable:
    """Return a key; trees with equal keys fit the same number of servers."""
    places = {provider.uuid: place for place, provider in enumerate(tree)}
    return tuple(
        (
            places.get(provider.parent or ''),
            tuple(provider.inventories.items()),
            tuple(sorted(provider.usages.items())),
            provider.traits,
            provider.aggregates & aggregates,
        )
        for provider in tree
    )


def _on_one_provider(root: Provider, request: ResourceRequest) -> int:
    """Return how often a request fits on a host with a single provider."""
    return min(
        root.free(resource_class) // amount
        for resource_class, amount in request.merged_resources().items()
    )


def _in_a_tree(
    providers: Sequence[Provider],
    root: Provider,
    requests: Iterable[ResourceRequest],
    usages: dict[str, dict[str, int]],
) -> tuple[int, bool]:
    """Claim the first candidate repeatedly until there is none.

    Claims only remove candidates, so a candidate remains the first one until
    it does not fit any more.

    :returns: The number of servers, and whether there were other candidates.
    """
    servers, depends = 0, False
    for request in requests:
        while True:
            now = {
                provider.uuid: dataclasses.replace(
                    provider, usages=usages[provider.uuid]
                )
                for provider in providers
            }
            answer = simulator(now.values(), request).allocation_candidates(
                request
            )
            candidates = nova_candidates.of_node(
                answer.by_root(request).get(root.uuid, ()), root.uuid
            )
            if not candidates:
                break
            depends |= len(candidates) > 1
            first = candidates[0]
            times = min(
                now[uuid].free(resource_class) // amount
                for uuid, amounts in first.items()
                for resource_class, amount in amounts.items()
            )
            for uuid, amounts in first.items():
                for resource_class, amount in amounts.items():
                    usage = usages[uuid].get(resource_class, 0)
                    usages[uuid][resource_class] = usage + times * amount
            servers += times
    return servers, depends


def check_traits(snapshot: Snapshot, request: ResourceRequest) -> None:
    """Check that the traits exist of which a host may have none.

    Placement rejects a query for a trait that does not exist, also if hosts
    must not have it. A trait that hosts must have excludes all of them anyway.
    """
    traits = set(request.root_forbidden)
    for group in request.groups.values():
        traits |= group.forbidden_traits.union(*group.any_traits)
    unknown = sorted(traits - snapshot.all_traits)
    if unknown:
        raise Refused(f'there is no trait {", ".join(unknown)}')


def rejection(snapshot: Snapshot, request: ResourceRequest) -> str | None:
    """Return why Placement would reject a query; None if it would not.

    Nova finds no host for a server if Placement rejects its query.
    """
    try:
        Simulator(
            provider_index(snapshot),
            snapshot.traits,
            snapshot.resource_classes,
        ).servings(request)
    except exception.BadQuery as exc:
        return f'{exc}.'
    return None


def simulator(
    providers: Iterable[Provider] | ProviderIndex, request: ResourceRequest
) -> Simulator:
    """Return a simulator in which all requested names exist."""
    traits = request.root_required | request.root_forbidden
    for group in request.groups.values():
        traits |= group.required_traits | group.forbidden_traits
        traits |= frozenset().union(*group.any_traits)
    return Simulator(providers, traits, request.merged_resources())


def scheduling(
    snapshot: Snapshot, queries: Collection[ResourceRequest]
) -> nova_candidates.Scheduling:
    """Return what Nova makes of Placement's answers to some queries."""
    return nova_candidates.simulated(
        [
            (simulator(provider_index(snapshot), query), query)
            for query in queries
        ],
        snapshot.providers,
    )
