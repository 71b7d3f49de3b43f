# SPDX-License-Identifier: Apache-2.0
"""What helps others to test their filters."""

import re

from cases import cases
from function_filter import FunctionFilter
import pytest
from small_clouds import LOCKED, NESTED, OPEN, TWO, forbid_locked

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.constraints import Refuse, Require
from isolate_aggregates_tools import testing
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.placement.provider import Inventory, Provider
from isolate_aggregates_tools.request import Request

pytest_plugins = ['isolate_aggregates_tools.testing.plugin']


@FunctionFilter
def require_open(request, aggregates):
    yield Require((OPEN,), 'is open')


@FunctionFilter
def refuse(request, aggregates):
    yield Refuse('no')


# Builders.


def test_a_request_is_for_a_small_server_by_default():
    request = testing.make_request()
    flavor = request.flavor
    assert (flavor.name, flavor.vcpus, flavor.ram, flavor.disk) == (
        'm1.small', 1, 2048, 20,
    )  # fmt: skip
    assert request == Request(flavor, project_id='demo')


def test_a_request_has_the_given_values():
    request = testing.make_request(
        testing.make_flavor('f', {'a:b': 'c'}, vcpus=2, ram=3, disk=4),
        testing.make_image('i', {'os_type': 'x'}, owner='o', visibility='v'),
        project_id=None,
        scheduler_hints={'reservation': 'one', 'different_host': ['a', 'b']},
        requested_host=TWO.requested_host('cn2'),
    )
    flavor, image = request.flavor, request.image
    assert (flavor.name, flavor.vcpus, flavor.ram, flavor.disk) == (
        'f', 2, 3, 4,
    )  # fmt: skip
    assert flavor.extra_specs == {'a:b': 'c'}
    assert (image.name, image.owner, image.visibility) == ('i', 'o', 'v')
    assert image.properties == {'os_type': 'x'}
    assert request.project_id is None
    assert request.scheduler_hints == {
        'reservation': ('one',),
        'different_host': ('a', 'b'),
    }
    assert request.requested_host.providers == (TWO.providers[1].uuid,)


def test_an_aggregate_has_the_given_values():
    uuid = '5dde4b13-764a-5a81-93fd-8ecdac212f2f'
    assert testing.make_aggregate(
        'a', {'k': 'v'}, ['cn1'], uuid=uuid, id=7, availability_zone='az'
    ) == Aggregate(uuid, 'a', {'k': 'v'}, frozenset({'cn1'}), 7, 'az')


def test_a_compute_node_has_space_for_servers_by_default():
    node = testing.make_compute_node('cn1')
    assert (node.name, node.host, node.parent) == ('cn1', 'cn1', None)
    assert node.inventories == {
        'VCPU': Inventory(16),
        'MEMORY_MB': Inventory(32768),
        'DISK_GB': Inventory(500),
    }


def test_a_compute_node_has_the_given_values():
    assert testing.make_compute_node(
        'node-1',
        host='ironic',
        inventories={'VCPU': 1, 'PCPU': Inventory(2, 1)},
        usages={'VCPU': 1},
        traits=['CUSTOM_A'],
        aggregates=[OPEN, '0E' * 16],
        uuid='0F' * 16,
    ) == Provider(
        '0f0f0f0f-0f0f-0f0f-0f0f-0f0f0f0f0f0f',
        'node-1',
        host='ironic',
        inventories={'VCPU': Inventory(1), 'PCPU': Inventory(2, 1)},
        usages={'VCPU': 1},
        traits=frozenset({'CUSTOM_A'}),
        aggregates=frozenset(
            {OPEN.uuid, '0e0e0e0e-0e0e-0e0e-0e0e-0e0e0e0e0e0e'}
        ),
    )


def test_a_plain_provider_is_empty_and_not_a_compute_node():
    provider = testing.make_provider('disks')
    assert provider == Provider(provider.uuid, 'disks')


def test_uuids_are_the_same_as_in_a_cloud_file(write_cloud):
    path = write_cloud("""
        aggregates: [{name: a, hosts: [cn1]}]
        providers:
        - name: cn1
          inventories: {VCPU: 16, MEMORY_MB: 32768, DISK_GB: 500}
          children: [{name: numa0}]
        flavors: [{name: f, vcpus: 1, ram: 2048, disk: 20}]
        images: [{name: i, visibility: public}]
        """)
    flavor = testing.make_snapshot(
        [testing.make_aggregate('a', hosts=['cn1'])],
        [
            testing.make_tree(
                testing.make_compute_node('cn1'),
                testing.make_provider('numa0'),
            )
        ],
        flavors=[testing.make_flavor('f')],
        images=[testing.make_image('i')],
        origin=str(path),
    )
    assert flavor == cloud_file.load(path)


