# SPDX-License-Identifier: Apache-2.0
"""Regression tests of the simulator, one for each rule of Placement.

Every one was seen in an answer of the real service. The comparison with it is
in ``test_simulator_differential.py``; whatever that finds to differ gets a
test here.
"""

import pytest

from isolate_aggregates import exception
from isolate_aggregates_tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)
from isolate_aggregates_tools.placement.provider import Inventory, Provider
from isolate_aggregates_tools.simulator import Simulator

A, B, NOBODY = (f'{n:08d}-0000-4000-8000-000000000000' for n in range(1, 4))
SHARES = 'MISC_SHARES_VIA_AGGREGATE'


def uuid_of(name):
    return f'00000000-0000-4000-8000-{name.encode().hex():0>12}'


def has(name, parent=None, traits=(), aggregates=(), usages=None, **inventory):
    """A provider; an inventory is a total or a complete inventory."""
    return Provider(
        uuid=uuid_of(name),
        name=name,
        parent=parent and uuid_of(parent),
        inventories={
            rc: amount if isinstance(amount, Inventory) else Inventory(amount)
            for rc, amount in inventory.items()
        },
        usages=usages or {},
        traits=frozenset(traits),
        aggregates=frozenset(aggregates),
    )


def simulator(*providers):
    return Simulator(providers, ['CUSTOM_A'])


def ask(query, *providers):
    """Each candidate as ``provider: amounts`` with names."""
    cloud = simulator(*providers)
    names = {provider.uuid: provider.name for provider in providers}
    answer = cloud.allocation_candidates(query)
    return [
        {names[uuid]: amounts for uuid, amounts in candidate.items()}
        for candidate in answer.allocation_requests
    ]


def listed(query, *providers):
    return [p.name for p in simulator(*providers).resource_providers(query)]


# Inventories


def test_a_fraction_of_a_unit_cannot_be_allocated():
    host = has('h', VCPU=Inventory(4, allocation_ratio=0.7))
    assert ask('resources=VCPU:2', host) == [{'h': {'VCPU': 2}}]
    assert ask('resources=VCPU:3', host) == []


def test_an_allocation_is_from_min_unit_to_max_unit_in_steps():
    units = Inventory(99, min_unit=4, max_unit=8, step_size=2)
    fine = [
        amount
        for amount in range(1, 20)
        if ask(f'resources=VCPU:{amount}', has('h', VCPU=units))
    ]
    assert fine == [4, 6, 8]


def test_zero_steps_fit_no_amount():
    units = Inventory(99, step_size=0)
    assert ask('resources=VCPU:1', has('h', VCPU=units)) == []


@pytest.mark.parametrize('limit', [2**63 - 1, 2**63, 10**40])
def test_a_limit_can_exceed_the_number_of_candidates(limit):
    query = f'resources=VCPU:1&limit={limit}'
    assert ask(query, has('h', VCPU=1)) == [{'h': {'VCPU': 1}}]


@pytest.mark.parametrize(
    ('minor', 'hosts'), [(29, ['b']), (38, ['b']), (39, [])]
)
def test_before_1_39_the_last_of_several_required_counts(minor, hosts):
    cloud = (
        has('a', VCPU=1, traits=['CUSTOM_A']),
        has('b', VCPU=1, traits=['HW_NUMA_ROOT']),
    )
    query = 'resources=VCPU:1&required=CUSTOM_A&required=HW_NUMA_ROOT'
    answer = simulator(*cloud).allocation_candidates(query, minor)
    assert [*answer.summaries] == [uuid_of(host) for host in hosts]


def test_usage_can_exceed_the_inventory():
    host = has('h', VCPU=4, MEMORY_MB=4, usages={'VCPU': 9})
    assert ask('resources=VCPU:1', host) == []
    answer = simulator(host).allocation_candidates('resources=MEMORY_MB:1')
    [summary] = answer.summaries.values()
    assert (summary.capacity['VCPU'], summary.used['VCPU']) == (4, 9)


def test_max_unit_applies_to_the_sum_of_all_groups():
    host = has('h', VCPU=Inventory(8, max_unit=3))
    both = 'group_policy=none&resources1=VCPU:{}&resources2=VCPU:2'
    assert ask(both.format(1), host) == [{'h': {'VCPU': 3}}]
    assert ask(both.format(2), host) == []


def test_min_unit_applies_to_each_group_by_itself():
    host = has('h', VCPU=Inventory(8, min_unit=2))
    query = 'group_policy=none&resources1=VCPU:1&resources2=VCPU:1'
    assert ask(query, host) == []


def test_the_sum_of_all_groups_must_be_free():
    host = has('h', VCPU=4, usages={'VCPU': 1})
    both = 'resources=VCPU:1&resources1=VCPU:{}'
    assert ask(both.format(2), host) == [{'h': {'VCPU': 3}}]
    assert ask(both.format(3), host) == []


