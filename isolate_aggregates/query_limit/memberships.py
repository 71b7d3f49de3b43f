# SPDX-License-Identifier: Apache-2.0
"""Reads the memberships in Placement that a shortened query leaves out.

Each provider is asked for its aggregates; if there are many providers, the
aggregates are asked for their members, as many as fit into a query.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
import itertools

from isolate_aggregates import query_limit
from isolate_aggregates.placement import ARRIVAL_LENGTH, PlacementReader
from isolate_aggregates.query_limit import Replacement

# To read the aggregates of so many providers costs Placement as much as one
# query for the members of aggregates.
_PROVIDERS_PER_QUERY = 4


def members(
    placement: Callable[[], PlacementReader],
    limit: int,
    wanted: Collection[str],
    replacement: Replacement,
    choices: Sequence[frozenset[str]] = (),
) -> tuple[frozenset[str], Sequence[frozenset[str]]]:
    """Return the members of the aggregates that a query leaves out.

    :param placement: Returns the client for each query.
    :param limit: The maximum length of a query in bytes.
    :param wanted: The uuids of the providers in the answer to the query. Only
        these are looked for.
    :param choices: Sets of required aggregates that the query leaves out.
    :returns: The providers in forbidden aggregates that are left out, and
        those in an aggregate of each choice.
    """
    # Members of these have not been returned. The answer is shorter without
    # them.
    room = query_limit.most_aggregates(limit) // 2
    rollups = [rollup.uuid for rollup in replacement.rollups[:room]]
    forbidden = list(parts(replacement.left_out, limit, len(rollups)))
    required = [list(parts(choice, limit)) for choice in choices]
    queries = len(forbidden) + sum(map(len, required))
    if len(wanted) <= _PROVIDERS_PER_QUERY * queries:
        held = {
            provider: placement().aggregates(provider) for provider in wanted
        }

        def of(aggregates: frozenset[str]) -> frozenset[str]:
            return frozenset(
                provider
                for provider in wanted
                if not aggregates.isdisjoint(held[provider])
            )

        return of(replacement.left_out), [of(choice) for choice in choices]

    def ask(
        queries: Collection[Collection[str]], without: Collection[str] = ()
    ) -> frozenset[str]:
        return frozenset(
            provider['uuid']
            for aggregates in queries
            for provider in placement().resource_providers(
                member_of=aggregates, not_member_of=without
            )
        )

    return ask(forbidden, rollups), [ask(choice) for choice in required]


def parts(
    aggregates: Collection[str], limit: int, rollups: int = 0, rest: int = 0
) -> Iterator[Collection[str]]:
    """Yield parts of the aggregates that fit into a query.

    :param rollups: How many aggregates the query forbids.
    :param rest: The length of its other parameters in bytes, without what is
        added to see that it arrives.
    """
    room = limit - query_limit.forbidden_length(rollups) - rest
    room -= ARRIVAL_LENGTH
    most = max(1, query_limit.most_aggregates(room))
    remaining = iter(sorted(aggregates))
    while some := list(itertools.islice(remaining, most)):
        yield some
