# SPDX-License-Identifier: Apache-2.0
"""After a sync, an audit has no findings that it calls safe to repair."""

import random

import pytest
from sync_world import GOLD, LICENSED

from isolate_aggregates.aggregates import rollups
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.audit import AuditedCloud, audit
from isolate_aggregates_tools.cloud.live import snapshots
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.repairs import commands

HOSTS = ('h1', 'h2', 'h3', 'h4')
NAMES = ('a1', 'a2', 'a3')
# Sync leaves the last one to nova-compute.
TRAITS = (LICENSED, GOLD, 'HW_CPU_X86_VMX')
KEYS = {f'trait:{trait}': 'required' for trait in (LICENSED, GOLD)}
FLAVORS = (Flavor('keyed', vcpus=1, extra_specs=KEYS),)


@pytest.fixture(autouse=True)
def switched_on(conf):
    """Configure both filters as they should be."""
    for option, value in (
        ('enable_isolated_aggregate_filtering', True),
        ('placement_req_required_member_prefix', ['reservation:']),
    ):
        conf.set_override(option, value, 'scheduler')


def audited(world, conf):
    """Audit the current state of the cloud."""
    snapshot = Snapshot(
        'test',
        tuple(world.groups.values()),
        snapshots.take_providers(world.cloud.nova, world.direct),
        FLAVORS,
    )
    known = world.direct.get('/traits')['traits']
    return audit(AuditedCloud.of(snapshot, conf, traits=frozenset(known)))


def others(findings):
    """Return the memberships that sync must not remove."""
    return {f.problem for f in findings if f.kind == 'not-in-nova'}


def some(chance, things):
    """Return a random subset."""
    return chance.sample(things, chance.randint(0, len(things)))


def change_tags(chance, world):
    """Change aggregates as operators do, only in Nova."""
    for name in NAMES:
        world.require(name, some(chance, HOSTS), *some(chance, TRAITS))


def change_placement(chance, world):
    """Change traits and memberships in Placement as other clients do."""
    uuids = [a.uuid for a in world.groups.values()]
    uuids += [rollups.uuid_of(f'trait:{trait}') for trait in TRAITS]
    for host in some(chance, HOSTS):
        world.put(host, traits=some(chance, TRAITS))
    for host in some(chance, HOSTS):
        world.put(host, aggregates=some(chance, uuids))


@pytest.mark.parametrize(
    'seed',
    [
        *range(2),
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 10)),
    ],
)
def test_sync_makes_every_safe_repair(world, conf, seed):
    chance = random.Random(seed)
    for host in HOSTS:
        world.add_host(host)
    for _ in range(3):
        change_tags(chance, world)
        change_placement(chance, world)
        before = audited(world, conf)
        safe = {f.kind for f in before if f.safe}
        safe = {f.repairs[0].commands for f in before if f.safe}
        assert safe <= {commands.SYNC}
        todo = world.todo()
        # If no finding is safe to repair, sync has nothing left to do except
        # for the first rollups and marks, which have no finding.
        if not safe:
            assert all('rollup' in what for what in todo), (todo, before)
        world.sync()
        after = audited(world, conf)
        assert [f for f in after if f.safe] == []
        # And unsafe findings are unchanged.
        assert others(before) == others(after)


def test_a_synced_cloud_is_clean(world, conf):
    for host in HOSTS:
        world.add_host(host)
    world.require('a1', ['h1', 'h2'], LICENSED)
    world.require('a2', ['h3'], LICENSED, GOLD)
    world.require('plain', HOSTS)
    assert audited(world, conf) != []
    world.sync()
    assert audited(world, conf) == []
