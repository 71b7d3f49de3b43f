# SPDX-License-Identifier: Apache-2.0
"""Finds the aggregates whose members are all members of a rollup."""

from collections.abc import Callable, Collection, Iterable
import dataclasses
from typing import Protocol

from isolate_aggregates.aggregates.rollups import Rollup
from isolate_aggregates.placement import group, providers
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.placement.provider import Provider

# If more providers than this are missing in a rollup, their aggregates are not
# read one by one.
FEW = 20


@dataclasses.dataclass(frozen=True)
class Coverage:
    """The aggregates that a rollup covers, as far as verified.

    :param verified: The uuids of the aggregates that it can replace.
    :param possible: The same, and those that are not verified yet.
    """

    verified: frozenset[str]
    possible: frozenset[str]


class Members(Protocol):
    """The interface to verified rollups."""

    def coverage(self, rollup: Rollup) -> Coverage:
        """Return the coverage of a rollup."""

    def use(self, rollups: Iterable[Rollup]) -> int:
        """Register the rollups that a query uses or could use.

        :returns: A value to pass to :meth:`wait`.
        """

    def wait(self, since: int) -> bool:
        """Wait for new results.

        :returns: Whether there are new results; False to stop waiting.
        """

    def trouble(self) -> str:
        """Return why there may be no new results; empty if there may be."""

    def stop(self) -> None:
        """Stop verifying rollups."""


class AnswersAtOnce:
    """Mixin for implementations that verify rollups synchronously."""

    def use(self, rollups: Iterable[Rollup]) -> int:
        """Do nothing: coverage() is always complete."""
        return 0

    def wait(self, since: int) -> bool:
        """Return False: there are no later results."""
        return False

    def trouble(self) -> str:
        """Return nothing: results are never missing."""
        return ''

    def stop(self) -> None:
        """Do nothing."""


class PlacementMembers(AnswersAtOnce):
    """Verifies each rollup once, by asking Placement.

    Commands use this. In nova-scheduler a thread verifies rollups; see
    :class:`~isolate_aggregates.query_limit.VerifiedMembers`.

    :param max_length: The maximum length of a query in bytes.
    """

    def __init__(
        self, placement: Callable[[], PlacementClient], max_length: int
    ) -> None:
        self._placement = placement
        self._at_once = at_once(max_length)
        self._known: dict[Rollup, Coverage] = {}

    def coverage(self, rollup: Rollup) -> Coverage:
        """Return the coverage of a rollup in Placement."""
        if rollup not in self._known:
            replaceable = rollup.aggregates
            aggregates = sorted(rollup.aggregates)
            for start in range(0, len(aggregates), self._at_once):
                some = aggregates[start : start + self._at_once]
                replaceable -= uncovered(self._placement(), rollup.uuid, some)
            self._known[rollup] = Coverage(replaceable, replaceable)
        return self._known[rollup]


class SnapshotMembers(AnswersAtOnce):
    """Verifies rollups with the memberships in a snapshot."""

    def __init__(self, providers: Iterable[Provider]) -> None:
        self._providers = tuple(providers)

    def coverage(self, rollup: Rollup) -> Coverage:
        """Return the coverage of a rollup in the snapshot."""
        aggregates = rollup.aggregates.difference(
            *(
                provider.aggregates
                for provider in self._providers
                if rollup.uuid not in provider.aggregates
            )
        )
        return Coverage(aggregates, aggregates)


def at_once(max_length: int) -> int:
    """Return how many aggregates fit into one query of :func:`uncovered`.

    :param max_length: The maximum length of a query in bytes.
    """
    # The query forbids one aggregate, the rollup.
    room = max_length - group.forbidden_length(1)
    return max(1, group.most_aggregates(room))


def uncovered(
    placement: PlacementClient,
    rollup: str,
    aggregates: Collection[str],
    before_each: Callable[[], None] = lambda: None,
) -> frozenset[str]:
    """Return the aggregates that a rollup cannot replace.

    Instead of reading all members, this asks for missing ones: members of the
    aggregates that are not members of the rollup.

    :param aggregates: The uuids of aggregates, as many as fit into a query.
    """
    before_each()
    missing = placement.resource_providers(
        member_of=aggregates, not_member_of=[rollup]
    )
    if len(missing) > FEW:
        return frozenset(aggregates)
    uuids: set[str] = set()
    for provider in missing:
        before_each()
        uuids |= providers.aggregates(placement, provider['uuid'])
    return frozenset(uuids.intersection(aggregates))
