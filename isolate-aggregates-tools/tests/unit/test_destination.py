# SPDX-License-Identifier: Apache-2.0
"""How constraints fold into a destination, and onto a query."""

import itertools

import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.constraints import (
    Destination,
    Forbid,
    LazyForbid,
    Refuse,
    Require,
)
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.request import constraints
from isolate_aggregates_tools.request.constraints import (
    ForbidRootTrait,
    InTree,
)

A, B, C, D, E, F, G = (Aggregate(f'uuid-{name}', name) for name in 'ABCDEFG')


def folded(*constraints):
    destination = Destination()
    for constraint in constraints:
        destination.add(constraint, 'test')
    return destination


def params(destination):
    request = ResourceRequest()
    request.group().resources['VCPU'] = 1
    constraints.add(destination, request)
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
def test_no_opinion_require_and_refuse_can_be_merged(first, second):
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
        constraints.add(destination, ResourceRequest())


def test_all_refusals_are_reported_together():
    destination = folded(Refuse('first'), Refuse('second'))
    with pytest.raises(exception.RequestRefused) as caught:
        destination.check()
    assert str(caught.value) == 'Request refused: first; second.'


def test_requiring_none_of_no_aggregates_directly_is_refused_too():
    destination = Destination()
    destination.require_aggregates([])
    assert destination.refusals == [
        'an aggregate from an empty list is required'
    ]


def test_two_different_trees_are_refused():
    destination = folded(InTree('uuid-1', 'x'), InTree('uuid-2', 'y'))
    assert destination.refusals == [
        'the trees of providers uuid-1 and uuid-2 are both required, and no '
        'host is in both'
    ]


def test_the_same_tree_twice_is_fine():
    assert folded(InTree('u', 'x'), InTree('u', 'y')).refusals == []


def test_conclusions_keep_their_reason_and_filter():
    destination = Destination()
    destination.add(Require((A,), 'asked for'), 'mine')
    [conclusion] = destination.conclusions
    assert conclusion.filter_name == 'mine'
    assert conclusion.constraint.reason == 'aggregate A: asked for'


def test_a_reason_names_five_aggregates_and_counts_the_rest():
    many = Forbid((G, F, E, D, C, B, A), 'why')
    assert many.reason == 'aggregates A, B, C, D, E and 2 more: why'


def test_requiring_one_of_no_aggregates_is_refused_with_its_cause():
    [constraint] = NOTHING
    reason = 'an aggregate from an empty list is required: nothing'
    assert constraint.reason == reason
    assert folded(constraint).refusals == [reason]


@pytest.mark.parametrize(
    'constraint', [InTree('uuid', 'x'), ForbidRootTrait('T', 'x'), Refuse('x')]
)
def test_without_aggregates_the_reason_is_the_cause(constraint):
    assert constraint.reason == 'x'


def test_a_lazy_constraint_is_each_of_its_parts():
    parts = (Forbid((A,), 'x'), Forbid((B,), 'y'))
    lazy = LazyForbid(frozenset({'uuid-A', 'uuid-B'}), lambda: iter(parts))
    destination = folded(lazy)
    assert destination.forbidden_aggregates == {'uuid-A', 'uuid-B'}
    assert lazy.reason == 'aggregate A: x; aggregate B: y'
    assert [one.constraint for one in destination.conclusions] == [*parts]


def test_each_conclusion_has_its_own_destination():
    destination = folded(Forbid((A,), 'x'), Forbid((B,), 'y'), Refuse('z'))
    alone = [one.alone for one in destination.conclusions]
    assert [one.forbidden_aggregates for one in alone] == [
        {'uuid-A'}, {'uuid-B'}, set()
    ]  # fmt: skip
    assert [one.refusals for one in alone] == [[], [], ['z']]


def test_the_first_filter_that_leaves_no_host_is_remembered():
    destination = Destination()
    destination.add(Forbid((A,), 'x'), 'one')
    assert destination.refused_by is None
    for name in ('two', 'three'):
        destination.add(Refuse('no'), name)
    assert destination.refused_by == 'two'


def test_the_query_forbids_rollups_of_the_forbidden_aggregates():
    request = ResourceRequest()
    constraints.add(folded(Forbid((A, B), 'x')), request, ['uuid-rollup'])
    assert request.group().forbidden_aggregates == {'uuid-rollup'}


def test_no_opinion_leaves_a_query_alone():
    request = ResourceRequest()
    constraints.add(folded(), request)
    assert request == ResourceRequest()
