# SPDX-License-Identifier: Apache-2.0
"""The query to Placement of a decision."""

from urllib import parse

from function_filter import FunctionFilter
from hypothesis import given
from hypothesis import strategies as st
import pytest

from isolate_aggregates import exception, query_limit
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.aggregates.rollups import uuid_of
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.constraints import (
    Forbid,
    Refuse,
    Require,
)
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.query_limit import (
    OUR_HOST_FILTER,
    Shortener,
    forbidden_length,
)
from isolate_aggregates.query_limit.required_aggregates import (
    RequiredSubset,
)
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.placement import group
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.request import Request, asking

A = Aggregate('00000000-0000-0000-0000-00000000000a', 'a', hosts={'h1'})
B = Aggregate('00000000-0000-0000-0000-00000000000b', 'b', hosts={'h2'})
INDEX = AggregateIndex([A, B])
REQUEST = Request(Flavor('f', vcpus=1, ram=64, disk=1))
FORBIDDING = Pipeline(
    {'mine': FunctionFilter(lambda *_: [Forbid((A, B), 'because')])}
)
REFUSING = Pipeline({'mine': FunctionFilter(lambda *_: [Refuse('no')])})


# The length of the query without aggregates.
REST = len('resources=DISK_GB%3A1%2CMEMORY_MB%3A64%2CVCPU%3A1')


def limited(limit, *locks):
    return Shortener(limit, lambda index: locks, [OUR_HOST_FILTER])


def fitting(pipeline, shortener, limit=None):
    """Return a decision with a query that fits."""
    return asking.fitted(
        decide(REQUEST, INDEX, pipeline), REQUEST, shortener, limit
    )


def test_a_query_has_required_aggregates_and_resources():
    pipeline = Pipeline(
        {'mine': FunctionFilter(lambda *_: [Require((A,), 'because')])}
    )
    query = asking.first(decide(REQUEST, INDEX, pipeline), REQUEST, 7)
    assert query.limit == 7
    assert query.group().aggregates == [frozenset({A.uuid})]
    assert query.group().resources == {
        'VCPU': 1, 'MEMORY_MB': 64, 'DISK_GB': 1
    }  # fmt: skip


@pytest.mark.parametrize('limit', [None, 1000])
def test_all_parameters_of_the_query_count(limit):
    length = REST + forbidden_length(2) + len('&limit=1000') * bool(limit)
    decision = fitting(FORBIDDING, limited(length), limit)
    assert decision.too_long is None
    query = asking.first(decision, REQUEST, limit)
    assert len(query.to_querystring()) == length
    shorter = fitting(FORBIDDING, limited(length - 1), limit)
    assert len(shorter.replacement.forbidden) == 1


def test_a_query_forbids_what_the_decision_forbids():
    query = asking.first(decide(REQUEST, INDEX, FORBIDDING), REQUEST, 10)
    assert query.group().forbidden_aggregates == {A.uuid, B.uuid}


def test_a_query_forbids_the_rollup_of_the_decision():
    lock = Lock('t:', 't:1', (A, B))
    shortener = limited(REST + forbidden_length(1), lock)
    query = asking.first(fitting(FORBIDDING, shortener), REQUEST)
    assert query.group().forbidden_aggregates == {uuid_of('t:1')}


@pytest.mark.parametrize('limit', [REST - 1, REST])
def test_there_is_no_query_of_a_refused_request(limit):
    refused = fitting(FORBIDDING, limited(limit - 1))
    with pytest.raises(exception.QueryNotShortened):
        asking.first(refused, REQUEST)
    with pytest.raises(exception.RequestRefused):
        asking.first(decide(REQUEST, INDEX, REFUSING), REQUEST)


NAMES = 'abcde'
choices = st.sets(st.sampled_from(NAMES), min_size=1).map(frozenset)


@given(st.lists(choices, max_size=4))
def test_the_length_is_that_in_the_query(some):
    uuids = {name: f'{name * 8}-0000-0000-0000-000000000000' for name in NAMES}
    required = RequiredSubset(
        tuple(frozenset(map(uuids.get, choice)) for choice in some)
    )
    request = ResourceRequest()
    request.group().resources['VCPU'] = 1
    plain = len(request.to_querystring())
    request.group().aggregates.extend(required.choices)
    assert len(request.to_querystring()) == plain + required.length


def uuid(number):
    return f'{number:08d}-0000-4000-8000-000000000000'


@given(st.sets(st.integers(0, 99).map(uuid)))
def test_lengths_are_those_of_the_encoded_query(forbidden):
    request = group.RequestGroup(forbidden_aggregates=forbidden)
    params = [p for p in request.to_queryparams() if p[0] == 'member_of']
    # With the & before the parameter.
    length = len(parse.urlencode(params)) + bool(params)
    assert query_limit.forbidden_length(len(forbidden)) == length
