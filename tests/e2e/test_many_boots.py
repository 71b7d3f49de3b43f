# SPDX-License-Identifier: Apache-2.0
"""Many servers are booted while an operator locks and unlocks a host."""

from concurrent import futures
import dataclasses
import datetime
import os
import threading
from typing import Any

from clients import host_of, launched, now
import pytest

BOOTS = int(os.environ.get('E2E_BOOTS') or 300)

# How many tenants ask at a time.
ASKING = 6

TRAIT = 'CUSTOM_CROWD_WINDOWS'
CLOSED = {'trait:CUSTOM_CROWD_CLOSED': 'required'}


@dataclasses.dataclass(frozen=True)
class Asked:
    """A server, with the time of its request.

    :param server: The server.
    :param windows: Whether it has the key to the licensed host.
    :param at: The time of the request.
    """

    server: Any
    windows: bool
    at: datetime.datetime


class Operator(threading.Thread):
    """Locks and unlocks an aggregate repeatedly.

    :param aggregate: The aggregate.
    """

    def __init__(self, aggregate):
        super().__init__()
        self._aggregate = aggregate
        self._built = threading.Semaphore(0)
        self._enough = False
        self.locked = []

    def run(self):
        while not self._enough:
            self._aggregate.set_metadata(CLOSED)
            since = now()
            # More than are under way at a time: some are asked for and built
            # while it is locked.
            self._watch(3 * ASKING)
            self.locked.append((since, now()))
            self._aggregate.set_metadata(dict.fromkeys(CLOSED))
            self._watch(ASKING)

    def count(self):
        """Count a server that was built."""
        self._built.release()

    def stop(self):
        """Leave the aggregate unlocked."""
        self._enough = True
        self._built.release()
        self.join()

    def _watch(self, servers):
        """Wait until so many servers were built."""
        for _ in range(servers):
            if not self._enough:
                self._built.acquire()


@pytest.fixture
def operator(cloud):
    """Changes the metadata of an aggregate of the last host repeatedly."""
    thread = Operator(cloud.aggregate('changing', ('host3',)))
    thread.start()
    yield thread
    thread.stop()


def test_no_server_lands_on_a_locked_host_without_the_key(
    cloud, admin, lock, operator
):
    lock(cloud.aggregate('licensed', ('host1',)), TRAIT)
    image = cloud.image('image')
    flavors = {
        False: cloud.flavor('plain'),
        True: cloud.flavor('windows', {f'trait:{TRAIT}': 'required'}),
    }

    def ask(number):
        windows, at = number % 3 == 0, now()
        server = cloud.boot(f'server{number}', flavors[windows], image)
        server = cloud.settle(server)
        operator.count()
        return Asked(server, windows, at)

    with futures.ThreadPoolExecutor(ASKING) as pool:
        asked = list(pool.map(ask, range(BOOTS)))
    operator.stop()

    for one in asked:
        licensed = host_of(one.server) == 'host1'
        assert one.server.status == 'ACTIVE'
        assert licensed is one.windows
    assert hosts_while_locked(asked, operator) == {'host2'}
    assert admin.json('isolation', 'audit', '--servers')['findings'] == []


def hosts_while_locked(intervals, operator):
    """Return where those are that came and went in while it was locked."""
    second = datetime.timedelta(seconds=1)
    return {
        host_of(one.server)
        for one in intervals
        if not one.windows
        for since, until in operator.locked
        # Nova leaves parts of a second out.
        if since < one.at and launched(one.server) + second < until
    }
