# SPDX-License-Identifier: Apache-2.0
"""Shortens long queries; our host filter does what they leave out.

A query names each forbidden aggregate by uuid, and web servers reject long
queries. If a query is too long, it forbids what excludes the most hosts:
rollup aggregates, then the aggregates with the most hosts. What it leaves out
is checked for the returned hosts, so it decides which hosts Placement returns,
not which ones a request may use.
"""

from collections.abc import Mapping
import logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, query_limit
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.aggregates.rollups import Rollup, rollups
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.query_limit import (
    OUR_HOST_FILTER,
    Replacement,
    Shortener,
)
from isolate_aggregates.query_limit.required_aggregates import (
    RequiredSubset,
    ways,
)

LOG = logging.getLogger(__name__)


def fit(
    shortener: Shortener,
    destination: Destination,
    index: AggregateIndex,
    length: int,
    host_forced: bool = False,
) -> tuple[Replacement | None, RequiredSubset]:
    """Find a way to write the query within the limit.

    :param length: The length in bytes of the query without aggregates of the
        destination.
    """
    first: exception.QueryNotShortened | None = None
    may_omit = shortener.is_checked and not host_forced
    for required in ways(destination, may_omit):
        try:
            replacement = shorten(
                shortener,
                destination,
                index,
                length + required.length,
                host_forced,
            )
        except exception.QueryNotShortened as exc:
            first = first or exc
        else:
            return replacement, required
    assert first is not None
    raise first


def shorten(
    shortener: Shortener,
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
    if not shortener.limit:
        return None
    if length > shortener.limit:
        number = sum(map(len, destination.required_aggregates))
        raise _too_long(
            shortener.limit,
            length,
            f'for {number:,} required aggregates and the resources',
            f'; {_advice(shortener, destination, host_forced)}raise '
            'max_query_length,',
        )
    forbidden = destination.forbidden_aggregates
    most = query_limit.most_aggregates(shortener.limit - length)
    if len(forbidden) <= most:
        return None
    if not shortener.is_checked:
        number = len(forbidden)
        raise _too_long(
            shortener.limit,
            length + query_limit.forbidden_length(number),
            f'to forbid {number:,} aggregates',
            ', and queries are not shortened without '
            f'{OUR_HOST_FILTER} in [filter_scheduler] enabled_filters; '
            'add it, or raise max_query_length',
        )
    sizes = _hosts_in(shortener, index)
    # What is computed without sizes is not remembered for later.
    return index.remember(
        (shortener, most, destination.forbidden, bool(sizes)),
        lambda: _replacement(shortener, index, forbidden, most, sizes),
    )


def _replacement(
    shortener: Shortener,
    index: AggregateIndex,
    forbidden: frozenset[str],
    most: int,
    sizes: Mapping[str, int],
) -> Replacement:
    """Return what excludes the most hosts."""
    replaced: set[str] = set()
    used: list[Rollup] = []
    for rollup in index.remember(
        (shortener, 'rollups'), lambda: rollups(shortener.locks(index))
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


def _hosts_in(
    shortener: Shortener, index: AggregateIndex
) -> Mapping[str, int]:
    """Return the number of hosts by uuid of aggregate.

    It is read once per index, and need not be known, as it only decides on
    what is better: no failure to read it may refuse a request.
    """
    try:
        return index.remember(
            (shortener, 'sizes'),
            shortener.sizes
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
    limit: int, length: int, purpose: str, advice: str
) -> exception.QueryNotShortened:
    return exception.QueryNotShortened(
        [
            f'the query to Placement would take {length:,} bytes '
            f'{purpose}, more than [{ia_conf.GROUP}] max_query_length = '
            f'{limit:,}{advice} and the limit of the web server in '
            'front of Placement'
        ]
    )


def _advice(
    shortener: Shortener, destination: Destination, host_forced: bool
) -> str:
    """Return a hint on too many required aggregates; may be empty."""
    if not destination.required_aggregates:
        return ''
    if host_forced:
        return 'they cannot be left to host filters on a forced host; '
    if shortener.is_checked:
        return ''
    return f'add {OUR_HOST_FILTER} to [filter_scheduler] enabled_filters, or '
