# SPDX-License-Identifier: Apache-2.0
"""Shortens long queries so that they still exclude the same hosts.

A query names each forbidden aggregate by uuid, and web servers reject long
queries. If a query is too long, it forbids rollup aggregates instead. If this
does not suffice, the request is refused; a query is never truncated.
"""

from collections.abc import Callable, Collection, Iterable
import dataclasses
import math
import time

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex, Lock
from isolate_aggregates.aggregates.rollups import Rollup, rollups
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.placement import group
from isolate_aggregates.query_limit.cover import Cover, Replacement
from isolate_aggregates.query_limit.members import Members
from isolate_aggregates.query_limit.required_aggregates import (
    RequiredSubset,
    ways,
)

# Seconds for which the replacement for a set of aggregates is cached.
REMEMBERED = 1.0


OUR_HOST_FILTER = 'IsolatedAggregatesFilter'


@dataclasses.dataclass(frozen=True)
class Fitting:
    """A way to write a query within the limit.

    :param replacement: The aggregates that it forbids; None if it forbids all
        forbidden aggregates themselves.
    """

    required: RequiredSubset
    replacement: Replacement | None = None


class Shortener:
    """Shortens queries to a limit.

    :param limit: The maximum length of a query in bytes; 0 for no limit.
    :param members: Verifies rollups; None to refuse long queries instead of
        shortening them.
    """

    def __init__(
        self,
        limit: int,
        locks: Callable[[AggregateIndex], Iterable[Lock]],
        members: Members | None,
        clock: Callable[[], float] = time.monotonic,
        host_filters: Collection[str] = (),
    ) -> None:
        self.limit = limit
        self._locks = locks
        self._members = members
        self._clock = clock
        self._host_filters = frozenset(host_filters)

    def fit(
        self,
        destination: Destination,
        index: AggregateIndex,
        length: int,
        host_forced: bool = False,
    ) -> Fitting:
        """Find a way to write the query within the limit.

        :param length: The length in bytes of the query with all required, but
            without the forbidden aggregates.
        """
        # Our own host filter also checks what is left to Nova's, with newly
        # read aggregates.
        host_filters = (
            self._host_filters
            if self._members is not None and not host_forced
            else frozenset[str]()
        )
        rest = (
            length
            - RequiredSubset(tuple(destination.required_aggregates)).length
        )
        first: exception.QueryNotShortened | None = None
        for required in ways(destination, host_filters):
            try:
                replacement = self.shorten(
                    destination, index, rest + required.length, host_forced
                )
            except exception.QueryNotShortened as exc:
                first = first or exc
            else:
                return Fitting(required, replacement)
        assert first is not None
        raise first

    def shorten(
        self,
        destination: Destination,
        index: AggregateIndex,
        length: int,
        host_forced: bool = False,
    ) -> Replacement | None:
        """Return the aggregates to forbid instead of those of a destination.

        :param length: The length in bytes of the query without forbidden
            aggregates.
        :returns: None if the query is short enough unchanged.
        """
        if not self.limit:
            return None
        # A cheap upper bound, which counts aggregates in several sets more
        # than once. Only if it exceeds the limit, the sets are merged below.
        number = sum(map(len, destination.forbidden))
        if length + group.forbidden_length(number) <= self.limit:
            return None
        too_long = _TooLong(self.limit, length, destination)
        if length > self.limit:
            raise too_long.without_forbidding(
                self._advice(destination, host_forced)
            )
        forbidden = destination.forbidden_aggregates
        most = group.most_aggregates(self.limit - length)
        if len(forbidden) <= most:
            return None
        if self._members is None:
            raise too_long.error(
                'and queries are not shortened without '
                'IsolatedAggregatesFilter in [filter_scheduler] '
                'enabled_filters; add it'
            )
        cache_entry = index.remember(
            (self, destination.forbidden), _CachedCover
        )
        replacement = None
        if cache_entry.cover and self._clock() < cache_entry.until:
            replacement = cache_entry.cover.within(most)
        if replacement is None:
            usable = index.remember(
                (self, 'rollups'), lambda: rollups(self._locks(index))
            )
            replacement = self._work_out(
                self._members, forbidden, usable, most, cache_entry, too_long
            )
        self._members.use(replacement.rollups)
        return replacement

    def _advice(self, destination: Destination, host_forced: bool) -> str:
        """Return a hint on too many required aggregates; may be empty."""
        host_filters = set(destination.host_filters.values())
        if not host_filters:
            return ''
        if host_forced:
            return 'they cannot be left to host filters on a forced host; '
        if self._members is None:
            host_filters.add(OUR_HOST_FILTER)
        missing = sorted(host_filters - self._host_filters)
        if not missing:
            return ''
        return (
            f'add {" and ".join(missing)} to [filter_scheduler] '
            'enabled_filters, or '
        )

    def stop(self) -> None:
        """Stop verifying rollups."""
        if self._members is not None:
            self._members.stop()

    def _work_out(
        self,
        members: Members,
        forbidden: frozenset[str],
        usable: Iterable[Rollup],
        most: int,
        cache_entry: '_CachedCover',
        too_long: '_TooLong',
    ) -> Replacement:
        """Find a replacement; wait for rollups to be verified if necessary."""

        def verified() -> Cover:
            return Cover(
                forbidden, usable, lambda r: members.coverage(r).verified
            )

        # Normally this suffices.
        now, cover = self._clock(), verified()
        while (replacement := cover.within(most)) is None:
            all_possible = Cover(
                forbidden, usable, lambda r: members.coverage(r).possible
            )
            possible = all_possible.within(most)
            if possible is None:
                raise too_long.error(
                    'and the existing rollup aggregates do not shorten it '
                    'enough; run "isolate-aggregates sync"'
                    if all_possible.is_complete
                    else 'and no combination of the rollup aggregates was '
                    'found that shortens it enough; so many overlap that not '
                    'all combinations were tried: use fewer aggregates with '
                    'several locks'
                )
            # First, so that no result is missed by the wait.
            since = members.use(possible.rollups)
            now, cover = self._clock(), verified()
            if cover.within(most) is None and not members.wait(since):
                trouble = members.trouble()
                raise too_long.error(
                    'and the rollup aggregates that may shorten it enough '
                    'have not been verified yet'
                    f'{trouble and f" ({trouble})"}; try again, and check the '
                    'log of nova-scheduler if this persists'
                )
        cache_entry.cover, cache_entry.until = cover, now + REMEMBERED
        return replacement


