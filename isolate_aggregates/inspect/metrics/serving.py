# SPDX-License-Identifier: Apache-2.0
"""Serves metrics over HTTP until the process is terminated."""

from collections.abc import Iterator
import contextlib

import prometheus_client
from prometheus_client.registry import Collector

from isolate_aggregates import exception


@contextlib.contextmanager
def serving(address: tuple[str, int], registry: Collector) -> Iterator[str]:
    """Serve metrics over HTTP.

    :param address: The host name or address and the port to listen on; port 0
        for any free port.
    :returns: A context manager that yields the URL of the metrics.
    :raises MetricsError: if the address cannot be listened on.
    """
    host, port = address
    try:
        server, thread = prometheus_client.start_http_server(
            port, host, registry
        )
    except OSError as exc:
        raise exception.MetricsError(
            f'The metrics cannot be served at {_authority(host, port)}: '
            f'{exc.strerror}.'
        ) from exc
    try:
        yield f'http://{_authority(host, server.server_port)}/metrics'
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _authority(host: str, port: int) -> str:
    return f'[{host}]:{port}' if ':' in host else f'{host}:{port}'
