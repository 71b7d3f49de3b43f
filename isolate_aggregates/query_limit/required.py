# SPDX-License-Identifier: Apache-2.0
"""Ever shorter ways to require aggregates.

Each admits what the destination admits, or what it admits and a host filter of
Nova then drops. None rests on who is in which aggregate: a list from which
something was missing would keep servers out, but one that was stale would let
them in.
"""

from collections.abc import Collection, Iterable, Iterator
import dataclasses

from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.placement import group

Choice = frozenset[str]


@dataclasses.dataclass(frozen=True)
class Required:
    """What a query requires.

    :param choices: Sets of uuids of aggregates; of each set a host has to be
        in one.
    :param left: Sets that the query does not require: a host filter does.
    """

    choices: tuple[Choice, ...]
    left: tuple[Choice, ...] = ()

    @property
    def length(self) -> int:
        """How many bytes of a query it takes."""
        return sum(group.required_length(len(one)) for one in self.choices)


def needed(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    """Return the choices without those that others imply.

    Whatever is in one of some aggregates is in one of these and more.
    """
    found = tuple(dict.fromkeys(choices))
    return tuple(
        one for one in found if not any(other < one for other in found)
    )


def ways(
    destination: Destination, host_filters: Collection[str] = ()
) -> Iterator[Required]:
    """Yield what a query may require, the longest way first.

    :param destination: What the filters concluded.
    :param host_filters: The host filters of Nova to which some of it may be
        left.
    """
    choices = destination.required_aggregates
    yield (plain := Required(needed(choices)))
    # Nothing may be in what is forbidden.
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
