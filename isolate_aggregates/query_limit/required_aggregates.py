# SPDX-License-Identifier: Apache-2.0
"""Finds shorter ways to require the same aggregates.

Each way admits the hosts of the destination, and possibly hosts that one of
Nova's host filters then drops. None depends on the current members of the
aggregates, because stale members could admit hosts that are not allowed.
"""

from collections.abc import Collection, Iterable, Iterator
import dataclasses

from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.placement import group

Choice = frozenset[str]


@dataclasses.dataclass(frozen=True)
class RequiredSubset:
    """The aggregates that a query requires.

    :param choices: Sets of aggregate uuids; a host must be in at least one
        aggregate of each set.
    :param left_out: Sets that are not in the query, because a host filter
        checks them.
    """

    choices: tuple[Choice, ...]
    left_out: tuple[Choice, ...] = ()

    @property
    def length(self) -> int:
        """The length of the query parameters in bytes."""
        return sum(
            group.required_length(len(choice)) for choice in self.choices
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
    destination: Destination, host_filters: Collection[str] = ()
) -> Iterator[RequiredSubset]:
    """Yield the possible ways to require the aggregates, the longest first.

    :param host_filters: The names of Nova's host filters that may check
        requirements in place of the query.
    """
    choices = destination.required_aggregates
    # What Nova would ask.
    yield (plain := RequiredSubset(tuple(choices)))
    # A host cannot be in a forbidden aggregate, so these are no choice.
    forbidden = destination.forbidden_aggregates
    allowed = {choice: (choice - forbidden) or choice for choice in choices}
    shorter = RequiredSubset(needed(allowed.values()))
    if shorter.choices != plain.choices:
        yield shorter
    omitted: list[Choice] = []
    for choice in sorted(
        (
            checked
            for checked, name in destination.host_filters.items()
            if name in host_filters
        ),
        key=lambda checked: (-len(allowed[checked]), sorted(checked)),
    ):
        omitted.append(choice)
        sent = needed(allowed[c] for c in choices if c not in omitted)
        # What is sent may imply some of the others.
        left_out = tuple(
            c for c in omitted if not any(each <= allowed[c] for each in sent)
        )
        yield RequiredSubset(sent, left_out)
