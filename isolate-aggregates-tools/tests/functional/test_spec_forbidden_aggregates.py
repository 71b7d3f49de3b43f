# SPDX-License-Identifier: Apache-2.0
"""The examples of "Support filtering by forbidden aggregate membership".

https://docs.openstack.org/placement/latest/specs/train/implemented/2005297-negative-aggregate-membership.html
"""

from cases import cases
import pytest

from isolate_aggregates import exception
from isolate_aggregates_tools.placement.group import ResourceRequest

AGG1 = '11111111-1111-4111-8111-111111111111'
AGG2 = '22222222-2222-4222-8222-222222222222'
AGG3 = '33333333-3333-4333-8333-333333333333'
AGG4 = '44444444-4444-4444-8444-444444444444'

# Every host is named after the aggregates it is in.
FLAT = f"""
placement_aggregates:
- {{name: agg1, uuid: {AGG1}}}
- {{name: agg2, uuid: {AGG2}}}
- {{name: agg3, uuid: {AGG3}}}
- {{name: agg4, uuid: {AGG4}}}
providers:
- {{name: in-none, inventories: {{VCPU: 4}}}}
- {{name: in-1, inventories: {{VCPU: 4}}, aggregates: [agg1]}}
- {{name: in-2, inventories: {{VCPU: 4}}, aggregates: [agg2]}}
- {{name: in-3, inventories: {{VCPU: 4}}, aggregates: [agg3]}}
- {{name: in-4, inventories: {{VCPU: 4}}, aggregates: [agg4]}}
- {{name: in-1-3, inventories: {{VCPU: 4}}, aggregates: [agg1, agg3]}}
- {{name: in-2-3, inventories: {{VCPU: 4}}, aggregates: [agg2, agg3]}}
- {{name: in-1-3-4, inventories: {{VCPU: 4}}, aggregates: [agg1, agg3, agg4]}}
"""


@pytest.fixture
def flat(cloud_from):
    return cloud_from(FLAT)


@pytest.fixture
def nested(example):
    return example('nested-aggregates')


@cases(
    'suffix',
    {
        'unsuffixed group': '',
        'numbered group': '1',
        'named group': '_CPU',
    },
)
@cases(
    ('required', 'forbidden', 'hosts'),
    {
        'in either 1 or 2': (
            [[AGG1, AGG2]],
            [],
            ['in-1', 'in-1-3', 'in-1-3-4', 'in-2', 'in-2-3'],
        ),
        'in either 1 or 2, definitely in 3': (
            [[AGG1, AGG2], [AGG3]],
            [],
            ['in-1-3', 'in-1-3-4', 'in-2-3'],
        ),
        'not in 1': (
            [],
            [AGG1],
            ['in-2', 'in-2-3', 'in-3', 'in-4', 'in-none'],
        ),
        'in either 1 or 2, definitely in 3, definitely not in 4': (
            [[AGG1, AGG2], [AGG3]],
            [AGG4],
            ['in-1-3', 'in-2-3'],
        ),
        'in none of 1, 2 and 3': ([], [AGG1, AGG2, AGG3], ['in-4', 'in-none']),
        'in 1 and not in 1 is nowhere, no error': ([[AGG1]], [AGG1], []),
    },
)
def test_aggregates_of_a_set_are_alternatives_and_sets_and_bans_all_hold(
    flat, suffix, required, forbidden, hosts
):
    request = ResourceRequest()
    group = request.group(suffix)
    group.resources = {'VCPU': 1}
    group.aggregates = [frozenset(choice) for choice in required]
    group.forbidden_aggregates = set(forbidden)
    assert flat.candidates(request) == [f'{host} (VCPU)' for host in hosts]


def test_one_aggregate_may_be_written_with_in_or_without(flat):
    """The spec writes ``member_of=<agg3>``, our queries a list of one."""
    request = ResourceRequest()
    request.group().resources = {'VCPU': 1}
    request.group().aggregates = [frozenset([AGG3])]
    assert f'member_of=in%3A{AGG3}' in request.to_querystring()
    assert flat.candidates(request) == flat.candidates_of(
        f'resources=VCPU:1&member_of={AGG3}'
    )


