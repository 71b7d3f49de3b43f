# SPDX-License-Identifier: Apache-2.0
"""Shorter ways to require aggregates admit no additional hosts.

Every host is looked at: one in each set of the aggregates.
"""

import itertools

from cases import cases
from function_filter import FunctionFilter
from hypothesis import event, given
from hypothesis import strategies as st
import pytest
from thorough import examples

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import QUERY_LIMIT, decide
from isolate_aggregates.filters.constraints import Destination, Forbid, Require
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.query_limit import (
    OUR_HOST_FILTER,
    Shortener,
    forbidden_length,
    required_length,
)
from isolate_aggregates.query_limit.required_aggregates import (
    needed,
    ways,
)
from isolate_aggregates.request import Flavor
from isolate_aggregates.testing import PlainRequest

NAMES = 'abcde'
HOSTS = [
    frozenset(some)
    for number in range(len(NAMES) + 1)
    for some in itertools.combinations(NAMES, number)
]
A, B, C, D = (
    Aggregate(f'00000000-0000-0000-0000-00000000000{name}', name)
    for name in 'abcd'
)
REQUEST = PlainRequest(Flavor('f', vcpus=1, ram=64, disk=1))
REST = len('resources=DISK_GB%3A1%2CMEMORY_MB%3A64%2CVCPU%3A1')

choices = st.sets(st.sampled_from(NAMES), min_size=1).map(frozenset)


def admits(host, required, forbidden):
    return host.isdisjoint(forbidden) and all(host & one for one in required)


@examples(100)
@given(st.lists(choices, max_size=4), st.sets(st.sampled_from(NAMES)))
def test_no_way_admits_other_hosts(required, forbidden):
    destination = Destination()
    for choice in required:
        destination.require_aggregates(choice)
    destination.forbid_aggregates(forbidden)
    results = list(ways(destination, may_omit=True))
    event(f'ways: {len(results)}')
    for way in results:
        for host in HOSTS:
            # Requirements that are left out are checked by our host filter.
            passes = admits(host, (*way.choices, *way.left_out), forbidden)
            assert passes == admits(
                host, destination.required_aggregates, forbidden
            )
    # In the end nothing is sent, or what admits no host.
    assert all(choice <= forbidden for choice in results[-1].choices)
    # Nothing is left where nothing looks.
    assert not any(way.left_out for way in ways(destination))


@given(st.lists(choices, max_size=5))
def test_needed_requirements_do_not_imply_each_other(some):
    found = needed(some)
    for one, other in itertools.permutations(found, 2):
        assert not one <= other
    for host in HOSTS:
        assert admits(host, found, ()) == admits(host, some, ())


def fitting(limit, *constraints, is_checked=True, forced=False):
    shortener = Shortener(
        limit,
        lambda index: (),
        [OUR_HOST_FILTER] if is_checked else ['TheirFilter'],
    )
    decision = decide(
        REQUEST,
        AggregateIndex([A, B, C, D]),
        Pipeline({'mine': FunctionFilter(lambda *_: constraints)}),
    )
    return decision.fit(shortener, lambda: REST, forced)


def left(decision):
    """Return the constraints that are left to our host filter."""
    return [one.constraint for one in decision.left_to_host_filters]


MANY = Require((A, B, C), 'many')
FEW = Require((A, D), 'few')
BOTH = REST + required_length(3) + required_length(2)


def sent(decision):
    """Return the required aggregates of the query."""
    return [set(choice) for choice in decision.required]


def test_requirements_that_fit_are_kept():
    decision = fitting(BOTH, MANY, FEW)
    assert sent(decision) == [{A.uuid, B.uuid, C.uuid}, {A.uuid, D.uuid}]
    assert (decision.left_to_host_filters, decision.needs_host_check) == (
        (),
        False,
    )


@pytest.mark.parametrize('limit', [0, BOTH])
def test_requirements_that_fit_are_sent_as_nova_sends_them(limit):
    decision = fitting(limit, MANY, Require((A, B), 'x'), Require((B, A), 'y'))
    assert sent(decision) == [{A.uuid, B.uuid, C.uuid}, {A.uuid, B.uuid}]


