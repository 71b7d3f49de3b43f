# SPDX-License-Identifier: Apache-2.0
"""Measures the longest query that reaches Placement.

It sends queries of different lengths that are cheap for Placement, and checks
which of them arrive.
"""

import dataclasses
import enum
from typing import TYPE_CHECKING, Any
from urllib import parse
import uuid

from isolate_aggregates import exception, query_limit
from isolate_aggregates.placement import FORBIDDEN_AGGREGATES, PlacementReader

if TYPE_CHECKING:
    from keystoneauth1 import adapter

    from isolate_aggregates.rest.errors import Options

# The longest query to try, and the precision of the result.
MOST = 65_535
_EXACTLY = 32
# The number of servers behind a load balancer that are all checked, if they
# take turns.
_SERVERS = 3

# The margin for longer headers in requests of nova-scheduler, for example the
# token, as some servers limit the size with headers. The recommended value is
# also rounded down to this.
_MARGIN = 100

# The uuid of no provider and no aggregate. If in_tree does not exist,
# Placement returns an empty result without searching.
_NOTHING = str(uuid.UUID(int=0))
_BEGINNING = f'in_tree={_NOTHING}&limit=1'
# A required parameter. It comes last, so that a truncated query is an error.
_END = '&resources=VCPU%3A1'


class LimitVerdict(enum.Enum):
    """How a value of ``max_query_length`` compares with the limit."""

    TOO_HIGH = 'too high'
    FITS = 'fits'
    LOW = 'lower than needed'


@dataclasses.dataclass(frozen=True)
class Limit:
    """The measured limit for queries to Placement.

    :param longest: The length in bytes of the longest query that arrived.
    :param refused: The length in bytes of the shortest query that did not
        arrive; None if all arrived.
    :param happened: The failure of that query, for example ``answered 414``.
    """

    endpoint: str
    longest: int
    refused: int | None = None
    happened: str = ''

    @property
    def advised(self) -> int:
        """The recommended value of ``max_query_length``."""
        # Never 0, which would mean no limit.
        return max(100, (self.longest - _MARGIN) // 100 * 100)

    def verdict(self, max_query_length: int) -> LimitVerdict:
        """Compare a value of ``max_query_length`` with the limit."""
        is_unlimited = not max_query_length
        if self.refused is None and is_unlimited:
            return LimitVerdict.FITS
        if is_unlimited or max_query_length > self.longest:
            return LimitVerdict.TOO_HIGH
        if max_query_length < self.advised:
            return LimitVerdict.LOW
        return LimitVerdict.FITS

    def advice(self, max_query_length: int) -> str:
        """Return the result and a recommendation, as text."""
        result = f'A query of {self.longest:,} bytes reaches Placement'
        if self.refused is None:
            result += ', and longer ones were not tried'
        else:
            result += (
                f', but one of {self.refused:,} does not: the web server '
                f'{self.happened}'
            )
        advice = _ADVICE[self.verdict(max_query_length)].format(self.advised)
        return (
            f'{result}. [isolate_aggregates] max_query_length = '
            f'{max_query_length} {advice}'
        )


_ADVICE = {
    LimitVerdict.TOO_HIGH: (
        'lets longer ones through, and servers that need them cannot be '
        'scheduled; set it to {}, or raise the limit of the web server.'
    ),
    LimitVerdict.FITS: 'fits.',
    LimitVerdict.LOW: (
        'is safe; with {}, fewer queries must be shortened or refused.'
    ),
}


def measure(
    client: 'adapter.Adapter', options: 'Options | None' = None
) -> Limit:
    """Find the limit by binary search.

    A query has arrived only if Placement answers the complete query. A query
    is too long only if the failure is one that web servers return for long
    requests, and a short query succeeds. Any other failure is an error.
    """
    # For headers as long as those of nova-scheduler.
    client.global_request_id = f'req-{uuid.uuid4()}'
    # Or a kept-alive connection that the server closes would look like a
    # failure of the next request.
    client.additional_headers['Connection'] = 'close'
    probe = _Probe(client, options)
    low, high = probe.shortest, MOST
    probe.ask(low)
    failed_with = probe.refusal(high)
    if not failed_with:
        probe.check_again(high, is_refused=False, times=_SERVERS - 1)
        return Limit(probe.endpoint, MOST)
    while high - low > _EXACTLY:
        middle = (low + high) // 2
        if failure := probe.refusal(middle):
            high, failed_with = middle, failure
        else:
            low = middle
    probe.check_again(high, is_refused=True)
    probe.check_again(low, is_refused=False)
    return Limit(probe.endpoint, low, high, failed_with)


class _Client(PlacementReader):
    def expect_refusals_above(self, length: int) -> None:
        """Take failures of longer paths for refusals due to the length.

        If uWSGI rejects a request, Apache in front of it answers 500, as it
        does for other failures. Only who has seen a shorter query answered can
        distinguish these.
        """
        self._service.long_query = length
        self._service.too_long_statuses += (500,)


class _Probe:
    """Sends queries of different lengths to Placement."""

    def __init__(
        self, client: 'adapter.Adapter', options: 'Options | None'
    ) -> None:
        self.shortest = len(_BEGINNING) + len(_END)
        self._placement = _Client(client, retries=0, options=options)
        self._placement.expect_refusals_above(len(_path(self.shortest)))

    @property
    def endpoint(self) -> str:
        """The endpoint of Placement."""
        return self._placement.endpoint

    def ask(self, length: int) -> None:
        """Send a query of a given length in bytes.

        :raises QueryTooLong: if a web server refuses it.
        """
        self._placement.read(_path(length), _check, FORBIDDEN_AGGREGATES)

    def refusal(self, length: int) -> str:
        """Return how a query of a length is refused; empty if it arrives."""
        try:
            self.ask(length)
        except exception.QueryTooLong as exc:
            return exc.happened
        return ''

    def check_again(
        self, length: int, is_refused: bool, times: int = _SERVERS
    ) -> None:
        """Check that a result is reproducible.

        A restarted server, or one of several behind a load balancer that is
        down or has another limit, would lead to a wrong result.
        """
        for _ in range(times):
            if bool(self.refusal(length)) is not is_refused:
                raise exception.ServiceError(
                    'Placement',
                    self.endpoint,
                    f'does not always answer queries of about {length:,} '
                    'bytes in the same way; check that it is not being '
                    'restarted, and that all servers behind a load balancer '
                    'are up and have the same limit, and run this again.',
                )


def _path(length: int) -> str:
    return f'/allocation_candidates?{_query(length)}'


def _query(length: int) -> str:
    """Return a query of a given length in bytes, similar to Nova's."""
    room = length - len(_BEGINNING) - len(_END)
    forbidden = ''
    if number := query_limit.most_aggregates(room):
        uuids = ','.join([_NOTHING] * number)
        forbidden = f'&{parse.urlencode({"member_of": f"!in:{uuids}"})}'
    # Pad with leading zeros of the parameter "limit".
    digits = '0' * (room - len(forbidden))
    return f'{_BEGINNING}{digits}{forbidden}{_END}'


def _check(document: Any) -> None:
    """Check that a response is the one to the complete query."""
    if document['allocation_requests'] or document['provider_summaries']:
        raise ValueError('candidates in a tree that does not exist')
