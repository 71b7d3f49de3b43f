# SPDX-License-Identifier: Apache-2.0
"""Measures the filters with each kind of database, compared with Nova's own.

    python tools/benchmarks/databases.py [--csv FILE] [--quick]
        [--databases NAME ...] [aggregates ...]

A temporary MariaDB and PostgreSQL run on this machine, with the tables that
Nova's migrations create. Servers that are not installed are left out. The
aggregates
are those of ``filters.py``: each has five hosts and an availability zone, 98 %
are locked with one of 50 traits, and the request requires one of the traits.
Both filters forbid the same aggregates, which is checked for each request.
Ours are run as nova-scheduler runs them, by ``registration.install``: once
with the filter ``isolate_aggregates`` alone and once with those of the default
configuration, both without a limit to the query (``max_query_length = 0``). In
the rows *shortened* the limit is the default one, with rollups that are
complete, as after ``sync``.

Everything is run by turns, once in each, so that all have the same machine and
the same number of runs. Milliseconds are the median of the runs, by the clock
and of processor time of this process. Most runs of Nova's own filter contain a
garbage collection, which its objects cause; the shortest run, without one, is
given too. The columns:

in_tree
    ``nova.scheduler.request_filter.isolate_aggregates``.
in_tree_shortest
    The shortest of its runs, by the clock.
fresh
    Ours with the source ``nova``, which reads the aggregates for each request.
database_alone
    What the database takes of *fresh*, by the clock: the statement alone, on a
    connection that is ready. No read can be shorter.
cached
    Ours with aggregates that were read before.
times
    How many times *fresh* goes into *in_tree*, by the clock.
own
    Microseconds of processor time of *cached* without those that Nova's
    ``ResourceRequest.from_request_spec`` takes in it, which *in_tree* calls as
    well. Both are measured in the same run.
of_1000_hosts
    Milliseconds of processor time to read the aggregates of 1,000 hosts, as
    after a query was shortened.
in_tree_1 to cached_32
    Requests per second with so many threads in this process. Those of Nova's
    own filter are measured up to 1,000 aggregates: with more the threads
    would take minutes.
"""

import argparse
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent import futures
import contextlib
import dataclasses
import pathlib
import statistics
import tempfile
import threading
import time
from typing import Any
from unittest import mock

import filters as filter_cost
from filters import configured, fill, make_spec
import from_tests
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.scheduler import request_filter
from nova.scheduler import utils as scheduler_utils
import table

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.filters import loading
from isolate_aggregates.nova import registration
from isolate_aggregates.nova import source as nova_source
from isolate_aggregates.nova.messages import Observer

ROOT = pathlib.Path(__file__).parents[2]
from_tests.use('tests/databases')

objects.register_all()

from nova_database import KINDS, NovaDatabase  # noqa: E402

ONE, DEFAULT, SHORTENED = 'isolate_aggregates', 'default', 'shortened'
IN_TREE = 'in-tree'
IN_TREE_THREADS = 1_000
# The default maximum number of candidates, which host filters get at once.
HOSTS = [f'host-{number}-1' for number in range(1000)]

Run = Callable[[Any], object]
# The filters, and where their aggregates come from.
Which = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much to measure.

    :param aggregates: Numbers of aggregates.
    :param runs: How often to run each filter.
    :param requests: At most so many requests for all threads, at least one
        for each.
    :param seconds: About so long for all threads together, if it is more
        than one request for each.
    """

    aggregates: Sequence[int]
    runs: int
    requests: int
    seconds: float


WHOLE = Effort((100, 1_000, 5_000), 15, 1_000, 0.3)
QUICK = Effort((10, 20), 2, 2, 0.0)


@dataclasses.dataclass(frozen=True)
class Cost:
    """Milliseconds, by the clock and of processor time.

    :param own: The processor time without that of
        ``ResourceRequest.from_request_spec``.
    :param shortest: The shortest run by the clock, the others are medians.
    """

    clock: float
    processor: float
    own: float
    shortest: float


@dataclasses.dataclass(frozen=True)
class Row:
    """What was measured with a database, a number and some filters."""

    database: str
    aggregates: int
    filters: str
    forbidden: int
    in_tree: float
    in_tree_shortest: float
    in_tree_processor: float
    fresh: float
    fresh_processor: float
    database_alone: float
    cached: float
    cached_processor: float
    times: float
    own: float
    of_1000_hosts: float
    in_tree_1: float | None
    in_tree_8: float | None
    in_tree_32: float | None
    fresh_1: float
    fresh_8: float
    fresh_32: float
    cached_1: float
    cached_8: float
    cached_32: float


THREADS = (1, 8, 32)


def forbidden(spec: Any) -> set[str]:
    """Return the forbidden aggregates of a request spec."""
    return set(spec.requested_destination.forbidden_aggregates)


def in_tree(spec: Any) -> None:
    """Run Nova's own filter."""
    request_filter.isolate_aggregates(nova_context.get_admin_context(), spec)


