# SPDX-License-Identifier: Apache-2.0
"""Loading a snapshot into Placement preserves it."""

from cases import cases
import pytest

from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cloud.file import cloud_file, load
from isolate_aggregates_tools.cloud.live import snapshots
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)
from isolate_aggregates_tools.placement.provider import Inventory, Provider

CLOUD = """
aggregates:
- name: rack
  uuid: aaaaaaaa-aaaa-4aaa-aaaa-aaaaaaaaaaaa
  hosts: [cn1]
providers:
- name: cn1
  traits: [HW_CPU_X86_VMX, CUSTOM_FAST]
  inventories:
    MEMORY_MB: {total: 1024, reserved: 24, allocation_ratio: 1.5}
    CUSTOM_LICENSE: {total: 10, min_unit: 2, max_unit: 6, step_size: 2}
  usages: {MEMORY_MB: 100}
  children:
  - name: numa1
    traits: [CUSTOM_NUMA]
    inventories: {VCPU: 4}
    usages: {VCPU: 3}
    children:
    - {name: nic1, inventories: {CUSTOM_NIC: 2}}
  - name: numa2
    inventories: {VCPU: 4}
- {name: cn2}
"""


class NoNova:
    """A Nova too old to list its nodes, with nothing else of interest."""

    def compute_nodes(self):
        return None

    def flavors_and_records(self):
        return [], []

    def images(self):
        return []

    def compute_services(self):
        return ()


def asking(**resources):
    request = ResourceRequest()
    request.group().resources = resources
    return request


def test_a_loaded_cloud_reads_back_from_placement(cloud_from):
    """Inventories, usages, traits, memberships and trees, three levels."""
    cloud = cloud_from(CLOUD)
    again = snapshots.take(
        cloud.snapshot.aggregates, NoNova(), NoNova(), cloud.placement, {}
    )
    assert again.providers == cloud.snapshot.providers


def test_a_valid_cloud_is_written_in_rows(placement, monkeypatch):
    """Row by row, or the API would take minutes for thousands of hosts."""
    monkeypatch.setattr(load, '_load_provider', None)
    provider = Provider(
        '389c101c-cd28-5b94-9ada-57ce34d54e8b',
        'cn1',
        inventories={'VCPU': Inventory(2, reserved=2, allocation_ratio=16.0)},
        usages={'VCPU': 3},
        traits=frozenset({'CUSTOM_FAST', 'HW_CPU_X86_VMX'}),
    )
    load.into_placement(Snapshot('test', providers=(provider,)), placement)
    assert placement.get(f'/resource_providers/{provider.uuid}')


def test_traits_and_classes_that_no_provider_has_are_saved(
    cloud_from, tmp_path
):
    """Placement rejects a query that names one that does not exist."""
    cloud = cloud_from(
        'traits: [CUSTOM_KEY]\nresource_classes: [CUSTOM_GOLD]\n'
        'providers:\n'
        '- {name: cn1, inventories: {VCPU: 1}, traits: [CUSTOM_HELD]}\n'
    )
    taken = snapshots.take((), NoNova(), NoNova(), cloud.placement)
    path = tmp_path / 'saved.yaml'
    cloud_file.save(taken, path)
    for snapshot in (taken, cloud_file.load(path)):
        assert snapshot.traits == {'CUSTOM_KEY'}
        assert snapshot.resource_classes == {'CUSTOM_GOLD'}


def test_declared_traits_and_classes_exist_without_providers(cloud_from):
    cloud = cloud_from(
        'traits: [CUSTOM_KEY]\nresource_classes: [CUSTOM_GOLD]\n'
        'providers: [{name: cn1, inventories: {VCPU: 1}}]\n'
    )
    for change in (
        {'resources': {'CUSTOM_GOLD': 1}},
        {'resources': {'VCPU': 1}, 'required_traits': {'CUSTOM_KEY'}},
    ):
        request = ResourceRequest(groups={'': RequestGroup(**change)})
        answer = cloud.placement.allocation_candidates(request)
        assert answer.allocation_requests == ()
    assert 'CUSTOM_KEY' in cloud.traits()


@cases(
    ('resources', 'candidates'),
    {
        'one CPU is left on numa1': (
            {'VCPU': 1},
            ['numa1 (VCPU)', 'numa2 (VCPU)'],
        ),
        'two are not': ({'VCPU': 2}, ['numa2 (VCPU)']),
        'all of it': ({'MEMORY_MB': 1400}, ['cn1 (MEMORY_MB)']),
        'a MiB too much': ({'MEMORY_MB': 1401}, []),
        'below the smallest unit': ({'CUSTOM_LICENSE': 1}, []),
        'not a multiple': ({'CUSTOM_LICENSE': 3}, []),
        'ok': ({'CUSTOM_LICENSE': 4}, ['cn1 (CUSTOM_LICENSE)']),
        'beyond the largest unit': ({'CUSTOM_LICENSE': 8}, []),
        'the whole tree gives': (
            {'VCPU': 2, 'MEMORY_MB': 1, 'CUSTOM_NIC': 1},
            ['numa2 (VCPU) + cn1 (MEMORY_MB) + nic1 (CUSTOM_NIC)'],
        ),
    },
)
def test_capacity_follows_the_amounts_in_the_file(
    cloud_from, resources, candidates
):
    assert cloud_from(CLOUD).candidates(asking(**resources)) == candidates


