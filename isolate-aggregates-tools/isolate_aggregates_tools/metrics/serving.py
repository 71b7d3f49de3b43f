# SPDX-License-Identifier: Apache-2.0
"""Serves metrics over HTTP until the process is terminated.

The server of prometheus-client starts a thread for each connection, and waits
for each without a limit. Here both are limited, so that clients that connect
and send nothing cost little and keep no other client out.
"""

from collections.abc import Iterable, Iterator
import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING, Any
from wsgiref import simple_server

import prometheus_client
from prometheus_client import exposition
from prometheus_client.registry import Collector

from isolate_aggregates_tools import errors as tools_errors

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_INDEX = b"""<!DOCTYPE html>
<html lang="en">
<title>isolate-aggregates exporter</title>
<h1>isolate-aggregates exporter</h1>
<p><a href="/metrics">Metrics</a></p>
</html>
"""

# The most connections at the same time. For another one, the oldest is closed.
MOST = 16
# The longest duration of a connection in seconds. A client that sends or reads
# a byte at a time is not given more.
LONGEST = 30.0


class _Handler(simple_server.WSGIRequestHandler):
    # Seconds for each read or write.
    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


class _Server(exposition.ThreadingWSGIServer):
    """An HTTP server with a limited number of connections."""

    # With the default of 5, some connections of many at once are refused or
    # wait for a second.
    request_queue_size = 128

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._lock = threading.Lock()
        # The start of each connection, the oldest first.
        self._open: dict[socket.socket, float] = {}
        super().__init__(*args, **kwargs)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, unless there are too many."""
        with self._lock:
            # Threads of closed connections may take a while to end.
            is_served = len(self._open) < 2 * MOST
            if is_served:
                for one in list(self._open)[: len(self._open) + 1 - MOST]:
                    _close(one)
                self._open[request] = time.monotonic()
        if is_served:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        super().shutdown_request(request)
        with self._lock:
            self._open.pop(request, None)

    def service_actions(self) -> None:
        """Close connections that take too long."""
        with self._lock:
            for one, since in self._open.items():
                if time.monotonic() - since > LONGEST:
                    _close(one)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: the client has disconnected, or was disconnected."""


def _close(connection: socket.socket) -> None:
    """End the waiting of the thread that serves a connection."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def serving(address: tuple[str, int], registry: Collector) -> Iterator[str]:
    """Serve metrics over HTTP.

    :param address: The host name or address and the port to listen on; port 0
        for any free port.
    """
    host, port = address
    try:
        server = _listening(host, port, registry)
    except OSError as exc:
        raise tools_errors.MetricsError(
            f'The metrics cannot be served at {_authority(host, port)}: '
            f'{exc.strerror}.'
        ) from exc
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f'http://{_authority(host, server.server_port)}/metrics'
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _listening(host: str, port: int, registry: Collector) -> _Server:
    [(family, _, _, _, address), *_] = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    kind = type('_Server', (_Server,), {'address_family': family})
    server: _Server = simple_server.make_server(
        str(address[0]),
        port,
        _application(registry),
        kind,
        _Handler,
    )
    return server


def _application(registry: Collector) -> 'WSGIApplication':
    """Return an application with an index page, and 404 for unknown paths.

    The one of prometheus-client returns the metrics at any path.
    """
    metrics: WSGIApplication = prometheus_client.make_wsgi_app(registry)

    def serve(
        environ: 'WSGIEnvironment', start_response: 'StartResponse'
    ) -> Iterable[bytes]:
        path = environ['PATH_INFO']
        if path == '/metrics':
            return metrics(environ, start_response)
        status, kind, body = (
            ('200 OK', 'text/html', _INDEX)
            if path == '/'
            else ('404 Not Found', 'text/plain', b'Not found; see /metrics\n')
        )
        start_response(status, [('Content-Type', f'{kind}; charset=utf-8')])
        return [body]

    return serve


def _authority(host: str, port: int) -> str:
    return f'[{host}]:{port}' if ':' in host else f'{host}:{port}'
