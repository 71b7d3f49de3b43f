# SPDX-License-Identifier: Apache-2.0
"""Measures the filters with each kind of database, compared with Nova's own.

    python benchmarks/databases.py [--csv FILE] [--quick]
        [--databases NAME ...] [aggregates ...]

A temporary MariaDB and PostgreSQL run on this machine, with the tables that
Nova's migrations create. Servers that are not installed are left out. The
aggregates
are those of ``filters.py``: each has five hosts and an availability zone, 98 %
are locked with one of 50 traits, and the request requires one of the traits.
Nothing is shortened (``max_query_length = 0``): both filters forbid the same
aggregates, which is checked for each request. Ours are run as nova-scheduler
runs them, by ``registration.install``; once with the filter
``isolate_aggregates`` alone and once with those of the default configuration.

Milliseconds are the shortest of several runs, by the clock and of processor
time of this process. The columns:

in_tree
    ``nova.scheduler.request_filter.isolate_aggregates``.
fresh
    Ours with the source ``nova``, which reads the aggregates for each request.
cached
    Ours with aggregates that were read before.
nova
    ``Destination.append_forbidden_aggregates`` with the same uuids, which is
    Nova's own share of each of these.
beyond, beyond_cached
    *fresh* and *cached* without Nova's own share, by the clock.
times
    How many times *beyond* goes into *in_tree*.
own
    Microseconds of processor time of *cached* that are ours alone: without
    Nova's own share, and without what Nova takes to work out the required
    traits (``ResourceRequest.from_request_spec``), which *in_tree* has to do
    as well.
of_1000_hosts
    Milliseconds of processor time to read the aggregates of 1,000 hosts, as
    after a query was shortened.
in_tree_1 to cached_32
    Requests per second with so many threads in this process. Those of Nova's
    own filter are measured up to 1,000 aggregates: with more the threads
    would take minutes.
"""

import argparse
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent import futures
import contextlib
import dataclasses
import pathlib
import statistics
import sys
import tempfile
import threading
import time
from typing import Any

from filters import configured, fill, make_spec
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.scheduler import request_filter
from nova.scheduler import utils as scheduler_utils
import table

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.nova import registration

ROOT = pathlib.Path(__file__).parents[1]
sys.path.append(str(ROOT / 'tests' / 'databases'))

objects.register_all()

from nova_database import KINDS, NovaDatabase  # noqa: E402

# None stands for the default configuration.
FILTERS = {'isolate_aggregates': ['isolate_aggregates'], 'default': None}
IN_TREE_THREADS = 1_000
# The default maximum number of candidates, which host filters get at once.
HOSTS = [f'host-{number}-1' for number in range(1000)]