def test_a_list_behind_one_exclamation_mark_equals_one_mark_for_each(flat):
    request = ResourceRequest()
    request.group().resources = {'VCPU': 1}
    request.group().forbidden_aggregates = {AGG1, AGG2, AGG3}
    assert request.to_queryparams() == [
        ('member_of', f'!in:{AGG1},{AGG2},{AGG3}'),
        ('resources', 'VCPU:1'),
    ]
    assert flat.candidates(request) == flat.candidates_of(
        'resources=VCPU:1'
        f'&member_of=!{AGG1}&member_of=!{AGG2}&member_of=!{AGG3}'
    )


@cases(
    'member_of',
    {
        'in:': f'in:{AGG1},{AGG2},!{AGG3}',
        '!in:': f'!in:{AGG1},{AGG2},!{AGG3}',
    },
)
@pytest.mark.parametrize(
    'path', ['/resource_providers', '/allocation_candidates']
)
def test_an_exclamation_mark_inside_a_list_is_a_bad_query(
    flat, path, member_of
):
    ask = {
        '/resource_providers': flat.providers_of,
        '/allocation_candidates': flat.candidates_of,
    }[path]
    with pytest.raises(exception.BadQuery) as caught:
        ask(f'resources=VCPU:1&member_of={member_of}')
    assert (
        "Expected 'member_of' parameter to contain valid UUID(s). "
        f'Got: !{AGG3}'
    ) in str(caught.value)


@cases(
    ('forbidden', 'candidates'),
    {
        'nothing': (
            [],
            [
                'numa1_1 (VCPU) + cn1 (DISK_GB)',
                'numa1_1 (VCPU) + ss2 (DISK_GB)',
                'numa1_2 (VCPU) + cn1 (DISK_GB)',
                'numa1_2 (VCPU) + ss2 (DISK_GB)',
                'numa2_1 (VCPU) + cn2 (DISK_GB)',
                'numa2_1 (VCPU) + ss1 (DISK_GB)',
                'numa2_2 (VCPU) + cn2 (DISK_GB)',
                'numa2_2 (VCPU) + ss1 (DISK_GB)',
            ],
        ),
        'aggA excludes cn1, numa1_1 and numa1_2': (
            ['aggA'],
            [
                'numa2_1 (VCPU) + cn2 (DISK_GB)',
                'numa2_1 (VCPU) + ss1 (DISK_GB)',
                'numa2_2 (VCPU) + cn2 (DISK_GB)',
                'numa2_2 (VCPU) + ss1 (DISK_GB)',
            ],
        ),
        'aggB excludes cn2, numa2_1, numa2_2 and ss1': (
            ['aggB'],
            [
                'numa1_1 (VCPU) + cn1 (DISK_GB)',
                'numa1_1 (VCPU) + ss2 (DISK_GB)',
                'numa1_2 (VCPU) + cn1 (DISK_GB)',
                'numa1_2 (VCPU) + ss2 (DISK_GB)',
            ],
        ),
        'aggC excludes numa1_1 and ss2': (
            ['aggC'],
            [
                'numa1_2 (VCPU) + cn1 (DISK_GB)',
                'numa2_1 (VCPU) + cn2 (DISK_GB)',
                'numa2_1 (VCPU) + ss1 (DISK_GB)',
                'numa2_2 (VCPU) + cn2 (DISK_GB)',
                'numa2_2 (VCPU) + ss1 (DISK_GB)',
            ],
        ),
        'aggA and aggB: nothing is left': (['aggA', 'aggB'], []),
    },
)
def test_a_forbidden_root_bans_its_whole_tree_in_the_unsuffixed_group(
    nested, forbidden, candidates
):
    request = ResourceRequest()
    request.group().resources = {'VCPU': 1, 'DISK_GB': 1}
    request.group().forbidden_aggregates |= nested.uuids(*forbidden)
    assert nested.candidates(request) == candidates


