# SPDX-License-Identifier: Apache-2.0
"""Measures ``select_destinations`` of nova-scheduler, with and without us.

    python tools/benchmarks/scheduler.py [--csv FILE] [--before CHECKOUT]
        [aggregates ...]

A real nova-scheduler in Nova's functional fixtures: with ten compute services
(with fake hypervisors), Nova's databases and a Placement, all in this process
and on SQLite. Of the aggregates 98 % are locked with one of 50 traits. The
server needs none of them; two of the hosts are locked. What is measured is
processor time of all of it together, Placement's too, from the call to the
claim. Of several runs the median counts.

no isolation
    Neither of the filters: the hosts are open to the server.
in-tree
    Nova's own request filter.
ours
    This package in its place, which reads the aggregates for each request,
    with rollup aggregates as ``sync`` makes them.
remembered
    The same with aggregates that were read before: what could be saved if they
    were read while Placement works.
no rollup
    As *ours* without a limit to the length of queries.

With ``--before`` the benchmark of another checkout of this project and this
one run in turn, each several times in a process of its own, and *ours* of both
is compared: on a machine with other load, only that tells what a change costs.
"""

import csv
import dataclasses
import logging
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import ClassVar
import unittest
import uuid

import from_tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
from_tests.use('tests/nova_functional')
# Nova's fixtures decide how threads work before anything else is imported.
import conftest  # noqa: E402, F401, I001

from base import CONF  # noqa: E402
import filters as filter_cost  # noqa: E402
from nova import context as nova_context  # noqa: E402
from nova import objects  # noqa: E402
from nova.db.api import api as api_db  # noqa: E402
from nova.db.api import models  # noqa: E402
import sqlalchemy  # noqa: E402
import table  # noqa: E402
from test_shortening import ShorteningTest  # noqa: E402
import uninstalling  # noqa: E402

from isolate_aggregates.filters.pipeline import Pipeline  # noqa: E402
from isolate_aggregates.filters import loading  # noqa: E402
from isolate_aggregates import conf as ia_conf  # noqa: E402
from isolate_aggregates.aggregates import AggregateIndex, rollups  # noqa: E402
from isolate_aggregates.nova import source  # noqa: E402

AGGREGATES = (100, 1_000, 5_000)
LOCKED_HOSTS = 2
# How many aggregates each of them is in.
LOCKS = 40
SECONDS = 5.0
RUNS = 5
# How many processes measure each checkout.
TURNS = 3


@dataclasses.dataclass(frozen=True)
class Row:
    """Milliseconds for each request."""

    aggregates: int
    no_isolation: float
    in_tree: float
    ours: float
    remembered: float
    no_rollup: float

    @property
    def times(self) -> float:
        """How many times ours goes into Nova's own."""
        return self.in_tree / self.ours


@dataclasses.dataclass(frozen=True)
class Change:
    """Milliseconds for each request with shortened queries, by checkout."""

    aggregates: int
    before: float
    now: float


