# SPDX-License-Identifier: Apache-2.0
"""Runs the tool of a rehearsal, away from every other cloud."""

from collections.abc import Iterable, Mapping, Sequence
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import re
import select
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from typing import Any

import yaml

from isolate_aggregates_tools.rehearse import errors
from isolate_aggregates_tools.rehearse.identity import REGION, USER

_LAUNCHER = pathlib.Path(__file__).with_name('launcher.py')
_FILES = ('clouds.yaml', 'clouds.yml', 'secure.yaml', 'secure.yml')
_STDERR = 2
_PROXIES = ('http_proxy', 'https_proxy', 'all_proxy')
_REGION_NAME = 'region_name'
# In clouds.yaml, or in capitals and with OS_ before it as a variable.
_VERSION_KEY = re.compile('[a-z_]+_(api_version|default_microversion)', re.I)
_VERSION = re.compile(r'v?\d+(?:\.\d+)*|latest', re.I)
_NO_PROXY = '127.0.0.1,localhost'
# How long a tool that is to end may take, in seconds.
_PATIENCE = 10
# How much longer than the tool may the launcher take, in seconds: it ends the
# tool, and kills what does not end.
_GRACE = 60


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a tool has ended.

    :param status: Its exit status; negative for a signal, None if its time
        was over.
    :param left: The names of the processes that it left behind.
    :param written: The paths that it wrote, which are not kept; None if the
        working folder was not protected.
    :param why_open: Why the working folder was not protected.
    """

    status: int | None
    left: tuple[str, ...] = ()
    written: tuple[str, ...] | None = None
    why_open: str = ''


class Launcher:
    """A process that waits for the tool that it will run.

    :param is_isolated: Whether it leaves all networks.
    :raises NotIsolated: if the system does not allow that.
    """

    def __init__(self, is_isolated: bool = True) -> None:
        self._exit = contextlib.ExitStack()
        self._numbers = itertools.count()
        self._received = b''
        with contextlib.ExitStack() as stack:
            folder = tempfile.TemporaryDirectory(
                prefix='rehearsal-', ignore_cleanup_errors=True
            )
            self.folder = pathlib.Path(stack.enter_context(folder))
            stack.callback(_make_readable, self.folder)
            for name in ('upper', 'work'):
                (self.folder / name).mkdir()
            for name in ('clouds.yaml', 'secure.yaml'):
                (self.folder / name).write_text('{}\n')
            ours, theirs = socket.socketpair()
            self._channel = stack.enter_context(ours)
            with theirs:
                # Our own interpreter, with arguments of ours.
                self._process = subprocess.Popen(  # noqa: S603
                    [sys.executable, '-I', _LAUNCHER, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    # The standard output is for the report.
                    stdout=_STDERR,
                )
            stack.callback(self._end)
            self._send(
                {
                    'isolated': is_isolated,
                    'folder': str(pathlib.Path.cwd()),
                    'upper': str(self.folder / 'upper'),
                    'work': str(self.folder / 'work'),
                    'hidden': self._hidden(),
                }
            )
            data, sockets, *_ = socket.recv_fds(self._channel, 4096, 1)
            answer = json.loads(data or '{"problem": "it has ended"}')
            if answer['problem']:
                raise errors.NotIsolated(answer['problem'])
            self._why_open = answer['open_folder']
            self.listener = socket.socket(fileno=sockets[0])
            stack.enter_context(self.listener)
            self._exit = stack.pop_all()

    def run(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        timeout: float | None = None,
    ) -> Ended:
        """Run the tool, and wait until it and all that it started has ended.

        :param timeout: The longest time in seconds; None for any time.
        :raises LauncherEnded: if the launcher has been ended.
        """
        number = next(self._numbers)
        until = None
        if timeout is not None:
            until = time.monotonic() + timeout + _GRACE
        try:
            self._send(
                {
                    'number': number,
                    'command': list(command),
                    'environ': dict(environ),
                    'limit': timeout,
                }
            )
            # An earlier one may be late, if nothing waited for it.
            while (answer := self._answer(until))['number'] != number:
                pass
        except TimeoutError:
            # Neither the tool nor the launcher listens.
            self._end()
            return self._ended(None)
        except OSError as exc:
            raise errors.LauncherEnded from exc
        except BaseException:
            # Such as Ctrl-C: the tool is to end, too.
            with contextlib.suppress(OSError):
                self._send({})
            raise
        # What is left after its time has been said.
        left = () if answer['status'] is None else answer['left']
        return self._ended(answer['status'], left)

    def close(self) -> None:
        """End what still runs, and delete what it wrote."""
        self._exit.close()

    def _answer(self, until: float | None) -> Any:
        """Return the next answer.

        :param until: The time of the monotonic clock to wait until.
        """
        while b'\n' not in self._received:
            left = None if until is None else until - time.monotonic()
            if not select.select([self._channel], [], [], left)[0]:
                raise TimeoutError
            data = self._channel.recv(4096)
            if not data:
                raise errors.LauncherEnded
            self._received += data
        line, _, self._received = self._received.partition(b'\n')
        return json.loads(line)

    def _ended(self, status: int | None, left: Iterable[str] = ()) -> Ended:
        written = None
        if not self._why_open:
            written = tuple(sorted(_written(self.folder / 'upper')))
        return Ended(status, tuple(left), written, self._why_open)

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _send(self, document: Mapping[str, Any]) -> None:
        self._channel.sendall(json.dumps(document).encode() + b'\n')

    def _hidden(self) -> dict[str, str]:
        """Return the files of the user's clouds, and what is seen instead."""
        return {
            str(path.resolve()): str(
                self.folder / f'{path.name.partition(".")[0]}.yaml'
            )
            for path in _files(os.environ)
            if path.is_file()
        }


