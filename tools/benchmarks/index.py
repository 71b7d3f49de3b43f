# SPDX-License-Identifier: Apache-2.0
"""Measures one-time costs of many aggregates, and of starting the plugin.

    python tools/benchmarks/index.py [--csv FILE] [aggregates]

The aggregates are those of ``filters.py``: most are locked with one of 50
traits, and each has five hosts. They are read from Nova's database (on SQLite,
in memory), arranged, and asked for all that is ever worked out of them. Time
is processor time, the median of several runs; memory is what stays allocated,
and the most that was.

The start is that of a process which has imported what nova-scheduler imports
by itself. There the plugin is imported and puts its filters in place.
"""

from collections.abc import Callable, Iterable
import dataclasses
import functools
import gc
import statistics
import subprocess
import sys
import time
import tracemalloc

from filters import configured, database, fill
import table

from isolate_aggregates.aggregates import Aggregate, AggregateIndex, rollups
from isolate_aggregates.aggregates.index import closed
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova.source import NovaDatabaseSource

AGGREGATES = 10_000
RUNS = 5

_START = """
import time
import nova.conf
from nova.cmd import scheduler
from nova.db.api import api
from nova.scheduler import filters, host_manager, manager
filters.all_filters()
nova.conf.CONF([], default_config_files=[])
started, used = time.monotonic(), time.process_time()
from isolate_aggregates.nova import host_filter, registration
from isolate_aggregates import conf
conf.register_opts(nova.conf.CONF)
nova.conf.CONF.set_override('aggregate_source', '{source}', conf.GROUP)
nova.conf.CONF.set_override('auth_type', 'none', conf.GROUP)
registration.install()
print(time.process_time() - used, time.monotonic() - started)
"""


@dataclasses.dataclass(frozen=True)
class Figure:
    """The one-time cost of aggregates, and of the start."""

    what: str
    amount: float
    unit: str


class Work:
    """Reading and indexing, in steps.

    :param conf: A configuration.
    """

    def __init__(self, conf: object) -> None:
        self._filters = loading.load(conf)
        self._conf = conf
        self.kept: list[object] = []

    def read(self) -> Iterable[Aggregate]:
        """Read the aggregates."""
        # A new source each time, because a source caches what it has read.
        source = NovaDatabaseSource(self._conf, lambda: None)
        aggregates = source.aggregates()
        self.kept = [source, aggregates]
        return aggregates

    def index(self, aggregates: Iterable[Aggregate]) -> AggregateIndex:
        """Build the index, with all locks."""
        index = AggregateIndex(aggregates)
        locks = Pipeline(self._filters).locks(index)
        all_rollups = rollups.rollups(locks)
        shut = closed(index, 'trait:', 'required', ())
        self.kept += [index, all_rollups, shut]
        return index


def seconds(run: Callable[[], object]) -> float:
    """Return the duration in seconds."""
    found = []
    for _ in range(RUNS):
        gc.collect()
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return statistics.median(found)


def megabytes(run: Callable[[], object]) -> tuple[float, float]:
    """Return the memory that stays allocated, and the peak."""
    gc.collect()
    tracemalloc.start()
    run()
    gc.collect()
    left, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return left / 1e6, most / 1e6


def start(source: str) -> tuple[float, float]:
    """Return the processor time and the time that a start takes longer."""
    found = []
    for _ in range(RUNS):
        result = subprocess.run(
            [sys.executable, '-c', _START.format(source=source)],
            check=True,
            capture_output=True,
            text=True,
        )
        used, lasted = map(float, result.stdout.split())
        found.append((used, lasted))
    return min(used for used, _ in found), min(lasted for _, lasted in found)


def measure(number: int) -> list[Figure]:
    """Return what was measured."""
    with configured() as conf, database():
        fill(number)
        work = Work(conf)
        reading = seconds(work.read)
        indexing = seconds(functools.partial(work.index, work.read()))
        work = Work(conf)
        left, most = megabytes(lambda: work.index(work.read()))
    found = [
        Figure('read from the database', reading, 's'),
        Figure('index', indexing, 's'),
        Figure('read and index', reading + indexing, 's'),
        Figure('memory kept', left, 'MB'),
        Figure('memory at most', most, 'MB'),
    ]
    for source in ('nova', 'novaclient'):
        used, lasted = start(source)
        found += [
            Figure(f'start with {source}, processor', used, 's'),
            Figure(f'start with {source}', lasted, 's'),
        ]
    return found


def main() -> None:
    """Measure and print a table."""
    options = table.parser('aggregates', AGGREGATES).parse_args()
    table.report(measure(options.aggregates), options.csv)


if __name__ == '__main__':
    main()