# Trees


def test_classes_of_the_unsuffixed_group_can_come_from_the_whole_tree():
    tree = has('h', VCPU=1), has('c1', 'h', VCPU=1), has('c2', 'c1', VGPU=1)
    assert ask('resources=VCPU:1,VGPU:1', *tree) == [
        {'c2': {'VGPU': 1}, 'h': {'VCPU': 1}},
        {'c2': {'VGPU': 1}, 'c1': {'VCPU': 1}},
    ]
    assert ask('resources1=VCPU:1,VGPU:1', *tree) == []


def test_only_providers_that_give_something_count_for_required_traits():
    tree = has('h', traits=['CUSTOM_A']), has('c', 'h', VCPU=1)
    assert ask('resources=VCPU:1&required=CUSTOM_A', *tree) == []
    tree += (has('c2', 'h', traits=['CUSTOM_A'], VCPU=1),)
    [answer] = ask('resources=VCPU:1&required=CUSTOM_A', *tree)
    assert answer == {'c2': {'VCPU': 1}}


def test_only_providers_that_give_something_count_for_forbidden_traits():
    tree = has('h', traits=['CUSTOM_A']), has('c', 'h', VCPU=1)
    assert ask('resources=VCPU:1&required=!CUSTOM_A', *tree) != []
    assert ask('resources=VCPU:1&root_required=!CUSTOM_A', *tree) == []


def test_an_aggregate_of_the_root_spans_the_tree_without_a_suffix_only():
    tree = has('h', aggregates=[A]), has('c', 'h', VCPU=1)
    assert ask(f'resources=VCPU:1&member_of={A}', *tree) != []
    assert ask(f'resources1=VCPU:1&member_of1={A}', *tree) == []
    assert ask(f'resources=VCPU:1&member_of=!{A}', *tree) == []
    assert ask(f'resources1=VCPU:1&member_of1=!{A}', *tree) != []


def test_root_and_child_do_not_meet_two_aggregate_parameters_together():
    tree = has('h', aggregates=[A]), has('c', 'h', aggregates=[B], VCPU=1)
    other = has('o', aggregates=[A, B])
    query = f'resources=VCPU:1&member_of={A}&member_of={B}'
    assert ask(query, *tree, other) == []
    assert ask(f'resources=VCPU:1&member_of=in:{A},{B}', *tree, other) != []


def test_root_required_is_about_every_group():
    hosts = has('h', VCPU=1), has('i', traits=['CUSTOM_A'], VCPU=1)
    query = 'resources1=VCPU:1&root_required='
    assert ask(f'{query}CUSTOM_A', *hosts) == [{'i': {'VCPU': 1}}]
    assert ask(f'{query}!CUSTOM_A', *hosts) == [{'h': {'VCPU': 1}}]


def test_isolate_does_not_count_the_group_without_a_suffix():
    host = has('h', VCPU=4)
    query = 'group_policy=isolate&resources=VCPU:1&resources1=VCPU:1'
    assert ask(query, host) == [{'h': {'VCPU': 2}}]
    assert ask(f'{query}&resources2=VCPU:1', host) == []


# Sharing providers


STORAGE = has('s', traits=[SHARES], aggregates=[A, B], DISK_GB=9)


def test_a_sharing_provider_gives_to_trees_with_a_member_on_any_level():
    tree = has('h', VCPU=1), has('c', 'h', aggregates=[A])
    found = [{'s': {'DISK_GB': 1}, 'h': {'VCPU': 1}}]
    assert ask('resources=VCPU:1,DISK_GB:1', *tree, STORAGE) == found


def test_a_sharing_provider_must_be_in_the_aggregate_itself():
    rack = has('r', aggregates=[B])
    storage = has('s', 'r', [SHARES], [A], DISK_GB=9)
    host = has('h', aggregates=[A, B], VCPU=1)
    query = f'resources=VCPU:1,DISK_GB:1&member_of={B}'
    assert ask(query, rack, storage, host) == []
    assert ask(query, STORAGE, host) != []


def test_neither_sharing_provider_nor_anchor_may_be_in_a_forbidden_aggregate():
    query = f'resources=VCPU:1,DISK_GB:1&member_of=!{B}'
    host = has('h', aggregates=[A], VCPU=1)
    assert ask(query, STORAGE, host) == []
    storage = has('s', traits=[SHARES], aggregates=[A], DISK_GB=9)
    assert ask(query, storage, host) != []
    host = has('h', aggregates=[A, B], VCPU=1)
    assert ask(query, storage, host) == []


