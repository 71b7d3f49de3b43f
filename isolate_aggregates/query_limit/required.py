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
class Required:
    """The aggregates that a query requires.

    :param choices: Sets of aggregate uuids; a host must be in at least one
        aggregate of each set.
    :param left: Sets that are not in the query, because a host filter checks
        them.
    """

    choices: tuple[Choice, ...]
    left: tuple[Choice, ...] = ()

    @property
    def length(self) -> int:
        """The length of the query parameters in bytes."""
        return sum(group.required_length(len(one)) for one in self.choices)


def needed(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    """Remove the choices that others imply.

    A choice implies all its supersets.
    """
    found = tuple(dict.fromkeys(choices))
    return tuple(
        one for one in found if not any(other < one for other in found)
    )


def ways(
    destination: Destination, host_filters: Collection[str] = ()
) -> Iterator[Required]:
    """Yield the possible ways to require the aggregates, the longest first.

    :param destination: The conclusions of the filters.
    :param host_filters: The names of Nova's host filters that may check
        requirements in place of the query.
    """
    choices = destination.required_aggregates
    # What Nova would ask.
    yield (plain := Required(tuple(choices)))
    # A host cannot be in a forbidden aggregate, so these are no choice.
    forbidden = destination.forbidden_aggregates
    allowed = {one: (one - forbidden) or one for one in choices}
    shorter = Required(needed(allowed.values()))
    if shorter.choices != plain.choices:
        yield shorter
    given_up: list[Choice] = []
    for choice in sorted(
        (
            one
            for one, name in destination.host_filters.items()
            if name in host_filters
        ),
        key=lambda one: (-len(allowed[one]), sorted(one)),
    ):
        given_up.append(choice)
        sent = needed(allowed[one] for one in choices if one not in given_up)
        left = tuple(
            one
            for one in given_up
            if not any(each <= allowed[one] for each in sent)
        )
        yield Required(sent, left)
