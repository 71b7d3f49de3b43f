# SPDX-License-Identifier: Apache-2.0
"""Other clients write to the same resource providers during a sync.

nova-compute writes once a minute: traits of its driver come and go.
Memberships change when hosts are moved between aggregates. No data of other
clients is lost, and no data of sync.
"""

from concurrent import futures
import re

from fake_nova import NOVA
from placement.objects import inventory, resource_provider
import pytest
from sync_world import AGGREGATES, GOLD, LICENSED, uuid

from isolate_aggregates.aggregates import rollups
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.placement import edits
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.microversion import NESTED

AVX, SRIOV = 'HW_CPU_X86_AVX2', 'HW_NIC_SRIOV'
MARK = marks.of_trait(LICENSED)
BOTH = rollups.uuid_of(f'trait:{LICENSED}')
OTHERS = uuid(9, 'others')

_WRITE = re.compile(r'/resource_providers/([^/]+)/(traits|aggregates)$')


@pytest.fixture(autouse=True)
def locked(world):
    """Add two locked aggregates."""
    world.add_host('h1', traits=[SRIOV])
    world.add_host('h2')
    world.require('a', ['h1'], LICENSED)
    world.require('b', ['h1', 'h2'], LICENSED)


def writer(world, times):
    """Let another client write the same just before sync, several times."""
    left = dict.fromkeys([('PUT', 'traits'), ('PUT', 'aggregates')], times)

    def meddle(method, url):
        found = _WRITE.search(url)
        if not found or not left.get((method, found[2])):
            return
        left[method, found[2]] -= 1
        if found[2] == 'traits':
            edits.change_traits(
                world.direct, found[1], lambda traits: traits - {SRIOV} | {AVX}
            )
        else:
            edits.change_aggregates(
                world.direct, found[1], lambda members: members | {OTHERS}
            )
        # It writes again even if that changes nothing, as nova-compute does
        # with its inventory.
        path = f'/resource_providers/{found[1]}/inventories'
        inventories = world.direct.get(path)
        inventories['inventories']['VCPU']['total'] += 1
        world.direct.send('PUT', path, inventories)

    return meddle


def test_writes_between_our_read_and_write_are_kept(world):
    world.wire.meddle = writer(world, 3)
    assert world.sync().is_complete
    world.wire.meddle = None
    assert world.of('h1', 'traits') == {AVX, LICENSED, MARK}
    assert world.of('h1', 'aggregates') == {
        OTHERS, BOTH, uuid(2, 'a'), uuid(2, 'b'),
    }  # fmt: skip
    assert world.todo() == []


@pytest.mark.parametrize('what', ['set_traits', 'set_aggregates'])
def test_writes_during_our_write_are_kept(world, monkeypatch, what):
    write = getattr(resource_provider.ResourceProvider, what)
    waiting = [True]

    def in_between(self, *args, **kwargs):
        if waiting and self.uuid == uuid(1, 'h1'):
            waiting.clear()
            inventories = inventory.Inventory(
                resource_provider=self, resource_class='VCPU', total=16
            )
            other = resource_provider.ResourceProvider.get_by_uuid(
                self._context, self.uuid
            )
            other.set_inventory([inventories])
        return write(self, *args, **kwargs)

    monkeypatch.setattr(resource_provider.ResourceProvider, what, in_between)
    assert world.sync().is_complete
    assert not waiting
    path = f'/resource_providers/{uuid(1, "h1")}/inventories'
    inventories = world.direct.get(path)['inventories']
    assert inventories['VCPU']['total'] == 16
    assert world.of('h1', 'traits') == {SRIOV, LICENSED, MARK}
    assert world.todo() == []


def test_a_writer_that_is_always_faster_is_reported(world, monkeypatch):
    monkeypatch.setattr('tenacity.nap.time.sleep', lambda _: None)
    world.wire.meddle = writer(world, 1000)
    result = world.sync()
    assert len(result.failures) == 2
    assert 'with 409' in result.failures[0]
    world.wire.meddle = None
    assert world.sync().is_complete
    assert world.todo() == []


@pytest.mark.slow
def test_concurrent_writers_lose_nothing(world):
    client = PlacementClient(world.direct._service._client)
    rounds = 40
    kept = {'h1': SRIOV, 'h2': 'HW_GPU_API_VULKAN'}

    def compute(host):
        """Write traits as the nova-compute of a host does."""
        for number in range(rounds):
            odd = number % 2
            edits.change_traits(
                client,
                uuid(1, host),
                lambda traits, odd=odd: (
                    (traits | {AVX} if odd else traits - {AVX}) | {kept[host]}
                ),
            )
            edits.change_aggregates(
                client,
                uuid(1, host),
                lambda members, number=number: (
                    members | {uuid(9, f'g{number}')}
                ),
            )

    with futures.ThreadPoolExecutor(3) as pool:
        computes = [pool.submit(compute, host) for host in ('h1', 'h2')]
        syncs = 0
        while syncs < 4 or not all(future.done() for future in computes):
            traits = [LICENSED] if syncs % 2 else [LICENSED, GOLD]
            world.require('b', ['h1', 'h2'], *traits)
            # A sync that gives up because of conflicts is repeated.
            world.sync(parallel=2)
            syncs += 1
        for future in computes:
            future.result()
    world.require('b', ['h1', 'h2'], LICENSED)
    assert world.sync().is_complete

    everything = {uuid(9, f'g{number}') for number in range(rounds)}
    for host, mirrored in ('h1', {'a', 'b'}), ('h2', {'b'}):
        assert world.of(host, 'traits') == {AVX, kept[host], LICENSED, MARK}
        assert world.of(host, 'aggregates') == {
            *everything, BOTH, *(uuid(2, name) for name in mirrored)
        }  # fmt: skip