class NovasPart:
    """Measures the processor time of ``ResourceRequest.from_request_spec``."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._function = scheduler_utils.ResourceRequest.from_request_spec

    def __call__(self, *arguments: Any) -> Any:
        """Call Nova's function and add its time."""
        started = time.process_time()
        result = self._function(*arguments)
        self.seconds += time.process_time() - started
        return result


class Measuring:
    """Measures with the current aggregates in the database.

    :param effort: How much to measure.
    """

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._context = nova_context.get_admin_context()
        spec = self.spec()
        in_tree(spec)
        self.forbidden = forbidden(spec)
        assert self.forbidden, 'nothing is locked'

    def spec(self) -> Any:
        """Return a request spec without constraints."""
        return make_spec(self._context)

    def check(self, name: str, specs: Iterable[Any]) -> None:
        """Check that the forbidden aggregates are the same as Nova's."""
        for spec in specs:
            if name != SHORTENED:
                assert forbidden(spec) == self.forbidden, 'not as Nova forbids'
            assert forbidden(spec), 'nothing is forbidden'

    def costs(self, runs: Mapping[Which, Run]) -> Mapping[Which, Cost]:
        """Return what a request takes for each, run by turns."""
        costs: dict[Which, list[tuple[float, float, float]]] = {
            which: [] for which in runs
        }
        # One additional turn, as the first one may fill caches.
        for _ in range(self._effort.runs + 1):
            for which, run in runs.items():
                costs[which].append(self._cost(which[0], run))
        return {
            which: Cost(
                *map(statistics.median, zip(*them[1:], strict=True)),
                shortest=min(clock for clock, _, _ in them[1:]),
            )
            for which, them in costs.items()
        }

    def _cost(self, name: str, run: Run) -> tuple[float, float, float]:
        spec = self.spec()
        part = NovasPart()
        with mock.patch.object(
            scheduler_utils.ResourceRequest, 'from_request_spec', part
        ):
            used, started = time.process_time(), time.perf_counter()
            run(spec)
            clock = time.perf_counter() - started
            processor = time.process_time() - used
        self.check(name, [spec])
        return (
            1000 * clock,
            1000 * processor,
            1000 * (processor - part.seconds),
        )

    def rates(self, name: str, run: Run, cost: Cost) -> list[float]:
        """Return requests per second for each number of threads."""
        seconds, most = self._effort.seconds, self._effort.requests
        requests = min(most, round(1000 * seconds / cost.clock))
        return [self._rate(name, run, n, max(n, requests)) for n in THREADS]

    def _rate(self, name: str, run: Run, threads: int, requests: int) -> float:
        specs = [self.spec() for _ in range(requests)]
        together = threading.Barrier(threads + 1)

        def work(own: Collection[Any]) -> None:
            # Not timed: it may have to connect.
            run(self.spec())
            together.wait()
            for spec in own:
                run(spec)

        with futures.ThreadPoolExecutor(threads) as pool:
            working = [
                pool.submit(work, specs[number::threads])
                for number in range(threads)
            ]
            together.wait()
            started = time.perf_counter()
            for one in working:
                one.result()
            lasted = time.perf_counter() - started
        self.check(name, specs)
        return requests / lasted


def ours(conf: Any, name: str, ttl: int) -> Run:
    """Return our filters as they run in nova-scheduler."""
    if name == ONE:
        conf.set_override('request_filters', [ONE], ia_conf.GROUP)
    else:
        conf.clear_override('request_filters', ia_conf.GROUP)
    if name == SHORTENED:
        conf.clear_override('max_query_length', ia_conf.GROUP)
        limit = conf[ia_conf.GROUP].max_query_length
        runner = filter_cost.runner(conf, ttl, limit)
    else:
        conf.set_override('max_query_length', 0, ia_conf.GROUP)
        conf.set_override('aggregate_cache_ttl', ttl, ia_conf.GROUP)
        runner = registration.build(conf, loading.load(conf), Observer())
    context = nova_context.get_admin_context()

    def run(spec: Any) -> None:
        runner(context, spec)
        runner.finish(context, spec)

    return run


