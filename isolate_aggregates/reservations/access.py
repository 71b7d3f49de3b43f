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

    def is_granted(self, reservation: Reservation) -> bool:
        """Return whether its project has access."""
        return reservation.project in self._compute.projects(reservation.id)

    def lost(self, reservations: Iterable[Reservation]) -> set[str]:
        """Check a few reservations, the next ones in turn.

        :param reservations: The reservations whose project should have access.
        :returns: The ids of those without.
        """
        by_id = {reservation.id: reservation for reservation in reservations}
        ids = sorted(by_id)
        first = bisect.bisect(ids, self._last)
        turn = [*ids[first:], *ids[:first]][:_CHECKED]
        if turn:
            self._last = turn[-1]
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            answers = pool.map(lambda name: self.is_granted(by_id[name]), turn)
            return {
                name
                for name, is_granted in zip(turn, answers, strict=True)
                if not is_granted
            }