class Benchmark(ShorteningTest):
    """The measured nova-scheduler."""

    HOSTS = tuple(f'host{number}' for number in range(10))
    OPTIONS = (('scheduler', 'enable_isolated_aggregate_filtering', True),)

    ALTERNATES = False
    number = 0
    # A class attribute, because the test object is deleted at the end.
    rows: ClassVar[list[Row]] = []

    def measure(self):
        """Measure with a number of aggregates."""
        filter_cost.fill(self.number)
        self.populate()
        self.restart_scheduler()
        ours = self.milliseconds()
        self.flags(aggregate_cache_ttl=3600, group=ia_conf.GROUP)
        self.restart_scheduler()
        remembered = self.milliseconds()
        self.flags(aggregate_cache_ttl=0, group=ia_conf.GROUP)
        self.flags(max_query_length=0, group=ia_conf.GROUP)
        self.restart_scheduler()
        no_rollup = self.milliseconds()
        self.uninstall()
        self.restart_scheduler()
        in_tree = self.milliseconds()
        self.take_out()
        no_isolation = self.milliseconds(isolated=False)
        self.rows.append(
            Row(
                self.number,
                no_isolation,
                in_tree,
                ours,
                remembered,
                no_rollup,
            )
        )

    def uninstall(self):
        """Let Nova use its own filter again."""
        section = CONF.filter_scheduler
        uninstalling.uninstall()
        self.flags(
            available_filters=[
                each
                for each in section.available_filters
                if each != self.AVAILABLE
            ],
            enabled_filters=[
                each
                for each in section.enabled_filters
                if each != 'IsolatedAggregatesFilter'
            ],
            group='filter_scheduler',
        )

    def take_out(self):
        """Restart nova-scheduler without any isolation."""
        self.uninstall()
        self.flags(
            enable_isolated_aggregate_filtering=False, group='scheduler'
        )
        self.restart_scheduler()

    def populate(self):
        """Add hosts to aggregates and rollups."""
        aggregates = source.NovaDatabaseSource(CONF, None).aggregates()
        locks = Pipeline(loading.load(CONF)).locks(AggregateIndex(aggregates))
        all_rollups = rollups.rollups(locks)
        for number, host in enumerate(self.HOSTS[:LOCKED_HOSTS]):
            mine = aggregates[number::LOCKED_HOSTS][:LOCKS]
            with api_db.context_manager.writer.get_engine().begin() as link:
                link.execute(
                    sqlalchemy.insert(models.AggregateHost),
                    [{'aggregate_id': a.id, 'host': host} for a in mine],
                )
            uuids = {a.uuid for a in mine}
            uuids |= {r.uuid for r in all_rollups if r.aggregates & uuids}
            provider = self._get_provider_uuid_by_host(host)
            self.put_aggregates(provider, sorted(uuids))

    def milliseconds(self, isolated=True):
        """Return the duration of scheduling a server."""
        found = []
        until = time.monotonic() + SECONDS
        self.schedule(isolated)
        while len(found) < RUNS or time.monotonic() < until:
            found.append(self.schedule(isolated))
        return 1000 * statistics.median(found)

    def schedule(self, isolated=True):
        """Schedule a server and delete its allocation; return the seconds."""
        context = nova_context.get_admin_context()
        flavor = objects.Flavor.get_by_flavor_id(context, self.plain)
        server = str(uuid.uuid4())
        spec = objects.RequestSpec.from_components(
            context,
            server,
            image={'properties': {}},
            flavor=flavor,
            numa_topology=None,
            pci_requests=None,
            filter_properties={},
            instance_group=None,
            availability_zone=None,
        )
        spec.project_id = spec.user_id = 'benchmark'
        start = time.process_time()
        [[selected, *_]] = self.scheduler_service.manager.select_destinations(
            context,
            spec_obj=spec,
            instance_uuids=[server],
            return_objects=True,
            return_alternates=self.ALTERNATES,
        )
        seconds = time.process_time() - start
        if isolated:
            assert selected.service_host not in self.HOSTS[:LOCKED_HOSTS]
        self.placement.delete(f'/allocations/{server}')
        return seconds


def measure(number: int) -> Row:
    """Measure with a number of aggregates, in separate fixtures."""
    benchmark = Benchmark('measure')
    benchmark.number = number
    result = unittest.TestResult()
    benchmark.run(result)
    for _, traceback in result.errors + result.failures:
        sys.exit(traceback)
    return Benchmark.rows[-1]


def measure_in(checkout: pathlib.Path, number: int) -> float:
    """Return *ours* of a checkout, measured in a process of its own."""
    # Where that checkout has it.
    name = f'benchmarks/{pathlib.Path(__file__).name}'
    [program] = [*checkout.glob(name), *checkout.glob(f'*/{name}')]
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / 'rows.csv'
        subprocess.run(
            [sys.executable, program, '--csv', path, str(number)],
            env={**os.environ, 'PYTHONPATH': str(checkout)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        with path.open(encoding='utf-8') as stream:
            [row] = csv.DictReader(stream)
    return float(row['ours'])


def compare(before: pathlib.Path, number: int) -> Change:
    """Measure two checkouts in turn."""
    both = [
        [measure_in(checkout, number) for checkout in (before, ROOT)]
        for _ in range(TURNS)
    ]
    return Change(number, *map(statistics.median, zip(*both, strict=True)))


def main() -> None:
    """Measure and print a table."""
    parser = table.parser('aggregates', AGGREGATES)
    parser.add_argument(
        '--before', type=pathlib.Path, help='another checkout to compare with'
    )
    options = parser.parse_args()
    logging.disable(logging.INFO)
    rows = [
        compare(options.before.resolve(), number)
        if options.before
        else measure(number)
        for number in options.aggregates
    ]
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
