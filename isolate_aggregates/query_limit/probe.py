# SPDX-License-Identifier: Apache-2.0
"""Finds how long a query may be on the real way to Placement.

It asks a question that costs Placement nothing, in different lengths, and
looks which ones arrive. No more than twenty requests are sent.
"""

import dataclasses
import enum
from typing import TYPE_CHECKING, Any
from urllib import parse
import uuid

from isolate_aggregates import exception
from isolate_aggregates.placement import group
from isolate_aggregates.placement import microversion as mv
from isolate_aggregates.placement.client import PlacementClient

if TYPE_CHECKING:
    from keystoneauth1 import adapter

# The longest query that is tried, and how exactly the limit is found.
MOST = 65_535
_EXACTLY = 32

# Room for what may be longer in requests of nova-scheduler, such as the token,
# where a server counts headers too; and what advice is rounded down to.
_MARGIN = 100

# Of no provider and no aggregate. A tree that is not there ends the search for
# candidates before it begins, with an answer of its own.
_NOTHING = str(uuid.UUID(int=0))
_BEGINNING = f'in_tree={_NOTHING}&limit=1'
# Placement cannot do without it. It comes last, so that nothing but the whole
# query is answered.
_END = '&resources=VCPU%3A1'


class Verdict(enum.Enum):
    """What a value of ``max_query_length`` is on the way to Placement."""

    TOO_HIGH = 'too high'
    FITS = 'fits'
    LOW = 'lower than needed'


@dataclasses.dataclass(frozen=True)
class Limit:
    """How long a query may be on the way to Placement.

    :param endpoint: The endpoint of Placement.
    :param longest: The bytes of the longest query that arrived.
    :param refused: The bytes of the shortest one that did not; None if all
        did.
    :param happened: What happened to that one, such as ``answered 414``.
    """

    endpoint: str
    longest: int
    refused: int | None = None
    happened: str = ''

    @property
    def advised(self) -> int:
        """What to set ``max_query_length`` to."""
        # 0 would be no limit.
        return max(100, (self.longest - _MARGIN) // 100 * 100)

    def verdict(self, max_query_length: int) -> Verdict:
        """Compare a value of ``max_query_length`` with the limit."""
        unlimited = not max_query_length
        if self.refused is None and unlimited:
            return Verdict.FITS
        if unlimited or max_query_length > self.longest:
            return Verdict.TOO_HIGH
        if max_query_length < self.advised:
            return Verdict.LOW
        return Verdict.FITS

    def advice(self, max_query_length: int) -> str:
        """Return what was found and what to do, in sentences."""
        found = f'A query of {self.longest:,} bytes reaches Placement'
        if self.refused is None:
            found += ', and longer ones were not tried'
        else:
            found += (
                f', one of {self.refused:,} does not: the web server '
                f'{self.happened}'
            )
        advice = _ADVICE[self.verdict(max_query_length)].format(self.advised)
        return (
            f'{found}. [isolate_aggregates] max_query_length = '
            f'{max_query_length} {advice}'
        )


_ADVICE = {
    Verdict.TOO_HIGH: (
        'lets longer ones through, and servers that need them cannot be '
        'scheduled; set it to {}, or raise the limit of the web server.'
    ),
    Verdict.FITS: 'fits.',
    Verdict.LOW: (
        'is safe; with {} fewer queries have to be shortened or refused.'
    ),
}


def measure(client: 'adapter.Adapter') -> Limit:
    """Find the limit by halving.

    Only a query that Placement answers as a whole counts as one that arrived.
    Only the answers of web servers to long requests count as refusals, and
    only if a short request is answered; anything else ends the search.

    :param client: A keystoneauth adapter for Placement that nothing else uses.
    :raises ServiceError: if Placement gives no usable answer, or answers that
        contradict each other.
    """
    # nova-scheduler sends one too.
    client.global_request_id = f'req-{uuid.uuid4()}'
    # Not the end of a connection that is kept open for the next request.
    client.additional_headers['Connection'] = 'close'
    probe = _Probe(client)
    low, high = probe.shortest, MOST
    probe.ask(low)
    happened = probe.refusal(high)
    if not happened:
        return Limit(probe.endpoint, MOST)
    while high - low > _EXACTLY:
        middle = (low + high) // 2
        if said := probe.refusal(middle):
            high, happened = middle, said
        else:
            low = middle
    # A server that was restarted meanwhile, or one of several that take turns
    # and is down or has another limit, looks like a limit too.
    again = [bool(probe.refusal(length)) for length in (high, high, low, low)]
    if again != [True, True, False, False]:
        raise exception.ServiceError(
            'Placement',
            probe.endpoint,
            f'does not always answer queries of about {low:,} bytes in the '
            'same way; check that it is not being restarted, and that all '
            'servers behind a load balancer are up and have the same limit, '
            'and run this again.',
        )
    return Limit(probe.endpoint, low, high, happened)


class _Probe:
    """Asks Placement for candidates in different lengths."""

    def __init__(self, client: 'adapter.Adapter') -> None:
        self.shortest = len(_BEGINNING) + len(_END)
        self._placement = PlacementClient(
            client, retries=0, long_query=len(_path(self.shortest))
        )

    @property
    def endpoint(self) -> str:
        """The endpoint of Placement."""
        return self._placement.endpoint

    def ask(self, length: int) -> None:
        """Ask with a query of so many bytes.

        :raises QueryTooLong: if a web server refuses it.
        :raises ServiceError: if Placement gives no usable answer.
        """
        self._placement.read(_path(length), _check, mv.FORBIDDEN_AGGREGATES)

    def refusal(self, length: int) -> str:
        """Return what happens to a query for its length; empty if it arrives.

        :raises ServiceError: if something else happens to it.
        """
        try:
            self.ask(length)
        except exception.QueryTooLong as exc:
            return exc.happened
        return ''


def _path(length: int) -> str:
    return f'/allocation_candidates?{_query(length)}'


def _query(length: int) -> str:
    """Return a query of so many bytes, in the form that Nova's have."""
    room = length - len(_BEGINNING) - len(_END)
    forbidden = ''
    if number := group.most_aggregates(room):
        uuids = ','.join([_NOTHING] * number)
        forbidden = f'&{parse.urlencode({"member_of": f"!in:{uuids}"})}'
    # Digits of the limit, which is as good as any other.
    digits = '0' * (room - len(forbidden))
    return f'{_BEGINNING}{digits}{forbidden}{_END}'


def _check(document: Any) -> None:
    """Check that an answer is the one to the whole question."""
    if document['allocation_requests'] or document['provider_summaries']:
        raise ValueError('candidates in a tree that does not exist')