def test_storage_is_not_lent_to_the_tree_of_a_forbidden_root():
    storage = has('s', traits=[SHARES], aggregates=[A], DISK_GB=9)
    tree = has('h', aggregates=[B]), has('c', 'h', aggregates=[A], VCPU=1)
    query = f'resources=DISK_GB:1&resources1=VCPU:1&member_of=!{B}'
    assert ask(query, storage, *tree) == []


def test_the_root_of_a_lender_may_be_in_a_forbidden_aggregate():
    rack = has('r', aggregates=[B])
    storage = has('s', 'r', [SHARES], [A], DISK_GB=9)
    host = has('h', aggregates=[A], VCPU=1)
    query = f'resources=VCPU:1,DISK_GB:1&member_of=!{B}'
    assert ask(query, rack, storage, host) != []


def test_in_tree_excludes_sharing_providers_from_the_unsuffixed_group():
    host = has('h', aggregates=[A], VCPU=1)
    query = f'resources=VCPU:1,DISK_GB:1&in_tree={host.uuid}'
    assert ask(query, STORAGE, host) == []


def test_in_tree_of_storage_does_not_keep_it_from_lending():
    host = has('h', aggregates=[A], VCPU=1)
    query = f'resources=VCPU:1&resources1=DISK_GB:1&in_tree1={STORAGE.uuid}'
    assert ask(query, STORAGE, host) != []


def test_storage_shared_with_many_hosts_is_one_candidate():
    hosts = has('h', aggregates=[A], VCPU=1), has('i', aggregates=[B])
    assert ask('resources=DISK_GB:1', STORAGE, *hosts) == [
        {'s': {'DISK_GB': 1}}
    ]


def test_root_required_applies_to_the_anchor():
    host = has('h', traits=['CUSTOM_A'], aggregates=[A], VCPU=1)
    query = 'resources=VCPU:1,DISK_GB:1&root_required='
    assert ask(f'{query}CUSTOM_A', STORAGE, host) != []
    assert ask(f'{query}!{SHARES}', STORAGE, host) != []
    assert ask(f'{query}{SHARES}', STORAGE, host) == []


# Groups without resources


NUMA = (
    has('h', VCPU=9),
    has('n1', 'h', ['CUSTOM_A'], [A]),
    has('d1', 'n1', VGPU=1),
    has('n2', 'h'),
    has('d2', 'n2', VGPU=1),
)
SUBTREE = 'resources_D=VGPU:1&same_subtree=_D,_N&group_policy=none'


def test_a_group_without_resources_picks_a_subtree():
    found = [{'d1': {'VGPU': 1}}]
    assert ask(f'{SUBTREE}&required_N=CUSTOM_A', *NUMA) == found
    assert ask(f'{SUBTREE}&member_of_N={A}', *NUMA) == found


def test_a_group_without_resources_has_to_require_something():
    assert ask(f'{SUBTREE}&required_N=!CUSTOM_A', *NUMA) == []
    assert ask(f'{SUBTREE}&member_of_N=!{A}', *NUMA) == []
    assert ask(f'{SUBTREE}&in_tree_N={uuid_of("h")}', *NUMA) == []


def test_in_tree_of_a_group_without_resources_is_ignored():
    other = has('o')
    query = f'{SUBTREE}&required_N=CUSTOM_A&in_tree_N={other.uuid}'
    assert ask(query, *NUMA, other) == [{'d1': {'VGPU': 1}}]


def test_in_tree_of_a_group_without_resources_must_exist():
    query = f'{SUBTREE}&required_N=CUSTOM_A&in_tree_N={NOBODY}'
    assert ask(query, *NUMA) == []


def test_the_tree_of_a_group_without_resources_alone_has_no_summary():
    host = has('h', aggregates=[A], VCPU=1)
    storage = has('s', traits=[SHARES, 'CUSTOM_A'], aggregates=[A])
    query = (
        'resources1=VCPU:1&resources2=VCPU:1&group_policy=none'
        '&required3=CUSTOM_A&same_subtree=3'
    )
    answer = simulator(has('h', aggregates=[A], VCPU=2), storage)
    answer = answer.allocation_candidates(query)
    assert answer.mappings == (
        {'1': (host.uuid,), '2': (host.uuid,), '3': (storage.uuid,)},
    )
    assert list(answer.summaries) == [host.uuid]


# Rejected and ignored names


