# SPDX-License-Identifier: Apache-2.0
"""Which projects may use the flavors of reservations, and which lost access.

Nova shows the access of only one flavor per call, so the results are cached.
"""

from collections.abc import Iterable
from concurrent import futures
import itertools
import logging

from isolate_aggregates.reservations.compute import Compute
from isolate_aggregates.reservations.reservation import Reservation

LOG = logging.getLogger(__name__)

# How many are asked for at a time.
_PARALLEL = 8

# Of how many reservations Nova is asked again each time.
_ASKED_AGAIN = 200


class Access:
    """The access of projects to the flavors of their reservations.

    :param compute: Nova, where it is kept.
    """

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        # By id, incarnation and project of a reservation with access; the one
        # that was asked for the longest ago comes first.
        self._granted: dict[str, tuple[str, str]] = {}
        # The ids of those that had access, and have not now.
        self._lost: set[str] = set()

    def granted(
        self, reservations: Iterable[Reservation], again: bool = False
    ) -> set[str]:
        """Return the ids of those whose project may use the flavor.

        Those are not among them whose former project may use it still. Nova is
        asked once for each; what it said is remembered.

        :param again: Whether to ask again of some, as access may have been
            taken away since: in turn, so that no round costs more, however
            many there are.
        """
        wanted = {found.id: found for found in reservations}
        asked = [r for r in wanted.values() if not self._is_granted(r)]
        if again:
            known = (wanted[name] for name in self._granted if name in wanted)
            asked += itertools.islice(
                filter(self._is_granted, known), _ASKED_AGAIN
            )
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            answers = pool.map(
                lambda found: self._compute.projects(found.id), asked
            )
            for found, projects in zip(asked, answers, strict=True):
                before = self._granted.pop(found.id, None)
                if found.project in projects and not (
                    {*found.former} & {*projects}
                ):
                    self._granted[found.id] = _grant_of(found)
                elif before == _grant_of(found):
                    self._lost.add(found.id)
        return {
            name for name, found in wanted.items() if self._is_granted(found)
        }

    def _is_granted(self, reservation: Reservation) -> bool:
        return self._granted.get(reservation.id) == _grant_of(reservation)

    def grant(self, reservation: Reservation) -> None:
        """Let the project use the flavor of its reservation."""
        self._compute.grant(reservation.id, reservation.project)
        self._granted[reservation.id] = _grant_of(reservation)
        if reservation.id in self._lost:
            self._lost.remove(reservation.id)
            LOG.warning(
                'Project %s had lost access to the flavor of its reservation '
                '%s, and has it again.',
                reservation.project,
                reservation.id,
            )

    def revoke(self, reservation: str) -> None:
        """Let no project use the flavor of a reservation any more."""
        self._granted.pop(reservation, None)
        self._compute.revoke(reservation)


def _grant_of(reservation: Reservation) -> tuple[str, str]:
    return reservation.incarnation, reservation.project
