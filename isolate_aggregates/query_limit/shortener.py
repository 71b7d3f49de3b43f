# SPDX-License-Identifier: Apache-2.0
"""Finds a shorter way to forbid the same hosts, when the long one is too long.

The aggregate part of a query names each forbidden aggregate with its uuid, and
web servers refuse long queries. So a query that would be too long forbids
rollup aggregates instead, then leaves out aggregates that add no hosts, and
is refused if that does not suffice. It is never cut off.
"""

from collections.abc import Callable, Iterable, Sequence
import dataclasses
import math
import threading
import time

from oslo_log import log as logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex, Lock
from isolate_aggregates.aggregates.rollups import Rollup, rollups
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.placement import group
from isolate_aggregates.query_limit import cover
from isolate_aggregates.query_limit.members import SOON, TTL, Members

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Shortened:
    """What a query forbids in place of all that is forbidden.

    :param forbidden: Uuids of the Placement aggregates to forbid.
    :param rollups: Those among them that are rollups.
    :param replaced: How many aggregates the rollups stand for.
    :param left_out: How many were left out because they add no hosts.
    """

    forbidden: frozenset[str]
    rollups: tuple[Rollup, ...] = ()
    replaced: int = 0
    left_out: int = 0


class Shortener:
    """Makes the aggregate part of queries fit.

    :param limit: The most bytes it may have; 0 for no limit.
    :param locks: Returns the locks of some aggregates.
    :param members: Knows who is a member of what.
    :param clock: Tells the time in seconds.
    """

    def __init__(
        self,
        limit: int,
        locks: Callable[[AggregateIndex], Iterable[Lock]],
        members: Members,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = limit
        self._locks = locks
        self._members = members
        self._clock = clock

    def shorten(
        self,
        destination: Destination,
        index: AggregateIndex,
        beside: group.RequestGroup | None = None,
    ) -> Shortened | None:
        """Return what to forbid in place of what a destination forbids.

        :param beside: What else the query says of aggregates.
        :returns: None if the query is short enough as it is.
        :raises QueryNotShortened: if the query can not be made to fit.
        """
        if not self._limit:
            return None
        required = [*destination.required_aggregates]
        others = 0
        if beside:
            required += beside.aggregates
            others = len(beside.forbidden_aggregates)
        room = self._limit - group.required_length(required)
        # Those in several sets count several times, so that the sets need
        # not be merged; a query that seems too long is looked at closely.
        number = others + sum(map(len, destination.forbidden))
        if group.forbidden_length(number) <= room:
            return None
        most = group.most_aggregates(room) - others
        known = index.remember(
            (self, destination.forbidden, most), _Remembered
        )
        self._refresh(known, destination, index, most)
        if known.value is None:
            number = others + len(destination.forbidden_aggregates)
            raise exception.QueryNotShortened(
                [self._too_long(number, required)]
            )
        return known.value

    def _refresh(
        self,
        known: '_Remembered',
        destination: Destination,
        index: AggregateIndex,
        most: int,
    ) -> None:
        """Work it out again, if that was long ago.

        One thread does; the others go on with what there is, unless that is
        too old even for them.
        """
        late = self._clock() - known.until
        if late >= 0 and known.lock.acquire(blocking=late >= TTL):
            try:
                if known.until <= self._clock():
                    known.value, lasts = self._work_out(
                        destination, index, most
                    )
                    known.until = self._clock() + lasts
            finally:
                known.lock.release()

    def _work_out(
        self, destination: Destination, index: AggregateIndex, most: int
    ) -> tuple[Shortened | None, float]:
        """Return what fits, if anything does, and for how many seconds."""
        forbidden = destination.forbidden_aggregates
        if len(forbidden) <= most:
            return Shortened(forbidden), math.inf
        known = index.remember(
            (self, 'rollups'), lambda: rollups(self._locks(index))
        )
        chosen, left = cover.with_rollups(forbidden, known, self._covered)
        replaced = forbidden - left
        kept = self._without_spare(left, replaced, most - len(chosen))
        if len(chosen) + len(kept) > most:
            return None, SOON
        shortened = Shortened(
            kept.union(rollup.uuid for rollup in chosen),
            chosen,
            len(replaced),
            len(left) - len(kept),
        )
        return shortened, TTL if kept == left else SOON

    def _covered(self, rollup: Rollup) -> frozenset[str]:
        try:
            return self._members.covered(rollup)
        except exception.IsolateAggregatesError as exc:
            LOG.warning(
                'Rollup aggregate %(name)s can not be used: %(cause)s',
                {'name': rollup.name, 'cause': exc},
            )
            return frozenset()

    def _without_spare(
        self, left: frozenset[str], replaced: frozenset[str], most: int
    ) -> frozenset[str]:
        """Leave out aggregates that add no hosts, if there are too many."""
        if len(left) <= most:
            return left
        try:
            hosts = self._members.hosts()
        except exception.IsolateAggregatesError as exc:
            LOG.warning('The hosts of the aggregates can not be read: %s', exc)
            return left
        kept = cover.without_empty(left, hosts)
        if len(kept) > most:
            kept = cover.fewest(kept, hosts, replaced)
        return kept

    def _too_long(
        self, number: int, required: Sequence[frozenset[str]]
    ) -> str:
        limit = f'[{ia_conf.GROUP}] max_query_length = {self._limit:,}'
        length = group.required_length(required)
        if length > self._limit:
            return (
                f'the query to Placement would take {length:,} bytes for '
                f'{sum(map(len, required)):,} required aggregates, more than '
                f'{limit}; raise that, and the limit of the web server before '
                'Placement'
            )
        length += group.forbidden_length(number)
        return (
            f'the query to Placement would take {length:,} bytes to forbid '
            f'{number:,} aggregates, more than {limit}, and the rollup '
            'aggregates that there are do not make it fit; run '
            '"isolate-aggregates sync --apply", or raise that and the limit '
            'of the web server before Placement'
        )


class _Remembered:
    """What one set of aggregates is shortened to, and until when."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.until = -math.inf
        # None if it does not fit.
        self.value: Shortened | None = None
