# SPDX-License-Identifier: Apache-2.0
"""Measures the explanation of all hosts of a cloud.

    python tools/benchmarks/explain.py [hosts ...]

The hosts have one provider each and are in 20 host aggregates, half of them
with locks. Every third host lacks capacity. All of Nova's own request filters
and the host filters for aggregates are enabled. The measured time begins with
a snapshot and ends with the summarized texts of all reasons. It is the median
of several runs. Each size is measured in a separate process. Its peak memory
includes Python, the libraries, the snapshot and the explanation.
"""

from collections.abc import Callable
import dataclasses
import multiprocessing
import resource
import statistics
import sys
import time

from oslo_config import cfg

from isolate_aggregates import options
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools import explain, ranges, testing
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.explain import groups
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.placement.provider import Inventory, Provider
from isolate_aggregates_tools.request import Request, resources
from isolate_aggregates_tools.simulator.index import ProviderIndex

HOSTS = (100, 1_000, 10_000)
AGGREGATES = 20
RUNS = 7
HOST_FILTERS = [
    'AggregateInstanceExtraSpecsFilter',
    'AggregateImagePropertiesIsolation',
    'AggregateMultiTenancyIsolation',
    'AggregateTypeAffinityFilter',
    'IsolatedHostsFilter',
]


def every_filter() -> Pipeline:
    """Return our filters and the mirrors of Nova's own."""
    conf = cfg.ConfigOpts()
    options.register_own_opts(conf)
    conf([], default_config_files=[])
    for group, option in options.CLOUD_SETTINGS:
        if isinstance(options.value_of(conf, group, option), bool):
            conf.set_override(option, True, group)
    conf.set_override('enabled_filters', HOST_FILTERS, options.HOST_FILTERS)
    mirrored = chain.mirrored(conf)
    return Pipeline(
        {
            'isolate_aggregates': IsolateAggregates(),
            **{one.name: one.request_filter for one in mirrored},
        }
    )


FILTERS = every_filter()
REQUEST = Request(
    testing.make_flavor(
        'm1.large',
        {
            'trait:HW_CPU_X86_AVX512F': 'required',
            'trait:CUSTOM_SLOW': 'forbidden',
            'aggregate_instance_extra_specs:ssd': 'true',
        },
        vcpus=4,
        ram=8192,
        disk=80,
    ),
    dataclasses.replace(
        testing.make_image(
            'debian-12', {'hw_disk_bus': 'virtio', 'os_distro': 'debian'}
        ),
        disk_format='qcow2',
    ),
    project_id='demo',
    availability_zone='az1',
    owner_nova=True,
)


def traits(number: int) -> frozenset[str]:
    """Return the traits of a host; few hosts are slow or disabled."""
    found = {
        'HW_CPU_X86_AVX2',
        'COMPUTE_NODE',
        'COMPUTE_IMAGE_TYPE_QCOW2',
        'OWNER_NOVA',
    }
    if number % 31:
        found.add('COMPUTE_STORAGE_BUS_VIRTIO')
    if number % 4:
        found.add('HW_CPU_X86_AVX512F')
    if number % 23 == 0:
        found.add('CUSTOM_SLOW')
    if number % 50 == 0:
        found.add('COMPUTE_STATUS_DISABLED')
    return frozenset(found)


def compute_node(number: int) -> Provider:
    """Return a host with some usage."""
    return testing.make_compute_node(
        f'host-{number:05}',
        inventories={
            'VCPU': Inventory(64, 2, allocation_ratio=4.0),
            'MEMORY_MB': Inventory(512_000, 8192),
            'DISK_GB': Inventory(4000),
        },
        usages={
            'VCPU': number * 7 % 280,
            'MEMORY_MB': number * 11 % 560 * 1000,
            'DISK_GB': number * 13 % 440 * 10,
        },
        traits=traits(number),
    )


def metadata(number: int) -> dict[str, str]:
    """Return the tags of an aggregate."""
    found = {
        'availability_zone': 'az1' if number % 5 else 'az2',
        'filter_tenant_id': 'demo' if number % 7 else 'other',
        'ssd': 'true' if number % 3 else 'false',
        'os_distro': 'debian' if number % 11 else 'windows',
    }
    if number % 2:
        found[f'trait:CUSTOM_{number % 5}'] = 'required'
    return found


def cloud(hosts: int) -> Snapshot:
    """Return a cloud, each of its hosts in one of the aggregates."""
    nodes = [compute_node(number) for number in range(hosts)]
    aggregates = [
        testing.make_aggregate(
            f'aggregate-{number}',
            metadata(number),
            [node.host or '' for node in nodes[number::AGGREGATES]],
        )
        for number in range(AGGREGATES)
    ]
    return testing.make_snapshot(aggregates, nodes)


def explained(snapshot: Snapshot, request: Request) -> explain.Explanation:
    """Do the work of the command, except reading and printing."""
    return explain.explain(
        snapshot,
        resources.resource_request(request),
        FILTERS.evaluate(request, snapshot.index),
    )


def reasons_of(explanation: explain.Explanation) -> int:
    """Build all reasons; return their number."""
    return sum(len(verdict.reasons) for verdict in explanation.verdicts)


def texts(explanation: explain.Explanation) -> int:
    """Build the lines to print; return the number of characters."""
    found = groups.hosts(explanation.verdicts)[:20]
    lines = [
        *(text for group in found for text in group.reasons),
        *(
            ranges.folded(verdict.host for verdict in group.verdicts)
            for group in found
        ),
        *(
            label
            for count in groups.counts(explanation)
            for label in count.labels
        ),
    ]
    return sum(map(len, lines))


def seconds(work: Callable[[], object]) -> float:
    """Return the median duration in seconds."""
    took = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return statistics.median(took)


ROW = '{:>7} {:>10} {:>8} {:>10} {:>10} {:>10} {:>10} {:>9}'


def measured(hosts: int) -> str:
    """Measure with a number of hosts; return the line of the table."""
    snapshot = cloud(hosts)
    explanation = explained(snapshot, REQUEST)
    found = sum(verdict.is_candidate for verdict in explanation.verdicts)
    reasons = reasons_of(explanation)
    index = seconds(lambda: ProviderIndex(snapshot.providers))
    everything = seconds(lambda: texts(explained(snapshot, REQUEST)))
    telling = seconds(lambda: texts(explanation))
    # Linux reports KiB.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return ROW.format(
        f'{hosts:,}',
        f'{found:,}',
        f'{reasons:,}',
        f'{index * 1e3:,.1f} ms',
        f'{(everything - index - telling) * 1e3:,.1f} ms',
        f'{telling * 1e3:,.1f} ms',
        f'{everything * 1e3:,.1f} ms',
        f'{peak:,.0f} MiB',
    )


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or HOSTS
    print(
        ROW.format(
            'hosts',
            'candidates',
            'reasons',
            'index',
            'verdicts',
            'texts',
            'all',
            'peak',
        )
    )
    new_process = multiprocessing.get_context('spawn')
    for hosts in sizes:
        with new_process.Pool(1) as pool:
            print(pool.apply(measured, [hosts]), flush=True)


if __name__ == '__main__':
    main()
