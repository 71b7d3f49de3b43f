# SPDX-License-Identifier: Apache-2.0
"""Summarizes aggregates, hosts and capacity behind each lock."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
import dataclasses

from isolate_aggregates.aggregates import Lock
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.locks.usage import Usage
from isolate_aggregates_tools.placement.provider import Provider


@dataclasses.dataclass(frozen=True)
class LockOverview:
    """The hosts behind a lock and their capacity.

    :param hosts: The names of the compute services in any of its aggregates,
        sorted.
    :param unusable: Those whose compute service is down or disabled.
    :param capacity: The capacity of the provider trees of these hosts by
        resource class, without sharing providers of other trees. Unusable
        hosts have no more than what is in use.
    """

    lock: Lock
    hosts: tuple[str, ...]
    unusable: frozenset[str]
    capacity: Mapping[str, Usage]


def overview(
    snapshot: Snapshot, locks: Iterable[Lock]
) -> tuple[LockOverview, ...]:
    """Return an overview for each lock, in the same order.

    A host counts once for each lock that it is behind, even if it is in
    several aggregates with this lock.
    """
    by_host = usage_by_host(snapshot)
    unusable = snapshot.down_hosts | snapshot.disabled_hosts
    return tuple(_overview(lock, by_host, unusable) for lock in locks)


def usage_by_host(snapshot: Snapshot) -> dict[str, Mapping[str, Usage]]:
    """Return the usage of each host's provider trees, by resource class.

    :returns: The usage by name of the compute service. Services without a
        compute node in Placement are left out. Nothing is free if the service
        is down or disabled.
    """
    unusable = snapshot.down_hosts | snapshot.disabled_hosts
    hosts: dict[str, str] = {}
    by_host: dict[str, Mapping[str, Usage]] = {}
    # Most providers have the same inventories, which are the same object.
    alike: dict[Hashable, Mapping[str, Usage]] = {}
    for provider in snapshot.providers:
        # Parents come before their children.
        host = provider.host or hosts.get(provider.parent or '')
        if host:
            hosts[provider.uuid] = host
            is_usable = host not in unusable
            key = (
                id(provider.inventories),
                tuple(provider.usages.items()),
                is_usable,
            )
            if key not in alike:
                alike[key] = _of_provider(provider, is_usable)
            by_host[host] = (
                _summed([(by_host[host], 1), (alike[key], 1)])
                if host in by_host
                else alike[key]
            )
    return by_host


def _overview(
    lock: Lock,
    by_host: Mapping[str, Mapping[str, Usage]],
    unusable: frozenset[str],
) -> LockOverview:
    hosts: frozenset[str] = frozenset().union(
        *(aggregate.hosts for aggregate in lock.aggregates)
    )
    usages = [by_host[host] for host in hosts if host in by_host]
    counts = Counter(map(id, usages))
    different = {id(usage): usage for usage in usages}
    together = _summed((different[one], n) for one, n in counts.items())
    return LockOverview(
        lock,
        tuple(sorted(hosts)),
        hosts & unusable,
        dict(sorted(together.items())),
    )


def _of_provider(provider: Provider, is_usable: bool) -> dict[str, Usage]:
    found = {}
    for resource_class, inventory in provider.inventories.items():
        used = provider.usages.get(resource_class, 0)
        free = inventory.capacity - used if is_usable else 0
        found[resource_class] = Usage(free=free, used=used)
    return found


def _summed(
    usages: Iterable[tuple[Mapping[str, Usage], int]],
) -> dict[str, Usage]:
    """Return the sum of usages, each with how often it counts."""
    summed: dict[str, Usage] = {}
    for usage, times in usages:
        for resource_class, one in usage.items():
            before = summed.get(resource_class, Usage(free=0, used=0))
            summed[resource_class] = before + one * times
    return summed
