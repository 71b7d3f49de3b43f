# SPDX-License-Identifier: Apache-2.0
"""One of several processes is elected, over locks of tooz's real drivers."""

from collections.abc import Callable, Iterator
import contextlib
import logging
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
from typing import Any
from unittest import mock

from keystoneauth1 import session
from keystoneauth1.identity import v3
from oslo_config import cfg
from pymemcache.client.base import Client
import pytest

from isolate_aggregates import exception
from isolate_aggregates.cli import coordination
from isolate_aggregates.rest.connection import Connection

IsElected = Callable[[], bool]
Elect = Callable[..., contextlib.AbstractContextManager[IsElected]]


class Memcached:
    """A memcached process on a free port."""

    def __init__(self) -> None:
        with socket.create_server(('127.0.0.1', 0)) as listening:
            self.port: int = listening.getsockname()[1]
        self.url = f'memcached://127.0.0.1:{self.port}?timeout=5'
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def program() -> str:
        """Return its path."""
        path = f'{os.environ["PATH"]}:/usr/bin'
        if found := shutil.which('memcached', path=path):
            return found
        pytest.skip('there is no memcached; "apt-get install memcached"')

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(
            [
                *(self.program(), '-u', 'nobody', '-l', '127.0.0.1'),
                *('-p', str(self.port), '-U', '0'),
            ]
        )
        while self._process.poll() is None:
            with contextlib.suppress(ConnectionRefusedError):
                Client(('127.0.0.1', self.port)).version()
                return
        raise AssertionError('memcached has ended')

    def forget(self) -> None:
        """Make it lose all data, as when it is full or restarted."""
        Client(('127.0.0.1', self.port)).flush_all(noreply=False)

    def stop(self) -> None:
        """Stop it."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def memcached() -> Iterator[Memcached]:
    """A memcached that does not run yet."""
    server = Memcached()
    server.program()
    yield server
    server.stop()


@pytest.fixture(params=['file', 'memcached'])
def url(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> str:
    """The URL of something with locks."""
    if request.param == 'file':
        return f'file://{tmp_path}'
    server: Memcached = request.getfixturevalue('memcached')
    server.start()
    return server.url


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
    """Return what was logged of elections since this was asked last."""
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
    elect: Elect, memcached: Memcached
) -> None:
    memcached.start()
    with elect(memcached.url, 'a') as a, elect(memcached.url, 'b') as b:
        assert (a(), b()) == (True, False)
        memcached.forget()
        assert (b(), a(), b()) == (True, False, True)


def test_where_nobody_can_be_asked_all_work(
    elect: Elect, memcached: Memcached, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, 'isolate_aggregates')
    url = memcached.url
    with elect(url, 'a') as a, elect(url, 'b') as b:
        assert (a(), a(), b()) == (True, True, True)
        [first, second] = told(caplog)
        assert first == second
        assert first.startswith('No process can be elected, so this one')
        assert 'memcached://' not in first
        memcached.start()
        assert (a(), b()) == (True, False)
        memcached.stop()
        assert (a(), b()) == (True, True)
        memcached.start()
        # Each may have to find out first that its connection is gone.
        assert True in (a(), b())
        assert True in (a(), b())
        assert sorted((a(), b())) == [False, True]


@pytest.mark.parametrize('url', ['file:///proc/no/such', 'file:relative'])
def test_where_no_file_can_be_locked_all_work(elect: Elect, url: str) -> None:
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
