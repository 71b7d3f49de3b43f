# SPDX-License-Identifier: Apache-2.0
"""Nova's ``ComputeFilter``: hosts whose compute service takes no servers."""

from collections.abc import Callable, Iterable, Iterator
import dataclasses

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.constraints import Cause, DropHosts
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.tools.compute.servers import ComputeService
from isolate_aggregates.tools.mirrored.mirror import Settings
from isolate_aggregates.tools.request import Request

NAME = 'ComputeFilter'


@dataclasses.dataclass(frozen=True, eq=False)
class _Objection:
    """Objects to some hosts."""

    hosts: frozenset[str]
    text: str

    def __call__(self, host: str) -> str:
        return self.text if host in self.hosts else ''


class CloudIndex(AggregateIndex):
    """The aggregates and the compute services of a cloud at one moment.

    :param services: Returns the compute services; it is called when a request
        is decided. None if they are unknown: then all count as up and enabled.
    """

    def __init__(
        self,
        aggregates: Iterable[Aggregate],
        services: Callable[[], Iterable[ComputeService] | None],
    ) -> None:
        super().__init__(aggregates)
        self._services = services

    @lazy_property
    def drops(self) -> tuple[DropHosts, ...]:
        """What ``ComputeFilter`` concludes about any request."""
        services = tuple(self._services() or ())
        down = frozenset(s.host for s in services if not s.is_up)
        disabled = frozenset(s.host for s in services if not s.is_enabled)
        return tuple(
            DropHosts(
                _Objection(hosts, f'its compute service is {state}'),
                Cause(
                    f'service-{state}',
                    'after Placement has answered, Nova drops hosts whose '
                    f'compute service is {state}',
                ),
            )
            for hosts, state in ((down, 'down'), (disabled, 'disabled'))
            if hosts
        )


def active_services(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[DropHosts]:
    """Drop hosts whose compute service is down or disabled."""
    if isinstance(aggregates, CloudIndex):
        yield from aggregates.drops
