# SPDX-License-Identifier: Apache-2.0
"""Measures the simulator, compared with a real Placement.

    python tools/benchmarks/simulator.py [hosts ...]

Placement runs in this process on SQLite in memory, and what is measured of it
is what its client waits for. That is processor time on either side: neither
waits for a network or a disk, and other work of the machine does not count.
Both answer in full, and the answers are checked to be the same. Of several
runs the median counts.
"""

from collections.abc import Callable, Iterator
import gc
import pathlib
import statistics
import sys
import time
import tracemalloc

import from_tests
import os_traits

from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.embedded import embedded_client
from isolate_aggregates_tools.placement.client import (
    AllocationCandidates,
    PlacementClient,
)
from isolate_aggregates_tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)
from isolate_aggregates_tools.placement.provider import Inventory, Provider
from isolate_aggregates_tools.simulator import Simulator

ROOT = pathlib.Path(__file__).resolve().parents[2]
from_tests.use()
from loaded import identity  # noqa: E402
import placement_rows  # noqa: E402

HOSTS = (100, 1_000, 10_000)
CPU_TRAITS = frozenset(os_traits.get_traits(prefix='HW_CPU_X86_')[:40])
SHARING = os_traits.MISC_SHARES_VIA_AGGREGATE


ZONES = [identity('zone', number) for number in range(3)]
TAGGED = [identity('tagged', number) for number in range(40)]


def places(number: int) -> frozenset[str]:
    """Return aggregates: a zone for each host, a lock for every other one."""
    tagged = TAGGED[number % 80 : number % 80 + 1]
    return frozenset([ZONES[number % 3], *tagged])


def flat(hosts: int) -> Iterator[Provider]:
    """Yield hosts with one provider each; three in four have capacity."""
    for number in range(hosts):
        used = number % 64
        yield Provider(
            uuid=identity('host', number),
            name=f'host-{number}',
            inventories={
                'VCPU': Inventory(64, 2, allocation_ratio=4.0),
                'MEMORY_MB': Inventory(512_000, 8192),
                'DISK_GB': Inventory(4000, max_unit=2000),
            },
            usages={
                'VCPU': used * 4,
                'MEMORY_MB': used * 10_000,
                'DISK_GB': used * 50,
            },
            traits=frozenset([*CPU_TRAITS]),
            aggregates=places(number),
        )


def nested(hosts: int) -> Iterator[Provider]:
    """Yield hosts with two NUMA nodes, two GPUs and shared storage."""
    for zone in ZONES:
        yield Provider(
            uuid=identity('storage', zone),
            name=f'storage-{zone}',
            inventories={'DISK_GB': Inventory(10_000_000)},
            traits=frozenset([SHARING]),
            aggregates=frozenset([zone]),
        )
    for number in range(hosts):
        host = identity('host', number)
        yield Provider(
            uuid=host,
            name=f'host-{number}',
            traits=frozenset([*CPU_TRAITS]),
            aggregates=places(number),
        )
        for half in range(2):
            node = identity('node', number, half)
            yield Provider(
                uuid=node,
                name=f'host-{number}-numa-{half}',
                parent=host,
                inventories={
                    'VCPU': Inventory(32, 1, allocation_ratio=4.0),
                    'MEMORY_MB': Inventory(256_000, 4096),
                },
                usages={'VCPU': number % 128, 'MEMORY_MB': number % 64 * 4000},
                traits=frozenset([os_traits.HW_NUMA_ROOT]),
            )
            yield Provider(
                uuid=identity('gpu', number, half),
                name=f'host-{number}-gpu-{half}',
                parent=node,
                inventories={'VGPU': Inventory(4)},
                usages={'VGPU': (number + half) % 5},
            )


def flavor(limit: int | None) -> ResourceRequest:
    """Return Nova's query for a plain flavor; its default limit is 1,000."""
    group = RequestGroup(
        resources={'VCPU': 4, 'MEMORY_MB': 8192, 'DISK_GB': 40},
        required_traits=set(sorted(CPU_TRAITS)[:2]),
        forbidden_traits={'COMPUTE_STATUS_DISABLED'},
        aggregates=[frozenset(ZONES[:2])],
        forbidden_aggregates=set(TAGGED[10:]),
    )
    return ResourceRequest({'': group}, limit=limit)


