# SPDX-License-Identifier: Apache-2.0
"""How much a program sends to a Placement that is overloaded."""

from concurrent import futures
import http.server
import threading
import time

from keystoneauth1 import adapter, token_endpoint
from keystoneauth1 import session as ks_session
import pytest

from isolate_aggregates_tools.placement.client import PlacementClient


class Overloaded(http.server.BaseHTTPRequestHandler):
    """A Placement that answers 503 once, and then is slow."""

    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        server = self.server
        with server.lock:
            server.times.append(time.monotonic())
            server.running += 1
            server.most = max(server.most, server.running)
            is_overloaded = len(server.times) == server.fails_at
            if is_overloaded:
                server.failed = time.monotonic()
        time.sleep(0.02)
        with server.lock:
            server.running -= 1
        body = b'{"aggregates": [], "resource_provider_generation": 1}'
        self.send_response(503 if is_overloaded else 200)
        if is_overloaded:
            self.send_header('Retry-After', '1')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def overloaded():
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Overloaded)
    server.daemon_threads = True
    server.lock = threading.Lock()
    server.times, server.running, server.most = [], 0, 0
    server.fails_at, server.failed = 0, None
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def a_client(server, **options):
    url = f'http://127.0.0.1:{server.server_port}'
    session = ks_session.Session(auth=token_endpoint.Token(url, 'token'))
    return PlacementClient(
        adapter.Adapter(session, service_type='placement'), **options
    )


def test_no_more_requests_are_sent_than_the_limit(overloaded):
    placement = a_client(overloaded, max_concurrency=3)
    # Other pools do not raise it.
    with futures.ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(placement.aggregates, map(str, range(24)))))
    assert overloaded.most == 3


def test_a_pool_has_as_many_threads_as_the_limit(overloaded):
    placement = a_client(overloaded, max_concurrency=2)
    found = placement.each(placement.aggregates, map(str, range(8)))
    assert found == {str(number): frozenset() for number in range(8)}
    assert overloaded.most == 2


def test_all_requests_pause_after_a_503(overloaded):
    overloaded.fails_at = 5
    placement = a_client(overloaded, max_concurrency=4)
    assert len(placement.each(placement.aggregates, map(str, range(16)))) == 16
    assert len(overloaded.times) == 17
    # Others may have been on their way.
    early = [
        at for at in overloaded.times if 0.1 < at - overloaded.failed < 0.9
    ]
    assert not early


def test_clients_of_a_session_share_the_limit(overloaded):
    placement = a_client(overloaded, max_concurrency=2)
    other = PlacementClient(placement._service._client)
    with futures.ThreadPoolExecutor(8) as pool:
        found = [
            pool.submit(each.aggregates, str(number))
            for each in (placement, other)
            for number in range(8)
        ]
    assert [one.result() for one in found] == 16 * [frozenset()]
    assert overloaded.most == 2
