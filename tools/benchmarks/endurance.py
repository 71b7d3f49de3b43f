# SPDX-License-Identifier: Apache-2.0
"""Measures whether services that run for months keep anything.

    python tools/benchmarks/endurance.py [--csv FILE] [--requests NUMBER]
        [--rounds NUMBER] [service ...]

Each service works in a process of its own, and without pauses. After 10 %,
50 % and 100 % of the work its objects, memory, threads, files and connections
are counted, after a garbage collection. Times are by the clock, for the tenth
of the work that ends there, without what the load itself needs.

scheduler
    ``select_destinations`` of a real nova-scheduler, by
    ``tests/nova_functional/scheduler_load.py``: requests of 15 kinds with the
    locks of all five filters, shortened queries, refusals, forced hosts, and
    filters of other packages that hold the request in a closure, or fail.
    The aggregates change with every tenth request.
exporter
    A round reads the cloud, and scrapes the metrics. In each, four clients
    connect and send half a request.
sync
    ``sync --watch``. Every tenth round something is to be changed, and every
    seventh Nova cannot be read.
reconcile
    ``reservation reconcile --watch``. A reservation is created and ends in
    every tenth round.
blazar
    The plugin in blazar-manager, with Blazar's own database: what it completes
    periodically. A lease is created, starts and ends every 20 rounds.
"""

import argparse
import array
import collections
from collections.abc import Callable, Iterator
from concurrent import futures
import contextlib
import ctypes
import dataclasses
import gc
import io
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback
from typing import Any

import from_tests

ROOT = pathlib.Path(__file__).resolve().parents[2]

REQUESTS = 100_000
ROUNDS = 10_000
MARKS = (10, 50, 100)


@dataclasses.dataclass(frozen=True)
class Row:
    """Live objects, MiB, and milliseconds of a request or round.

    :param done: The number of requests or rounds so far.
    :param percent: The same in percent.
    :param requests: Live request specs of Nova.
    :param indexes: Live indexes of aggregates.
    :param ours: Live objects of all classes of this package.
    :param objects: All live objects that the garbage collector tracks.
    :param most_grown: The class with the most new objects since 10 %, and
        their number.
    """

    service: str
    percent: int
    done: int
    requests: int
    indexes: int
    ours: int
    objects: int
    most_grown: str
    rss: float
    threads: int
    files: int
    databases: int
    connections: int
    p50: float
    p99: float


