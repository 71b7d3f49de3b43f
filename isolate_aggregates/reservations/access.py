# SPDX-License-Identifier: Apache-2.0
"""Which projects have access to the flavors of reservations."""

import bisect
from collections.abc import Iterable
from concurrent import futures
import uuid

from isolate_aggregates.reservations.compute import Compute
from isolate_aggregates.reservations.reservation import Reservation

# The number of parallel requests.
_PARALLEL = 8

# How many reservations are checked per round.
_CHECKED = 20


class FlavorAccess:
    """The access of projects to the flavors of their reservations."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        # The id of the reservation that was checked last. It is random first:
        # processes of one round each do not check the same ones every time.
        self._last = str(uuid.uuid4())

    def of(self, reservation: Reservation) -> frozenset[str]:
        """Return the ids of the projects that have access."""
        return frozenset(self._compute.projects(reservation.id))

    def some(
        self, reservations: Iterable[Reservation]
    ) -> dict[str, frozenset[str]]:
        """Read the access of a few reservations, the next ones in turn.

        :returns: The ids of the projects, by reservation id.
        """
        by_id = {reservation.id: reservation for reservation in reservations}
        ids = sorted(by_id)
        first = bisect.bisect(ids, self._last)
        turn = [*ids[first:], *ids[:first]][:_CHECKED]
        if turn:
            self._last = turn[-1]
        return self.all(by_id[name] for name in turn)

    def all(
        self, reservations: Iterable[Reservation]
    ) -> dict[str, frozenset[str]]:
        """Read the access of reservations."""
        turn = list(reservations)
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            answers = pool.map(self.of, turn)
            return {
                reservation.id: projects
                for reservation, projects in zip(turn, answers, strict=True)
            }
