# SPDX-License-Identifier: Apache-2.0
"""Request groups: what they serialize to, and what Placement that needs."""

from cases import cases
import pytest

from isolate_aggregates_tools import errors
from isolate_aggregates_tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)


def request(*groups, **fields):
    return ResourceRequest({g.suffix: g for g in groups}, **fields)


VCPU = {'VCPU': 1}


@cases(
    ('query', 'microversion'),
    {
        'plain': (request(RequestGroup(resources=VCPU)), '1.10'),
        'limit': (request(RequestGroup(resources=VCPU), limit=5), '1.16'),
        'required trait': (
            request(RequestGroup(resources=VCPU, required_traits={'A'})),
            '1.17',
        ),
        'required aggregates': (
            request(RequestGroup(resources=VCPU, aggregates=[{'a', 'b'}])),
            '1.21',
        ),
        'forbidden trait': (
            request(RequestGroup(resources=VCPU, forbidden_traits={'A'})),
            '1.22',
        ),
        'repeated member_of': (
            request(RequestGroup(resources=VCPU, aggregates=[{'a'}, {'b'}])),
            '1.24',
        ),
        'numbered group': (request(RequestGroup('1', VCPU)), '1.25'),
        'group policy': (
            request(RequestGroup(resources=VCPU), group_policy='none'),
            '1.25',
        ),
        'in_tree': (
            request(RequestGroup(resources=VCPU, in_tree='u')),
            '1.31',
        ),
        'forbidden aggregates': (
            request(RequestGroup(resources=VCPU, forbidden_aggregates={'a'})),
            '1.32',
        ),
        'named group': (request(RequestGroup('_NET', VCPU)), '1.33'),
        'leading zero': (request(RequestGroup('01', VCPU)), '1.33'),
        'required root trait': (
            request(RequestGroup(resources=VCPU), root_required={'A'}),
            '1.35',
        ),
        'forbidden root trait': (
            request(RequestGroup(resources=VCPU), root_forbidden={'A'}),
            '1.35',
        ),
        'same subtree': (
            request(RequestGroup('1', VCPU), same_subtree=[{'1'}]),
            '1.36',
        ),
        'any traits': (
            request(RequestGroup(resources=VCPU, any_traits=[{'A', 'B'}])),
            '1.39',
        ),
    },
)
def test_a_query_needs_the_oldest_microversion_that_understands_it(
    query, microversion
):
    assert query.microversion == microversion


def test_parameters_have_a_fixed_order():
    question = request(
        RequestGroup(
            '_A',
            {'VCPU': 2, 'DISK_GB': 5},
            required_traits=set('DCBA'),
            any_traits=[frozenset('HGFE')],
            forbidden_traits=set('MLKJ'),
            aggregates=[frozenset('dcba'), frozenset('e')],
            forbidden_aggregates=set('lkji'),
            in_tree='u',
        ),
        RequestGroup(resources={'MEMORY_MB': 512}),
        group_policy='isolate',
        root_required=set('SRQP'),
        root_forbidden=set('XWVU'),
        same_subtree=[frozenset({'_D', '_C', '_B', '_A'})],
        limit=7,
    )
    assert question.to_queryparams() == [
        ('group_policy', 'isolate'),
        ('in_tree_A', 'u'),
        ('limit', '7'),
        ('member_of_A', '!in:i,j,k,l'),
        ('member_of_A', 'in:a,b,c,d'),
        ('member_of_A', 'in:e'),
        ('required_A', 'A,B,C,D,!J,!K,!L,!M'),
        ('required_A', 'in:E,F,G,H'),
        ('resources', 'MEMORY_MB:512'),
        ('resources_A', 'DISK_GB:5,VCPU:2'),
        ('root_required', 'P,Q,R,S,!U,!V,!W,!X'),
        ('same_subtree', '_A,_B,_C,_D'),
    ]


@pytest.mark.parametrize(
    ('group', 'empty'),
    [
        (RequestGroup('1'), True),
        # in_tree alone requests nothing.
        (RequestGroup('1', in_tree='u'), True),
        (RequestGroup('1', resources=VCPU), False),
        (RequestGroup('1', required_traits={'A'}), False),
        (RequestGroup('1', any_traits=[frozenset('A')]), False),
        (RequestGroup('1', forbidden_traits={'A'}), False),
        (RequestGroup('1', aggregates=[frozenset('a')]), False),
        (RequestGroup('1', forbidden_aggregates={'a'}), False),
    ],
)
def test_a_group_that_asks_for_anything_is_not_empty(group, empty):
    assert group.is_empty is empty


def test_a_group_is_created_on_first_access():
    request = ResourceRequest()
    group = request.group('_A')
    assert group.suffix == '_A'
    assert request.group('_A') is group
    assert request.group() is request.groups['']
    assert set(request.groups) == {'_A', ''}


def test_amounts_and_traits_are_those_of_all_groups():
    question = request(
        RequestGroup('', {'VCPU': 2, 'DISK_GB': 5}, required_traits={'A'}),
        RequestGroup('1', {'VCPU': 3}, required_traits={'B'}),
    )
    assert question.merged_resources() == {'VCPU': 5, 'DISK_GB': 5}
    assert question.all_required_traits == {'A', 'B'}
    assert ResourceRequest().all_required_traits == frozenset()


@pytest.mark.parametrize('suffix', ['a b', 'ä', 'x' * 65, 'a&b', '1\n'])
def test_an_invalid_suffix_is_refused(suffix):
    with pytest.raises(errors.InvalidRequest, match='not a valid suffix'):
        RequestGroup(suffix)


@pytest.mark.parametrize(
    'group',
    [
        RequestGroup(resources=VCPU, aggregates=[frozenset()]),
        RequestGroup(resources=VCPU, any_traits=[frozenset()]),
    ],
)
def test_an_empty_list_of_alternatives_is_refused(group):
    with pytest.raises(errors.InvalidRequest, match='one of an empty list'):
        request(group).to_querystring()


def test_the_query_string_is_encoded_once():
    group = RequestGroup(resources=VCPU, forbidden_aggregates={'a', 'b'})
    assert request(group).to_querystring() == (
        'member_of=%21in%3Aa%2Cb&resources=VCPU%3A1'
    )
