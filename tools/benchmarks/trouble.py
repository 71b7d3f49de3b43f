# SPDX-License-Identifier: Apache-2.0
"""Measures how long requests wait while a service that they need hangs.

    python tools/benchmarks/trouble.py [--csv FILE] [--states NAME ...] [count]

A worker of nova-scheduler with 300 locked aggregates, rollups, and 8 threads
of requests in random order. Placement is a web server on this machine. After
one request, one of these begins: a cell of Nova does not answer, or Placement
accepts connections and does not answer, sends a byte every 50 ms, or answers
503. Times are by the clock, in this package only: what Nova itself asks of the
same services is not part of it.

fits
    A request whose query fits, through both entries of the request filters.
shortened
    The same for a request whose query needs a rollup.
host check
    The check of 20 hosts that were returned for a shortened query.
forced
    The check of the host that a shortened request is forced to, a tenth as
    many. Only these need a cell.
"""

from collections.abc import Iterator
from concurrent import futures
import contextlib
import dataclasses
import http.server
import json
import logging
import random
import threading
import time
from typing import Any
from unittest import mock
import uuid

import filters as filter_cost
from keystoneauth1 import adapter, noauth, session
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
import table

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.cache import IndexCache
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.nova.placement import TIMEOUT
from isolate_aggregates.nova.recheck import HostCheck
from isolate_aggregates.nova.runner import Runner
from isolate_aggregates.query_limit import OUR_HOST_FILTER, Shortener
from isolate_aggregates_tools.placement.client import PlacementClient

AGGREGATES = 300
LIMIT = 4000
REQUESTS = 200
THREADS = 8
HOSTS = 20
HEALTHY = 'all answer'
CELL = 'a cell hangs'
STATES = (
    HEALTHY,
    CELL,
    'Placement hangs',
    'Placement drips',
    'Placement answers 503',
)
KINDS = ('fits', 'shortened', 'host check', 'forced')
NODE = str(uuid.UUID(int=1))


