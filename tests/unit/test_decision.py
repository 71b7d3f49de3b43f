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
    Require,
)
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.query_limit import (
    OUR_HOST_FILTER,
    Shortener,
    forbidden_length,
)
from isolate_aggregates.request import Flavor
from isolate_aggregates.tools.request import Request, asking

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


def test_a_query_that_fits_forbids_what_the_filters_forbid():
    decision = fitting(FORBIDDING, limited(3500))
    assert decision.replacement is None
    assert decision.forbidden == {A.uuid, B.uuid}
    group = asking.first(decision, REQUEST, 10).group()
    assert group.forbidden_aggregates == {A.uuid, B.uuid}


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


def test_a_query_forbids_the_rollup_of_several_aggregates():
    lock = Lock('t:', 't:1', (A, B))
    shortener = limited(REST + forbidden_length(1), lock)
    decision = fitting(FORBIDDING, shortener)
    assert decision.forbidden == {uuid_of('t:1')}
    group = asking.first(decision, REQUEST).group()
    assert group.forbidden_aggregates == {uuid_of('t:1')}
    decision.check()


def test_without_a_limit_a_query_is_not_shortened():
    decision = fitting(FORBIDDING, limited(0))
    assert decision.forbidden == {A.uuid, B.uuid}
    decision.check()


def test_a_query_that_cannot_be_made_to_fit_is_refused():
    decision = fitting(FORBIDDING, limited(REST - 1))
    assert decision.destination.conclusions[-1].filter_name == QUERY_LIMIT
    for ask in (decision.check, lambda: asking.first(decision, REQUEST)):
        with pytest.raises(exception.QueryNotShortened):
            ask()


@pytest.mark.parametrize('limit', [None, 1000])
def test_all_parameters_of_the_query_count(limit):
    length = REST + forbidden_length(2) + len('&limit=1000') * bool(limit)
    decision = fitting(FORBIDDING, limited(length), limit)
    assert decision.too_long is None
    query = asking.first(decision, REQUEST, limit)
    assert len(query.to_querystring()) == length
    shorter = fitting(FORBIDDING, limited(length - 1), limit)
    assert len(shorter.replacement.forbidden) == 1


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
    for ask in (decision.check, lambda: asking.first(decision, REQUEST)):
        with pytest.raises(exception.RequestRefused) as caught:
            ask()
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
        decide(Request(Flavor(name)), index, pipeline).forbidden
        for name in ('f', 'g')
    )
    assert first == {'a', 'b', 'c'}
    assert second is first