def test_in_a_tree_each_provider_is_below_the_right_one():
    names = {provider.uuid: provider.name for provider in NESTED.providers}
    assert [(p.name, names.get(p.parent)) for p in NESTED.providers] == [
        ('cn3', None),
        ('numa0', 'cn3'),
        ('nic', 'numa0'),
        ('numa1', 'cn3'),
        ('cn4', None),
        ('disks', None),
    ]


def test_compute_nodes_are_in_the_host_aggregates_of_their_hosts():
    assert [provider.aggregates for provider in TWO.providers] == [
        {LOCKED.uuid, OPEN.uuid},
        {OPEN.uuid},
    ]
    without = testing.make_snapshot([LOCKED], TWO.providers[1:], mirror=False)
    assert [p.aggregates for p in without.providers] == [{OPEN.uuid}]


def test_a_misspelt_host_is_refused():
    with pytest.raises(ValueError, match='aggregate locked') as caught:
        testing.make_snapshot([LOCKED], [testing.make_compute_node('cn-1')])
    assert str(caught.value) == (
        'aggregate locked has cn1, but no compute node is of such a host'
    )


@cases(
    ('aggregates', 'providers', 'kind'),
    {
        'agg': ([OPEN, OPEN], TWO.providers, 'aggregates'),
        'provider': ([], [TWO.providers[0]] * 2, 'providers'),
    },
)
def test_duplicate_uuids_are_refused(aggregates, providers, kind):
    with pytest.raises(ValueError, match=f'^the {kind} .* have the same uuid'):
        testing.make_snapshot(aggregates, providers)


@cases(
    ('given', 'problem'),
    {
        'no such standard trait': (
            {'traits': ['HW_CPU_X86_AVX9']},
            'HW_CPU_X86_AVX9 is not a standard trait (did you mean ',
        ),
        'misspelt custom trait': (
            {'traits': ['CUSTOM-KEY']},
            'CUSTOM-KEY is not a standard trait',
        ),
        'custom trait that is too long': (
            {'traits': [f'CUSTOM_{"A" * 249}']},
            f'CUSTOM_{"A" * 249} is not a standard trait',
        ),
        'misspelt class of an inventory': (
            {'inventories': {'VPCU': 1}},
            'VPCU is not a standard resource class',
        ),
        'misspelt class of a usage': (
            {'usages': {'custom_gold': 1}},
            'custom_gold is not a standard resource class',
        ),
        'usage without inventory': (
            {'inventories': {'VCPU': 1}, 'usages': {'PCPU': 1}},
            'PCPU is used but has no inventory',
        ),
        'steps of nothing': (
            {'inventories': {'VCPU': Inventory(4, step_size=0)}},
            'the step_size of VCPU must be from 1 to 2147483647, not 0',
        ),
        'less than nothing': (
            {'inventories': {'VCPU': Inventory(4, reserved=-1)}},
            'the reserved of VCPU must be from 0 to 2147483647, not -1',
        ),
        'more than Placement stores': (
            {'inventories': {'DISK_GB': 2**31}},
            'the total of DISK_GB must be from 1 to 2147483647, not '
            '2147483648',
        ),
        'no uuid': ({'uuid': 'u'}, "'u' is not a uuid"),
        'empty uuid': ({'uuid': ''}, "'' is not a uuid"),
    },
)
@pytest.mark.parametrize(
    'make', [testing.make_provider, testing.make_compute_node]
)
def test_data_that_placement_rejects_is_refused(make, given, problem):
    with pytest.raises(ValueError, match=re.escape(problem)) as caught:
        make('cn1', **given)
    assert str(caught.value).startswith(f'provider cn1: {problem}')


@pytest.mark.parametrize(
    'make', [testing.make_provider, testing.make_compute_node]
)
def test_a_provider_is_not_in_an_aggregate_without_a_valid_uuid(make):
    problem = "^an aggregate of provider cn1: 'not-uuid' is not a uuid$"
    with pytest.raises(ValueError, match=problem):
        make('cn1', aggregates=['not-uuid'])


