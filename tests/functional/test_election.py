# SPDX-License-Identifier: Apache-2.0
"""One of several processes is elected, by locks of real drivers of tooz."""

from collections.abc import Callable, Iterator
import contextlib
import logging
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, ClassVar
from unittest import mock

import etcd3gw
from keystoneauth1 import session
from keystoneauth1.identity import v3
from oslo_config import cfg
from pymemcache.client.base import Client
import pytest
import tooz
from tooz.drivers.memcached import MemcachedDriver

from isolate_aggregates import exception
from isolate_aggregates.cli import coordination
from isolate_aggregates.rest.connection import Connection

IsElected = Callable[[], bool]
Elect = Callable[..., contextlib.AbstractContextManager[IsElected]]


class Server:
    """A lock service on free ports.

    :param folder: The directory for its data.
    """

    name: ClassVar[str]
    package: ClassVar[str]

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL for tooz."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """Return the arguments to start it with."""
        raise NotImplementedError

    def ask(self) -> None:
        """Send a request, which fails until the server runs."""
        raise NotImplementedError

    def forget(self) -> None:
        """Delete all locks, as if they had expired."""
        raise NotImplementedError

    @classmethod
    def program(cls) -> str:
        """Return the path of the program, or skip the test."""
        path = f'{os.environ["PATH"]}:/usr/bin'
        if found := shutil.which(cls.name, path=path):
            return found
        pytest.skip(f'there is no {cls.name}; "apt-get install {cls.package}"')

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(
            [self.program(), *self.command()], stderr=subprocess.DEVNULL
        )
        while self._process.poll() is None:
            with contextlib.suppress(
                ConnectionRefusedError, etcd3gw.exceptions.Etcd3Exception
            ):
                self.ask()
                return
        raise AssertionError(f'{self.name} has ended')

    def stop(self) -> None:
        """Stop it."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


class Memcached(Server):
    """Debian's memcached."""

    name = 'memcached'
    package = 'memcached'

    @property
    def url(self) -> str:
        return f'memcached://127.0.0.1:{self.port}?timeout=5'

    def command(self) -> list[str]:
        return [
            *('-u', 'nobody', '-l', '127.0.0.1'),
            *('-p', str(self.port), '-U', '0'),
        ]

    def ask(self) -> None:
        Client(('127.0.0.1', self.port)).version()

    def forget(self) -> None:
        Client(('127.0.0.1', self.port)).flush_all(noreply=False)


