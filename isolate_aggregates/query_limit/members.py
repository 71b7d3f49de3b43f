# SPDX-License-Identifier: Apache-2.0
"""Who is a member of what, as far as shortening has to know."""

from collections.abc import Callable, Iterable, Iterator, Mapping
import threading
import time
from typing import Protocol

from isolate_aggregates.aggregates.rollups import Rollup
from isolate_aggregates.placement import group, providers
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.placement.provider import Provider

# With more stragglers than this in one answer it is not worth asking which
# aggregates each of them is in.
_FEW = 20

# Seconds for which an answer of Placement is used; a rollup that misses some
# hosts is looked at again soon, as somebody may be about to mend it.
TTL = 30.0
SOON = 5.0


class Members(Protocol):
    """What has to be known of members to shorten a query."""

    def covered(self, rollup: Rollup) -> frozenset[str]:
        """Return the aggregates that a rollup may stand for.

        :returns: The uuids of those of its aggregates whose members are all
            members of the rollup.
        :raises IsolateAggregatesError: if it can not be found out.
        """

    def hosts(self) -> Mapping[str, frozenset[str]]:
        """Return the names of the hosts of all aggregates, by uuid.

        :raises IsolateAggregatesError: if they can not be read.
        """


class PlacementMembers:
    """Asks Placement who is a member of a rollup, every now and then.

    Instead of reading all members it asks for those that are missing: members
    of the aggregates that are not members of the rollup.

    :param placement: Returns the client.
    :param hosts: Returns the names of the hosts of all aggregates, by uuid.
    :param max_length: The most bytes of a query, as that is what these
        queries are about.
    :param clock: Tells the time in seconds.
    """

    def __init__(
        self,
        placement: Callable[[], PlacementClient],
        hosts: Callable[[], Mapping[str, frozenset[str]]],
        max_length: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._placement = placement
        self._clock = clock
        self._known: dict[Rollup, tuple[float, frozenset[str]]] = {}
        self._lock = threading.Lock()
        # One aggregate is forbidden: the rollup.
        room = max_length - group.forbidden_length(1)
        self._at_once = max(1, group.most_aggregates(room))
        self.hosts = hosts

    def covered(self, rollup: Rollup) -> frozenset[str]:
        """Return the aggregates that a rollup may stand for.

        :raises ServiceError: if Placement gives no usable answer.
        """
        with self._lock:
            now = self._clock()
            until, covered = self._known.get(rollup, (now, frozenset()))
            if until > now:
                return covered
            covered = rollup.aggregates.difference(self._uncovered(rollup))
            whole = covered == rollup.aggregates
            self._forget(now)
            self._known[rollup] = now + (TTL if whole else SOON), covered
            return covered

    def _uncovered(self, rollup: Rollup) -> Iterator[str]:
        placement = self._placement()
        aggregates = sorted(rollup.aggregates)
        for start in range(0, len(aggregates), self._at_once):
            some = aggregates[start : start + self._at_once]
            missing = placement.resource_providers(
                member_of=some, not_member_of=[rollup.uuid]
            )
            if len(missing) > _FEW:
                yield from some
                continue
            for provider in missing:
                yield from providers.aggregates(placement, provider['uuid'])

    def _forget(self, now: float) -> None:
        """Drop what is too old, such as of rollups that are no more."""
        self._known = {
            rollup: known
            for rollup, known in self._known.items()
            if known[0] > now
        }


class SnapshotMembers:
    """Knows from a snapshot who is a member of what.

    :param hosts: The names of the hosts of all aggregates, by uuid.
    """

    def __init__(
        self,
        providers: Iterable[Provider],
        hosts: Mapping[str, frozenset[str]],
    ) -> None:
        self._providers = tuple(providers)
        self._hosts = hosts

    def covered(self, rollup: Rollup) -> frozenset[str]:
        """Return the aggregates that a rollup may stand for."""
        return rollup.aggregates.difference(
            *(
                provider.aggregates
                for provider in self._providers
                if rollup.uuid not in provider.aggregates
            )
        )

    def hosts(self) -> Mapping[str, frozenset[str]]:
        """Return the names of the hosts of all aggregates, by uuid."""
        return self._hosts
