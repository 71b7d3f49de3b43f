# SPDX-License-Identifier: Apache-2.0
"""Measures what a boot after a shortened query costs Placement, and how long.

    python tools/benchmarks/host_check.py [--csv FILE] [--hosts NUMBER ...]
        [--before CHECKOUT] [aggregates ...]

The nova-scheduler of ``scheduler.py``, with more hosts. Of these all but two
are returned by Placement, and nova-scheduler names alternates, as for each
boot. Calls are those of this package to Placement for one boot, besides the
query for allocation candidates and the claim, which Nova sends anyway.

With ``--before`` the plugin of another checkout of this project and this one
run in turn, each several times in a process of its own.
"""

import argparse
import csv
import dataclasses
import logging
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import ClassVar
import unittest

import scheduler
import table

from isolate_aggregates.placement import PlacementReader

HOSTS = (10, 50)
AGGREGATES = (1_000, 5_000)


@dataclasses.dataclass(frozen=True)
class Row:
    """Milliseconds, and calls of this package to Placement, for one boot."""

    hosts: int
    aggregates: int
    no_isolation: float
    ours: float
    calls: int

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

    def measure(self):
        """Measure a boot with and without this package."""
        scheduler.filter_cost.fill(self.number)
        self.populate()
        self.restart_scheduler()
        ours = self.milliseconds()
        calls = self.calls()
        self.take_out()
        self.found.append(
            Row(
                len(self.HOSTS),
                self.number,
                self.milliseconds(isolated=False),
                ours,
                calls,
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