def test_an_aggregate_without_a_valid_uuid_is_refused():
    with pytest.raises(
        ValueError, match=r"^aggregate gpu: 'x' is not a uuid$"
    ):
        testing.make_aggregate('gpu', uuid='x')


def test_uuids_are_in_the_form_in_which_services_return_them():
    shouted = '5DDE4B13764A5A8193FD8ECDAC212F2F'
    uuid = '5dde4b13-764a-5a81-93fd-8ecdac212f2f'
    assert testing.make_aggregate('gpu', uuid=shouted).uuid == uuid
    node = testing.make_compute_node('cn1', aggregates=[shouted])
    assert node.aggregates == {uuid}


# Hosts and reasons.


def test_without_filters_all_hosts_with_room_are_offered():
    request = testing.make_request()
    assert testing.hosts_for(request, TWO, {}) == ['cn1', 'cn2']
    big = testing.make_request(testing.make_flavor(vcpus=99))
    assert testing.hosts_for(big, TWO, {}) == []


def test_filters_narrow_the_hosts_and_give_reasons():
    filters = {'one': require_open, 'two': forbid_locked}
    request = testing.make_request()
    assert testing.hosts_for(request, TWO, filters) == ['cn2']
    assert testing.reasons_for(request, TWO.aggregates, filters) == [
        'aggregate open: is open',
        'aggregate locked: is locked',
    ]


def test_a_refusal_is_raised_and_reasons_for_returns_it():
    request, filters = testing.make_request(), {'one': refuse}
    with pytest.raises(exception.RequestRefused, match=r'refused: no\.$'):
        testing.hosts_for(request, TWO, filters)
    assert testing.reasons_for(request, TWO.aggregates, filters) == ['no']


class Looking(FunctionFilter):
    """A filter that declares one property of images."""

    IMAGE_PROPERTIES = ('os_distro',)


def test_a_filter_sees_only_the_image_properties_that_it_declares():
    seen = []
    image = testing.make_image('win', {'os_distro': 'windows', 'arch': 'x'})
    testing.hosts_for(
        testing.make_request(image=image),
        TWO,
        {'look': Looking(lambda r, a: seen.append(r.image_properties) or ())},
    )
    assert seen == [{'os_distro': 'windows'}]


def test_a_broken_filter_is_named():
    with pytest.raises(exception.FilterError, match=r'^Request filter mine '):
        testing.hosts_for(
            testing.make_request(), TWO, {'mine': lambda r, a: [1]}
        )


@pytest.mark.parametrize(
    'extra_spec',
    ['trait:CUSTOM_X', 'resources:CUSTOM_X'],
    ids=['trait', 'class'],
)
def test_an_undeclared_trait_or_class_is_a_bad_query(extra_spec):
    value = 'required' if extra_spec.startswith('trait') else '1'
    flavor = testing.make_flavor(extra_specs={extra_spec: value})
    request = testing.make_request(flavor)
    with pytest.raises(exception.BadQuery, match=r'there is no .* CUSTOM_X'):
        testing.hosts_for(request, TWO, {})
    declared = {'traits': ['CUSTOM_X'], 'resource_classes': ['CUSTOM_X']}
    assert testing.hosts_for(request, TWO, {}, **declared) == []
    cloud = testing.make_snapshot(providers=TWO.providers, **declared)
    assert testing.hosts_for(request, cloud, {}) == []


def test_a_standard_trait_exists_without_a_host():
    flavor = testing.make_flavor(
        extra_specs={
            'trait:HW_CPU_X86_AVX2': 'forbidden',
            'resources:VGPU': '0',
        }
    )
    request = testing.make_request(flavor)
    assert testing.hosts_for(request, TWO, {}) == ['cn1', 'cn2']


@pytest.mark.parametrize(
    'declared',
    [{'traits': ['KEY']}, {'resource_classes': ['GOLD']}],
    ids=['trait', 'class'],
)
def test_a_misspelt_declaration_is_refused(declared):
    match = '^test: [A-Z]+ is not a standard (trait|resource class)'
    with pytest.raises(ValueError, match=match):
        testing.make_snapshot(**declared)
    with pytest.raises(ValueError, match=match):
        testing.hosts_for(testing.make_request(), TWO, {}, **declared)
    with pytest.raises(ValueError, match=match):
        testing.PlacementFixture(TWO, **declared)
