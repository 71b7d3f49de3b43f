# SPDX-License-Identifier: Apache-2.0
"""The examples of "Placement Forbidden Traits".

https://specs.openstack.org/openstack/nova-specs/specs/rocky/implemented/placement-forbidden-traits.html
"""

from cases import cases
import pytest

from isolate_aggregates import exception
from isolate_aggregates_tools.placement.group import ResourceRequest

EXAMPLE = 'gpu-hosts'

# A branch of one tree, and the root of another, have the trait of an owner.
BRANCHES = """
providers:
- name: cn1
  inventories: {DISK_GB: 100}
  children:
  - {name: numa1_1, inventories: {VCPU: 4}, traits: [CUSTOM_LAB]}
  - {name: numa1_2, inventories: {VCPU: 4}}
- name: cn2
  inventories: {DISK_GB: 100}
  traits: [CUSTOM_LAB]
  children:
  - {name: numa2_1, inventories: {VCPU: 4}}
"""


@pytest.fixture
def branches(cloud_from):
    return cloud_from(BRANCHES)


def asking(resources, required=(), forbidden=(), suffix=''):
    request = ResourceRequest()
    request.group(suffix).resources = resources
    request.group(suffix).required_traits = set(required)
    request.group(suffix).forbidden_traits = set(forbidden)
    return request


@pytest.mark.parametrize('suffix', ['', '1', '_DISK'])
@cases(
    ('required', 'forbidden', 'hosts'),
    {
        'no traits': ([], [], ['gpu-1', 'gpu-2', 'plain-1', 'plain-2']),
        'one there, one not there': (
            ['STORAGE_DISK_SSD'],
            ['CUSTOM_GOLDEN_RAID'],
            ['plain-2'],
        ),
        'keep expensive hosts free': (
            [],
            ['CUSTOM_MASSIVE_GPU'],
            ['plain-1', 'plain-2'],
        ),
        'neither of two': (
            [],
            ['CUSTOM_MASSIVE_GPU', 'CUSTOM_GOLDEN_RAID'],
            ['plain-2'],
        ),
        'the miners get them': (
            ['CUSTOM_MASSIVE_GPU'],
            ['CUSTOM_GOLDEN_RAID'],
            ['gpu-1', 'gpu-2'],
        ),
    },
)
def test_hosts_have_required_traits_and_no_forbidden_ones(
    cloud, suffix, required, forbidden, hosts
):
    request = asking({'DISK_GB': 1}, required, forbidden, suffix)
    assert cloud.candidates(request) == [f'{host} (DISK_GB)' for host in hosts]


def test_required_and_forbidden_traits_share_one_parameter(cloud):
    request = asking(
        {'DISK_GB': 1}, ['STORAGE_DISK_SSD'], ['CUSTOM_GOLDEN_RAID']
    )
    assert request.to_queryparams() == [
        ('required', 'STORAGE_DISK_SSD,!CUSTOM_GOLDEN_RAID'),
        ('resources', 'DISK_GB:1'),
    ]


def test_the_query_of_the_spec_lists_the_ssd_without_golden_raid(cloud):
    """The spec leaves out the amount, without which Placement answers 400."""
    traits = 'required=STORAGE_DISK_SSD,!CUSTOM_GOLDEN_RAID'
    assert cloud.providers_of(f'resources=DISK_GB:1&{traits}') == ['plain-2']
    with pytest.raises(exception.BadQuery, match='Badly formed resources'):
        cloud.providers_of(f'resources=DISK_GB&{traits}')


@pytest.mark.parametrize('suffix', ['', '1'])
def test_a_forbidden_trait_bans_the_providers_that_have_it_not_their_trees(
    branches, suffix
):
    """Unlike a forbidden aggregate, it does not span the tree of a root."""
    request = asking({'VCPU': 1}, forbidden=['CUSTOM_LAB'], suffix=suffix)
    assert branches.candidates(request) == [
        'numa1_2 (VCPU)',
        'numa2_1 (VCPU)',
    ]


def test_each_provider_of_a_candidate_lacks_the_forbidden_trait(branches):
    request = asking({'VCPU': 1, 'DISK_GB': 1}, forbidden=['CUSTOM_LAB'])
    assert branches.candidates(request) == ['numa1_2 (VCPU) + cn1 (DISK_GB)']


def test_a_trait_forbidden_on_the_root_excludes_only_its_tree(branches):
    request = asking({'VCPU': 1})
    request.root_forbidden = {'CUSTOM_LAB'}
    assert branches.candidates(request) == [
        'numa1_1 (VCPU)',
        'numa1_2 (VCPU)',
    ]


def test_a_trait_both_required_and_forbidden_is_a_bad_query(cloud):
    both = {'CUSTOM_MASSIVE_GPU'}
    with pytest.raises(exception.BadQuery) as caught:
        cloud.candidates(asking({'DISK_GB': 1}, both, both))
    assert str(caught.value).startswith(
        'Placement at http://placement.embedded/placement rejected the '
        'request as invalid (400): '
    )
    assert (
        'Conflicting required and forbidden traits found in the following '
        'traits keys: required: (CUSTOM_MASSIVE_GPU)'
    ) in str(caught.value)


def test_a_list_of_providers_takes_the_contradiction_and_is_empty(cloud):
    """The spec wants a 400 here as well; Placement gives one for candidates.

    ``GET /resource_providers`` returns an empty list.
    """
    traits = 'required=CUSTOM_MASSIVE_GPU,!CUSTOM_MASSIVE_GPU'
    assert cloud.providers_of(traits) == []


@pytest.mark.parametrize(
    ('required', 'said'),
    [
        pytest.param('lower_case', 'No such trait(s): lower_case.'),
        pytest.param('!CUSTOM NO', 'No such trait(s): CUSTOM NO.'),
        pytest.param('CUSTOM_UNKNOWN', 'No such trait(s): CUSTOM_UNKNOWN.'),
        pytest.param('!CUSTOM_UNKNOWN', 'No such trait(s): CUSTOM_UNKNOWN.'),
        pytest.param('!', 'Got an empty trait in: !'),
        pytest.param(
            'STORAGE_DISK_SSD,', 'Got an empty trait in: STORAGE_DISK_SSD,'
        ),
        pytest.param(
            '! STORAGE_DISK_SSD', 'No such trait(s): STORAGE_DISK_SSD.'
        ),
    ],
    ids=[
        'malformed',
        'malformed and forbidden',
        'unknown',
        'unknown and forbidden',
        'only an exclamation mark',
        'empty at the end',
        'white space behind the exclamation mark',
    ],
)
def test_malformed_and_unknown_traits_are_bad_queries(cloud, required, said):
    for ask in (cloud.candidates_of, cloud.providers_of):
        with pytest.raises(exception.BadQuery) as caught:
            ask(f'resources=DISK_GB:1&required={required}')
        assert said in str(caught.value)


def test_white_space_around_a_trait_and_its_mark_is_stripped(cloud):
    traits = 'required=%20STORAGE_DISK_SSD%20,%20!CUSTOM_GOLDEN_RAID%20'
    query = f'resources=DISK_GB:1&{traits}'
    assert cloud.candidates_of(query) == ['plain-2 (DISK_GB)']
    assert cloud.providers_of(query) == ['plain-2']


def test_unknown_traits_of_our_own_request_surface_as_a_bad_query(cloud):
    said = r'No such trait\(s\): CUSTOM_NEW'
    with pytest.raises(exception.BadQuery, match=said):
        cloud.candidates(asking({'VCPU': 1}, forbidden=['CUSTOM_NEW']))
