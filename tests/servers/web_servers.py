# SPDX-License-Identifier: Apache-2.0
"""Placement under the web servers that clouds run it under.

Each is a process of its own with the limits it has by default, on a free port
of this machine, with a database in a file.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import requests

APPLICATION = 'placement.wsgi.api:application'

# As long as a token of Keystone. Placement without Keystone takes whatever
# begins with "admin" for the administrator's.
TOKEN = f'admin:{"x" * 194}'

_SECONDS = 300
_BIN = pathlib.Path(sys.prefix) / 'bin'

CONFIGURATION = """
[api]
auth_strategy = noauth2

[placement_database]
connection = sqlite:///{database}
sync_on_startup = true

[oslo_policy]
enforce_new_defaults = false
enforce_scope = false
"""


@dataclasses.dataclass(frozen=True)
class WebServer:
    """A web server with default limits.

    :param name: Its name.
    :param command: Returns the command that starts it on an address.
    :param max_query_length: What is recommended for it.
    """

    name: str
    command: Callable[[str], Sequence[str]]
    max_query_length: int

    def is_installed(self) -> bool:
        """Tell whether its program is there."""
        return (_BIN / self.name).exists()


def _gunicorn(address: str) -> Sequence[str]:
    return [
        str(_BIN / 'gunicorn'),
        # A busy machine is no worker that hangs.
        f'--timeout={_SECONDS}',
        '--bind',
        address,
        APPLICATION,
    ]


def _uwsgi(address: str) -> Sequence[str]:
    return [
        str(_BIN / 'uwsgi'),
        '--http-socket',
        address,
        '--virtualenv',
        sys.prefix,
        '--module',
        APPLICATION,
        '--need-app',
        '--die-on-term',
        # As DevStack has it; else clients meet connections that are closed.
        '--add-header',
        'Connection: close',
    ]


GUNICORN = WebServer('gunicorn', _gunicorn, 4000)
UWSGI = WebServer('uwsgi', _uwsgi, 1500)


@dataclasses.dataclass(frozen=True)
class Running:
    """A Placement that answers.

    :param server: Its web server.
    :param url: Its endpoint.
    :param database: The file of its database.
    :param log: The file that it writes to.
    """

    server: WebServer
    url: str
    database: pathlib.Path
    log: pathlib.Path

    def get(self, path: str) -> requests.Response:
        """Ask it as keystoneauth does in a nova-scheduler."""
        return requests.get(
            f'{self.url}{path}',
            headers={
                'Accept': 'application/json',
                'OpenStack-API-Version': 'placement 1.36',
                'User-Agent': 'nova-scheduler keystoneauth1/5.13.0 '
                'python-requests/2.32.5 CPython/3.11.7',
                'X-Auth-Token': TOKEN,
                'X-Openstack-Request-Id': 'req-' + 36 * '0',
            },
            timeout=_SECONDS,
        )


@contextlib.contextmanager
def running(server: WebServer, folder: pathlib.Path) -> Iterator[Running]:
    """Run an empty Placement.

    :param server: Its web server.
    :param folder: An empty folder for its files.
    """
    database, log = folder / 'placement.db', folder / 'placement.log'
    (folder / 'placement.conf').write_text(
        CONFIGURATION.format(database=database), 'utf-8'
    )
    address = f'127.0.0.1:{_free_port()}'
    with log.open('w') as output:
        # A group of its own, so that its workers can be ended with it.
        process = subprocess.Popen(
            server.command(address),
            cwd=folder,
            env={'PATH': os.defpath, 'OS_PLACEMENT_CONFIG_DIR': str(folder)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    found = Running(server, f'http://{address}', database, log)
    try:
        _wait(found, process)
        yield found
    finally:
        _end(process)


def _free_port() -> int:
    with socket.create_server(('127.0.0.1', 0)) as unused:
        return int(unused.getsockname()[1])


def _wait(found: Running, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(requests.ConnectionError):
            assert found.get('/').ok
            return
        time.sleep(0.1)
    raise AssertionError(f'it does not answer:\n{found.log.read_text()}')


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process; what it leaves behind is ended and reported."""
    process.terminate()
    with contextlib.suppress(ProcessLookupError):
        try:
            process.wait(_SECONDS)
            until = time.monotonic() + _SECONDS
            # Its workers end a moment later.
            while time.monotonic() < until:
                os.killpg(process.pid, 0)
                time.sleep(0.05)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError('the web server left processes behind')
