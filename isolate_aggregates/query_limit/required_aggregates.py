# SPDX-License-Identifier: Apache-2.0
"""Finds shorter ways to require the same aggregates.

Each way admits the hosts of the destination, and possibly hosts that our host
filter then drops. None depends on the current members of the
aggregates, because stale members could admit hosts that are not allowed.
"""

from collections.abc import Iterable, Iterator
import dataclasses

from isolate_aggregates import query_limit
from isolate_aggregates.filters.constraints import Destination

Choice = frozenset[str]


@dataclasses.dataclass(frozen=True)
class RequiredSubset:
    """The aggregates that a query requires.

    :param choices: Sets of aggregate uuids; a host must be in at least one
        aggregate of each set.
    :param left_out: Sets that are not in the query, because our host filter
        checks them.
    """

    choices: tuple[Choice, ...]
    left_out: tuple[Choice, ...] = ()

    @property
    def length(self) -> int:
        """The length of the query parameters in bytes."""
        return sum(
            query_limit.required_length(len(choice)) for choice in self.choices
        )


def needed(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    """Remove the choices that others imply.

    A choice implies all its supersets.
    """
    unique = tuple(dict.fromkeys(choices))
    return tuple(
        choice
        for choice in unique
        if not any(other < choice for other in unique)
    )


def ways(
    destination: Destination, may_omit: bool = False
) -> Iterator[RequiredSubset]:
    """Yield the ways to require the aggregates, each shorter than the last.

    Of several that fit, the first leaves out the fewest.

    :param may_omit: Whether our host filter checks what the query leaves out.
    """
    choices = destination.required_aggregates
    # What Nova would ask.
    yield (plain := RequiredSubset(tuple(choices)))
    shortest = plain.length
    # A host cannot be in a forbidden aggregate, so these are no choice. If a
    # choice has no others, no host is admitted, and one of them says so.
    forbidden = destination.forbidden_aggregates
    allowed = {choice: (choice - forbidden) or choice for choice in choices}
    for choice in choices:
        subset = RequiredSubset((frozenset({min(choice)}),))
        if choice <= forbidden and subset.length < shortest:
            shortest = subset.length
            yield subset
    longest_first = sorted(
        choices, key=lambda choice: (-len(allowed[choice]), sorted(choice))
    )
    for number in range(len(choices) + 1 if may_omit else 1):
        omission = longest_first[:number]
        required = needed(allowed[c] for c in choices if c not in omission)
        # What is sent may imply some of the others.
        left_out = tuple(
            c
            for c in omission
            if not any(each <= allowed[c] for each in required)
        )
        subset = RequiredSubset(required, left_out)
        if subset.length < shortest:
            shortest = subset.length
            yield subset