@cases(
    ('forbidden', 'storages'),
    {
        'aggA excludes cn1': ('aggA', ['cn2', 'ss1', 'ss2']),
        'aggB excludes cn2 and ss1': ('aggB', ['cn1', 'ss2']),
        'aggC excludes ss2': ('aggC', ['cn1', 'cn2', 'ss1']),
    },
)
@pytest.mark.parametrize('suffix', ['', '1', '_DISK'])
def test_roots_and_sharing_providers_are_banned_in_every_kind_of_group(
    nested, suffix, forbidden, storages
):
    request = ResourceRequest()
    request.group(suffix).resources = {'DISK_GB': 1}
    request.group(suffix).forbidden_aggregates = {nested.uuid(forbidden)}
    assert nested.candidates(request) == [
        f'{storage} (DISK_GB)' for storage in storages
    ]


@cases(
    ('forbidden', 'numa_nodes'),
    {
        'aggA excludes no NUMA node': (
            'aggA',
            ['numa1_1', 'numa1_2', 'numa2_1', 'numa2_2'],
        ),
        'aggB excludes no NUMA node': (
            'aggB',
            ['numa1_1', 'numa1_2', 'numa2_1', 'numa2_2'],
        ),
        'aggC excludes numa1_1': ('aggC', ['numa1_2', 'numa2_1', 'numa2_2']),
    },
)
@pytest.mark.parametrize('suffix', ['1', '_CPU'])
def test_a_forbidden_root_bans_no_child_in_a_suffixed_group(
    nested, suffix, forbidden, numa_nodes
):
    request = ResourceRequest()
    request.group(suffix).resources = {'VCPU': 1}
    request.group(suffix).forbidden_aggregates = {nested.uuid(forbidden)}
    assert nested.candidates(request) == [f'{n} (VCPU)' for n in numa_nodes]


def test_a_ban_in_a_suffixed_group_holds_for_that_group_alone(nested):
    """The disk must not come from cn1, but the CPU may be on its children."""
    request = ResourceRequest()
    request.group().resources = {'VCPU': 1}
    request.group('1').resources = {'DISK_GB': 1}
    request.group('1').forbidden_aggregates = {nested.uuid('aggA')}
    assert nested.candidates(request) == [
        'numa1_1 (VCPU) + ss2 (DISK_GB)',
        'numa1_2 (VCPU) + ss2 (DISK_GB)',
        'numa2_1 (VCPU) + cn2 (DISK_GB)',
        'numa2_1 (VCPU) + ss1 (DISK_GB)',
        'numa2_2 (VCPU) + cn2 (DISK_GB)',
        'numa2_2 (VCPU) + ss1 (DISK_GB)',
    ]


@cases(
    ('forbidden', 'providers'),
    {
        'aggA excludes cn1': (
            'aggA',
            ['cn2', 'numa1_1', 'numa1_2', 'numa2_1', 'numa2_2', 'ss1', 'ss2'],
        ),
        'aggB excludes cn2 and ss1': (
            'aggB',
            ['cn1', 'numa1_1', 'numa1_2', 'numa2_1', 'numa2_2', 'ss2'],
        ),
        'aggC excludes numa1_1 and ss2': (
            'aggC',
            ['cn1', 'cn2', 'numa1_2', 'numa2_1', 'numa2_2', 'ss1'],
        ),
    },
)
def test_a_list_of_providers_bans_members_alone_not_their_trees(
    nested, forbidden, providers
):
    """``GET /resource_providers`` does not apply aggregates to whole trees.

    The spec says that an aggregate on a root provider spans its tree without
    naming the call; Placement does so for allocation candidates only.
    """
    query = f'member_of=!{nested.uuid(forbidden)}'
    assert nested.providers_of(query) == providers
