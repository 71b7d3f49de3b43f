# SPDX-License-Identifier: Apache-2.0
"""Shortens queries to Placement without changing which hosts may be used.

nova-scheduler loads ``shortener.py`` with its first query that is too long.
"""

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from isolate_aggregates.aggregates import AggregateIndex, Lock
    from isolate_aggregates.aggregates.rollups import Rollup

# The host filter that checks what a shortened query leaves out.
OUR_HOST_FILTER = 'IsolatedAggregatesFilter'

# In the encoded query, a uuid takes 36 bytes and a comma three.
_UUID_LENGTH = 39
_FORBIDDEN_LENGTH = len('&member_of=%21in%3A') - 3
_REQUIRED_LENGTH = len('&member_of=in%3A') - 3


@dataclasses.dataclass(frozen=True)
class Replacement:
    """The aggregates that a shortened query forbids.

    :param forbidden: The uuids of the Placement aggregates to forbid.
    :param rollups: The rollups among them.
    :param left_out: The uuids of the forbidden aggregates that the query does
        not name, whether a rollup stands for them or not.
    """

    forbidden: frozenset[str]
    rollups: tuple['Rollup', ...] = ()
    left_out: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, eq=False)
class Shortener:
    """How queries are shortened to a limit.

    :param limit: The maximum length of a query in bytes; 0 for no limit.
    :param host_filters: Nova's host filters. Without ours, which excludes the
        hosts that a shortened query does not, long queries are refused.
    :param sizes: Returns the number of hosts by uuid of aggregate, for indexes
        without hosts.
    """

    limit: int
    locks: 'Callable[[AggregateIndex], Iterable[Lock]]'
    host_filters: 'Collection[str]' = ()
    sizes: 'Callable[[], Mapping[str, int]] | None' = None

    @property
    def is_checked(self) -> bool:
        """Whether our host filter checks what a query leaves out."""
        return OUR_HOST_FILTER in self.host_filters


def forbidden_length(number: int) -> int:
    """Return the length in bytes of a number of forbidden aggregates."""
    return _FORBIDDEN_LENGTH + _UUID_LENGTH * number if number else 0


def required_length(number: int) -> int:
    """Return the length in bytes of a choice of required aggregates."""
    return _REQUIRED_LENGTH + _UUID_LENGTH * number


def most_aggregates(length: int) -> int:
    """Return how many forbidden aggregates fit into a length in bytes."""
    return max(0, (length - _FORBIDDEN_LENGTH) // _UUID_LENGTH)
