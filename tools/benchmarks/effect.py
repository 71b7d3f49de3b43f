# SPDX-License-Identifier: Apache-2.0
"""How long the effect of one lock takes.

    python tools/benchmarks/effect.py [--csv FILE] [hosts ...]

The cloud has 20 servers for each host, 2 hosts in each aggregate, and a
tenth of the aggregates have a lock already. The change locks one more
aggregate of 18 hosts. Times are processor time of the whole computation, with
the cloud in memory; memory is the peak of the process.
"""

import dataclasses
import resource
import time

from oslo_config import cfg
import table

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import options as tools_options
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import Server, Servers
from isolate_aggregates_tools.effect import effect
from isolate_aggregates_tools.placement.provider import Inventory, Provider

FIELDS = ('hosts', 'servers', 'flavors', 'aggregates', 'seconds', 'mebibytes')
SERVERS = 20
FLAVORS = 100
LOCKED = 10


def uuid(kind: int, number: int) -> str:
    """Return the uuid of an object."""
    return f'{kind:08x}-0000-4000-8000-{number:012x}'


def lock(number: int) -> dict[str, str]:
    """Return the metadata of a lock."""
    return {f'trait:CUSTOM_LICENCE_{number}': 'required'}


def cloud(hosts: int) -> Snapshot:
    """Return a cloud with servers on each host."""
    pairs = [
        Aggregate(
            uuid(1, number),
            f'pair-{number:05}',
            lock(number % 40) if number % LOCKED == 0 else {},
            frozenset({f'cn-{2 * number:05}', f'cn-{2 * number + 1:05}'}),
            id=number + 1,
        )
        for number in range(hosts // 2)
    ]
    rack = Aggregate(
        uuid(2, 1),
        'rack',
        {},
        frozenset(f'cn-{number:05}' for number in range(2, 20)),
        id=hosts,
    )
    aggregates = (*pairs, rack)
    by_host: dict[str, list[Aggregate]] = {}
    for aggregate in aggregates:
        for host in aggregate.hosts:
            by_host.setdefault(host, []).append(aggregate)
    traits = {
        host: frozenset(
            key.removeprefix('trait:')
            for aggregate in some
            for key in aggregate.metadata
        )
        for host, some in by_host.items()
    }
    flavors = [
        Flavor(
            f'flavor-{number:03}',
            str(number),
            vcpus=1 + number % 4,
            ram=1024 * (1 + number % 7),
            disk=10,
            extra_specs=lock(number) if number < 40 else {},
        )
        for number in range(FLAVORS)
    ]
    placed = [
        Server(
            uuid(3, number),
            f'server-{number}',
            f'project-{number % 100}',
            'ACTIVE',
            f'cn-{number % hosts:05}',
            dataclasses.replace(flavors[40 + number % 60], id=''),
            'image',
        )
        for number in range(SERVERS * hosts)
    ]
    image = Image('image', 'image')
    return Snapshot(
        'benchmark',
        aggregates,
        tuple(
            Provider(
                uuid(4, number),
                host,
                host=host,
                inventories={
                    'VCPU': Inventory(64, allocation_ratio=4.0),
                    'MEMORY_MB': Inventory(262_144),
                    'DISK_GB': Inventory(2_000),
                },
                usages={
                    'VCPU': 40 + number % 7,
                    'MEMORY_MB': 81_920 + number % 11 * 1024,
                    'DISK_GB': 200,
                },
                traits=traits.get(host, frozenset()),
                aggregates=frozenset(a.uuid for a in by_host.get(host, ())),
            )
            for number in range(hosts)
            for host in [f'cn-{number:05}']
        ),
        tuple(flavors),
        (image,),
        servers=Servers(tuple(placed), {'image': image}, True),
    )


def configuration() -> cfg.ConfigOpts:
    """Return the settings of a nova-scheduler that isolates."""
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    option = 'enable_isolated_aggregate_filtering'
    conf.set_override(option, True, ia_conf.SCHEDULER)
    return conf


def measure(hosts: int) -> dict[str, object]:
    """Return the costs of one effect."""
    before = cloud(hosts)
    change = changes.values(before.aggregates[-1], lock(50))
    after = change(before)
    start = time.process_time()
    result = effect(before, after, configuration())
    seconds = time.process_time() - start
    assert len(result.displaced) == SERVERS * len(before.aggregates[-1].hosts)
    return {
        'hosts': hosts,
        'servers': SERVERS * hosts,
        'flavors': FLAVORS,
        'aggregates': len(before.aggregates),
        'seconds': round(seconds, 2),
        'mebibytes': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        // 1024,
    }


if __name__ == '__main__':
    table.measure_apart(
        __doc__, 'hosts', [100, 1_000, 10_000], measure, FIELDS
    )