class _CachedCover:
    """The cached replacement for a set of aggregates, with its expiry."""

    def __init__(self) -> None:
        self.until = -math.inf
        self.cover: Cover | None = None


class _TooLong:
    """Builds the errors for queries that are too long."""

    def __init__(
        self, limit: int, length: int, destination: Destination
    ) -> None:
        self._limit = (
            f'more than [{ia_conf.GROUP}] max_query_length = {limit:,}'
        )
        self._length = length
        self._destination = destination

    def without_forbidding(self, advice: str) -> exception.QueryNotShortened:
        """Return the error if the limit is exceeded without forbidding any."""
        number = sum(map(len, self._destination.required_aggregates))
        return self._error(
            f'would take {self._length:,} bytes for {number:,} required '
            f'aggregates and the resources, {self._limit}; {advice}raise '
            'max_query_length,'
        )

    def error(self, why: str) -> exception.QueryNotShortened:
        """Return the error if too many aggregates are forbidden.

        :param why: Why the query is not shortened, and what to do.
        """
        number = len(self._destination.forbidden_aggregates)
        length = self._length + group.forbidden_length(number)
        return self._error(
            f'would take {length:,} bytes to forbid {number:,} aggregates, '
            f'{self._limit}, {why}, or raise max_query_length'
        )

    def _error(self, problem: str) -> exception.QueryNotShortened:
        return exception.QueryNotShortened(
            [
                f'the query to Placement {problem} and the limit of the web '
                'server in front of Placement'
            ]
        )
