# SPDX-License-Identifier: Apache-2.0
"""Computed capacity equals the number of claims that Placement accepts.

Placement has its known mistakes repaired, as in
``test_simulator_differential``.
"""

import uuid

from hypothesis import given
from hypothesis import strategies as st
import placement_repairs
from thorough import examples

from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates_tools import capacity
from isolate_aggregates_tools.capacity import fitting_servers
from isolate_aggregates_tools.cloud.file import load
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.embedded import embedded_client
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.placement.provider import Inventory, Provider
from isolate_aggregates_tools.request.constraints import DropHosts

OWNER = str(uuid.UUID(int=0))
SHARED = str(uuid.UUID(int=1))

inventories = st.builds(
    Inventory,
    total=st.integers(1, 4),
    reserved=st.integers(0, 1),
    max_unit=st.integers(1, 4),
    step_size=st.sampled_from([1, 1, 2]),
    allocation_ratio=st.sampled_from([1.0, 1.5, 2.0]),
)


def provider(number, name, parent=None, host=None, **fields):
    return Provider(
        str(uuid.UUID(int=100 + number)), name, parent, host, **fields
    )


@st.composite
def clouds(draw):
    """Hosts with and without NUMA nodes, and perhaps shared storage."""
    providers = []
    shared = draw(st.booleans())
    for number in range(draw(st.integers(1, 3))):
        nodes = draw(st.integers(0, 2))
        local = {} if shared else {'DISK_GB': draw(inventories)}
        own = {'VCPU': draw(inventories)} if not nodes else {}
        used = {'VCPU': draw(st.integers(0, 2))} if own else {}
        root = provider(
            10 * number,
            f'host-{number}',
            host=f'host-{number}',
            inventories={**own, **local, 'MEMORY_MB': Inventory(8)},
            usages={rc: n for rc, n in used.items() if n},
            aggregates=frozenset({SHARED} if shared else ()),
        )
        providers.append(root)
        providers += [
            provider(
                10 * number + node + 1,
                f'numa-{number}-{node}',
                root.uuid,
                inventories={'VCPU': draw(inventories)},
            )
            for node in range(nodes)
        ]
    if shared:
        providers.append(
            provider(
                90,
                'storage',
                inventories={'DISK_GB': draw(inventories)},
                traits=frozenset({'MISC_SHARES_VIA_AGGREGATE'}),
                aggregates=frozenset({SHARED}),
            )
        )
    return Snapshot('random', providers=tuple(providers))


@st.composite
def requests(draw):
    request = ResourceRequest()
    for resource_class in draw(
        st.sets(st.sampled_from(['VCPU', 'DISK_GB', 'MEMORY_MB']), min_size=1)
    ) | {'VCPU'}:
        suffix = draw(st.sampled_from(['', '', '_X']))
        amount = draw(st.integers(1, 2))
        request.group(suffix).resources[resource_class] = amount
    return request


def claimed(snapshot, request):
    """Claim candidates of real Placement, host by host, until none is left."""
    hosts = {p.uuid: p.host for p in snapshot.providers if p.host}
    servers = dict.fromkeys(hosts, 0)
    with embedded_client() as placement, placement_repairs.repaired():
        load.into_placement(snapshot, placement)
        for root in sorted(hosts, key=hosts.get):
            # As Nova, which takes only those with the compute node.
            while candidates := [
                candidate
                for candidate in placement.allocation_candidates(request)
                .by_root(request)
                .get(root, ())
                if root in candidate
            ]:
                placement.send(
                    'PUT',
                    f'/allocations/{uuid.uuid4()}',
                    {
                        'allocations': {
                            giver: {'resources': dict(amounts)}
                            for giver, amounts in candidates[0].items()
                        },
                        'project_id': OWNER,
                        'user_id': OWNER,
                        'consumer_generation': None,
                    },
                )
                servers[root] += 1
    return {hosts[root]: count for root, count in servers.items() if count}


@examples(10)
@given(clouds(), requests())
def test_capacity_equals_the_number_of_claims_placement_accepts(
    snapshot, request
):
    packing = capacity.Packing(snapshot, request)
    servers = {one.host: one.servers for one in packing.fitting()}
    assert servers == claimed(snapshot, request)
    assert packing.total() == sum(servers.values())


def test_hosts_with_equal_room_are_counted_once(monkeypatch):
    counted = []

    def counting(root, request):
        counted.append(root.host)
        return on_one_provider(root, request)

    on_one_provider = capacity._on_one_provider
    monkeypatch.setattr(capacity, '_on_one_provider', counting)
    hosts = [
        provider(
            n,
            f'host-{n}',
            host=f'host-{n}',
            inventories={'VCPU': Inventory(8)},
            usages={'VCPU': n % 2 * 3},
        )
        for n in range(20)
    ]
    request = ResourceRequest()
    request.group().resources |= {'VCPU': 2}
    snapshot = Snapshot('large', providers=tuple(hosts))
    assert capacity.Packing(snapshot, request).total() == 10 * 4 + 10 * 2
    assert counted == ['host-0', 'host-1']
    # Without those that a filter of Nova would drop.
    destination = Destination()
    destination.add(
        DropHosts(
            lambda host: (
                '' if host in ('host-2', 'host-3') else 'not this one'
            ),
            'dropped',
        ),
        'SomeFilter',
    )
    packing = capacity.Packing(snapshot, request, destination)
    assert packing.total() == 4 + 2
    assert [one.host for one in packing.fitting()] == ['host-2', 'host-3']


def test_identical_trees_are_simulated_once(monkeypatch):
    made = []

    def counting(*args):
        made.append(args)
        return simulator(*args)

    simulator = capacity.simulator
    monkeypatch.setattr(capacity, 'simulator', counting)
    hosts = [
        provider(
            10 * n,
            f'host-{n}',
            host=f'host-{n}',
            inventories={'MEMORY_MB': Inventory(5000)},
        )
        for n in range(20)
    ]
    nodes = [
        provider(
            10 * n + node,
            f'numa-{n}-{node}',
            host.uuid,
            inventories={'VCPU': Inventory(500)},
        )
        for n, host in enumerate(hosts)
        for node in (1, 2)
    ]
    request = ResourceRequest()
    request.group().resources |= {'VCPU': 1, 'MEMORY_MB': 1}
    fits = fitting_servers(
        Snapshot('large', providers=(*hosts, *nodes)), request
    )
    assert [one.servers for one in fits] == [1000] * 20
    # One for the cloud; one for each node of a host, and one that is full.
    assert len(made) == 4
