# SPDX-License-Identifier: Apache-2.0
"""The exporter answers, and stays small, whatever its clients do."""

import collections
import contextlib
import gc
import os
import socket
import threading
import time
import urllib.error
import urllib.request

import prometheus_client
import pytest

from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.metrics import reading, serving

# Seconds until a test fails that waits for something.
LONG = 300


@pytest.fixture
def registry():
    found = prometheus_client.CollectorRegistry()
    prometheus_client.Gauge('answer', 'x', registry=found).set(42)
    return found


@pytest.fixture
def url(registry):
    with serving.serving(('127.0.0.1', 0), registry) as found:
        yield found


def connect(url):
    """Return a connection on which half a request was sent."""
    host, port = url.split('/')[2].split(':')
    found = socket.create_connection((host, int(port)), timeout=LONG)
    found.send(b'GET /met')
    return found


def scrape(url):
    with urllib.request.urlopen(url, timeout=LONG) as answer:
        return answer.read().decode()


def servers():
    """Return the threads that serve connections."""
    return [
        thread
        for thread in threading.enumerate()
        if 'process_request_thread' in thread.name
    ]


def wait_for(condition):
    until = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_other_paths_are_not_found(url):
    for path in ('/metric', '/metrics/', '/-/healthy', '/favicon.ico'):
        with pytest.raises(urllib.error.HTTPError) as raised:
            scrape(url.replace('/metrics', path))
        raised.value.close()
        assert raised.value.code == 404


def test_the_index_page_links_to_the_metrics(url):
    page = scrape(url.replace('/metrics', '/'))
    assert '<a href="/metrics">' in page
    assert 'answer 42.0' not in page


def test_half_open_connections_neither_add_up_nor_keep_others_out(url):
    with contextlib.ExitStack() as clients:
        most = 0
        for _ in range(400):
            clients.enter_context(connect(url))
            most = max(most, len(servers()))
        assert 0 < most <= 2 * serving.MOST
        assert 'answer 42.0' in scrape(url)
        wait_for(lambda: len(servers()) <= serving.MOST)


def test_a_client_that_drips_is_disconnected(url, monkeypatch):
    monkeypatch.setattr(serving, 'LONGEST', 0.1)
    with connect(url) as client, contextlib.suppress(OSError):
        # Each byte would give it more time.
        until = time.monotonic() + LONG
        while time.monotonic() < until:
            client.send(b'r')
            time.sleep(0.01)
        pytest.fail('It was not disconnected.')
    wait_for(lambda: not servers())
    assert 'answer 42.0' in scrape(url)


def test_many_scrapes_leave_nothing(url, registry):
    """Of each reading, only the last values stay."""
    family = reading.GaugeMetricFamily
    one = reading.CloudReading(
        lambda: [family(f'metric{number}', 'x', 1) for number in range(20)]
    )
    registry.register(one)

    def live():
        wait_for(lambda: not servers())
        gc.collect()
        kinds = family, socket.socket, threading.Thread
        counted = collections.Counter(map(type, gc.get_objects()))
        files = len(os.listdir('/proc/self/fd'))
        return [*(counted[kind] for kind in kinds), files]

    one.read()
    scrape(url)
    before = live()
    for _ in range(200):
        one.read()
        assert 'metric19 1.0' in scrape(url)
    assert live() == before


def test_an_address_may_be_of_version_6(registry):
    try:
        with serving.serving(('::1', 0), registry) as url:
            assert 'answer 42.0' in scrape(url)
    except tools_errors.MetricsError:
        pytest.skip('this machine has no IPv6')