def gpu(limit: int | None) -> ResourceRequest:
    """Return a query for CPU, shared disk, and a GPU in a second group."""
    request = flavor(limit)
    request.group().required_traits = {os_traits.HW_NUMA_ROOT}
    request.group('_GPU').resources = {'VGPU': 1}
    request.root_required = set(sorted(CPU_TRAITS)[:2])
    return request


def seconds(
    ask: Callable[[ResourceRequest], AllocationCandidates],
    request: ResourceRequest,
    runs: int,
) -> float:
    """Return the median duration of a query."""
    took = []
    for _ in range(runs):
        # Or a run could collect the garbage of the previous one.
        gc.collect()
        start = time.process_time()
        answer = ask(request)
        took.append(time.process_time() - start)
        del answer
    return statistics.median(took)


def same(one: AllocationCandidates, other: AllocationCandidates) -> bool:
    """Return whether two responses are equal, ignoring the order."""

    def candidates(answer: AllocationCandidates) -> set[object]:
        return {
            frozenset(
                (provider, frozenset(amounts.items()))
                for provider, amounts in candidate.items()
            )
            for candidate in answer.allocation_requests
        }

    return (
        candidates(one) == candidates(other)
        and one.summaries == other.summaries
    )


def memory(
    make: Callable[[int], Iterator[Provider]], hosts: int
) -> tuple[float, float]:
    """Return the megabytes of a snapshot, and of the simulator's index."""
    tracemalloc.start()
    snapshot = Snapshot('benchmark', providers=tuple(make(hosts)))
    gc.collect()
    cloud, _ = tracemalloc.get_traced_memory()
    simulator = Simulator(snapshot.providers)
    gc.collect()
    both, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del simulator
    return cloud / 1e6, (both - cloud) / 1e6


CLOUDS = {
    'flat': (flat, flavor),
    'nested': (nested, gpu),
}
ROW = '{:>7} {:7} {:>6} {:>6} {:>12} {:>12} {:>7} {:>9}'


def compare(
    placement: PlacementClient, hosts: int, kind: str
) -> Iterator[str]:
    make, question = CLOUDS[kind]
    snapshot = Snapshot('benchmark', providers=tuple(make(hosts)))
    placement_rows.load(snapshot.providers)
    start = time.process_time()
    simulator = Simulator(snapshot.providers)
    index = time.process_time() - start
    for limit in (1000, None):
        request = question(limit)
        ours = seconds(simulator.allocation_candidates, request, 11)
        real = seconds(placement.allocation_candidates, request, 3)
        answer = simulator.allocation_candidates(request)
        if limit is None:
            assert same(placement.allocation_candidates(request), answer)
        yield ROW.format(
            f'{hosts:,}',
            kind,
            limit or 'none',
            f'{len(answer.allocation_requests):,}',
            f'{real * 1e3:,.0f} ms',
            f'{ours * 1e3:,.2f} ms',
            f'{real / ours:,.0f}',
            '' if limit else f'{index * 1e3:,.0f} ms',
        )
        del answer


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or HOSTS
    print(
        ROW.format(
            'hosts',
            'cloud',
            'limit',
            'found',
            'Placement',
            'simulator',
            'ratio',
            'index',
        )
    )
    for hosts in sizes:
        for kind in CLOUDS:
            with embedded_client() as placement:
                for line in compare(placement, hosts, kind):
                    print(line, flush=True)
    print()
    for hosts in sizes:
        for kind, (make, _) in CLOUDS.items():
            cloud, index = memory(make, hosts)
            print(
                f'{hosts:>7,} {kind:7} snapshot {cloud:6.1f} MB, '
                f'index {index:6.1f} MB'
            )


if __name__ == '__main__':
    main()
