# SPDX-License-Identifier: Apache-2.0
"""Manages the access of projects to the flavors of their reservations.

Nova lists the access of only one flavor per call, so the results are cached.
"""

from collections.abc import Iterable, Set
from concurrent import futures
import itertools
import logging

from isolate_aggregates.reservations.compute import Compute
from isolate_aggregates.reservations.reservation import Reservation

LOG = logging.getLogger(__name__)

# The number of parallel requests.
_PARALLEL = 8

# How many cached results are refreshed per call.
_REFRESHED = 200


class FlavorAccess:
    """The access of projects to the flavors of their reservations."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        # Reservation id to incarnation and project, for reservations with
        # access; the least recently refreshed one comes first.
        self._granted: dict[str, tuple[str, str]] = {}
        # The ids of the reservations that have lost access.
        self._lost: set[str] = set()

    def granted(
        self, reservations: Iterable[Reservation], again: bool = False
    ) -> set[str]:
        """Return the ids of the reservations whose project has access.

        A reservation whose former project still has access is left out. Nova
        is asked once per reservation, and positive results are cached.

        :param again: Whether to refresh some cached results, because access
            may have been removed since. Each call refreshes the next ones in
            turn, so that the cost per call is limited.
        """
        by_id = {reservation.id: reservation for reservation in reservations}
        unsure = [r for r in by_id.values() if not self._is_granted(r)]
        if again:
            cached = (by_id[name] for name in self._granted if name in by_id)
            unsure += itertools.islice(
                filter(self._is_granted, cached), _REFRESHED
            )
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            answers = pool.map(
                lambda reservation: self._compute.projects(reservation.id),
                unsure,
            )
            for reservation, projects in zip(unsure, answers, strict=True):
                before = self._granted.pop(reservation.id, None)
                if reservation.project in projects and not (
                    {*reservation.former} & {*projects}
                ):
                    self._granted[reservation.id] = _grant_of(reservation)
                elif before == _grant_of(reservation):
                    self._lost.add(reservation.id)
        return {
            name
            for name, reservation in by_id.items()
            if self._is_granted(reservation)
        }

    def forget_all_but(self, reservations: Set[str]) -> None:
        """Forget the cached results of reservations that are gone.

        :param reservations: The ids of all reservations.
        """
        for name in self._granted.keys() - reservations:
            self._granted.pop(name, None)
        self._lost.intersection_update(reservations)

    def _is_granted(self, reservation: Reservation) -> bool:
        return self._granted.get(reservation.id) == _grant_of(reservation)

    def grant(self, reservation: Reservation) -> None:
        """Give the project access to the flavor of its reservation."""
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
        """Remove all access to the flavor of a reservation."""
        self._granted.pop(reservation, None)
        self._compute.revoke(reservation)


def _grant_of(reservation: Reservation) -> tuple[str, str]:
    return reservation.incarnation, reservation.project
