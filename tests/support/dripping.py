# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that sends its answer byte by byte, and does not end it."""

import contextlib
import http.server
import threading

from keystoneauth1 import adapter, noauth, session

# Much longer than any deadline of a test, in seconds.
_LONGEST = 60
_BETWEEN = 0.02


class DrippingServer(http.server.ThreadingHTTPServer):
    """The server, on 127.0.0.1.

    :ivar has_ended: Whether it has ended an answer.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(('127.0.0.1', 0), _Handler)
        self.closing = threading.Event()
        self.has_ended = False
        self.requests = 0

    def adapter(self):
        """Return a client whose timeout for each read is not exceeded."""
        return adapter.Adapter(
            session.Session(noauth.NoAuth(), timeout=_LONGEST),
            service_type='placement',
            endpoint_override=f'http://127.0.0.1:{self.server_port}',
        )


class _Handler(http.server.BaseHTTPRequestHandler):
    server: DrippingServer

    def do_GET(self):
        self.server.requests += 1
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(int(_LONGEST / _BETWEEN)):
                self.wfile.write(b' ')
                if self.server.closing.wait(_BETWEEN):
                    return
        self.server.has_ended = True

    def log_message(self, format, *args):
        """Log nothing."""


@contextlib.contextmanager
def dripping_server():
    """Run a server."""
    with DrippingServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()