OVERUSED = """
providers:
- name: over
  inventories: {VCPU: {total: 2, allocation_ratio: 2.0}, DISK_GB: 10}
  usages: {VCPU: 9}
- name: units
  inventories: {VCPU: {total: 8, max_unit: 1, step_size: 1}}
  usages: {VCPU: 7}
- name: steps
  inventories: {VCPU: {total: 8, min_unit: 4, step_size: 4}}
  usages: {VCPU: 3}
- name: reserved
  inventories: {VCPU: {total: 8, reserved: 8}}
  usages: {VCPU: 8}
"""


def test_usage_above_the_largest_allocation_can_be_loaded(cloud_from):
    """Ratios, reserves and units may have been changed under the servers."""
    cloud = cloud_from(OVERUSED)
    used = {}
    for provider in cloud.snapshot.providers:
        path = f'/resource_providers/{provider.uuid}'
        used[provider.name] = cloud.placement.get(f'{path}/usages')['usages']
        inventories = cloud.placement.get(f'{path}/inventories')['inventories']
        assert {
            resource_class: inventory['total']
            for resource_class, inventory in inventories.items()
        } == {
            resource_class: inventory.total
            for resource_class, inventory in provider.inventories.items()
        }
    assert used == {
        'over': {'VCPU': 9, 'DISK_GB': 0},
        'units': {'VCPU': 7},
        'steps': {'VCPU': 3},
        'reserved': {'VCPU': 8},
    }


def test_overused_inventory_takes_no_more_allocations(cloud_from):
    cloud = cloud_from(OVERUSED)
    assert cloud.candidates(asking(VCPU=1)) == ['units (VCPU)']
    assert cloud.candidates(asking(VCPU=4)) == ['steps (VCPU)']
    assert cloud.candidates(asking(DISK_GB=10)) == ['over (DISK_GB)']


TOO_MUCH = 'inventories: {VCPU: {total: 2, reserved: 3}}'


@cases(
    ('provider', 'problem'),
    {
        'unknown standard trait': (
            {'traits': frozenset({'HW_CPU_X86_NOPE'})},
            'provider cn1: Placement rejected the request as invalid (400): '
            'No such trait HW_CPU_X86_NOPE.',
        ),
        'unknown standard resource class': (
            {'inventories': {'CORES': Inventory(1)}},
            'provider cn1: Placement rejected the request as invalid (400): '
            'Unknown resource class in inventory for resource provider '
            '389c101c-cd28-5b94-9ada-57ce34d54e8b: No such resource class '
            'CORES.',
        ),
        'more reserved than there is': (
            {'inventories': {'VCPU': Inventory(2, reserved=3)}},
            'provider cn1: Placement rejected the request as invalid (400): ',
        ),
        'custom trait without a name': (
            {'traits': frozenset({'CUSTOM_'})},
            'trait CUSTOM_: Placement rejected the request as invalid (400): ',
        ),
        'custom resource class without a name': (
            {'inventories': {'CUSTOM_': Inventory(1)}},
            'resource class CUSTOM_: Placement ',
        ),
    },
)
def test_data_that_placement_rejects_is_a_problem_of_the_file(
    placement, provider, problem
):
    uuid = '389c101c-cd28-5b94-9ada-57ce34d54e8b'
    snapshot = Snapshot(
        'c.yaml', providers=(Provider(uuid, 'cn1', **provider),)
    )
    with pytest.raises(tools_errors.CloudFileError) as caught:
        load.into_placement(snapshot, placement)
    message = str(caught.value)
    assert message.startswith(f'Cloud file c.yaml: {problem}')
    assert message.endswith('.')
    assert not message.endswith('..')


def test_rejected_data_is_reported_in_one_sentence(run, write_cloud):
    path = write_cloud(f"""
        providers: [{{name: cn1, {TOO_MUCH}}}]
        flavors: [{{name: f, vcpus: 1}}]
        """)
    result = run('candidate', 'list', '--snapshot', str(path), '--flavor', 'f')
    assert result.code == 1
    assert result.err.startswith(
        f'Cloud file {path}: provider cn1: Placement rejected the request as '
        'invalid (400): '
    )
    assert result.err.count('\n') == 1


def test_a_rejected_cloud_does_not_affect_the_next_one(
    run, write_cloud, cloud_from
):
    path = write_cloud(f'providers: [{{name: cn1, {TOO_MUCH}}}]')
    run('candidate', 'list', '--snapshot', str(path), '--flavor', 'f')
    cloud = cloud_from('providers: [{name: cn2, inventories: {VCPU: 1}}]')
    assert cloud.candidates(asking(VCPU=1)) == ['cn2 (VCPU)']
