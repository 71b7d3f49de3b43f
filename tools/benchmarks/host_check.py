# SPDX-License-Identifier: Apache-2.0
"""Measures what a boot after a shortened query costs Placement, and how long.

    python tools/benchmarks/host_check.py [--csv FILE] [--hosts NUMBER ...]
        [--before CHECKOUT] [aggregates ...]

The nova-scheduler of ``scheduler.py``, with more hosts, of which those after
the first ten have no compute service of their own, only what Nova and
Placement know of one. Of these hosts all but two are returned by Placement,
and nova-scheduler names alternates, as for each boot. Calls are those of this
package to Placement for one boot, besides the query for allocation candidates
and the claim, which Nova sends anyway.

filters
    What the request filters take of *ours*, above what Nova's take.
query
    What the longer query for allocation candidates takes more.
check
    The calls, which Placement answers in this process.

With ``--before`` the plugin of another checkout of this project and this one
run in turn, each several times in a process of its own.
"""

import argparse
from collections.abc import Callable, Iterator
import contextlib
import csv
import dataclasses
import logging
import os
import pathlib
import pkgutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, ClassVar
import unittest
from unittest import mock

from oslo_utils import timeutils, uuidutils
import scheduler
from scheduler import nova_context, objects
import table

from isolate_aggregates.placement import PlacementReader

HOSTS = (10, 50)
AGGREGATES = (1_000, 5_000)
NOT_COPIED = (
    *('id', 'uuid', 'host', 'hypervisor_hostname', 'service_id'),
    *('created_at', 'updated_at', 'deleted', 'deleted_at', 'pci_device_pools'),
)
# What the parts of a boot are measured of.
PARTS = {
    'filters': 'nova.scheduler.request_filter.process_reqspec',
    'query': 'nova.scheduler.client.report.SchedulerReportClient'
    '.get_allocation_candidates',
    'check': 'isolate_aggregates.placement.PlacementReader.get',
}


@dataclasses.dataclass(frozen=True)
class Row:
    """Milliseconds, and calls of this package to Placement, for one boot."""

    hosts: int
    aggregates: int
    no_isolation: float
    ours: float
    calls: int
    filters: float
    query: float
    check: float

    @property
    def times(self) -> float:
        """How many times as long as without isolation it takes."""
        return self.ours / self.no_isolation


@dataclasses.dataclass(frozen=True)
class Change:
    """Calls, and how many times as long as without isolation, by checkout."""

    hosts: int
    aggregates: int
    calls_before: int
    calls: int
    times_before: float
    times: float


class Benchmark(scheduler.Benchmark):
    """The measured nova-scheduler."""

    ALTERNATES = True
    # A class attribute, because the test object is deleted at the end.
    found: ClassVar[list[Row]] = []

    # How many of the hosts have a compute service.
    SERVICES = 10

    def _start_compute(self, host):
        names = self.HOSTS
        if names.index(host) < self.SERVICES:
            return super()._start_compute(host)
        return self.copy_host(names[0], host)

    def copy_host(self, name, other):
        """Make a host that is like another, but has no compute service."""
        context = nova_context.get_admin_context()
        cell = objects.HostMapping.get_by_host(context, name).cell_mapping
        with nova_context.target_cell(context, cell) as in_cell:
            service = objects.Service.get_by_compute_host(in_cell, name)
            copy = objects.Service(
                in_cell,
                host=other,
                **{
                    field: getattr(service, field)
                    for field in ('binary', 'topic')
                },
                report_count=1,
                last_seen_up=timeutils.utcnow(),
            )
            copy.create()
            node = objects.ComputeNode.get_first_node_by_host_for_old_compat(
                in_cell, name
            )
            values = {
                field: getattr(node, field)
                for field in node.fields
                if node.obj_attr_is_set(field)
            }
            for field in NOT_COPIED:
                values.pop(field, None)
            objects.ComputeNode(
                in_cell,
                **values,
                host=other,
                hypervisor_hostname=other,
                service_id=copy.id,
                uuid=uuidutils.generate_uuid(),
            ).create()
        objects.HostMapping(context, host=other, cell_mapping=cell).create()
        self.copy_provider(name, other)

    def copy_provider(self, name, other):
        """Give a host a resource provider like that of another."""
        known = self._get_provider_uuid_by_host(name)
        made = objects.ComputeNode.get_by_nodename(
            nova_context.get_admin_context(), other
        ).uuid
        provider = {'name': other, 'uuid': made}
        self.placement.post('/resource_providers', provider, version='1.20')
        for generation, what in enumerate(('inventories', 'traits')):
            path = f'/resource_providers/{{}}/{what}'
            found = self.placement.get(path.format(known), version='1.29')
            body = {
                what: found.body[what],
                'resource_provider_generation': generation,
            }
            self.placement.put(path.format(made), body, version='1.29')

    def measure(self):
        """Measure a boot with and without this package."""
        self.flags(service_down_time=86_400)
        scheduler.filter_cost.fill(self.number)
        self.populate()
        self.restart_scheduler()
        with parts() as with_us:
            ours = self.milliseconds()
        calls = self.calls()
        self.take_out()
        with parts() as without:
            no_isolation = self.milliseconds(isolated=False)
        filters, query, check = (
            statistics.median(with_us[name] or [0.0])
            - statistics.median(without[name] or [0.0])
            for name in PARTS
        )
        self.found.append(
            Row(
                len(self.HOSTS),
                self.number,
                no_isolation,
                ours,
                calls,
                filters,
                query,
                calls * check,
            )
        )

    def calls(self):
        """Return how many calls this package sends for one boot."""
        sent = []
        get = PlacementReader.get

        def counted(client, path, *arguments):
            sent.append(path)
            return get(client, path, *arguments)

        PlacementReader.get = counted
        try:
            self.schedule()
        finally:
            PlacementReader.get = get
        return len(sent)


