# SPDX-License-Identifier: Apache-2.0
"""The hosts of a cloud: whether they take servers, and their zones."""

from collections.abc import Callable, Iterable, Iterator
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
    :param hosts: Returns the hosts that have compute nodes; it is called when
        a zone was requested. Empty if they are unknown.
    """

    # A command asks about all flavors, again and again, and keeps what it is
    # told: the same set for many takes less than many equal ones.
    _most = 4096

    def __init__(
        self,
        aggregates: Iterable[Aggregate],
        services: Callable[[], Iterable[ComputeService] | None],
        hosts: Callable[[], Iterable[str]],
    ) -> None:
        super().__init__(aggregates)
        self._services = services
        self._hosts = hosts

    def zones(self, unnamed: str) -> frozenset[str]:
        """Return the availability zones that have hosts."""
        return self.remember(
            ('zones', unnamed),
            lambda: frozenset(
                zone_of_host(self, host, unnamed) for host in self._hosts()
            ),
        )

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
