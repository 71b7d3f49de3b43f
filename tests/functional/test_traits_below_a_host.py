# SPDX-License-Identifier: Apache-2.0
"""A trait of a provider below a host, such as a GPU, means one thing to all.

Placement looks for a trait on the providers from which a server takes
something. So a host has it for servers that ask for a GPU, and only for them.
"""

import json

import pytest
from sync_world import LICENSED, World, uuid

from isolate_aggregates.operate import lock, unlock
from isolate_aggregates.operate.sync import marks
from isolate_aggregates.operate.sync import plan as plans
from isolate_aggregates.operate.sync.snapshot import read

MARK = marks.of_trait(LICENSED)

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
def told(run, write_cloud):
    """Return what each command says of the host."""

    def tell(cloud):
        path = str(write_cloud(cloud))

        def document(*arguments):
            finished = run(*arguments, '--snapshot', path, '-f', 'json')
            return json.loads(finished.out)

        hosts = document('candidates', '--flavor', 'gpu')['hosts']
        shown = document('show', 'gpu-1')
        return {
            'candidates': [host['name'] for host in hosts],
            'traits': (shown['traits'], shown['traits_below']),
            'problems': shown['problems'],
            'sync': [c['Change'] for c in document('sync')['changes']],
            'audit': [f['kind'] for f in document('audit')['findings']],
        }

    return tell


@pytest.mark.parametrize('flavor', [ASKING, GRANULAR])
def test_a_host_has_what_a_card_has_for_those_that_ask_for_the_card(
    told, flavor
):
    assert told(CLOUD + flavor) == {
        'candidates': ['gpu-1'],
        'traits': ([], {'card': ['CUSTOM_GPU']}),
        'problems': [],
        'sync': [],
        'audit': [],
    }


def test_nobody_finds_it_who_does_not_ask_for_the_card(told):
    found = told(CLOUD + NOT_ASKING)
    [problem] = found.pop('problems')
    assert problem == (
        'host gpu-1 has CUSTOM_GPU on provider card, and no flavor that '
        'requires it asks for one of their resources, so that no server finds '
        'it there'
    )
    assert found == {
        'candidates': [],
        'traits': ([], {'card': ['CUSTOM_GPU']}),
        'sync': [],
        'audit': ['trait-out-of-reach'],
    }


@pytest.fixture
def world(embedded, conf):
    """A host that shall have a trait, and has it on a card."""
    world = World(embedded, conf)
    world.add_host('h1')
    world.require('gpus', ['h1'], LICENSED)
    return world


def add_card(world):
    world.direct.send('PUT', f'/traits/{LICENSED}')
    body = {
        'uuid': uuid(1, 'card'),
        'name': 'card',
        'parent_provider_uuid': uuid(1, 'h1'),
    }
    world.direct.send('POST', '/resource_providers', body)
    world.put('card', traits=[LICENSED])


@pytest.mark.parametrize('tagged', ['before', 'meanwhile'])
def test_sync_puts_nothing_on_a_host_that_a_provider_below_it_has(
    world, tagged
):
    add_card(world)
    if tagged == 'meanwhile':
        # Another trait is missing, and while that is put there ...
        world.require('gpus', ['h1'], 'CUSTOM_GOLD')
        plan = world.plan()
        world.require('gpus', ['h1'], 'CUSTOM_GOLD', LICENSED)
        finished = world.carry_out(plan)
    else:
        finished = world.sync()
    assert finished.is_complete
    assert LICENSED not in world.of('h1', 'traits')
    assert world.todo() == []


def test_sync_takes_off_again_what_a_provider_below_has_by_now(world):
    world.sync()
    assert world.of('h1', 'traits') == {LICENSED, MARK}
    add_card(world)
    [change] = world.sync(parts=[plans.Part.TRAITS]).changes
    assert (change.action, change.subject, change.why) == (
        'remove trait',
        LICENSED,
        'sync put it there, and provider card below it has it',
    )
    assert world.of('h1', 'traits') == set()


def test_a_trait_that_sync_does_not_put_by_hand_is_not_missing_either(world):
    world.require('gpus', ['h1'], 'HW_CPU_X86_AVX2')
    [problem] = world.plan().problems
    assert 'host h1 has no HW_CPU_X86_AVX2' in problem
    add_card(world)
    world.put('card', traits=['HW_CPU_X86_AVX2'])
    assert world.plan().problems == ()


def test_lock_gives_a_host_nothing_that_a_provider_below_it_has(world):
    add_card(world)
    world.require('gpus', ['h1'])
    plan = lock.plan(world.cloud, 'gpus', [LICENSED])
    assert [s.what for s in plan.steps if 'trait' in s.what] == [
        f'tag aggregate gpus trait:{LICENSED}=required'
    ]
    assert plan.notes[-1] == (
        f'host h1 has {LICENSED} on provider card; servers find it there if '
        'they ask for something of that provider'
    )


def test_unlock_gives_a_host_nothing_back_that_a_provider_below_it_has(world):
    add_card(world)
    world.require('others', ['h1'], LICENSED)
    plan = unlock.plan(world.cloud, 'gpus', [LICENSED], again=True)
    assert [step.what for step in plan.steps] == [
        f'untag aggregate gpus trait:{LICENSED}'
    ]


def test_what_is_below_is_read_of_required_traits_alone(world):
    add_card(world)
    assert read(world.cloud).below == {uuid(1, 'h1'): {LICENSED: ('card',)}}
    world.require('gpus', ['h1'])
    assert read(world.cloud).below == {}
