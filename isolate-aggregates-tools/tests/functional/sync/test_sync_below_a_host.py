# SPDX-License-Identifier: Apache-2.0
"""sync, lock and unlock where a provider below a host has the trait."""

import os_traits
import pytest
from sync_world import LICENSED, uuid

from isolate_aggregates_tools import marks
from isolate_aggregates_tools.operate import lock, unlock
from isolate_aggregates_tools.operate.sync import plan as plans
from isolate_aggregates_tools.operate.sync.snapshot import read

MARK = marks.of_trait(LICENSED)


@pytest.fixture(autouse=True)
def licensed(world):
    """Add a host whose aggregate requires a trait."""
    world.add_host('h1')
    world.require('gpus', ['h1'], LICENSED)


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
def test_sync_adds_no_trait_that_a_provider_below_the_host_has(world, tagged):
    add_card(world)
    if tagged == 'meanwhile':
        # Plan for another trait; LICENSED is required only after the plan.
        world.require('gpus', ['h1'], 'CUSTOM_GOLD')
        plan = world.plan()
        world.require('gpus', ['h1'], 'CUSTOM_GOLD', LICENSED)
        result = world.carry_out(plan)
    else:
        result = world.sync()
    assert result.is_complete
    assert LICENSED not in world.of('h1', 'traits')
    assert world.todo() == []


def test_sync_adds_no_trait_that_shared_storage_has(world):
    storage = uuid(9, 'storage')
    world.direct.send('PUT', f'/traits/{LICENSED}')
    body = {'uuid': uuid(1, 'nfs'), 'name': 'nfs'}
    world.direct.send('POST', '/resource_providers', body)
    shares = os_traits.MISC_SHARES_VIA_AGGREGATE
    world.put('nfs', traits=[LICENSED, shares], aggregates=[storage])
    assert world.sync().is_complete
    # They have no aggregate in common.
    assert LICENSED in world.of('h1', 'traits')
    members = [*world.of('h1', 'aggregates'), storage]
    world.put('h1', aggregates=members)
    assert read(world.cloud).below == {uuid(1, 'h1'): {LICENSED: ('nfs',)}}
    [change] = world.sync(parts=[plans.Part.TRAITS]).changes
    assert change.why == 'sync added it, and provider nfs has it'
    assert LICENSED not in world.of('h1', 'traits')
    plan = lock.plan(world.cloud, 'gpus', [LICENSED])
    assert not [step for step in plan.steps if 'add trait' in step.what]
    assert 'h1 has CUSTOM_LICENSED on provider nfs; servers' in plan.notes[-1]
    world.require('others', ['h1'], LICENSED)
    plan = unlock.plan(world.cloud, 'gpus', [LICENSED], again=True)
    assert not [step for step in plan.steps if 'add trait' in step.what]


def test_sync_removes_a_trait_that_a_provider_below_now_has(world):
    world.sync()
    assert world.of('h1', 'traits') == {LICENSED, MARK}
    add_card(world)
    [change] = world.sync(parts=[plans.Part.TRAITS]).changes
    assert (change.action, change.subject, change.why) == (
        'remove trait',
        LICENSED,
        'sync added it, and provider card has it',
    )
    assert world.of('h1', 'traits') == set()


def test_a_standard_trait_below_a_host_is_not_missing(world):
    world.require('gpus', ['h1'], 'HW_CPU_X86_AVX2')
    [problem] = world.plan().problems
    assert 'host h1 has no HW_CPU_X86_AVX2' in problem
    add_card(world)
    world.put('card', traits=['HW_CPU_X86_AVX2'])
    assert world.plan().problems == ()


def test_lock_adds_no_trait_that_a_provider_below_has(world):
    add_card(world)
    world.require('gpus', ['h1'])
    plan = lock.plan(world.cloud, 'gpus', [LICENSED])
    assert [s.what for s in plan.steps if 'trait' in s.what] == [
        f'tag aggregate gpus trait:{LICENSED}=required'
    ]
    assert plan.notes[-1] == (
        f'host h1 has {LICENSED} on provider card; servers find it there if '
        'they request resources of that provider'
    )


def test_unlock_restores_no_trait_that_a_provider_below_has(world):
    add_card(world)
    world.require('others', ['h1'], LICENSED)
    plan = unlock.plan(world.cloud, 'gpus', [LICENSED], again=True)
    assert [step.what for step in plan.steps] == [
        f'untag aggregate gpus trait:{LICENSED}'
    ]


def test_only_required_traits_are_read_below_hosts(world):
    add_card(world)
    assert read(world.cloud).below == {uuid(1, 'h1'): {LICENSED: ('card',)}}
    world.require('gpus', ['h1'])
    assert read(world.cloud).below == {}
