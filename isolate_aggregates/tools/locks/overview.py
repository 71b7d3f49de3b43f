# SPDX-License-Identifier: Apache-2.0
"""Summarizes aggregates, hosts and capacity behind each lock."""

from collections.abc import Iterable, Mapping
import dataclasses

from isolate_aggregates.aggregates import Lock
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.locks.documents import Usage
from isolate_aggregates.tools.placement.provider import Provider


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


def usage_by_host(snapshot: Snapshot) -> dict[str, dict[str, Usage]]:
    """Return the usage of each host's provider trees, by resource class.

    :returns: The usage by name of the compute service. Services without a
        compute node in Placement are left out. Nothing is free if the service
        is down or disabled.
    """
    unusable = snapshot.down_hosts | snapshot.disabled_hosts
    hosts: dict[str, str] = {}
    by_host: dict[str, dict[str, Usage]] = {}
    for provider in snapshot.providers:
        # Parents come before their children.
        host = provider.host or hosts.get(provider.parent or '')
        if host:
            hosts[provider.uuid] = host
            usage = _of_provider(provider, is_usable=host not in unusable)
            _add(by_host.setdefault(host, {}), usage)
    return by_host


def _overview(
    lock: Lock,
    by_host: Mapping[str, Mapping[str, Usage]],
    unusable: frozenset[str],
) -> LockOverview:
    hosts: frozenset[str] = frozenset().union(
        *(aggregate.hosts for aggregate in lock.aggregates)
    )
    together: dict[str, Usage] = {}
    for host in hosts:
        _add(together, by_host.get(host, {}))
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


def _add(together: dict[str, Usage], more: Mapping[str, Usage]) -> None:
    for resource_class, usage in more.items():
        before = together.get(resource_class, Usage(free=0, used=0))
        together[resource_class] = before + usage
