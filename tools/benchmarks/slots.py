# SPDX-License-Identifier: Apache-2.0
"""Measures how long the exporter counts the free slots of ten flavors.

    python tools/benchmarks/slots.py [--csv FILE] [hosts ...]

A tenth as many locks as hosts, and three availability zones. Hosts have one
resource provider each, or two NUMA nodes below it. It is processor time, and
other work of the machine does not count.
"""

import dataclasses
import time

import from_tests
from oslo_config import cfg
import table

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import options as tools_options
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.metrics.slots import MOST, SlotCounter
from isolate_aggregates_tools.placement.provider import Inventory, Provider

from_tests.use()
from loaded import identity  # noqa: E402

HOSTS = (100, 1_000)
ZONES = 3
# The number of hosts per lock.
LOCKED = 10
FLAVORS = tuple(
    Flavor(f'flavor-{number}', str(number), number + 1, 2048, 20)
    for number in range(MOST)
)


def cloud(hosts: int, nodes: int) -> Snapshot:
    """Return a cloud.

    :param nodes: The number of NUMA nodes per host.
    """
    locks = hosts // LOCKED
    aggregates = [
        Aggregate(
            identity('zone', zone),
            f'zone-{zone}',
            {'availability_zone': f'zone-{zone}'},
            frozenset(f'host-{host}' for host in range(zone, hosts, ZONES)),
        )
        for zone in range(ZONES)
    ]
    # Half of the hosts are behind a lock.
    aggregates += [
        Aggregate(
            identity('lock', lock),
            f'lock-{lock}',
            {f'trait:CUSTOM_LOCK_{lock}': 'required'},
            frozenset(
                f'host-{host}' for host in range(lock, hosts // 2, locks)
            ),
        )
        for lock in range(locks)
    ]
    providers = []
    for number in range(hosts):
        name = f'host-{number}'
        processors = {'VCPU': Inventory(64, allocation_ratio=4.0)}
        used = {'VCPU': number % 97}
        providers.append(
            Provider(
                identity(name),
                name,
                host=name,
                inventories={
                    'MEMORY_MB': Inventory(262_144),
                    'DISK_GB': Inventory(4000),
                    **({} if nodes else processors),
                },
                usages={} if nodes else used,
                aggregates=frozenset(
                    one.uuid for one in aggregates if name in one.hosts
                ),
            )
        )
        providers += [
            Provider(
                identity(name, node),
                f'{name}-{node}',
                identity(name),
                inventories=processors,
                usages=used,
            )
            for node in range(nodes)
        ]
    return Snapshot('made up', tuple(aggregates), tuple(providers), FLAVORS)


@dataclasses.dataclass(frozen=True)
class Row:
    """Seconds of processor time."""

    hosts: int
    locks: int
    without_numa: float
    with_numa: float


def main() -> None:
    """Measure and print a table."""
    options = table.parser('hosts', HOSTS).parse_args()
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override('enable_isolated_aggregate_filtering', True, 'scheduler')
    conf.set_override('max_query_length', 0, ia_conf.GROUP)
    rows = []
    for hosts in options.hosts:
        seconds = []
        for nodes in (0, 2):
            audited_cloud = AuditedCloud.of(cloud(hosts, nodes), conf)
            started_at = time.process_time()
            SlotCounter(conf, list).families(audited_cloud)
            seconds.append(time.process_time() - started_at)
        rows.append(Row(hosts, hosts // LOCKED, *seconds))
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
