# SPDX-License-Identifier: Apache-2.0
"""Shorter ways to require aggregates admit no additional hosts.

Every host is looked at: one in each set of the aggregates.
"""

import itertools

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
    RequiredSubset,
    needed,
    ways,
)
from isolate_aggregates.request import Flavor
from isolate_aggregates.tools.placement.group import ResourceRequest
from isolate_aggregates.tools.request import Request, asking

NAMES = 'abcde'
THEIRS = 'TheirFilter'
HOSTS = [
    frozenset(some)
    for number in range(len(NAMES) + 1)
    for some in itertools.combinations(NAMES, number)
]
A, B, C, D = (
    Aggregate(f'00000000-0000-0000-0000-00000000000{name}', name)
    for name in 'abcd'
)
REQUEST = Request(Flavor('f', vcpus=1, ram=64, disk=1))
REST = len('resources=DISK_GB%3A1%2CMEMORY_MB%3A64%2CVCPU%3A1')

choices = st.sets(st.sampled_from(NAMES), min_size=1).map(frozenset)


def admits(host, required, forbidden):
    return host.isdisjoint(forbidden) and all(host & one for one in required)


@examples(100)
@given(
    st.lists(st.tuples(choices, st.sampled_from(['', THEIRS])), max_size=4),
    st.sets(st.sampled_from(NAMES)),
)
def test_no_way_admits_other_hosts(constraints, forbidden):
    destination = Destination()
    for choice, host_filter in constraints:
        destination.require_aggregates(choice, host_filter)
    destination.forbid_aggregates(forbidden)
    results = list(ways(destination, [THEIRS]))
    event(f'ways: {len(results)}')
    for way in results:
        for host in HOSTS:
            # Requirements that are left out are checked by a host filter.
            passes = admits(host, (*way.choices, *way.left_out), forbidden)
            assert passes == admits(
                host, destination.required_aggregates, forbidden
            )
    # In the end nothing is sent that need not be, or what admits no host.
    only = [c for c, name in constraints if not name]
    assert all(
        way <= forbidden or any(way <= c for c in only)
        for way in results[-1].choices
    )
    assert not any(c in only for c in results[-1].left_out)
    # Nothing is left where nothing looks.
    assert not any(way.left_out for way in ways(destination, ['OtherFilter']))


@given(st.lists(choices, max_size=5))
def test_needed_requirements_do_not_imply_each_other(some):
    found = needed(some)
    for one, other in itertools.permutations(found, 2):
        assert not one <= other
    for host in HOSTS:
        assert admits(host, found, ()) == admits(host, some, ())


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


def fitting(limit, *constraints, enabled=(), members=True, forced=False):
    shortener = Shortener(
        limit,
        lambda index: (),
        [*enabled, *([OUR_HOST_FILTER] if members else [])],
    )
    decision = decide(
        REQUEST,
        AggregateIndex([A, B, C, D]),
        Pipeline({'mine': FunctionFilter(lambda *_: constraints)}),
    )
    request = REQUEST if not forced else Request(
        REQUEST.flavor, host_forced=True
    )  # fmt: skip
    return asking.fitted(decision, request, shortener, None)


def left(decision):
    """Return the constraints that are left to host filters."""
    return [one.constraint for one in decision.left_to_host_filters]


MANY = Require((A, B, C), 'many', THEIRS)
FEW = Require((A, D), 'few', THEIRS)
BOTH = REST + required_length(3) + required_length(2)


def sent(decision):
    """Return the required aggregates of the query."""
    return [
        set(choice)
        for choice in asking.first(decision, REQUEST).group().aggregates
    ]


def test_requirements_that_fit_are_kept():
    decision = fitting(BOTH, MANY, FEW, enabled=[THEIRS])
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
    decision = fitting(BOTH - 1, FEW, MANY, enabled=[THEIRS])
    assert sent(decision) == [{A.uuid, D.uuid}]
    assert left(decision) == [MANY]
    assert decision.needs_host_check
    decision = fitting(REST, FEW, MANY, enabled=[THEIRS])
    assert sent(decision) == []
    assert left(decision) == [
        FEW,
        MANY,
    ]


def test_a_wider_requirement_is_sent_if_the_narrower_is_left_out():
    """If the narrower requirement is left out, the wider one is sent again."""
    wide = Require((A, B), 'nothing else looks at it')
    narrow = Require((A,), 'x', THEIRS)
    other = Require((C, D), 'y', THEIRS)
    limit = REST + required_length(1)
    decision = fitting(limit, wide, narrow, other, enabled=[THEIRS])
    assert sent(decision) == [{A.uuid}]
    assert left(decision) == [other]
    decision = fitting(limit - 1, wide, narrow, other, enabled=[THEIRS])
    assert decision.too_long


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


def test_a_requirement_shared_with_another_filter_is_not_left_out():
    again = Require(MANY.aggregates, 'and for another reason')
    for some in ([MANY, again], [again, MANY]):
        decision = fitting(REST, *some, enabled=[THEIRS])
        assert decision.too_long


LIMIT = f'{REST:,}'


@pytest.mark.parametrize(
    ('settings', 'advice'),
    [
        (
            {},
            f'add {THEIRS} to [filter_scheduler] enabled_filters, or raise '
            'max_query_length,',
        ),
        (
            {'members': False},
            f'add {OUR_HOST_FILTER} and {THEIRS} to [filter_scheduler] '
            'enabled_filters, or raise max_query_length,',
        ),
        (
            {'members': False, 'enabled': [THEIRS]},
            f'add {OUR_HOST_FILTER} to [filter_scheduler] enabled_filters, or '
            'raise max_query_length,',
        ),
        (
            {'forced': True, 'enabled': [THEIRS]},
            'they cannot be left to host filters on a forced host; raise '
            'max_query_length,',
        ),
    ],
    ids=['neither', 'none', 'not ours', 'forced'],
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
    decision = fitting(REST, Require((A, B), 'x'), enabled=[THEIRS])
    [reason] = decision.too_long.reasons
    assert 'enabled_filters' not in reason
    # The message has the length of the complete query.
    decision = fitting(REST - 1, MANY, FEW, enabled=[THEIRS])
    assert f'{BOTH} bytes for 5 required' in decision.too_long.reasons[0]
    with pytest.raises(exception.QueryNotShortened):
        decision.check()


def test_requirements_are_left_out_to_fit_forbidden_aggregates():
    decision = fitting(
        REST + forbidden_length(1), FEW, Forbid((B,), 'x'), enabled=[THEIRS]
    )
    assert decision.forbidden == {B.uuid}
    assert left(decision) == [FEW]
    assert len(asking.first(decision, REQUEST).to_querystring()) == (
        REST + forbidden_length(1)
    )


@pytest.mark.parametrize(
    ('theirs', 'ours', 'forbidden', 'left'),
    [
        pytest.param('a', 'ab', '', [], id='it implies the other'),
        pytest.param('ab', 'a', '', [], id='the other implies it'),
        pytest.param('ac', 'a', 'c', [], id='the others are equal'),
        pytest.param('cd', 'a', '', ['cd'], id='the other is different'),
    ],
)
def test_a_host_filter_need_not_check_what_the_query_does(
    theirs, ours, forbidden, left
):
    destination = Destination()
    destination.require_aggregates(frozenset(theirs), THEIRS)
    for choice in (ours, 'be'):
        destination.require_aggregates(frozenset(choice), '')
    destination.forbid_aggregates(forbidden)
    *_, subset = ways(destination, [THEIRS])
    assert subset.left_out == tuple(map(frozenset, left))
