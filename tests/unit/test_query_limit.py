# SPDX-License-Identifier: Apache-2.0
"""Measuring the limit for queries, and failures that are not a limit."""

import json
from urllib import parse

from cases import cases
from http_fakes import HTML, PLACEMENT, client
import pytest
import requests

from isolate_aggregates import exception
from isolate_aggregates.upgrade_check.limit_probe import (
    MOST,
    Limit,
    LimitVerdict,
    measure,
)

NONE = {'allocation_requests': [], 'provider_summaries': {}}
JSON = {'Content-Type': 'application/json'}
# Placement's error if a web server has dropped the query.
NO_RESOURCES = {
    'status_code': 400,
    'json': {
        'errors': [
            {
                'detail': 'The server could not comply with the request since '
                'it is either malformed or otherwise incorrect.\n\n At least '
                'one request group (`resources` or `resources{$S}`) is '
                'required.  '
            }
        ]
    },
    'headers': JSON,
}


class Way:
    """A fake path to Placement that rejects long queries.

    :param limit: The bytes of the longest one.
    :param beyond: What happens to longer ones.
    :param faults: What happens to requests instead, by their number.
    """

    def __init__(self, http, limit, beyond=None, faults=None):
        self.limit = limit
        self.queries = []
        self._beyond = beyond or {'status_code': 414, 'headers': HTML}
        self._faults = faults or {}
        http.get(f'{PLACEMENT}/allocation_candidates', text=self._answer)

    def _answer(self, request, context):
        query = parse.urlsplit(request.url).query
        self.queries.append(query)
        answer = {'json': NONE, 'headers': JSON}
        if len(self.queries) in self._faults:
            answer = self._faults[len(self.queries)]
        elif len(query) > self.limit:
            answer = self._beyond
        if 'cause' in answer:
            raise requests.ConnectionError from answer['cause']
        context.status_code = answer.get('status_code', 200)
        context.headers.update(answer.get('headers', {}))
        return json.dumps(answer.get('json', {}))


CLOSED = {'cause': ConnectionResetError()}


@pytest.mark.parametrize('limit', [200, 65_500])
@cases(
    ('beyond', 'happened'),
    {
        '414': ({'status_code': 414, 'headers': HTML}, 'answered 414'),
        'HAProxy': ({'status_code': 400, 'headers': HTML}, 'answered 400'),
        'a proxy before uWSGI': (
            {'status_code': 502, 'headers': HTML},
            'answered 502',
        ),
        'Apache before uWSGI': (
            {'status_code': 500, 'headers': HTML},
            'answered 500',
        ),
        'uWSGI': (CLOSED, 'closed the connection'),
        'uWSGI drops the query': (NO_RESOURCES, 'did not receive the query'),
    },
)
def test_the_limit_is_found_with_few_requests(http, limit, beyond, happened):
    way = Way(http, limit, beyond)
    measured_limit = measure(client(PLACEMENT))
    assert measured_limit.refused is not None
    assert measured_limit.longest <= limit < measured_limit.refused
    assert measured_limit.refused - measured_limit.longest <= 64
    assert measured_limit.happened == happened
    assert measured_limit.endpoint == PLACEMENT
    assert len(way.queries) <= 20


def test_without_a_limit_four_requests_are_enough(http):
    way = Way(http, MOST)
    assert measure(client(PLACEMENT)) == Limit(PLACEMENT, MOST)
    assert len(way.queries) == 4
    assert {len(query) for query in way.queries[1:]} == {MOST}


def test_queries_for_the_measurement_are_cheap_for_placement(http):
    way = Way(http, 4058)
    measure(client(PLACEMENT))
    # The first shows that any query is answered.
    assert set(parse.parse_qs(way.queries[0])) == {
        *('in_tree', 'limit', 'resources')
    }
    assert min(map(len, way.queries)) == len(way.queries[0])
    for query in way.queries:
        asked = parse.parse_qs(query, strict_parsing=True)
        assert asked['in_tree'] == ['00000000-0000-0000-0000-000000000000']
        assert set(asked) <= {'in_tree', 'limit', 'member_of', 'resources'}
        # Cut off anywhere it would not be answered.
        assert query.endswith('&resources=VCPU%3A1')
    assert {one.headers['Connection'] for one in http.request_history} == {
        'close'
    }


