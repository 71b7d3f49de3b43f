# SPDX-License-Identifier: Apache-2.0
"""The cases of "Support filtering of allocation_candidates by forbidden
aggregates": licensed Windows hosts, and aggregates with several traits.

https://specs.openstack.org/openstack/nova-specs/specs/train/implemented/placement-req-filter-forbidden-aggregates.html
"""

from urllib import parse

from cases import cases
import pytest

from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.mirrored import chain

EXAMPLE = 'windows-licensing'

WINDOWS = 'trait:CUSTOM_WINDOWS_LICENSED'
XYZ = 'trait:CUSTOM_XYZ'

SEVERAL_TRAITS = """
settings:
  scheduler:
    enable_isolated_aggregate_filtering: true
aggregates:
- name: both
  uuid: 00000000-0000-4000-8000-000000000123
  metadata:
    trait:CUSTOM_WINDOWS_LICENSED: required
    trait:CUSTOM_XYZ: required
  hosts: [windows-xyz]
- name: windows
  uuid: 00000000-0000-4000-8000-000000000124
  metadata: {trait:CUSTOM_WINDOWS_LICENSED: required}
  hosts: [windows]
- name: other-values-and-keys
  uuid: 00000000-0000-4000-8000-000000000125
  metadata:
    trait:CUSTOM_XYZ: preferred
    CUSTOM_WINDOWS_LICENSED: required
    os_distro: windows
  hosts: [open]
providers:
- name: windows-xyz
  inventories: {VCPU: 8}
  traits: [CUSTOM_WINDOWS_LICENSED, CUSTOM_XYZ]
- name: windows
  inventories: {VCPU: 8}
  traits: [CUSTOM_WINDOWS_LICENSED, CUSTOM_XYZ]
- name: open
  inventories: {VCPU: 8}
  traits: [CUSTOM_WINDOWS_LICENSED, CUSTOM_XYZ]
"""


@pytest.fixture
def several(cloud_from):
    return cloud_from(SEVERAL_TRAITS)


def hosts(outcome):
    return [host.name for host in outcome.hosts]


def member_of(outcome):
    """Return the values of member_of in the query that was sent."""
    query = parse.parse_qs(outcome.query.to_querystring())
    return query.get('member_of', [])


def required(*keys):
    return dict.fromkeys(keys, 'required')


def test_the_filter_runs_only_when_its_option_is_set(conf):
    assert conf.scheduler.enable_isolated_aggregate_filtering is False
    assert 'isolate_aggregates' not in chain.as_in_nova(conf).names
    conf.set_override('enable_isolated_aggregate_filtering', True, 'scheduler')
    assert 'isolate_aggregates' in chain.as_in_nova(conf).names


@cases(
    'image',
    {
        'made by a normal end user': Image('image 2', properties={}),
        'with another property': Image(
            'debian', properties={'os_distro': 'debian'}
        ),
        'windows by a property that is no trait': Image(
            'image 1', properties={'os_distro': 'windows'}
        ),
        'from a volume': None,
    },
)
def test_an_image_without_the_trait_stays_off_the_licensed_hosts(
    cloud, find, image
):
    outcome = find(cloud, cloud.flavor('m1.small'), image)
    assert member_of(outcome) == [f'!in:{cloud.uuid("win-hosts")}']
    assert hosts(outcome) == ['linux-1', 'linux-2']


@cases(
    ('flavor', 'image'),
    {
        'by the image': ('m1.small', 'windows-2022'),
        'by the flavor': ('win.small', 'debian-12'),
        'by both': ('win.small', 'windows-2022'),
    },
)
def test_a_request_with_the_trait_may_use_the_licensed_hosts(
    cloud, find, flavor, image
):
    """No aggregate is forbidden, and the trait itself leads there."""
    outcome = find(cloud, cloud.flavor(flavor), cloud.image(image))
    assert member_of(outcome) == []
    assert hosts(outcome) == ['win-1', 'win-2']


@cases(
    ('extra_specs', 'properties', 'names'),
    {
        'no trait': ({}, {}, ['open']),
        'one of two': (required(WINDOWS), {}, ['open', 'windows']),
        'the other of two opens nothing': (required(XYZ), {}, ['open']),
        'both in the flavor': (
            required(WINDOWS, XYZ),
            {},
            ['open', 'windows', 'windows-xyz'],
        ),
        'both in the image': (
            {},
            required(WINDOWS, XYZ),
            ['open', 'windows', 'windows-xyz'],
        ),
        'one in the flavor, one in the image': (
            required(WINDOWS),
            required(XYZ),
            ['open', 'windows', 'windows-xyz'],
        ),
    },
)
def test_every_trait_of_an_aggregate_must_be_required(
    several, find, extra_specs, properties, names
):
    outcome = find(
        several,
        Flavor('f', vcpus=1, extra_specs=extra_specs),
        Image('i', properties=properties),
    )
    assert hosts(outcome) == names


def test_several_forbidden_aggregates_go_into_one_member_of(several, find):
    outcome = find(several, Flavor('f', vcpus=1))
    assert member_of(outcome) == [
        '!in:00000000-0000-4000-8000-000000000123,'
        '00000000-0000-4000-8000-000000000124'
    ]


def test_each_reason_names_the_aggregate_and_the_traits_it_waits_for(
    several, find
):
    outcome = find(several, Flavor('f', vcpus=1), Image('i'))
    assert [
        conclusion.constraint.reason
        for conclusion in outcome.decision.destination.conclusions
        if conclusion.filter_name == 'isolate_aggregates'
    ] == [
        'aggregate both: locked by traits CUSTOM_WINDOWS_LICENSED, '
        'CUSTOM_XYZ, which neither flavor f nor image i requires',
        'aggregate windows: locked by trait CUSTOM_WINDOWS_LICENSED, which '
        'neither flavor f nor image i requires',
    ]