def count_rows() -> None:
    """Make PostgreSQL update its statistics, which otherwise takes a minute.

    Until then Nova's own filter takes several times as long.
    """
    with api_db.context_manager.writer.get_engine().begin() as connection:
        connection.exec_driver_sql('ANALYZE')


def database_alone(runs: int) -> float:
    """Return the milliseconds of the statement that reads the aggregates."""
    engine = api_db.context_manager.writer.get_engine()
    statement = nova_source.statements(engine.dialect.name, False).digests
    durations = []
    with engine.connect() as connection:
        for _ in range(runs + 1):
            started = time.perf_counter()
            connection.execute(statement).fetchall()
            durations.append(1000 * (time.perf_counter() - started))
    return statistics.median(durations[1:])


def measure(
    database: str, number: int, conf: Any, effort: Effort
) -> Iterable[Row]:
    """Measure with a number of aggregates."""
    fill(number)
    if database == 'postgresql':
        count_rows()
    measuring = Measuring(effort)
    names = (ONE, DEFAULT, SHORTENED)
    runs: dict[Which, Run] = {(IN_TREE, ''): in_tree}
    for name in names:
        runs[name, 'fresh'] = ours(conf, name, 0)
        runs[name, 'cached'] = ours(conf, name, 3600)
    costs = measuring.costs(runs)
    plain = costs[IN_TREE, '']
    rates: list[float | None] = [None] * len(THREADS)
    if number <= IN_TREE_THREADS:
        rates = [*measuring.rates(IN_TREE, in_tree, plain)]
    alone = database_alone(effort.runs)
    source = registration.source(conf)
    of_hosts = []
    for _ in range(effort.runs):
        used = time.process_time()
        source.aggregates_of(HOSTS)  # type: ignore[attr-defined]
        of_hosts.append(1000 * (time.process_time() - used))
    for name in names:
        fresh, cached = costs[name, 'fresh'], costs[name, 'cached']
        yield Row(
            database,
            number,
            name,
            len(measuring.forbidden),
            plain.clock,
            plain.shortest,
            plain.processor,
            fresh.clock,
            fresh.processor,
            alone,
            cached.clock,
            cached.processor,
            plain.clock / fresh.clock,
            1000 * cached.own,
            statistics.median(of_hosts),
            *rates,
            *measuring.rates(name, runs[name, 'fresh'], fresh),
            *measuring.rates(name, runs[name, 'cached'], cached),
        )


def measure_all(
    kind: str, conf: Any, effort: Effort, folder: pathlib.Path
) -> Iterable[Row]:
    """Measure with one kind of database."""
    database = NovaDatabase(kind, folder / kind, KINDS[kind])
    with contextlib.closing(database), database.in_use():
        for number in effort.aggregates:
            yield from measure(kind, number, conf, effort)


def shown(row: Row) -> str:
    """Return a row for the terminal."""
    rates = f'{row.fresh_1:,.0f}/{row.fresh_8:,.0f}/{row.fresh_32:,.0f}'
    return (
        f'{row.database:<11}{row.aggregates:>6,} {row.filters:<19}'
        f'{row.in_tree:>9,.1f}{row.fresh:>8.2f}{row.database_alone:>8.2f}'
        f'{row.times:>6,.0f}x{row.cached:>8.3f}'
        f'{row.own:>6.0f} us{rates:>16}'
    )


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument('aggregates', nargs='*', type=int)
    parser.add_argument('--csv', help='write the figures to this file too')
    parser.add_argument(
        '--quick',
        action='store_true',
        help='run all of it once or twice, to see that it works',
    )
    parser.add_argument(
        '--databases', nargs='+', choices=KINDS, default=[*KINDS]
    )
    options = parser.parse_args()
    effort = QUICK if options.quick else WHOLE
    if options.aggregates:
        effort = dataclasses.replace(effort, aggregates=options.aggregates)
    rows: list[Row] = []
    print(
        'database   aggregates  filters         in-tree   fresh   alone  '
        'times  cached  own share   fresh, 1/s'
    )
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(
            stack.enter_context(tempfile.TemporaryDirectory())
        )
        # A server that refuses root runs as another user.
        folder.chmod(0o755)
        conf = stack.enter_context(configured())
        for kind in options.databases:
            server = KINDS[kind]
            if server is not None and not server.is_installed():
                print(f'{kind:<11}not installed')
                continue
            for row in measure_all(kind, conf, effort, folder):
                print(shown(row), flush=True)
                rows.append(row)
    if options.csv:
        table.write(options.csv, rows)


if __name__ == '__main__':
    main()
