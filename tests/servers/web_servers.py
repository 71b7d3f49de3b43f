# SPDX-License-Identifier: Apache-2.0
"""Runs Placement with the web servers that clouds use.

Each is a process of its own with the limits it has by default, on a free port
of this machine, with a database in a file. A proxy before it is one more.
"""

from collections.abc import Callable, Sequence
import contextlib
import dataclasses
import os
import pathlib
import shutil
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

    :param name: Its program.
    :param command: Returns the command that starts it on an address.
    :param max_query_length: What is recommended for it.
    :param speaks_http: Whether it needs no proxy before it.
    """

    name: str
    command: Callable[[str], Sequence[str]]
    max_query_length: int
    speaks_http: bool = True

    def is_installed(self):
        """Return whether its program is there."""
        return (_BIN / self.name).exists()


def _gunicorn(address, *options):
    return [
        str(_BIN / 'gunicorn'),
        # A busy machine must not look like a hanging worker.
        f'--timeout={_SECONDS}',
        # It would be in the home directory, one for all.
        '--no-control-socket',
        *options,
        '--bind',
        address,
        APPLICATION,
    ]


def _uwsgi(address, *options, listen='--http-socket'):
    return [
        str(_BIN / 'uwsgi'),
        listen,
        address,
        *options,
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


def _big_uwsgi(address):
    """As OpenStack-Ansible and Atmosphere have it."""
    return _uwsgi(address, '--buffer-size=65535')


def _kolla_uwsgi(address):
    """As in kolla-ansible, whose uWSGI has its own HTTP router."""
    return _uwsgi(address, '--buffer-size=65535', '--master', listen='--http')


GUNICORN = WebServer('gunicorn', _gunicorn, 4000)
UNLIMITED = WebServer(
    'gunicorn', lambda address: _gunicorn(address, '--limit-request-line=0'), 0
)
# Answers several requests at a time.
THREADS = WebServer(
    'gunicorn', lambda address: _gunicorn(address, '--threads=6'), 4000
)
UWSGI = WebServer('uwsgi', _uwsgi, 1500)
BIG_UWSGI = WebServer('uwsgi', _big_uwsgi, 30_000)
KOLLA_UWSGI = WebServer('uwsgi', _kolla_uwsgi, 30_000)
# Behind a proxy that uses uWSGI's own protocol.
SOCKET_UWSGI = WebServer(
    'uwsgi',
    lambda address: _uwsgi(address, listen='--socket'),
    0,
    speaks_http=False,
)


@dataclasses.dataclass(frozen=True)
class Proxy:
    """A proxy before the web server, with the limits it has by default.

    :param name: Its program.
    :param package: The package of Debian that it is in.
    :param configuration: Its configuration, with places for ``{folder}``,
        ``{address}`` and the ``{server}`` before which it stands.
    :param command: Returns the command that starts it in the foreground with
        a configuration.
    """

    name: str
    package: str
    configuration: str
    command: Callable[[str, pathlib.Path], Sequence[str]]

    @property
    def program(self):
        """The path of its program; None if it is not installed."""
        # Debian's directory for servers is not always in PATH.
        path = f'{os.environ.get("PATH", os.defpath)}:/usr/sbin'
        return shutil.which(self.name, path=path)


HAPROXY = Proxy(
    'haproxy',
    'haproxy',
    """
defaults
    mode http
    timeout connect {seconds}s
    timeout client {seconds}s
    timeout server {seconds}s
listen placement
    bind {address}
    server one {server}
""",
    lambda program, path: [program, '-db', '-f', str(path)],
)
APACHE = Proxy(
    'apache2',
    'apache2-bin',
    """
ServerName localhost
ServerRoot {folder}
PidFile {folder}/apache.pid
DefaultRuntimeDir {folder}
Mutex file:{folder}
ErrorLog /dev/stderr
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
Listen {address}
ProxyPass / http://{server}/
""",
    lambda program, path: [program, '-D', 'FOREGROUND', '-f', str(path)],
)
APACHE_FOR_UWSGI = dataclasses.replace(
    APACHE,
    configuration=APACHE.configuration.replace(
        'proxy_http', 'proxy_uwsgi'
    ).replace('http://', 'uwsgi://'),
)


@dataclasses.dataclass(frozen=True)
class Running:
    """A Placement that answers.

    :param server: Its web server.
    :param url: Its endpoint, or that of a proxy before it.
    :param database: The file of its database.
    :param log: The file that it writes to.
    """

    server: WebServer
    url: str
    database: pathlib.Path
    log: pathlib.Path

    def get(self, path):
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
def running(server, folder):
    """Run an empty Placement.

    :param server: Its web server.
    :param folder: An empty folder for its files.
    """
    database, log = folder / 'placement.db', folder / 'placement.log'
    (folder / 'placement.conf').write_text(
        CONFIGURATION.format(database=database), 'utf-8'
    )
    address = f'127.0.0.1:{_free_port()}'
    found = Running(server, f'http://{address}', database, log)
    environment = {'PATH': os.defpath, 'OS_PLACEMENT_CONFIG_DIR': str(folder)}
    ready = _answers if server.speaks_http else _listens
    command = server.command(address)
    with _started(command, folder, environment, found, ready):
        yield found


@contextlib.contextmanager
def behind(proxy, placement, folder):
    """Run a proxy before a Placement.

    :param folder: An empty folder for its files.
    """
    address = f'127.0.0.1:{_free_port()}'
    configuration = folder / 'proxy.conf'
    configuration.write_text(
        proxy.configuration.format(
            folder=folder,
            address=address,
            server=placement.url.removeprefix('http://'),
            seconds=_SECONDS,
        ),
        'utf-8',
    )
    assert proxy.program
    found = dataclasses.replace(
        placement, url=f'http://{address}', log=folder / 'proxy.log'
    )
    command = proxy.command(proxy.program, configuration)
    environment = {'PATH': os.defpath}
    with _started(command, folder, environment, found, _answers):
        yield found


@contextlib.contextmanager
def _started(command, folder, environment, found, ready):
    """Run a program until it is not wanted any more.

    :param ready: Raises OSError while it does not run yet.
    """
    with found.log.open('w') as output:
        # A separate process group, so that its workers are terminated too.
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(found, process, ready)
        yield
    finally:
        _end(process)


def _free_port():
    with socket.create_server(('127.0.0.1', 0)) as unused:
        return int(unused.getsockname()[1])


def _answers(server):
    assert server.get('/').ok


def _listens(server):
    host, _, port = server.url.removeprefix('http://').partition(':')
    socket.create_connection((host, int(port))).close()


def _wait(found, process, ready):
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and process.poll() is None:
        # Those of requests are of that kind too.
        with contextlib.suppress(OSError):
            ready(found)
            return
        time.sleep(0.1)
    raise AssertionError(f'it does not answer:\n{found.log.read_text()}')


def _end(process):
    """Terminate a process; report and remove leftover processes."""
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