class Etcd(Server):
    """Debian's etcd, a cluster of one."""

    name = 'etcd'
    package = 'etcd-server'

    @property
    def url(self) -> str:
        return f'etcd3+http://127.0.0.1:{self.port}?timeout=5'

    def command(self) -> list[str]:
        clients = f'http://127.0.0.1:{self.port}'
        peers = f'http://127.0.0.1:{free_port()}'
        return [
            *('--data-dir', str(self._folder / 'etcd')),
            *('--listen-client-urls', clients),
            *('--advertise-client-urls', clients),
            *('--listen-peer-urls', peers),
            *('--initial-advertise-peer-urls', peers),
            *('--initial-cluster', f'default={peers}'),
        ]

    def _client(self) -> etcd3gw.Etcd3Client:
        return etcd3gw.client('127.0.0.1', self.port, timeout=5)

    def ask(self) -> None:
        self._client().get('anything')

    def forget(self) -> None:
        assert self._client().delete_prefix('/tooz/locks')


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.create_server(('127.0.0.1', 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.fixture
def memcached(tmp_path: pathlib.Path) -> Iterator[Memcached]:
    """A memcached that is not started yet."""
    server = Memcached(tmp_path)
    server.program()
    yield server
    server.stop()


@pytest.fixture(params=[Memcached, Etcd], ids=lambda kind: kind.name)
def server(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path
) -> Iterator[Server]:
    """A lock service that is not started yet."""
    server: Server = request.param(tmp_path)
    server.program()
    yield server
    server.stop()


@pytest.fixture(
    params=['file', 'memcached', pytest.param('etcd', marks=pytest.mark.slow)]
)
def url(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path
) -> Iterator[str]:
    """The URL of a lock service that runs."""
    if request.param == 'file':
        yield f'file://{tmp_path}'
        return
    kind = {'memcached': Memcached, 'etcd': Etcd}[request.param]
    server = kind(tmp_path)
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def elect(conf: cfg.ConfigOpts) -> Elect:
    """Take part in an election, in a separate process."""

    @contextlib.contextmanager
    def take_part(
        url: str | None,
        machine: str,
        work: tuple[str, ...] = ('sync',),
        region: str | None = None,
        cloud: str = 'https://keystone.example.com/v3',
    ) -> Iterator[IsElected]:
        conf.set_override('coordination_url', url, 'isolate_aggregates')
        auth = v3.Token(cloud, 'token')
        connection = Connection(session.Session(auth=auth), region)
        with contextlib.ExitStack() as stack:
            with mock.patch.object(
                socket, 'gethostname', return_value=machine
            ):
                is_elected = stack.enter_context(
                    coordination.elected(conf, connection, *work)
                )
            yield is_elected

    return take_part


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the log messages on elections since the last call."""
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name == 'isolate_aggregates.cli.election'
    ]
    caplog.clear()
    return lines


def test_without_a_url_all_work(elect: Elect) -> None:
    with elect(None, 'a') as a, elect(None, 'b') as b:
        assert (a(), b(), a()) == (True, True, True)


def test_one_works_until_it_ends_and_then_another(
    elect: Elect, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with elect(url, 'b') as b:
        with elect(url, 'a') as a:
            assert (a(), b(), b(), a()) == (True, False, False, True)
            assert told(caplog) == [
                'This process was elected to work.',
                'Another process works; this one waits.',
            ]
        assert b() is True
        assert told(caplog) == ['This process was elected to work.']


@pytest.mark.parametrize(
    'other',
    [
        pytest.param({'work': ('reconcile',)}, id='another command'),
        pytest.param({'work': ('sync', 'no-traits')}, id='a part of it'),
        pytest.param({'region': 'Süd/1'}, id='another region'),
        pytest.param({'cloud': 'https://k.example.org'}, id='another cloud'),
    ],
)
def test_what_does_other_work_is_not_kept_from_it(
    elect: Elect, url: str, other: dict[str, Any]
) -> None:
    with elect(url, 'a') as a, elect(url, 'b', **other) as b:
        assert (a(), b()) == (True, True)
        with elect(url, 'c', **other) as c:
            assert c() is False


# A process that prints when it is elected, and waits to be killed.
ELECTED = """
import sys
from keystoneauth1 import session
from keystoneauth1.identity import v3
from oslo_config import cfg
from isolate_aggregates import conf as ia_conf
from isolate_aggregates.cli import coordination
from isolate_aggregates.rest.connection import Connection
conf = cfg.ConfigOpts()
ia_conf.register_opts(conf)
conf([], default_config_files=[], default_config_dirs=[])
conf.set_override('coordination_url', sys.argv[1], 'isolate_aggregates')
auth = v3.Token('https://keystone.example.com/v3', 'token')
cloud = Connection(session.Session(auth=auth))
with coordination.elected(conf, cloud, 'sync') as is_elected:
    print(is_elected(), flush=True)
    sys.stdin.read()
"""


def test_a_lock_on_a_file_is_free_when_its_process_is_killed(
    elect: Elect, tmp_path: pathlib.Path
) -> None:
    url = f'file://{tmp_path}'
    with subprocess.Popen(
        [sys.executable, '-W', 'ignore', '-c', ELECTED, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == 'True\n'
        with elect(url, 'b') as b:
            assert b() is False
            other.send_signal(signal.SIGKILL)
            other.wait()
            assert b() is True


def test_what_was_lost_goes_to_whoever_asks_first(
    elect: Elect, server: Server
) -> None:
    server.start()
    with elect(server.url, 'a') as a, elect(server.url, 'b') as b:
        assert (a(), b()) == (True, False)
        server.forget()
        assert (b(), a(), b()) == (True, False, True)


def test_a_lost_lock_is_not_refreshed_for_whoever_has_it_now(
    elect: Elect, memcached: Memcached, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would be elected after that process was killed."""
    refresh = MemcachedDriver.heartbeat
    drivers: list[MemcachedDriver] = []

    def note(driver: MemcachedDriver) -> float:
        if driver not in drivers:
            drivers.append(driver)
        return 600

    monkeypatch.setattr(MemcachedDriver, 'heartbeat', note)
    memcached.start()
    with elect(memcached.url, 'a') as a, elect(memcached.url, 'b') as b:
        assert a() is True
        memcached.forget()
        assert (b(), a()) == (True, False)
        loser, winner = drivers
        with mock.patch.object(Client, 'touch', autospec=True) as touch:
            refresh(loser)
            touch.assert_not_called()
            refresh(winner)
            touch.assert_called_once()


def test_where_nobody_can_be_asked_all_work(
    elect: Elect, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, 'isolate_aggregates')
    url = server.url
    with elect(url, 'a') as a, elect(url, 'b') as b:
        assert (a(), a(), b()) == (True, True, True)
        [first, second] = told(caplog)
        assert first == second
        assert first.startswith('No process can be elected, so this one')
        assert '://' not in first
        server.start()
        assert (a(), b()) == (True, False)
        server.stop()
        assert (a(), b()) == (True, True)
        server.start()
        # Each process may first have to notice that its connection is lost.
        assert True in (a(), b())
        assert True in (a(), b())
        assert sorted((a(), b())) == [False, True]


def test_the_lock_is_refreshed_as_long_as_the_process_is_there(
    elect: Elect, memcached: Memcached, monkeypatch: pytest.MonkeyPatch
) -> None:
    memcached.start()
    refresh = MemcachedDriver.heartbeat
    refreshed: queue.Queue[bool] = queue.Queue()

    def count(driver: MemcachedDriver) -> float:
        refresh(driver)
        refreshed.put(True)
        return 0.01

    monkeypatch.setattr(MemcachedDriver, 'heartbeat', count)
    before = set(threading.enumerate())
    with elect(memcached.url, 'a') as a:
        assert a() is True
        [thread] = set(threading.enumerate()) - before
        assert [refreshed.get() for _ in range(3)] == [True] * 3
    thread.join()


def test_what_has_the_locks_may_be_away_when_a_process_ends(
    elect: Elect,
    memcached: Memcached,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A process that waits for the thread could not be ended by SIGTERM."""
    memcached.start()
    refresh = MemcachedDriver.heartbeat
    failures: queue.Queue[MemcachedDriver] = queue.Queue()

    def note(driver: MemcachedDriver) -> float:
        try:
            refresh(driver)
        except tooz.ToozError:
            failures.put(driver)
            raise
        return 0.01

    monkeypatch.setattr(MemcachedDriver, 'heartbeat', note)
    with elect(memcached.url, 'a') as a, elect(memcached.url, 'b') as b:
        assert (a(), b()) == (True, False)
        memcached.stop()
        failed = {failures.get()}
        while len(failed) < 2:
            failed.add(failures.get())
    # tooz does not log each attempt to refresh a lock.
    assert {record.name.split('.')[0] for record in caplog.records} <= {
        'isolate_aggregates'
    }


@pytest.mark.parametrize('url', ['file:///proc/no/such', 'file:relative'])
def test_where_no_file_can_be_locked_all_work(
    elect: Elect,
    url: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # tooz makes directories even where it cannot lock.
    monkeypatch.chdir(tmp_path)
    with elect(url, 'a') as a, elect(url, 'b') as b:
        assert (a(), b(), a()) == (True, True, True)


@pytest.mark.parametrize(
    'url',
    [
        pytest.param('carrier-pigeon://user:secret@coop', id='no driver'),
        pytest.param('secret', id='no URL'),
        pytest.param('etcd3+http://:secret@etcd', id='a library is missing'),
    ],
)
def test_what_tooz_cannot_use_is_an_error_without_its_secrets(
    elect: Elect, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'tooz.drivers.etcd3gw', None)
    with pytest.raises(exception.ConfigError) as caught:
        elect(url, 'a').__enter__()
    assert '[isolate_aggregates] coordination_url cannot be used' in str(
        caught.value
    )
    assert 'secret' not in str(caught.value)


def test_without_tooz_it_is_said_what_to_install(
    elect: Elect, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(
        sys.modules, 'isolate_aggregates.cli.election', raising=False
    )
    monkeypatch.setitem(sys.modules, 'tooz', None)
    with pytest.raises(exception.ConfigError) as caught:
        elect(f'file://{tmp_path}', 'a').__enter__()
    assert str(caught.value) == (
        'Configuration option [isolate_aggregates] coordination_url needs '
        'tooz; install isolate-aggregates[coordination].'
    )
