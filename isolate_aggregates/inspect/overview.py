# SPDX-License-Identifier: Apache-2.0
"""What is behind each lock: aggregates, hosts, and their capacity."""

from collections.abc import Iterable, Mapping
import dataclasses

from isolate_aggregates.aggregates import Lock
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.placement.provider import Provider


@dataclasses.dataclass(frozen=True)
class ResourceUsage:
    """How much of a resource class some providers have together.

    :param total: What may be given out in all: ``(total - reserved) *
        allocation_ratio`` of each inventory, as Placement counts.
    :param used: What is given out.
    """

    total: int
    used: int

    @property
    def free(self) -> int:
        """What is left; less than nothing if too much is in use."""
        return self.total - self.used

    def __add__(self, other: 'ResourceUsage') -> 'ResourceUsage':
        return ResourceUsage(self.total + other.total, self.used + other.used)


@dataclasses.dataclass(frozen=True)
class LockOverview:
    """What is behind a lock.

    :param lock: The lock, with its aggregates.
    :param hosts: The names of the compute services in any of its aggregates,
        sorted.
    :param capacity: What the provider trees of these hosts have, by resource
        class; what other providers share with them is not in it.
    """

    lock: Lock
    hosts: tuple[str, ...]
    capacity: Mapping[str, ResourceUsage]


def overview(
    snapshot: Snapshot, locks: Iterable[Lock]
) -> tuple[LockOverview, ...]:
    """Return what is behind each lock.

    A host in several aggregates of a lock counts once for it, and for each
    lock it is behind.

    :returns: One overview for each lock, in the order of the locks.
    """
    by_host = usage_by_host(snapshot)
    return tuple(_overview(lock, by_host) for lock in locks)


def usage_document(
    usage: Mapping[str, ResourceUsage],
) -> dict[str, dict[str, int]]:
    """Return what is free and used of each resource class, for a document."""
    return {
        resource_class: {'free': one.free, 'used': one.used}
        for resource_class, one in sorted(usage.items())
    }


def usage_by_host(snapshot: Snapshot) -> dict[str, dict[str, ResourceUsage]]:
    """Return what the provider trees of each host have, by resource class.

    :returns: By name of the compute service; a service without a compute
        node in Placement is not in it.
    """
    hosts: dict[str, str] = {}
    found: dict[str, dict[str, ResourceUsage]] = {}
    for provider in snapshot.providers:
        # Parents come before their children.
        host = provider.host or hosts.get(provider.parent or '')
        if host:
            hosts[provider.uuid] = host
            _add(found.setdefault(host, {}), _of_provider(provider))
    return found


def _overview(
    lock: Lock, by_host: Mapping[str, Mapping[str, ResourceUsage]]
) -> LockOverview:
    hosts: frozenset[str] = frozenset().union(
        *(aggregate.hosts for aggregate in lock.aggregates)
    )
    together: dict[str, ResourceUsage] = {}
    for host in hosts:
        _add(together, by_host.get(host, {}))
    return LockOverview(
        lock, tuple(sorted(hosts)), dict(sorted(together.items()))
    )


def _of_provider(provider: Provider) -> dict[str, ResourceUsage]:
    return {
        resource_class: ResourceUsage(
            inventory.capacity, provider.usages.get(resource_class, 0)
        )
        for resource_class, inventory in provider.inventories.items()
    }


def _add(
    together: dict[str, ResourceUsage], more: Mapping[str, ResourceUsage]
) -> None:
    for resource_class, one in more.items():
        before = together.get(resource_class, ResourceUsage(0, 0))
        together[resource_class] = before + one