@dataclasses.dataclass(frozen=True)
class Row:
    """Milliseconds that a request waits in this package.

    :param refused: The number of refused requests, or of excluded checks.
    """

    state: str
    kind: str
    requests: int
    refused: int
    p50: float
    p99: float


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as Placement without resource providers."""

    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True
    server: 'Server'

    def do_GET(self) -> None:
        """Answer in the current state."""
        state = self.server.state
        if state == 'Placement hangs':
            self.server.closing.wait()
            return
        status = 503 if state == 'Placement answers 503' else 200
        found = [{'uuid': NODE}] if 'in_tree' in self.path else []
        for provider in found:
            provider |= {'name': 'host', 'root_provider_uuid': NODE}
            provider |= {'generation': '0', 'parent_provider_uuid': ''}
        answer = json.dumps(
            {
                'resource_providers': found,
                'aggregates': [],
                'resource_provider_generation': 0,
            }
        ).encode()
        self.send_response(status)
        self.send_header('Content-Length', str(len(answer)))
        self.end_headers()
        if state == 'Placement drips':
            for _ in answer:
                self.wfile.write(b' ')
                if self.server.closing.wait(0.05):
                    return
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class Server(http.server.ThreadingHTTPServer):
    """The web server of Placement."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(('127.0.0.1', 0), Handler)
        self.state = HEALTHY
        self.closing = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that no longer wait."""


class Source:
    """The aggregates in Nova, in memory."""

    def __init__(self) -> None:
        self._aggregates = [
            Aggregate(
                str(uuid.UUID(int=1000 + number)),
                f'aggregate-{number}',
                {'trait:CUSTOM_KEY': 'required'},
            )
            for number in range(AGGREGATES)
        ]

    def aggregates(self) -> list[Aggregate]:
        """Return the aggregates."""
        return self._aggregates

    def aggregates_of(self, hosts: Any) -> dict[str, frozenset[str]]:
        """Return that no host is in any of them."""
        return dict.fromkeys(hosts, frozenset())


class Worker:
    """A worker of nova-scheduler, and its requests."""

    def __init__(self, conf: Any, server: Server) -> None:
        client = PlacementClient(
            adapter.Adapter(
                session.Session(noauth.NoAuth(), timeout=TIMEOUT),
                service_type='placement',
                endpoint_override=f'http://127.0.0.1:{server.server_port}',
            ),
            retries=0,
        )
        filters = loading.load(conf)
        source = Source()
        locks = Pipeline(filters).locks
        self.runner = Runner(
            conf,
            filters,
            IndexCache(source.aggregates),
            Shortener(LIMIT, locks, [OUR_HOST_FILTER]),
            HostCheck(source, lambda: client, LIMIT),
            Observer(),
        )
        self.context = nova_context.get_admin_context()

    def request(self, kind: str) -> tuple[bool, float]:
        """Return whether a request of a kind is refused, and its seconds."""
        keys = {'trait:CUSTOM_KEY': 'required'} if kind == 'fits' else {}
        spec = filter_cost.make_spec(self.context, keys)
        if kind == 'forced':
            spec.force_hosts = ['host']
        start = time.perf_counter()
        try:
            self.runner(self.context, spec)
            self.runner.finish(self.context, spec)
            if kind == 'host check':
                start = time.perf_counter()
                nodes = {
                    str(uuid.UUID(int=number)): f'host-{number}'
                    for number in range(HOSTS)
                }
                self.runner.objections(spec, nodes)
                check = self.runner.candidate_check(spec)
                if not all(
                    check.admits(node, {'allocations': {node: {}}})
                    for node in nodes
                ):
                    return True, time.perf_counter() - start
        except (
            exception.IsolateAggregatesError,
            nova_exception.RequestFilterFailed,
        ):
            return True, time.perf_counter() - start
        return False, time.perf_counter() - start


@contextlib.contextmanager
def cells(state: str) -> Iterator[None]:
    """Have one cell with one compute node."""
    hangs = threading.Event()

    def nodes(context: Any, host: str) -> list[Any]:
        if state == CELL:
            hangs.wait()
        return [
            objects.ComputeNode(host=host, hypervisor_hostname=host, uuid=NODE)
        ]

    cell = objects.CellMapping(
        id=1,
        uuid=str(uuid.UUID(int=2)),
        name='cell',
        database_connection='sqlite://',
        transport_url='none:///',
    )
    with (
        mock.patch.object(
            objects.CellMappingList, 'get_all', return_value=[cell]
        ),
        mock.patch.object(objects.ComputeNodeList, 'get_all_by_host', nodes),
    ):
        try:
            yield
        finally:
            hangs.set()


def measure(conf: Any, state: str, number: int) -> list[Row]:
    """Measure in a state, with a number of requests of each kind."""
    with Server() as server, cells(state):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        worker = Worker(conf, server)
        refused, _ = worker.request('shortened')
        assert not refused
        server.state = state
        kinds = [
            kind
            for kind in KINDS
            for _ in range(number // 10 if kind == 'forced' else number)
        ]
        random.Random(1).shuffle(kinds)
        with futures.ThreadPoolExecutor(THREADS) as pool:
            results = list(pool.map(worker.request, kinds))
        server.closing.set()
        server.shutdown()
    rows = []
    for kind in KINDS:
        found = [r for r, of in zip(results, kinds, strict=True) if of == kind]
        times = sorted(1000 * seconds for _, seconds in found)
        rows.append(
            Row(
                state,
                kind,
                len(times),
                sum(refused for refused, _ in found),
                times[len(times) // 2],
                times[len(times) * 99 // 100],
            )
        )
    return rows


def main() -> None:
    """Measure and print a table."""
    parser = table.parser('requests', REQUESTS)
    parser.add_argument('--states', nargs='+', choices=STATES, default=STATES)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with filter_cost.configured() as conf, filter_cost.database():
        table.report(
            [
                row
                for state in options.states
                for row in measure(conf, state, options.requests)
            ],
            options.csv,
        )


if __name__ == '__main__':
    main()