@contextlib.contextmanager
def parts() -> Iterator[dict[str, list[float]]]:
    """Take the milliseconds of each call of the functions in ``PARTS``."""
    found: dict[str, list[float]] = {name: [] for name in PARTS}

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                found[name].append(1000 * (time.process_time() - start))

        return run

    with contextlib.ExitStack() as stack:
        for name, path in PARTS.items():
            function = timed(name, pkgutil.resolve_name(path))
            stack.enter_context(mock.patch(path, function))
        yield found


def measure(hosts: int, aggregates: int) -> Row:
    """Measure in separate fixtures."""
    Benchmark.HOSTS = tuple(f'host{number}' for number in range(hosts))
    benchmark = Benchmark('measure')
    benchmark.number = aggregates
    result = unittest.TestResult()
    benchmark.run(result)
    for _, traceback in result.errors + result.failures:
        sys.exit(traceback)
    return Benchmark.found[-1]


def measure_in(checkout: pathlib.Path, hosts: int, aggregates: int) -> Row:
    """Measure the plugin of a checkout in a process of its own."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / 'rows.csv'
        subprocess.run(
            [
                sys.executable,
                __file__,
                '--csv',
                path,
                '--hosts',
                str(hosts),
                '--',
                str(aggregates),
            ],
            env={**os.environ, 'PYTHONPATH': str(checkout)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        with path.open(encoding='utf-8') as stream:
            [row] = csv.DictReader(stream)
    return Row(
        hosts,
        aggregates,
        float(row['no_isolation']),
        float(row['ours']),
        int(row['calls']),
        *(float(row[name]) for name in PARTS),
    )


def compare(before: pathlib.Path, hosts: int, aggregates: int) -> Change:
    """Measure two checkouts in turn."""
    turns = [
        [
            measure_in(checkout, hosts, aggregates)
            for checkout in (before, scheduler.ROOT)
        ]
        for _ in range(scheduler.TURNS)
    ]
    old, new = zip(*turns, strict=True)
    return Change(
        hosts,
        aggregates,
        old[0].calls,
        new[0].calls,
        statistics.median(row.times for row in old),
        statistics.median(row.times for row in new),
    )


def main() -> None:
    """Measure and print a table."""
    parser: argparse.ArgumentParser = table.parser('aggregates', AGGREGATES)
    parser.add_argument('--hosts', type=int, nargs='+', default=HOSTS)
    parser.add_argument(
        '--before', type=pathlib.Path, help='another checkout to compare with'
    )
    options = parser.parse_args()
    logging.disable(logging.INFO)
    rows = [
        compare(options.before.resolve(), hosts, number)
        if options.before
        else measure(hosts, number)
        for hosts in options.hosts
        for number in options.aggregates
    ]
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
