# SPDX-License-Identifier: Apache-2.0
"""decide(): from a request to a query that fits."""

from function_filter import FunctionFilter
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.aggregates.rollups import uuid_of
from isolate_aggregates.decision import QUERY_LIMIT, decide
from isolate_aggregates.filters.constraints import (
    Forbid,
    LazyForbid,
    Refuse,
)
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.query_limit import (
    OUR_HOST_FILTER,
    Shortener,
    forbidden_length,
)
from isolate_aggregates.request import Flavor
from isolate_aggregates.testing import PlainRequest

A = Aggregate('00000000-0000-0000-0000-00000000000a', 'a', hosts={'h1'})
B = Aggregate('00000000-0000-0000-0000-00000000000b', 'b', hosts={'h2'})
INDEX = AggregateIndex([A, B])
REQUEST = PlainRequest(Flavor('f', vcpus=1, ram=64, disk=1))
FORBIDDING = Pipeline(
    {'mine': FunctionFilter(lambda *_: [Forbid((A, B), 'because')])}
)
REFUSING = Pipeline({'mine': FunctionFilter(lambda *_: [Refuse('no')])})


# The length of the query without aggregates.
REST = len('resources=DISK_GB%3A1%2CMEMORY_MB%3A64%2CVCPU%3A1')


def limited(limit, *locks):
    return Shortener(limit, lambda index: locks, [OUR_HOST_FILTER])


def fitting(pipeline, shortener):
    """Return a decision with a query that fits."""
    return decide(REQUEST, INDEX, pipeline).fit(shortener, lambda: REST)


def test_a_query_that_fits_forbids_what_the_filters_forbid():
    decision = fitting(FORBIDDING, limited(3500))
    assert decision.replacement is None
    assert decision.forbidden == {A.uuid, B.uuid}


def test_a_query_forbids_the_rollup_of_several_aggregates():
    lock = Lock('t:', 't:1', (A, B))
    shortener = limited(REST + forbidden_length(1), lock)
    decision = fitting(FORBIDDING, shortener)
    assert decision.forbidden == {uuid_of('t:1')}
    decision.check()


def test_without_a_limit_a_query_is_not_shortened():
    decision = fitting(FORBIDDING, limited(0))
    assert decision.forbidden == {A.uuid, B.uuid}
    decision.check()


def test_a_query_that_cannot_be_made_to_fit_is_refused():
    decision = fitting(FORBIDDING, limited(REST - 1))
    assert decision.destination.conclusions[-1].filter_name == QUERY_LIMIT
    with pytest.raises(exception.QueryNotShortened):
        decision.check()


def test_a_query_without_aggregates_is_not_measured():
    """Nobody has made it long here."""
    silent = Pipeline({'mine': FunctionFilter(lambda *_: [])})

    def length():
        raise AssertionError('this need not be known')

    decision = decide(REQUEST, INDEX, silent)
    assert decision.fit(limited(1), length) is decision


def test_the_query_of_a_refused_request_is_not_shortened():
    both = Pipeline(
        {
            'one': FunctionFilter(lambda *_: [Refuse('no')]),
            'two': FunctionFilter(lambda *_: [Forbid((A, B), 'because')]),
        }
    )
    decision = fitting(both, limited(60))
    assert decision.too_long is None
    with pytest.raises(exception.RequestRefused) as caught:
        decision.check()
    assert caught.value.reasons == ('no',)


def test_a_decision_keeps_its_aggregates():
    assert decide(REQUEST, INDEX, REFUSING).aggregates is INDEX


def test_forbidden_aggregates_of_several_filters_are_merged_once():
    uuids = [frozenset({'a', 'b'}), frozenset({'b', 'c'})]
    pipeline = Pipeline(
        {
            'one': FunctionFilter(lambda *_: [LazyForbid(uuids[0], list)]),
            'two': FunctionFilter(lambda *_: [LazyForbid(uuids[1], list)]),
        }
    )
    index = AggregateIndex()
    first, second = (
        decide(PlainRequest(Flavor(name)), index, pipeline).forbidden
        for name in ('f', 'g')
    )
    assert first == {'a', 'b', 'c'}
    assert second is first