def clouds_of(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return what is kept of each of the user's clouds, by its name.

    That is its region, and the versions of APIs: tools work as these say.
    """
    clouds = {'rehearsal': {_REGION_NAME: REGION}}
    for path in _files(environ):
        with contextlib.suppress(
            OSError, ValueError, yaml.YAMLError, AttributeError, LookupError
        ):
            found = yaml.safe_load(path.read_text())['clouds']
            for name, cloud in found.items():
                regions = cloud.get('regions') or [REGION]
                region = cloud.get(_REGION_NAME, regions[0])
                if isinstance(region, dict):
                    region = region['name']
                kept = {_REGION_NAME: str(region), **_versions(cloud)}
                clouds.setdefault(str(name), kept)
    if name := environ.get('OS_CLOUD'):
        region = environ.get('OS_REGION_NAME', REGION)
        clouds.setdefault(name, {_REGION_NAME: region})
    return clouds


def _versions(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that say the version of an API."""
    return {
        key: str(value)
        for key, value in settings.items()
        if _VERSION_KEY.fullmatch(key) and _VERSION.fullmatch(str(value))
    }


def environment(
    folder: pathlib.Path,
    url: str,
    password: str,
    clouds: Mapping[str, Mapping[str, str]],
    environ: Mapping[str, str],
) -> dict[str, str]:
    """Return the variables of the tool, and write its clouds.yaml.

    Nothing of a real cloud is left but its name, its region and the versions
    of its APIs.

    :param folder: Where the files of clouds are written.
    :param url: The URL of the local API.
    :param clouds: What is kept of each cloud that tools may name.
    """
    auth = {
        'auth_url': f'{url}/identity/v3',
        'username': USER,
        'password': password,
        'project_name': USER,
        'user_domain_id': 'default',
        'project_domain_id': 'default',
    }
    content = {
        name: {**kept, 'auth': auth, 'identity_api_version': '3'}
        for name, kept in clouds.items()
    }
    path = folder / 'clouds.yaml'
    path.write_text(yaml.safe_dump({'clouds': content}))
    own = {
        key: value
        for key, value in environ.items()
        if not key.upper().startswith(('OS_', 'TF_VAR_OS_'))
        and key.lower() not in (*_PROXIES, 'no_proxy')
    }
    if name := environ.get('OS_CLOUD'):
        # Scripts may name it.
        own['OS_CLOUD'] = name
    own |= {f'OS_{key.upper()}': value for key, value in auth.items()}
    own |= _versions(environ)
    chosen = clouds.get(environ.get('OS_CLOUD', ''), {})
    own |= {
        'OS_REGION_NAME': environ.get(
            'OS_REGION_NAME', chosen.get(_REGION_NAME, REGION)
        ),
        'OS_IDENTITY_API_VERSION': '3',
        'OS_AUTH_TYPE': 'password',
        'OS_CLIENT_CONFIG_FILE': str(path),
        'OS_CLIENT_SECURE_FILE': str(folder / 'secure.yaml'),
        **dict.fromkeys(('no_proxy', 'NO_PROXY'), _NO_PROXY),
    }
    for name in _PROXIES:
        # Whatever wants to leave is refused by the local API, and listed.
        own[name] = own[name.upper()] = url
    return own


def check(command: Sequence[str]) -> None:
    """Check that there is such a program.

    :raises NoSuchProgram: if there is none.
    """
    if shutil.which(command[0]) is None:
        raise errors.NoSuchProgram(command[0])


def _files(environ: Mapping[str, str]) -> Iterable[pathlib.Path]:
    """Return where the files of the user's clouds may be."""
    for name in ('OS_CLIENT_CONFIG_FILE', 'OS_CLIENT_SECURE_FILE'):
        if given := environ.get(name):
            yield pathlib.Path(given)
    home = pathlib.Path(
        environ.get('XDG_CONFIG_HOME', environ.get('HOME', '/') + '/.config')
    )
    for folder in (pathlib.Path(), home / 'openstack', '/etc/openstack'):
        for name in _FILES:
            yield pathlib.Path(folder, name)


def _written(upper: pathlib.Path) -> Iterable[str]:
    """Yield what an overlay has that its folder has not, or has deleted."""
    for folder, _, names in os.walk(upper):
        for name in names:
            path = pathlib.Path(folder, name)
            is_gone = stat.S_ISCHR(path.lstat().st_mode)
            relative = str(path.relative_to(upper))
            yield f'{relative} (deleted)' if is_gone else relative


def _make_readable(folder: pathlib.Path) -> None:
    """Let the folder be deleted: the kernel makes one without any right."""
    work = folder / 'work' / 'work'
    with contextlib.suppress(OSError):
        work.chmod(0o700)
