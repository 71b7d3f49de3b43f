# SPDX-License-Identifier: Apache-2.0
"""Finds hosts that other locks close to the servers of reservations.

Whoever boots a server with the flavor of a reservation, the request filters
decide. So slots on a host that they exclude could never be used.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor
from isolate_aggregates_reservations.reservation import Reservation
from isolate_aggregates_tools.request import Request


class Locks:
    """The decisions of the request filters about reservations.

    :param pipeline: The filters that run in nova-scheduler.
    """

    def __init__(
        self, aggregates: Iterable[Aggregate], pipeline: Pipeline
    ) -> None:
        self._index = AggregateIndex(aggregates)
        self._pipeline = pipeline
        # Most reservations differ only in the class of their slots, which no
        # lock depends on.
        self._destinations: dict[Any, Destination] = {}

    def closed(
        self, reservation: Reservation, services: Mapping[str, str | None]
    ) -> dict[str, str]:
        """Return why hosts are closed to the servers of a reservation.

        Locks that only an image opens count as closed.

        :param services: The compute services of hosts, by name of the host.
        :returns: The predicate of a sentence, by name of the host.
        """
        shape = reservation.shape
        closed: dict[str, str] = {}
        for project in sorted(reservation.projects):
            key = (
                project,
                *(shape.vcpus, shape.ram, shape.disk),
                *(shape.ephemeral, shape.swap),
                tuple(sorted(shape.extra_specs.items())),
            )
            if key not in self._destinations:
                self._destinations[key] = self._decide(
                    reservation.flavor, project
                )
            closed |= self._closed(self._destinations[key], services)
        return closed

    def closed_to_flavor(
        self, flavor: Flavor, services: Mapping[str, str | None]
    ) -> dict[str, str]:
        """Return the same for the servers of a flavor and of any project."""
        return self._closed(self._decide(flavor, None), services)

    def _decide(self, flavor: Flavor, project: str | None) -> Destination:
        request = Request(flavor, project_id=project or None)
        return decide(request, self._index, self._pipeline).destination

    def _closed(
        self,
        destination: Destination,
        services: Mapping[str, str | None],
    ) -> dict[str, str]:
        forbidden = destination.forbidden_aggregates
        required = destination.required_aggregates
        closed = {}
        for host, service in services.items():
            uuids = self._index.aggregates_of.get(service or '', frozenset())
            if (
                not destination.refusals
                and forbidden.isdisjoint(uuids)
                and not any(choice.isdisjoint(uuids) for choice in required)
            ):
                continue
            reasons = destination.objections(uuids)
            closed[host] = f'is closed to its servers: {"; ".join(reasons)}'
        return closed
