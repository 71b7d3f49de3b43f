# SPDX-License-Identifier: Apache-2.0
"""The worked examples of "Filter Allocation Candidates by Provider Tree".

Two compute nodes with two NUMA nodes each, and two storages that both share.
https://docs.openstack.org/placement/latest/specs/train/implemented/2005575-alloc-candidates-in-tree.html
"""

from cases import cases

from isolate_aggregates_tools.placement.group import ResourceRequest

EXAMPLE = 'shared-storage'


@cases(
    'provider',
    {
        'result A: the root': 'cn1',
        'result B: not the root': 'numa1_1',
    },
)
def test_in_tree_keeps_all_resources_in_the_tree_of_any_of_its_providers(
    cloud, provider
):
    request = ResourceRequest()
    request.group().resources = {'VCPU': 1, 'DISK_GB': 50}
    request.group().in_tree = cloud.uuid(provider)
    assert cloud.candidates(request) == [
        'numa1_1 (VCPU) + cn1 (DISK_GB)',
        'numa1_2 (VCPU) + cn1 (DISK_GB)',
    ]


def test_result_c_in_tree_of_one_group_leaves_the_other_free_to_share(cloud):
    request = ResourceRequest()
    request.group().resources = {'VCPU': 1}
    request.group().in_tree = cloud.uuid('cn1')
    request.group('1').resources = {'DISK_GB': 10}
    assert cloud.candidates(request) == [
        'numa1_1 (VCPU) + cn1 (DISK_GB)',
        'numa1_1 (VCPU) + ss1 (DISK_GB)',
        'numa1_1 (VCPU) + ss2 (DISK_GB)',
        'numa1_2 (VCPU) + cn1 (DISK_GB)',
        'numa1_2 (VCPU) + ss1 (DISK_GB)',
        'numa1_2 (VCPU) + ss2 (DISK_GB)',
    ]


def test_result_d_in_tree_of_a_suffixed_group_picks_one_sharing_provider(
    cloud,
):
    request = ResourceRequest()
    request.group().resources = {'VCPU': 1}
    request.group('1').resources = {'DISK_GB': 10}
    request.group('1').in_tree = cloud.uuid('ss1')
    assert cloud.candidates(request) == [
        'numa1_1 (VCPU) + ss1 (DISK_GB)',
        'numa1_2 (VCPU) + ss1 (DISK_GB)',
        'numa2_1 (VCPU) + ss1 (DISK_GB)',
        'numa2_2 (VCPU) + ss1 (DISK_GB)',
    ]


@cases(
    ('compute', 'storage'),
    {
        'numbered groups': ('1', '2'),
        'named groups': ('_COMPUTE', '_STORAGE'),
    },
)
def test_result_e_each_suffixed_group_has_its_own_tree(
    cloud, compute, storage
):
    request = ResourceRequest(group_policy='isolate')
    request.group(compute).resources = {'VCPU': 1}
    request.group(compute).in_tree = cloud.uuid('cn1')
    request.group(storage).resources = {'DISK_GB': 10}
    request.group(storage).in_tree = cloud.uuid('ss1')
    assert cloud.candidates(request) == [
        'numa1_1 (VCPU) + ss1 (DISK_GB)',
        'numa1_2 (VCPU) + ss1 (DISK_GB)',
    ]


def test_without_in_tree_every_tree_and_sharing_provider_is_a_choice(cloud):
    """The four results above leave out some of these twelve."""
    request = ResourceRequest()
    request.group().resources = {'VCPU': 1, 'DISK_GB': 50}
    assert cloud.candidates(request) == [
        'numa1_1 (VCPU) + cn1 (DISK_GB)',
        'numa1_1 (VCPU) + ss1 (DISK_GB)',
        'numa1_1 (VCPU) + ss2 (DISK_GB)',
        'numa1_2 (VCPU) + cn1 (DISK_GB)',
        'numa1_2 (VCPU) + ss1 (DISK_GB)',
        'numa1_2 (VCPU) + ss2 (DISK_GB)',
        'numa2_1 (VCPU) + cn2 (DISK_GB)',
        'numa2_1 (VCPU) + ss1 (DISK_GB)',
        'numa2_1 (VCPU) + ss2 (DISK_GB)',
        'numa2_2 (VCPU) + cn2 (DISK_GB)',
        'numa2_2 (VCPU) + ss1 (DISK_GB)',
        'numa2_2 (VCPU) + ss2 (DISK_GB)',
    ]
