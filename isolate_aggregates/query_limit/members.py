# SPDX-License-Identifier: Apache-2.0
"""Finds the aggregates whose members are all members of a rollup."""

from collections.abc import Callable, Collection, Iterable
import dataclasses
from typing import Protocol

from isolate_aggregates.aggregates.rollups import Rollup
from isolate_aggregates.placement import group, providers
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.placement.provider import Provider

# With more stragglers than this in one answer it is not worth asking which
# aggregates each of them is in.
FEW = 20


@dataclasses.dataclass(frozen=True)
class Coverage:
    """What is known of a rollup.

    :param verified: Uuids of the aggregates that it may stand for.
    :param possible: Those, and the ones of which it is not known yet.
    """

    verified: frozenset[str]
    possible: frozenset[str]


class Members(Protocol):
    """What must be known of members to shorten a query."""

    def coverage(self, rollup: Rollup) -> Coverage:
        """Return what is known of a rollup.

        :raises IsolateAggregatesError: if it cannot be found out.
        """

    def use(self, rollups: Iterable[Rollup]) -> int:
        """Take note of the rollups that a query uses, or would use.

        :returns: What :meth:`wait` takes.
        """

    def wait(self, since: int) -> bool:
        """Wait until more is known.

        :param since: What :meth:`use` returned.
        :returns: Whether more is known; False if it is not worth waiting.
        """

    def stop(self) -> None:
        """Stop finding out more."""


class AnswersAtOnce:
    """Mixed into what knows all there is to know when it is asked."""

    def use(self, rollups: Iterable[Rollup]) -> int:
        """Do nothing: what was asked for is known."""
        return 0

    def wait(self, since: int) -> bool:
        """Return that no more will be known."""
        return False

    def stop(self) -> None:
        """Do nothing: nothing goes on."""


class PlacementMembers(AnswersAtOnce):
    """Asks Placement, once for each rollup.

    It is for commands; in nova-scheduler a thread does this, see
    :class:`~isolate_aggregates.query_limit.VerifiedMembers`.

    :param placement: Returns the client.
    :param max_length: The most bytes of a query.
    """

    def __init__(
        self, placement: Callable[[], PlacementClient], max_length: int
    ) -> None:
        self._placement = placement
        self._at_once = at_once(max_length)
        self._known: dict[Rollup, Coverage] = {}

    def coverage(self, rollup: Rollup) -> Coverage:
        """Return what Placement says of a rollup.

        :raises ServiceError: if it gives no usable answer.
        """
        if rollup not in self._known:
            covered = rollup.aggregates
            aggregates = sorted(rollup.aggregates)
            for start in range(0, len(aggregates), self._at_once):
                some = aggregates[start : start + self._at_once]
                covered -= uncovered(self._placement(), rollup.uuid, some)
            self._known[rollup] = Coverage(covered, covered)
        return self._known[rollup]


class SnapshotMembers(AnswersAtOnce):
    """Knows from a snapshot who is a member of what."""

    def __init__(self, providers: Iterable[Provider]) -> None:
        self._providers = tuple(providers)

    def coverage(self, rollup: Rollup) -> Coverage:
        """Return what the snapshot says of a rollup."""
        covered = rollup.aggregates.difference(
            *(
                provider.aggregates
                for provider in self._providers
                if rollup.uuid not in provider.aggregates
            )
        )
        return Coverage(covered, covered)


def at_once(max_length: int) -> int:
    """Return how many aggregates one question may name.

    :param max_length: The most bytes of a query, as that is what these
        questions are about.
    """
    # One aggregate is forbidden: the rollup.
    room = max_length - group.forbidden_length(1)
    return max(1, group.most_aggregates(room))


def uncovered(
    placement: PlacementClient,
    rollup: str,
    aggregates: Collection[str],
    before_each: Callable[[], None] = lambda: None,
) -> frozenset[str]:
    """Return the aggregates that a rollup may not stand for.

    Instead of reading all members, this asks for the missing ones: members of
    the aggregates that are not members of the rollup.

    :param rollup: Uuid of the rollup.
    :param aggregates: Uuids of aggregates, as many as fit into a question.
    :param before_each: Called before each question.
    :raises ServiceError: if Placement gives no usable answer.
    """
    before_each()
    missing = placement.resource_providers(
        member_of=aggregates, not_member_of=[rollup]
    )
    if len(missing) > FEW:
        return frozenset(aggregates)
    found: set[str] = set()
    for provider in missing:
        before_each()
        found |= providers.aggregates(placement, provider['uuid'])
    return frozenset(found.intersection(aggregates))
