# SPDX-License-Identifier: Apache-2.0
"""The hosts of a cloud: whether they take servers, and their zones."""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.filters.constraints import Cause
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools.compute.servers import ComputeService
from isolate_aggregates_tools.mirrored.mirror import Settings
from isolate_aggregates_tools.request import Request
from isolate_aggregates_tools.request.constraints import DropHosts

NAME = 'ComputeFilter'


@dataclasses.dataclass(frozen=True, eq=False)
class HostsObjection:
    """Objects to some hosts."""

    hosts: frozenset[str]
    text: str

    def __call__(self, host: str) -> str:
        return self.text if host in self.hosts else ''


def enabled_hosts(
    nodes: Iterable[tuple[str, bool]], services: Iterable[ComputeService]
) -> Mapping[str, bool]:
    """Return all hosts, and whether the compute service of each is enabled.

    :param nodes: The host of each compute node, and whether it takes servers
        by what Placement knows, which may be late.
    """
    hosts: dict[str, bool] = {}
    for host, is_enabled in nodes:
        hosts[host] = hosts.get(host, False) or is_enabled
    return {**hosts, **{each.host: each.is_enabled for each in services}}


def zone_of_host(aggregates: AggregateIndex, host: str, unnamed: str) -> str:
    """Return the availability zone of a host.

    :param unnamed: The zone of hosts in no aggregate with a zone.
    """
    zones = map(zone_of, aggregates.by_host.get(host, ()))
    return next(filter(None, zones), None) or unnamed


class CloudIndex(AggregateIndex):
    """The aggregates and the compute services of a cloud at one moment.

    :param services: Returns the compute services; it is called when a request
        is decided. None if they are unknown: then all count as up and enabled.
    :param hosts: Returns all hosts, and for each whether its compute service
        is enabled; it is called when a zone was requested. Empty if they are
        unknown.
    """

    # A command asks about all flavors, again and again, and keeps what it is
    # told: the same set for many takes less than many equal ones.
    _most = 4096

    def __init__(
        self,
        aggregates: Iterable[Aggregate],
        services: Callable[[], Iterable[ComputeService] | None],
        hosts: Callable[[], Mapping[str, bool]],
    ) -> None:
        super().__init__(aggregates)
        self._services = services
        self._hosts = hosts

    def zones(self, unnamed: str) -> Mapping[str, bool]:
        """Return the availability zones, and whether any host is enabled."""
        return self.remember(('zones', unnamed), lambda: self._zones(unnamed))

    def _zones(self, unnamed: str) -> Mapping[str, bool]:
        zones: dict[str, bool] = {}
        for host, is_enabled in self._hosts().items():
            zone = zone_of_host(self, host, unnamed)
            zones[zone] = zones.get(zone, False) or is_enabled
        return zones

    @lazy_property
    def drops(self) -> tuple[DropHosts, ...]:
        """What ``ComputeFilter`` concludes about any request."""
        services = tuple(self._services() or ())
        down = frozenset(s.host for s in services if not s.is_up)
        disabled = frozenset(s.host for s in services if not s.is_enabled)
        causes = (
            (
                down,
                Cause(
                    'service-down',
                    'after Placement has answered, Nova drops hosts whose '
                    'compute service is down',
                ),
            ),
            (
                disabled,
                Cause(
                    'service-disabled',
                    'after Placement has answered, Nova drops hosts whose '
                    'compute service is disabled',
                ),
            ),
        )
        return tuple(
            DropHosts(
                HostsObjection(
                    hosts, f'its compute {cause.kind.replace("-", " is ")}'
                ),
                cause,
            )
            for hosts, cause in causes
            if hosts
        )


def active_services(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[DropHosts]:
    """Drop hosts whose compute service is down or disabled."""
    if isinstance(aggregates, CloudIndex):
        yield from aggregates.drops