Run = Callable[[Any], object]


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much to measure.

    :param aggregates: Numbers of aggregates.
    :param slow: How often to run Nova's own filter.
    :param runs: How often to run what reads the database.
    :param fast: How often to run what does not.
    :param requests: At most so many requests for all threads, at least one
        for each.
    :param seconds: About so long for all threads together, if it is more
        than one request for each.
    """

    aggregates: Sequence[int]
    slow: int
    runs: int
    fast: int
    requests: int
    seconds: float


WHOLE = Effort((100, 1_000, 5_000), 3, 30, 300, 1_000, 1.0)
QUICK = Effort((10, 20), 1, 2, 3, 2, 0.0)


@dataclasses.dataclass(frozen=True)
class Cost:
    """Milliseconds, by the clock and of processor time."""

    clock: float
    processor: float


@dataclasses.dataclass(frozen=True)
class Row:
    """What was measured with a database, a number and some filters."""

    database: str
    aggregates: int
    filters: str
    forbidden: int
    in_tree: float
    in_tree_processor: float
    fresh: float
    fresh_processor: float
    cached: float
    cached_processor: float
    nova: float
    nova_processor: float
    beyond: float
    beyond_cached: float
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

    def check(self, specs: Iterable[Any]) -> None:
        """Check that the forbidden aggregates are the same as Nova's."""
        for spec in specs:
            assert forbidden(spec) == self.forbidden, 'not what Nova forbids'

    def cost(self, run: Run, runs: int) -> Cost:
        """Return the shortest time of a request."""
        clock, processor = [], []
        # One additional run, as the first one may fill caches.
        for _ in range(runs + 1):
            spec = self.spec()
            used, started = time.process_time(), time.perf_counter()
            run(spec)
            clock.append(time.perf_counter() - started)
            processor.append(time.process_time() - used)
            self.check([spec])
        return Cost(1000 * min(clock[1:]), 1000 * min(processor[1:]))

    def rates(self, run: Run, cost: Cost) -> list[float]:
        """Return requests per second for each number of threads."""
        seconds, most = self._effort.seconds, self._effort.requests
        requests = min(most, round(1000 * seconds / cost.clock))
        return [self._rate(run, n, max(n, requests)) for n in THREADS]

    def _rate(self, run: Run, threads: int, requests: int) -> float:
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
        self.check(specs)
        return requests / lasted

    def own_share(self, ours: Run) -> tuple[Cost, float]:
        """Return what ours takes, and microseconds of it that are its own.

        By turns, so that both have the same machine.
        """

        def required(spec: Any) -> None:
            resource_request = (
                scheduler_utils.ResourceRequest.from_request_spec(spec)
            )
            list(resource_request.all_required_traits)
            self.append(spec)

        found: list[tuple[Cost, Cost]] = []
        for _ in range(10):
            runs = max(1, self._effort.fast // 10)
            found.append((self.cost(ours, runs), self.cost(required, runs)))
        costs = [cost for cost, _ in found]
        return (
            Cost(
                min(cost.clock for cost in costs),
                min(cost.processor for cost in costs),
            ),
            1000
            * statistics.median(a.processor - b.processor for a, b in found),
        )

    def append(self, spec: Any) -> None:
        """Add the forbidden aggregates like Nova."""
        spec.requested_destination = objects.Destination()
        spec.requested_destination.append_forbidden_aggregates(self.forbidden)


def ours(conf: Any, ttl: int) -> Run:
    """Return our filters as they run in nova-scheduler."""
    conf.set_override('aggregate_cache_ttl', ttl, ia_conf.GROUP)
    runner = registration.install(conf)
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


def measure(
    database: str, number: int, conf: Any, effort: Effort
) -> Iterable[Row]:
    """Measure with a number of aggregates."""
    fill(number)
    if database == 'postgresql':
        count_rows()
    measuring = Measuring(effort)
    nova = measuring.cost(measuring.append, effort.fast)
    plain = measuring.cost(in_tree, effort.slow)
    rates: list[float | None] = [None] * len(THREADS)
    if number <= IN_TREE_THREADS:
        rates = [*measuring.rates(in_tree, plain)]
    source = registration.source(conf)
    of_hosts = []
    for _ in range(effort.runs):
        used = time.process_time()
        source.aggregates_of(HOSTS)  # type: ignore[attr-defined]
        of_hosts.append(1000 * (time.process_time() - used))
    for name, filters in FILTERS.items():
        if filters is None:
            conf.clear_override('request_filters', ia_conf.GROUP)
        else:
            conf.set_override('request_filters', filters, ia_conf.GROUP)
        run = ours(conf, 0)
        fresh = measuring.cost(run, effort.runs)
        fresh_rates = measuring.rates(run, fresh)
        run = ours(conf, 3600)
        cached, own = measuring.own_share(run)
        cached_rates = measuring.rates(run, cached)
        registration.uninstall()
        beyond = fresh.clock - nova.clock
        yield Row(
            database,
            number,
            name,
            len(measuring.forbidden),
            *dataclasses.astuple(plain),
            *dataclasses.astuple(fresh),
            *dataclasses.astuple(cached),
            *dataclasses.astuple(nova),
            beyond,
            cached.clock - nova.clock,
            plain.clock / beyond,
            own,
            min(of_hosts),
            *rates,
            *fresh_rates,
            *cached_rates,
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
        f'{row.in_tree:>9,.1f}{row.fresh:>8.2f}{row.nova:>6.2f}'
        f'{row.beyond:>8.2f}{row.times:>6,.0f}x{row.cached:>8.3f}'
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
        'database   aggregates  filters         in-tree   fresh  nova  '
        'beyond  times  cached  own share   fresh, 1/s'
    )
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(
            stack.enter_context(tempfile.TemporaryDirectory())
        )
        # A server that refuses root runs as another user.
        folder.chmod(0o755)
        conf = stack.enter_context(configured())
        conf.set_override('max_query_length', 0, ia_conf.GROUP)
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