def test_a_host_that_leaves_during_sync_is_removed(world):
    def meddle(method, url):
        if method == 'PUT' and url.endswith('/aggregates'):
            world.wire.meddle = None
            world.require('a', [], LICENSED)

    world.wire.meddle = meddle
    result = world.sync()
    assert result.is_complete
    assert 'remove aggregate a' in [
        f'{c.action} {c.subject}' for c in result.changes
    ]
    assert uuid(2, 'a') not in world.of('h1', 'aggregates')
    assert uuid(2, 'b') in world.of('h1', 'aggregates')


def test_a_host_that_returns_during_the_removal_stays_a_member(world):
    def leave(method, url):
        if method == 'PUT' and url.endswith('/aggregates'):
            world.wire.meddle = come_back
            world.require('a', [], LICENSED)

    def come_back(method, url):
        # Nova does as sync did: the membership is there, so nothing changes.
        if AGGREGATES in world.wire.calls[3:] and method == 'PUT':
            world.wire.meddle = None
            world.require('a', ['h1'], LICENSED)

    world.wire.meddle = leave
    assert world.sync().is_complete
    assert uuid(2, 'a') in world.of('h1', 'aggregates')
    assert world.todo() == []


def test_a_run_fails_if_nova_cannot_be_read_again(world):
    plan = world.plan()
    world.wire.fault = lambda _: (
        'cut' if world.wire.calls[-1] == AGGREGATES else None
    )
    result = world.carry_out(plan)
    [failure] = result.failures
    assert failure.startswith(
        'resource providers may have been changed according to host '
        f'aggregates that have changed meanwhile: Nova at {NOVA} cannot be '
    )
    assert world.of('h1', 'aggregates') == {BOTH, uuid(2, 'a'), uuid(2, 'b')}


def test_nova_is_not_read_again_without_changes(world):
    world.sync()
    world.wire.calls.clear()
    assert world.sync().changes == []
    assert world.wire.calls.count(AGGREGATES) == 1
    assert not [call for call in world.wire.calls if call[0] != 'GET']


def test_a_provider_that_nova_does_not_list_keeps_its_traits(world):
    world.sync()
    everything = world.picture()
    # Its cell is down, and the metadata is removed meanwhile.
    away = world.nova.nodes.pop(uuid(1, 'h1'))
    world.require('a', ['h1'])
    world.require('b', ['h1', 'h2'])
    assert world.sync().is_complete
    assert world.of('h2', 'traits') == set()
    hosts, traits = world.picture()
    assert hosts['h1']['traits'] == everything[0]['h1']['traits']
    # The mark stays, too, so that sync can remove the trait later.
    assert MARK in traits
    # The correct rollups are known only from Placement.
    assert hosts['h1']['aggregates'] == {uuid(2, 'a'), uuid(2, 'b')}

    world.nova.nodes[away['id']] = away
    assert world.sync().is_complete
    assert world.of('h1', 'traits') == {SRIOV}
    assert world.of('h1', 'aggregates') == {uuid(2, 'a'), uuid(2, 'b')}
    assert world.custom_traits() == [LICENSED]


def test_storage_serves_the_same_hosts_after_sync(world):
    for rack in 'ab':
        world.add_host(f'nfs-{rack}', vcpus=0)
        del world.nova.nodes[uuid(1, f'nfs-{rack}')]
        world.direct.send(
            'PUT',
            f'/resource_providers/{uuid(1, f"nfs-{rack}")}/inventories',
            {
                'resource_provider_generation': world.direct.get(
                    f'/resource_providers/{uuid(1, f"nfs-{rack}")}'
                )['generation'],
                'inventories': {'DISK_GB': {'total': 100}},
            },
        )
    world.require('a', ['h1'], LICENSED)
    world.require('b', ['h2'], LICENSED)
    for host, rack in ('h1', 'a'), ('h2', 'b'):
        world.put(
            f'nfs-{rack}',
            traits=['MISC_SHARES_VIA_AGGREGATE'],
            aggregates=[uuid(2, rack), BOTH],
        )
        world.put(host, aggregates=[uuid(2, rack)])
    assert world.sync().is_complete
    assert world.todo() == []
    assert world.of('h1', 'aggregates') == {uuid(2, 'a'), BOTH}
    found = world.direct.get(
        '/allocation_candidates?resources=VCPU:1,DISK_GB:1', NESTED
    )['allocation_requests']
    assert {frozenset(each['allocations']) for each in found} == {
        frozenset({uuid(1, 'h1'), uuid(1, 'nfs-a')}),
        frozenset({uuid(1, 'h2'), uuid(1, 'nfs-b')}),
    }
