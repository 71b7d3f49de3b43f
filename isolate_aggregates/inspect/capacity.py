# SPDX-License-Identifier: Apache-2.0
"""How many more servers fit, found out by placing them one by one.

Each server uses the first candidate of its host, as with a scheduler that
claims it and asks again. With trees of providers another choice of candidates
may fit more servers.
"""

from collections.abc import Iterable
import dataclasses

from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.placement.simulator import Simulator
from isolate_aggregates.placement.simulator.index import ProviderIndex


@dataclasses.dataclass(frozen=True)
class HostFit:
    """How many servers fit on a host.

    :param host: The name of its compute service.
    :param provider: The uuid of its root provider.
    :param servers: How many fit on it, after the hosts before it are full:
        that matters where hosts share storage.
    """

    host: str
    provider: str
    servers: int


def fitting_servers(
    snapshot: Snapshot,
    request: ResourceRequest,
    destination: Destination | None = None,
) -> tuple[HostFit, ...]:
    """Return how many servers fit on each host that may be used.

    :param request: What each server asks for, filters included; its limit is
        not looked at.
    :param destination: What the filters concluded, for the hosts that are
        dropped after Placement has answered.
    :returns: The hosts that take at least one, by name.
    :raises BadQuery: if Placement would call the query invalid.
    """
    unlimited = dataclasses.replace(request, limit=None)
    documented = simulator(snapshot.providers, unlimited)
    index = documented.index
    usages = {p.uuid: dict(p.usages) for p in snapshot.providers}
    found = []
    hosts = [
        index.providers[number]
        for number in index.members(documented.hosts(unlimited))
        if (host := index.providers[number].host)
        and not (destination and destination.dropped(host))
    ]
    for root in sorted(hosts, key=lambda provider: provider.host or ''):
        involved = _involved(index, root)
        if len(involved) == 1:
            servers = _on_one_provider(root, unlimited)
        else:
            servers = _in_a_tree(involved, root, unlimited, usages)
        if servers:
            found.append(HostFit(root.host or '', root.uuid, servers))
    return tuple(found)


def _involved(index: ProviderIndex, root: Provider) -> list[Provider]:
    """Return the providers that a host's servers may take from."""
    number = index.numbers[root.uuid]
    lenders = [
        lender
        for lender, borrowers in index.borrowers.items()
        if borrowers >> number & 1
    ]
    # A lender belongs to a tree that may be needed whole to judge it.
    trees = {number, *(index.root_of[lender] for lender in lenders)}
    return [
        index.providers[member]
        for tree in sorted(trees)
        for member in index.trees[tree]
    ]


def _on_one_provider(root: Provider, request: ResourceRequest) -> int:
    """Return how often a request fits on one provider that offers it."""
    return min(
        root.free(resource_class) // amount
        for resource_class, amount in request.merged_resources().items()
    )


def _in_a_tree(
    involved: list[Provider],
    root: Provider,
    request: ResourceRequest,
    usages: dict[str, dict[str, int]],
) -> int:
    """Claim one server after the other until no more fits."""
    servers = 0
    while True:
        now = [
            dataclasses.replace(provider, usages=usages[provider.uuid])
            for provider in involved
        ]
        answer = simulator(now, request).allocation_candidates(request)
        candidates = answer.by_root(request).get(root.uuid)
        if not candidates:
            return servers
        for uuid, amounts in candidates[0].items():
            for resource_class, amount in amounts.items():
                used = usages[uuid].get(resource_class, 0)
                usages[uuid][resource_class] = used + amount
        servers += 1


def simulator(
    providers: Iterable[Provider], request: ResourceRequest
) -> Simulator:
    """Return a simulator to which all that a request names exists."""
    traits = request.root_required | request.root_forbidden
    for group in request.groups.values():
        traits |= group.required_traits | group.forbidden_traits
        traits |= frozenset().union(*group.any_traits)
    return Simulator(providers, traits, request.merged_resources())
