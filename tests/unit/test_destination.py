# SPDX-License-Identifier: Apache-2.0
"""How constraints fold into a destination, and onto a query."""

import itertools

import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.constraints import (
    Forbid,
    ForbidRootTrait,
    InTree,
    Refuse,
    Require,
)
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.placement.group import ResourceRequest

A, B, C, D, E, F, G = (Aggregate(f'uuid-{name}', name) for name in 'ABCDEFG')


def folded(*constraints):
    destination = Destination()
    for constraint in constraints:
        destination.add(constraint, 'test')
    return destination


def params(destination):
    request = ResourceRequest()
    request.group().resources['VCPU'] = 1
    destination.apply_to(request)
    return request.to_queryparams()


def test_members_of_one_requirement_are_alternatives_and_requirements_add_up():
    destination = folded(Require((A, B), 'x'), Require((C,), 'y'))
    assert params(destination) == [
        ('member_of', 'in:uuid-A,uuid-B'),
        ('member_of', 'in:uuid-C'),
        ('resources', 'VCPU:1'),
    ]


def test_forbidden_aggregates_are_a_union():
    destination = folded(Forbid((A, B), 'x'), Forbid((B, C), 'y'))
    assert params(destination) == [
        ('member_of', '!in:uuid-A,uuid-B,uuid-C'),
        ('resources', 'VCPU:1'),
    ]


def test_the_same_requirement_twice_is_written_once():
    destination = folded(Require((A, B), 'x'), Require((B, A), 'y'))
    assert destination.required_aggregates == [frozenset({'uuid-A', 'uuid-B'})]


def test_tree_and_root_trait_reach_the_query():
    destination = folded(InTree('uuid-1', 'x'), ForbidRootTrait('T', 'y'))
    assert params(destination) == [
        ('in_tree', 'uuid-1'),
        ('resources', 'VCPU:1'),
        ('root_required', '!T'),
    ]


NO_OPINION = ()
ONE_OF = (Require((A,), 'one'),)
NOTHING = (Require((), 'nothing'),)


@pytest.mark.parametrize(
    ('first', 'second'),
    list(itertools.product([NO_OPINION, ONE_OF, NOTHING], repeat=2)),
)
def test_no_opinion_one_of_these_and_nothing_matches_merge(first, second):
    """Nothing absorbs everything, no opinion changes nothing."""
    destination = folded(*first, *second)
    if NOTHING in (first, second):
        with pytest.raises(exception.RequestRefused):
            destination.check()
    elif ONE_OF in (first, second):
        assert destination.required_aggregates == [frozenset({'uuid-A'})]
    else:
        assert params(destination) == [('resources', 'VCPU:1')]


def test_a_refused_request_never_becomes_a_query():
    destination = folded(Forbid((A,), 'x'), Refuse('no'))
    with pytest.raises(exception.RequestRefused):
        destination.apply_to(ResourceRequest())


def test_every_refusal_is_told_at_once():
    destination = folded(Refuse('first'), Refuse('second'))
    with pytest.raises(exception.RequestRefused) as caught:
        destination.check()
    assert str(caught.value) == 'Request refused: first; second.'


def test_requiring_none_of_no_aggregates_directly_is_refused_too():
    destination = Destination()
    destination.require_aggregates([])
    assert destination.refusals == ['one of no aggregates is required']


def test_two_different_trees_leave_nothing():
    destination = folded(InTree('uuid-1', 'x'), InTree('uuid-2', 'y'))
    assert destination.refusals == [
        'the trees of providers uuid-1 and uuid-2 are both required, and no '
        'host is in both'
    ]


def test_the_same_tree_twice_is_fine():
    assert folded(InTree('u', 'x'), InTree('u', 'y')).refusals == []


def test_conclusions_keep_their_reasons_and_who_said_so():
    destination = Destination()
    destination.add(Require((A,), 'asked for'), 'mine')
    [conclusion] = destination.conclusions
    assert conclusion.filter_name == 'mine'
    assert conclusion.constraint.reason == 'aggregate A: asked for'


@pytest.mark.parametrize(
    ('aggregates', 'reason'),
    [
        ((A,), 'aggregate A: why'),
        ((E, D, C, B, A), 'aggregates A, B, C, D, E: why'),
        ((F, E, D, C, B, A), 'aggregates A, B, C, D, E and 1 more: why'),
        ((G, F, E, D, C, B, A), 'aggregates A, B, C, D, E and 2 more: why'),
    ],
)
def test_a_reason_names_five_aggregates_and_counts_the_rest(
    aggregates, reason
):
    assert Forbid(aggregates, 'why').reason == reason