class Meter:
    """Runs the rounds of a service, and measures.

    :param service: The name of the service.
    :param total: The number of rounds.
    """

    def __init__(self, service: str, total: int) -> None:
        self.service = service
        self.total = total
        self.done = 0
        self.rows: list[Row] = []
        self._marks = {total * percent // 100: percent for percent in MARKS}
        self._times = array.array('d', [0.0] * (total // 10))
        self._first: collections.Counter[str] = collections.Counter()
        # The time that the load itself took in this round.
        self._load = 0.0

    @contextlib.contextmanager
    def loading(self) -> Iterator[None]:
        """Do not count the time within this context."""
        start = time.perf_counter()
        yield
        self._load += time.perf_counter() - start

    def round(self, work: Callable[[], object]) -> bool:
        """Run one round; return whether there are more."""
        self._load = 0.0
        start = time.perf_counter()
        work()
        return self.note(time.perf_counter() - start - self._load)

    def note(self, seconds: float) -> bool:
        """Count a round of some seconds; return whether there are more."""
        self._times[self.done % len(self._times)] = seconds
        self.done += 1
        if self.done in self._marks:
            self._measure(self._marks[self.done])
        return self.done < self.total

    def _measure(self, percent: int) -> None:
        gc.collect()
        # Otherwise the memory is that of the worst moment so far.
        ctypes.CDLL(None).malloc_trim(0)
        counted = collections.Counter(map(type, gc.get_objects()))
        named: collections.Counter[str] = collections.Counter()
        for kind, number in counted.items():
            named[f'{kind.__module__}.{kind.__qualname__}'] += number
        self._first = self._first or named
        [(grown, more)] = (named - self._first).most_common(1) or [('', 0)]
        times = sorted(self._times)
        self.rows.append(
            Row(
                self.service,
                percent,
                self.done,
                named['nova.objects.request_spec.RequestSpec'],
                named['isolate_aggregates.aggregates.index.AggregateIndex'],
                sum(
                    number
                    for name, number in named.items()
                    if name.startswith('isolate_aggregates.')
                ),
                named.total(),
                f'{grown.rpartition(".")[2]} +{more}' if more else '',
                _status('VmRSS') / 1024,
                _status('Threads'),
                len(os.listdir('/proc/self/fd')),
                _databases(),
                _connections(),
                1000 * times[len(times) // 2],
                1000 * times[len(times) * 99 // 100],
            )
        )
        print(self.rows[-1], file=sys.stderr)


def _status(name: str) -> int:
    text = pathlib.Path('/proc/self/status').read_text('utf-8')
    [line] = [one for one in text.splitlines() if one.startswith(f'{name}:')]
    return int(line.split()[1])


def _databases() -> int:
    """Return the number of connections in pools of SQLAlchemy."""
    return sum(
        type(one).__name__ == '_ConnectionRecord'
        and one.dbapi_connection is not None
        for one in gc.get_objects()
    )


def _connections() -> int:
    """Return the number of TCP connections of this process."""
    ours = set()
    for file in pathlib.Path('/proc/self/fd').iterdir():
        with contextlib.suppress(OSError):
            ours.add(os.readlink(file).removeprefix('socket:[').rstrip(']'))
    established = '01'
    found = 0
    for name in ('tcp', 'tcp6'):
        text = pathlib.Path('/proc/self/net', name).read_text('utf-8')
        for line in text.splitlines()[1:]:
            cells = line.split()
            found += cells[9] in ours and cells[3] == established
    return found


# The services.


def scheduler(meter: Meter) -> None:
    """Schedule servers."""
    from_tests.use('tests/nova_functional')
    # Nova's fixtures decide how threads work before all else is imported.
    import conftest  # noqa: F401, I001
    import unittest
    from scheduler_load import SchedulerLoad

    class Load(SchedulerLoad):
        def measure(self) -> None:
            while meter.round(self.serve):
                pass

    result = unittest.TestResult()
    Load('measure').run(result)
    for _, why in result.errors + result.failures:
        sys.exit(why)


# Connects four times for each line, and keeps 400 connections open.
_CLIENTS = """
import collections, socket, sys
clients = collections.deque(maxlen=400)
for line in sys.stdin:
    for _ in range(4):
        clients.append(socket.create_connection(sys.argv[1:]))
        clients[-1].send(b'GET /met')
    print(flush=True)
"""


def exporter(meter: Meter) -> None:
    """Read a cloud, and serve its metrics."""
    import urllib.request

    from isolate_aggregates_tools.metrics import reading, serving

    urls = []
    serve = serving.serving

    @contextlib.contextmanager
    def serving_at(*arguments: Any) -> Iterator[str]:
        with serve(*arguments) as url:
            urls.append(url)
            yield url

    def keep_reading(one: Any, interval: float, stopped: Any) -> None:
        while not urls:
            time.sleep(0.01)
        address = urls[0].partition('//')[2].partition('/')[0]
        clients = subprocess.Popen(
            [sys.executable, '-c', _CLIENTS, *address.split(':')],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert clients.stdin
        assert clients.stdout

        def work() -> None:
            with meter.loading():
                http.reset_mock()
                clients.stdin.write(b'\n')
                clients.stdin.flush()
                clients.stdout.readline()
            one.read()
            with urllib.request.urlopen(urls[0]) as answer:
                assert b'isolate_aggregates_up 1.0' in answer.read()

        while meter.round(work):
            pass
        clients.stdin.close()
        clients.wait()
        _end()

    with _live() as http:
        serving.serving = serving_at
        reading.keep_reading = keep_reading
        _run('exporter', '--listen', '127.0.0.1:0')


def sync(meter: Meter) -> None:
    """Synchronize Placement with changing aggregates."""
    with _live() as http:
        import http_fakes

        nova = http.nova
        plain = list(nova.aggregates)
        started: list[int] = []

        def answer(request: Any, context: Any) -> Any:
            if meter.done % 7 == 0:
                context.status_code = 500
            return nova.respond(request, context)

        def change() -> None:
            # The round before read all, unless Nova could not be read.
            history = [request.url for request in http.request_history]
            if started and (meter.done - 1) % 7:
                assert any(url.startswith(http.placement) for url in history)
            started.append(meter.done)
            del started[:-1]
            http.reset_mock()
            nova.aggregates[:] = plain[meter.done // 10 % 2 :]

        http.get(f'{http_fakes.NOVA}/os-aggregates', json=answer)
        _watch(meter, change)
        _run('sync', '--watch', '1')


def reconcile(meter: Meter) -> None:
    """Reconcile reservations that begin and end."""
    from_tests.use()
    import datetime

    from reservation_world import HOUR, PROJECT, World

    from isolate_aggregates_reservations import api as reservations
    from isolate_aggregates_reservations.store import ReservationStore
    from isolate_aggregates_tools.cli import app
    from isolate_aggregates_tools.embedded import embedded_client

    with embedded_client() as placement:
        world = World(placement._service._client)
        for number in range(3):
            world.add_host(f'h{number}')
        now = datetime.datetime.now(datetime.UTC)
        for number in range(3):
            reservation = reservations.new(
                PROJECT, 1, reservations.Shape(1, 64), now + number * HOUR
            )
            reservations.create(world.store, reservation, now)
        ReservationStore.now = lambda store: now + meter.done * HOUR / 10
        other = world.new_store()

        def change() -> None:
            world.wire.calls.clear()
            if meter.done % 10 == 0:
                begin = now + (meter.done + 3) * HOUR / 10
                reservation = reservations.new(
                    PROJECT,
                    2,
                    reservations.Shape(1, 64),
                    begin,
                    begin + HOUR / 2,
                )
                reservations.create(other, reservation, other.now())

        app.IsolateAggregatesApp.connect = lambda _: world.connection()
        _watch(meter, change)
        _run('reservation', 'reconcile', '--watch', '1')


def blazar(meter: Meter) -> None:
    """Complete the leases of Blazar."""
    from_tests.use('isolate-aggregates-reservations/tests/blazar')
    import endurance_lease

    with endurance_lease.manager() as lease:

        def work() -> None:
            with meter.loading():
                lease.step(meter.done)
            lease.blazar.complete()

        while meter.round(work):
            pass


@contextlib.contextmanager
def _live() -> Iterator[Any]:
    """Set up a small cloud, and credentials for it."""
    from_tests.use()
    from http_fakes import CREDENTIALS
    from live_example import Live
    import requests_mock

    for name, value in CREDENTIALS.items():
        os.environ[f'OS_{name.upper()}'] = value
    with requests_mock.Mocker(real_http=True) as http:
        live = Live(http)
        http.nova = live.nova
        http.placement = live.placement_url
        yield http
        live.stop()


def _watch(meter: Meter, change: Callable[[], None]) -> None:
    """Let a command with --watch work without pauses.

    :param change: Changes the cloud before a round.
    """
    from isolate_aggregates_tools.cli import periodic

    wait = periodic.EndSignals.wait
    started = [0.0]

    def count(signals: Any, seconds: float | None = None) -> bool:
        if not seconds:
            return wait(signals, seconds)
        # The first round has begun before there was anything to measure.
        is_over = bool(started[0]) and not meter.note(
            time.perf_counter() - started[0]
        )
        change()
        started[0] = time.perf_counter()
        return is_over

    periodic.EndSignals.wait = count


def _run(*arguments: str) -> None:
    """Run a command of this package, whose output is dropped."""
    from isolate_aggregates_tools.cli import app

    def show(_: Any, command: Any, code: int, error: Any) -> None:
        # Logging is off.
        if error:
            traceback.print_exception(error)

    app.IsolateAggregatesApp.clean_up = show
    with contextlib.redirect_stdout(_Nowhere()):
        code = app.main(arguments)
    if code:
        sys.exit(code)


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


def _end() -> None:
    import signal

    os.kill(os.getpid(), signal.SIGTERM)


SERVICES = (scheduler, exporter, sync, reconcile, blazar)


def main() -> None:
    """Measure each service in a separate process, and print a table."""
    import table

    parser = argparse.ArgumentParser()
    names = [one.__name__ for one in SERVICES]
    parser.add_argument('services', nargs='*', default=names)
    parser.add_argument('--requests', type=int, default=REQUESTS)
    parser.add_argument('--rounds', type=int, default=ROUNDS)
    parser.add_argument(
        '--parallel', type=int, default=1, help='services at the same time'
    )
    parser.add_argument('--csv', help='write the figures to this file too')
    parser.add_argument('--rows', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rows:
        [name] = options.services
        service = SERVICES[names.index(name)]
        total = options.requests if service is scheduler else options.rounds
        meter = Meter(service.__name__, total)
        logging.disable(logging.CRITICAL)
        service(meter)
        found = [dataclasses.asdict(row) for row in meter.rows]
        pathlib.Path(options.rows).write_text(json.dumps(found))
        return

    def measure(name: str) -> list[Row]:
        with tempfile.NamedTemporaryFile() as file:
            command = [sys.executable, '-W', 'ignore', __file__, name]
            subprocess.run(
                [
                    *command,
                    *('--requests', str(options.requests)),
                    *('--rounds', str(options.rounds)),
                    *('--rows', file.name),
                ],
                check=True,
            )
            return [Row(**one) for one in json.load(file)]

    with futures.ThreadPoolExecutor(options.parallel) as pool:
        rows = [
            row
            for found in pool.map(measure, options.services)
            for row in found
        ]
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