def test_implied_requirements_are_omitted_if_space_is_short():
    decision = fitting(BOTH - 1, MANY, Require((A, B), 'x'))
    assert sent(decision) == [{A.uuid, B.uuid}]
    assert (decision.left_to_host_filters, decision.needs_host_check) == (
        (),
        False,
    )


def test_the_longest_is_left_to_the_host_filter():
    decision = fitting(BOTH - 1, FEW, MANY)
    assert sent(decision) == [{A.uuid, D.uuid}]
    assert left(decision) == [MANY]
    assert decision.needs_host_check
    decision = fitting(REST, FEW, MANY)
    assert sent(decision) == []
    assert left(decision) == [
        FEW,
        MANY,
    ]


def test_forbidden_aggregates_are_omitted_from_requirements():
    """It needs no host filter: no host is in it."""
    limit = BOTH - 2 * 39 + forbidden_length(1)
    decision = fitting(limit, MANY, FEW, Forbid((A,), 'x'))
    assert sent(decision) == [{B.uuid, C.uuid}, {D.uuid}]
    assert not decision.needs_host_check
    assert decision.forbidden == {A.uuid}
    # Where there is room, and where nothing would be left.
    roomy = fitting(limit + 2 * 39, MANY, FEW, Forbid((A,), 'x'))
    assert len(sent(roomy)[0]) == 3
    only = Require((A,), 'x')
    assert sent(fitting(0, only, Forbid((A,), 'y'))) == [{A.uuid}]


LIMIT = f'{REST:,}'


@pytest.mark.parametrize(
    ('settings', 'advice'),
    [
        (
            {'is_checked': False},
            f'add {OUR_HOST_FILTER} to [filter_scheduler] enabled_filters, or '
            'raise max_query_length,',
        ),
        (
            {'forced': True},
            'they cannot be left to host filters on a forced host; raise '
            'max_query_length,',
        ),
    ],
    ids=['not checked', 'forced'],
)
def test_without_a_host_filter_a_long_query_is_refused(settings, advice):
    decision = fitting(REST, MANY, **settings)
    [reason] = decision.too_long.reasons
    length = REST + required_length(3)
    assert reason == (
        f'the query to Placement would take {length} bytes for 3 required '
        'aggregates and the resources, more than [isolate_aggregates] '
        f'max_query_length = {LIMIT}; {advice} and the limit of the web '
        'server in front of Placement'
    )
    assert decision.destination.conclusions[-1].filter_name == QUERY_LIMIT


def test_a_host_filter_is_advised_only_if_it_would_help():
    decision = fitting(REST - 1, MANY, FEW)
    [reason] = decision.too_long.reasons
    assert 'enabled_filters' not in reason
    # The message has the length of the complete query.
    assert f'{BOTH} bytes for 5 required' in reason
    with pytest.raises(exception.QueryNotShortened):
        decision.check()


def test_requirements_are_left_out_to_fit_forbidden_aggregates():
    decision = fitting(REST + forbidden_length(1), FEW, Forbid((B,), 'x'))
    assert decision.forbidden == {B.uuid}
    assert left(decision) == [FEW]
    assert decision.required == ()


@cases(
    ('first', 'other', 'forbidden', 'left'),
    {
        'the other implies it': ('ab', 'a', '', []),
        'the others are equal': ('abc', 'ab', 'c', []),
        'the other is different': ('cd', 'a', '', ['cd']),
    },
)
def test_the_host_filter_need_not_check_what_the_query_does(
    first, other, forbidden, left
):
    destination = Destination()
    for choice in (first, other):
        destination.require_aggregates(frozenset(choice))
    destination.forbid_aggregates(forbidden)
    subset = next(
        way
        for way in ways(destination, may_omit=True)
        if way.choices == (frozenset(other),)
    )
    assert subset.left_out == tuple(map(frozenset, left))