@pytest.mark.parametrize(
    ('query', 'problem'),
    [
        ('', 'no request group requests resources'),
        (
            'resources=',
            'resources=: resources must have the form CLASS:AMOUNT',
        ),
        (
            'resources=VCPU:0',
            'resources=VCPU:0: the amount must be at least 1',
        ),
        (
            'resources=VCPU:1&colour=blue&limit=0',
            'colour=blue: there is no such parameter; limit=0: must be a '
            'positive integer',
        ),
        (
            'resources1=VCPU:1&resources2=VCPU:1',
            '2 groups with a suffix require group_policy=none or '
            'group_policy=isolate',
        ),
        (
            'resources=VCPU:1&required1=CUSTOM_A',
            "group '1' requests no resources and is not in same_subtree",
        ),
        (
            'resources1=VCPU:1&same_subtree=1,2',
            "same_subtree names '2', which is not a group",
        ),
        (
            'resources=VCPU:1&required=!CUSTOM_A&required=CUSTOM_A',
            'required both requires and forbids CUSTOM_A',
        ),
        (
            'resources=VCPU:1&required=in:HW_NUMA_ROOT,CUSTOM_A'
            '&required=!CUSTOM_A,!HW_NUMA_ROOT',
            'required requires one of CUSTOM_A, HW_NUMA_ROOT but forbids all '
            'of them',
        ),
        ('resources=CUSTOM_X:1', 'there is no resource class CUSTOM_X'),
        ('resources=VCPU:1&required=CUSTOM_X', 'there is no trait CUSTOM_X'),
    ],
)
def test_an_invalid_query_is_refused(query, problem):
    with pytest.raises(exception.BadQuery) as caught:
        ask(query, has('h', VCPU=1))
    assert str(caught.value) == (
        f'Placement would reject the request as invalid (400): {problem}'
    )


def test_a_repeated_parameter_uses_the_first_and_checks_the_last():
    hosts = has('h', VCPU=1), has('i', VCPU=1)
    query = 'resources=VCPU:1&limit=1&limit=5&group_policy=any'
    assert len(ask(f'{query}&group_policy=none', *hosts)) == 1
    with pytest.raises(exception.BadQuery, match='group_policy=any'):
        ask(query, *hosts)


def test_a_known_trait_without_a_provider_is_valid():
    assert ask('resources=VCPU:1&required=CUSTOM_A', has('h', VCPU=1)) == []
    assert ask('resources=VCPU:1&required=HW_GPU_API_VULKAN', has('h')) == []


def test_unknown_names_go_unnoticed_after_a_group_without_candidates():
    host = has('h', VCPU=1)
    query = 'resources=VCPU:{}&resources1=CUSTOM_X:1'
    assert ask(query.format(2), host) == []
    with pytest.raises(exception.BadQuery):
        ask(query.format(1), host)


def test_groups_are_processed_in_the_order_of_the_query():
    host = has('h', VCPU=1)
    with pytest.raises(exception.BadQuery):
        ask('resources1=CUSTOM_X:1&resources=VCPU:2', host)


def test_an_empty_aggregate_hides_an_unknown_trait_but_no_class():
    query = f'resources={{}}:1&required={{}}&member_of={NOBODY}'
    assert ask(query.format('VCPU', 'CUSTOM_X'), has('h', VCPU=1)) == []
    with pytest.raises(exception.BadQuery):
        ask(query.format('CUSTOM_X', 'CUSTOM_A'), has('h', VCPU=1))


def test_a_request_is_read_as_it_would_be_sent():
    """Nova sends ``resources1=`` for a group without resources."""
    request = ResourceRequest(
        {
            '': RequestGroup(resources={'VCPU': 1}),
            '1': RequestGroup('1', required_traits={'CUSTOM_A'}),
        }
    )
    with pytest.raises(exception.BadQuery, match='resources1='):
        ask(request, has('h', VCPU=1))


# GET /resource_providers


def test_each_listed_provider_meets_all_conditions_by_itself():
    tree = has('h', aggregates=[A]), has('c', 'h', VCPU=1)
    assert listed(f'member_of={A}', *tree) == ['h']
    assert listed(f'in_tree={uuid_of("c")}', *tree) == ['h', 'c']
    assert listed(f'in_tree={uuid_of("c")}&resources=VCPU:1', *tree) == ['c']
    assert listed(f'in_tree={NOBODY}&required=CUSTOM_X', *tree) == []


def test_listing_by_an_empty_name_is_listing_by_none():
    assert listed('name=', has('h'), has('i')) == ['h', 'i']
    assert listed('name=i', has('h'), has('i')) == ['i']


def test_listing_does_not_mind_a_trait_both_required_and_forbidden():
    assert listed('required=CUSTOM_A,!CUSTOM_A', has('h')) == []


def test_listing_heeds_the_last_of_a_repeated_parameter():
    hosts = has('h', VCPU=1), has('i', VCPU=2)
    assert listed('resources=&resources=VCPU:2', *hosts) == ['i']
    assert listed('uuid=here&name=i&name=h&uuid=' + uuid_of('h'), *hosts) == [
        'h'
    ]
