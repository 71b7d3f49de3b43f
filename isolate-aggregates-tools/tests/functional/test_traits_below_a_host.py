# SPDX-License-Identifier: Apache-2.0
"""All commands treat traits of child and sharing providers alike.

Placement looks for a required trait on the providers that a candidate uses. So
the host has the trait only for servers that request a GPU, or shared storage.
"""

import json

import pytest

CLOUD = """
    settings:
      scheduler: {enable_isolated_aggregate_filtering: true}
    aggregates:
    - name: gpus
      metadata: {trait:CUSTOM_GPU: required}
      hosts: [gpu-1]
    providers:
    - name: gpu-1
      inventories: {VCPU: 16, MEMORY_MB: 65536}
      children:
      - name: card
        inventories: {VGPU: 4}
        traits: [CUSTOM_GPU]
    - name: plain-1
      inventories: {VCPU: 16, MEMORY_MB: 65536}
    flavors:
    - {name: small, vcpus: 1, ram: 1024}
"""
ASKING = """
    - name: gpu
      vcpus: 1
      ram: 1024
      extra_specs: {trait:CUSTOM_GPU: required, resources:VGPU: 1}
"""
GRANULAR = """
    - name: gpu
      vcpus: 1
      ram: 1024
      extra_specs: {trait1:CUSTOM_GPU: required, resources1:VGPU: 1}
"""
NOT_ASKING = """
    - name: gpu
      vcpus: 1
      ram: 1024
      extra_specs: {trait:CUSTOM_GPU: required}
"""


@pytest.fixture
def run_json(run, write_cloud):
    """Return the result of each command for the host."""

    def tell(cloud):
        path = str(write_cloud(cloud))

        def document(*arguments):
            result = run(*arguments, '--snapshot', path, '-f', 'json')
            return json.loads(result.out)

        hosts = document('candidate', 'list', '--flavor', 'gpu')['hosts']
        shown = document('lock', 'show', 'gpu-1')
        return {
            'candidates': [host['name'] for host in hosts],
            'traits': (shown['traits'], shown['traits_below']),
            'problems': shown['problems'],
            'sync': [c['action'] for c in document('sync')['changes']],
            'audit': [f['kind'] for f in document('audit')['findings']],
        }

    return tell


@pytest.mark.parametrize('flavor', [ASKING, GRANULAR])
def test_a_trait_below_a_host_is_found_with_its_resources(run_json, flavor):
    assert run_json(CLOUD + flavor) == {
        'candidates': ['gpu-1'],
        'traits': ([], {'card': ['CUSTOM_GPU']}),
        'problems': [],
        'sync': [],
        'audit': [],
    }


def test_a_trait_below_a_host_needs_its_resources(run_json):
    document = run_json(CLOUD + NOT_ASKING)
    [problem] = document.pop('problems')
    assert problem == (
        'host gpu-1 has CUSTOM_GPU on provider card, and no flavor that '
        'requires it also requests any of their resources, so no server finds '
        'it there'
    )
    assert document == {
        'candidates': [],
        'traits': ([], {'card': ['CUSTOM_GPU']}),
        'sync': [],
        'audit': ['trait-out-of-reach', 'no-host'],
    }


# A provider of storage, for hosts in the same aggregate of Placement.
SHARED = """
    settings:
      scheduler: {enable_isolated_aggregate_filtering: true}
    placement_aggregates:
    - {name: storage}
    aggregates:
    - name: gpus
      metadata: {trait:CUSTOM_GPU: required}
      hosts: [gpu-1]
    providers:
    - name: gpu-1
      inventories: {VCPU: 16, MEMORY_MB: 65536}
      aggregates: [storage]
    - name: nfs
      host: null
      inventories: {DISK_GB: 1000}
      traits: [CUSTOM_GPU, MISC_SHARES_VIA_AGGREGATE]
      aggregates: [storage]
    flavors:
    - name: gpu
      vcpus: 1
      ram: 1024
      disk: 10
      extra_specs: {trait:CUSTOM_GPU: required}
"""


def test_a_trait_of_shared_storage_is_found_with_its_resources(run_json):
    assert run_json(SHARED) == {
        'candidates': ['gpu-1'],
        'traits': ([], {}),
        'problems': [],
        'sync': [],
        'audit': [],
    }


def test_a_trait_of_shared_storage_needs_its_resources(run_json):
    document = run_json(SHARED.replace('disk: 10', 'disk: 0'))
    [problem] = document['problems']
    assert problem.startswith('host gpu-1 has CUSTOM_GPU on provider nfs, ')
    assert (document['candidates'], document['sync']) == ([], [])
    assert document['audit'] == ['trait-out-of-reach', 'no-host']


def test_storage_that_others_share_gives_a_host_no_trait(run_json):
    """No aggregate is common to both."""
    document = run_json(
        SHARED.replace('aggregates: [storage]', 'aggregates: []', 1)
    )
    assert document['candidates'] == []
    assert document['sync'] == ['add trait']
    assert 'trait-missing' in document['audit']


def test_show_marks_traits_that_sync_added(run, write_cloud):
    mark = 'CUSTOM_ISOLATE_SYNC_CUSTOM_B'
    path = write_cloud(f"""
    providers:
    - name: h1
      traits: [CUSTOM_A, CUSTOM_B, {mark}]
    """)
    result = run('lock', 'show', 'h1', '--snapshot', str(path), '-f', 'json')
    output = json.loads(result.out)
    assert output['traits'] == ['CUSTOM_A', 'CUSTOM_B']
    assert output['marked_traits'] == ['CUSTOM_B']
