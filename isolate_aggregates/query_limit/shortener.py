# SPDX-License-Identifier: Apache-2.0
"""Shortens long queries; our host filter does what they leave out.

A query names each forbidden aggregate by uuid, and web servers reject long
queries. If a query is too long, it forbids what excludes the most hosts:
rollup aggregates, then the aggregates with the most hosts. What it leaves out
is checked for the returned hosts, so it decides which hosts Placement returns,
not which ones a request may use.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from oslo_log import log as logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, query_limit
from isolate_aggregates.aggregates import AggregateIndex, Lock
from isolate_aggregates.aggregates.rollups import Rollup, rollups
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.query_limit import OUR_HOST_FILTER, Replacement
from isolate_aggregates.query_limit.required_aggregates import (
    RequiredSubset,
    ways,
)

LOG = logging.getLogger(__name__)


class Shortener:
    """Shortens queries to a limit.

    :param limit: The maximum length of a query in bytes; 0 for no limit.
    :param host_filters: Nova's host filters. Without ours, which excludes the
        hosts that a shortened query does not, long queries are refused.
    :param sizes: Returns the number of hosts by uuid of aggregate, for indexes
        without hosts.
    """

    def __init__(
        self,
        limit: int,
        locks: Callable[[AggregateIndex], Iterable[Lock]],
        host_filters: Collection[str] = (),
        sizes: Callable[[], Mapping[str, int]] | None = None,
    ) -> None:
        self.limit = limit
        self._locks = locks
        self._sizes = sizes
        self._host_filters = frozenset(host_filters)
        self._shortens = OUR_HOST_FILTER in self._host_filters

    def fit(
        self,
        destination: Destination,
        index: AggregateIndex,
        length: int,
        host_forced: bool = False,
    ) -> tuple[Replacement | None, RequiredSubset]:
        """Find a way to write the query within the limit.

        :param length: The length in bytes of the query without aggregates of
            the destination.
        """
        # Our own host filter also checks what is left to Nova's, with newly
        # read aggregates.
        host_filters = (
            self._host_filters
            if self._shortens and not host_forced
            else frozenset[str]()
        )
        first: exception.QueryNotShortened | None = None
        for required in ways(destination, host_filters):
            try:
                replacement = self.shorten(
                    destination, index, length + required.length, host_forced
                )
            except exception.QueryNotShortened as exc:
                first = first or exc
            else:
                return replacement, required
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
        if length > self.limit:
            number = sum(map(len, destination.required_aggregates))
            raise self._too_long(
                length,
                f'for {number:,} required aggregates and the resources',
                f'; {self._advice(destination, host_forced)}raise '
                'max_query_length,',
            )
        forbidden = destination.forbidden_aggregates
        most = query_limit.most_aggregates(self.limit - length)
        if len(forbidden) <= most:
            return None
        if not self._shortens:
            number = len(forbidden)
            raise self._too_long(
                length + query_limit.forbidden_length(number),
                f'to forbid {number:,} aggregates',
                ', and queries are not shortened without '
                f'{OUR_HOST_FILTER} in [filter_scheduler] enabled_filters; '
                'add it, or raise max_query_length',
            )
        sizes = self._hosts_in(index)
        # What is computed without sizes is not remembered for later.
        return index.remember(
            (self, most, destination.forbidden, bool(sizes)),
            lambda: self._replacement(index, forbidden, most, sizes),
        )

    def _replacement(
        self,
        index: AggregateIndex,
        forbidden: frozenset[str],
        most: int,
        sizes: Mapping[str, int],
    ) -> Replacement:
        """Return what excludes the most hosts."""
        replaced: set[str] = set()
        used: list[Rollup] = []
        for rollup in index.remember(
            (self, 'rollups'), lambda: rollups(self._locks(index))
        ):
            if len(used) == most:
                break
            # Otherwise the query would exclude too many hosts, or no more.
            if rollup.aggregates <= forbidden and not (
                rollup.aggregates <= replaced
            ):
                used.append(rollup)
                replaced |= rollup.aggregates
        # Rollups may lack hosts. So what room is left also goes to aggregates
        # that they stand for.
        named = sorted(
            forbidden,
            key=lambda uuid: (uuid in replaced, -sizes.get(uuid, 0), uuid),
        )[: most - len(used)]
        return Replacement(
            frozenset(named).union(rollup.uuid for rollup in used),
            tuple(used),
            forbidden.difference(named),
        )

    def _hosts_in(self, index: AggregateIndex) -> Mapping[str, int]:
        """Return the number of hosts by uuid of aggregate.

        It is read once per index, and need not be known, as it only decides on
        what is better: no failure to read it may refuse a request.
        """
        try:
            return index.remember(
                (self, 'sizes'),
                self._sizes
                or (lambda: {each.uuid: len(each.hosts) for each in index}),
            )
        except Exception as exc:
            LOG.warning(
                'A query to Placement is shortened without the number of '
                'hosts in the aggregates: %s',
                exc,
            )
            return {}

    def _too_long(
        self, length: int, purpose: str, advice: str
    ) -> exception.QueryNotShortened:
        return exception.QueryNotShortened(
            [
                f'the query to Placement would take {length:,} bytes '
                f'{purpose}, more than [{ia_conf.GROUP}] max_query_length = '
                f'{self.limit:,}{advice} and the limit of the web server in '
                'front of Placement'
            ]
        )

    def _advice(self, destination: Destination, host_forced: bool) -> str:
        """Return a hint on too many required aggregates; may be empty."""
        host_filters = set(destination.host_filters.values())
        if not host_filters:
            return ''
        if host_forced:
            return 'they cannot be left to host filters on a forced host; '
        if not self._shortens:
            host_filters.add(OUR_HOST_FILTER)
        missing = sorted(host_filters - self._host_filters)
        if not missing:
            return ''
        return (
            f'add {" and ".join(missing)} to [filter_scheduler] '
            'enabled_filters, or '
        )