@cases(
    ('fault', 'kind'),
    {
        '401': (
            {'status_code': 401, 'headers': JSON},
            exception.ServiceDenied,
        ),
        '403': (
            {'status_code': 403, 'headers': JSON},
            exception.ServiceDenied,
        ),
        '503': ({'status_code': 503, 'headers': HTML}, exception.ServiceError),
        '500 of Placement itself': (
            {'status_code': 500, 'headers': JSON},
            exception.ServiceFailed,
        ),
        'time-out': (
            {'cause': requests.ReadTimeout()},
            exception.ServiceUnreachable,
        ),
        'nothing listens': (
            {'cause': ConnectionRefusedError()},
            exception.ServiceUnreachable,
        ),
        '400 of Placement itself': (
            {
                'status_code': 400,
                'json': {'errors': [{'detail': 'No such class: VCPU'}]},
                'headers': JSON,
            },
            exception.BadQuery,
        ),
        'another service': (
            {'json': {'versions': []}, 'headers': JSON},
            exception.ServiceError,
        ),
        'candidates that were not asked for': (
            {
                'json': NONE | {'allocation_requests': [{}]},
                'headers': JSON,
            },
            exception.ServiceError,
        ),
    },
)
@pytest.mark.parametrize('number', [1, 5])
def test_a_fault_is_not_reported_as_a_limit(http, number, fault, kind):
    # keystoneauth asks a second time after 401.
    Way(http, 4058, faults={number: fault, number + 1: fault})
    with pytest.raises(kind) as caught:
        measure(client(PLACEMENT))
    assert not isinstance(caught.value, exception.QueryTooLong)


@cases(
    'fault',
    {
        'closed': CLOSED,
        '500': {'status_code': 500, 'headers': HTML},
        '502': {'status_code': 502, 'headers': HTML},
        '400': {'status_code': 400, 'headers': HTML},
    },
)
@pytest.mark.parametrize('number', [1, 2, 9, 14, 18])
def test_a_temporary_failure_is_not_mistaken_for_the_limit(
    http, number, fault
):
    """A failure counts as a limit only if it is repeated."""
    way = Way(http, 4058, faults={number: fault})
    try:
        limit = measure(client(PLACEMENT))
    except exception.ServiceError:
        return
    # It came where a longer query is refused anyway.
    assert len(way.queries[number - 1]) > 4058
    assert limit.longest <= 4058 < (limit.refused or 0)


@pytest.mark.parametrize(
    ('most', 'other', 'servers', 'first'),
    [
        (4058, 1600, 2, 1),
        (4058, 0, 3, 2),
        (MOST, 1600, 3, 3),
        (MOST, 1600, 2, 2),
        (MOST, 0, 2, 1),
    ],
)
def test_web_servers_with_different_limits_are_detected(
    http, other, most, servers, first
):
    """One has a smaller limit, or answers nothing but the short query."""
    way = Way(http, most, {'status_code': 502, 'headers': HTML})

    def take_turns(request, context):
        is_other = way.queries and (len(way.queries) - first) % servers == 0
        way.limit = other if is_other else most
        return way._answer(request, context)

    http.get(f'{PLACEMENT}/allocation_candidates', text=take_turns)
    with pytest.raises(exception.ServiceError) as caught:
        measure(client(PLACEMENT))
    assert str(caught.value) == (
        f'Placement at {PLACEMENT} does not always answer queries of about '
        f'{len(way.queries[-1]):,} bytes in the same way; check that it is '
        'not being restarted, and that all servers behind a load balancer '
        'are up and have the same limit, and run this again.'
    )


GUNICORN = Limit(PLACEMENT, 4040, 4071, 'answered 414')


@pytest.mark.parametrize(
    ('limit', 'value', 'verdict', 'advised'),
    [
        (GUNICORN, 4000, LimitVerdict.FITS, 3900),
        (GUNICORN, 3900, LimitVerdict.FITS, 3900),
        (GUNICORN, 4040, LimitVerdict.FITS, 3900),
        (GUNICORN, 4041, LimitVerdict.TOO_HIGH, 3900),
        (GUNICORN, 0, LimitVerdict.TOO_HIGH, 3900),
        (GUNICORN, 1500, LimitVerdict.LOW, 3900),
        (Limit(PLACEMENT, 1639, 1670, 'x'), 4000, LimitVerdict.TOO_HIGH, 1500),
        (Limit(PLACEMENT, MOST), 4000, LimitVerdict.LOW, 65_400),
        (Limit(PLACEMENT, MOST), 0, LimitVerdict.FITS, 65_400),
        (Limit(PLACEMENT, MOST), 70_000, LimitVerdict.TOO_HIGH, 65_400),
        # Never 0, which would mean no limit.
        (Limit(PLACEMENT, 150, 180, 'x'), 4000, LimitVerdict.TOO_HIGH, 100),
    ],
)
def test_a_value_is_compared_with_the_limit(limit, value, verdict, advised):
    assert limit.verdict(value) is verdict
    assert limit.advised == advised


def test_the_advice_gives_the_result_and_the_repair():
    assert GUNICORN.advice(8000) == (
        'A query of 4,040 bytes reaches Placement, but one of 4,071 does not: '
        'the web server answered 414. [isolate_aggregates] max_query_length = '
        '8000 lets longer ones through, and servers that need them cannot be '
        'scheduled; set it to 3900, or raise the limit of the web server.'
    )
    assert GUNICORN.advice(4000).endswith('max_query_length = 4000 fits.')
    assert Limit(PLACEMENT, MOST).advice(4000) == (
        'A query of 65,535 bytes reaches Placement, and longer ones were not '
        'tried. [isolate_aggregates] max_query_length = 4000 is safe; with '
        '65400, fewer queries must be shortened or refused.'
    )
