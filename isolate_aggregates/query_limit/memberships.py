# SPDX-License-Identifier: Apache-2.0
"""Reads the memberships in Placement that a shortened query leaves out.

Each provider is asked for its aggregates when it is needed. If many providers
are needed, the aggregates are asked for their members, as many as fit into a
query.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
import itertools
import math

from isolate_aggregates import query_limit
from isolate_aggregates.placement import ARRIVAL_LENGTH, PlacementReader
from isolate_aggregates.query_limit import Replacement

# To read the aggregates of so many providers costs Placement as much as one
# query for the members of aggregates.
_PROVIDERS_PER_QUERY = 4


class LeftOut:
    """The members of the aggregates that a query leaves out.

    Only providers in the answer to that query may be read.

    :param limit: The maximum length of a query in bytes.
    :param choices: Sets of required aggregates that the query leaves out.
    """

    def __init__(
        self,
        limit: int,
        replacement: Replacement,
        choices: Sequence[frozenset[str]] = (),
    ) -> None:
        self._limit = limit
        self._forbidden = replacement.left_out
        self._choices = choices
        # Members of these have not been returned. The answer is shorter
        # without them.
        room = query_limit.most_aggregates(limit) // 2
        self._without = [rollup.uuid for rollup in replacement.rollups[:room]]
        # The aggregates of the providers that were read one by one.
        self._held: dict[str, frozenset[str]] = {}
        # The members of the forbidden aggregates and of each choice; None
        # before the aggregates are asked for them.
        self._members: list[frozenset[str]] | None = None

    def missing(self, providers: Collection[str]) -> frozenset[str]:
        """Return the providers that have to be read."""
        if self._members is not None:
            return frozenset()
        return frozenset(providers).difference(self._held)

    def read(
        self, placement: Callable[[], PlacementReader], missing: frozenset[str]
    ) -> None:
        """Read some providers, or all if that costs Placement less.

        :param placement: Returns the client for each query.
        """
        sets = [(self._forbidden, self._without)]
        sets += [(choice, []) for choice in self._choices]
        queries = sum(
            math.ceil(len(aggregates) / _most(self._limit, len(without)))
            for aggregates, without in sets
        )
        number = len(self._held) + len(missing)
        if number <= _PROVIDERS_PER_QUERY * queries:
            for provider in missing:
                self._held[provider] = placement().aggregates(provider)
            return
        self._members = [
            frozenset(
                provider['uuid']
                for some in parts(aggregates, self._limit, len(without))
                for provider in placement().resource_providers(
                    member_of=some, not_member_of=without
                )
            )
            for aggregates, without in sets
        ]

    def is_forbidden(self, provider: str) -> bool:
        """Return whether a provider is in a forbidden aggregate."""
        return self._is_member(provider, 0, self._forbidden)

    def is_in(self, provider: str, number: int) -> bool:
        """Return whether a provider is in an aggregate of a choice.

        :param number: The index of the choice.
        """
        return self._is_member(provider, number + 1, self._choices[number])

    def _is_member(
        self, provider: str, number: int, aggregates: frozenset[str]
    ) -> bool:
        if self._members is not None:
            return provider in self._members[number]
        return not aggregates.isdisjoint(self._held[provider])


def parts(
    aggregates: Collection[str], limit: int, rollups: int = 0, rest: int = 0
) -> Iterator[Collection[str]]:
    """Yield parts of the aggregates that fit into a query.

    :param rollups: How many aggregates the query forbids.
    :param rest: The length of its other parameters in bytes, without what is
        added to see that it arrives.
    """
    most = _most(limit, rollups, rest)
    remaining = iter(sorted(aggregates))
    while some := list(itertools.islice(remaining, most)):
        yield some


def _most(limit: int, rollups: int, rest: int = 0) -> int:
    """Return how many aggregates fit into a query, at least one."""
    room = limit - query_limit.forbidden_length(rollups) - rest
    return max(1, query_limit.most_aggregates(room - ARRIVAL_LENGTH))
