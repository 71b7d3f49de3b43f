# SPDX-License-Identifier: Apache-2.0
"""A shell in which the programs are functions of this process.

So a page can be run as it stands, with its pipes, variables and line breaks,
over services that live in the process of the test.
"""

import contextlib
import dataclasses
import io
import json
import logging
import os
import selectors
import shlex
import socket
import subprocess
import sys
import threading
from unittest import mock

from isolate_aggregates_tools.cli import periodic
from isolate_aggregates_tools.metrics import reading

# The path of the interpreter may have spaces, which "#!" does not allow. The
# first lines are the shell's, and a text in Python.
_SCRIPT = """\
#!/bin/sh
'''exec' {python} -IS "$0" "$@"
' '''
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as there:
    there.connect({socket!r})
    told = {{
        k: v for k, v in os.environ.items() if k == 'HOME' or k[:3] == 'OS_'
    }}
    there.sendall(json.dumps([{name!r}, sys.argv[1:], told]).encode())
    there.shutdown(socket.SHUT_WR)
    code, out, err = json.loads(there.makefile().read())
sys.stderr.write(err)
sys.stdout.write(out)
sys.exit(code)
"""
# Nothing that a program writes.
_END = '\x1e'


@dataclasses.dataclass(frozen=True)
class Typed:
    """What became of a command that was typed."""

    code: int
    output: str


class Terminal:
    """A shell, as a context manager.

    :param folder: Its working directory.
    :param programs: Additional programs.
    :param environment: Environment variables, for example for OpenStack.
    """

    def __init__(self, folder, programs, environment):
        self._programs = programs
        self._folder = folder
        scripts = folder / 'bin'
        scripts.mkdir()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(scripts / 'socket'))
        self._listening.listen()
        for name in programs:
            script = scripts / name
            script.write_text(
                _SCRIPT.format(
                    python=shlex.quote(sys.executable),
                    socket=str(scripts / 'socket'),
                    name=name,
                )
            )
            script.chmod(0o755)
        self._shell = subprocess.Popen(
            ['bash', '--noprofile', '--norc'],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env={
                'HOME': str(folder),
                'PATH': f'{scripts}:{os.environ["PATH"]}',
                **environment,
            },
        )

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        assert self._shell.stdin
        assert self._shell.stdout
        self._shell.stdin.close()
        self._shell.wait()
        self._shell.stdout.close()
        self._listening.close()

    def type(self, text):
        """Type a command; wait until it has ended."""
        assert self._shell.stdin
        self._shell.stdin.write(
            f"{{ {text}\n}} 2>&1 </dev/null; printf '{_END}%d{_END}' $?\n"
            .encode()
        )  # fmt: skip
        self._shell.stdin.flush()
        written = self._attend()
        output, code, _ = written.split(_END)
        return Typed(int(code), output)

    def _attend(self):
        """Run the command in the shell; return its output."""
        assert self._shell.stdout
        written = b''
        with selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)
            selector.register(self._shell.stdout, selectors.EVENT_READ)
            while written.count(_END.encode()) < 2:
                for key, _ in selector.select():
                    if key.fileobj is self._listening:
                        self._answer()
                        continue
                    part = os.read(self._shell.stdout.fileno(), 65536)
                    assert part, f'the shell has ended: {written!r}'
                    written += part
        return written.decode()

    def _answer(self):
        asking, _ = self._listening.accept()
        with asking, asking.makefile('rw') as stream:
            name, arguments, environment = json.loads(stream.read())
            answer = self._run(name, arguments, environment)
            stream.write(json.dumps(answer))

    def _run(self, name, arguments, environment):
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, environment),
            contextlib.chdir(self._folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            _logs_of_its_own(),
            _asked_to_end(),
        ):
            try:
                code = self._programs[name](arguments) or 0
            except SystemExit as exc:
                code = int(exc.code or 0)
        return code, out.getvalue(), err.getvalue()


@contextlib.contextmanager
def _logs_of_its_own():
    """Keep what a program does to logs from this process."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    # The logs of services that run in this process are not the program's.
    services = [logging.getLogger(name) for name in ('nova', 'placement')]
    before = [service.propagate for service in services]
    silent = logging.NullHandler()
    for service in services:
        service.propagate = False
        service.addHandler(silent)
    try:
        yield
    finally:
        for service, propagates in zip(services, before, strict=True):
            service.propagate = propagates
            service.removeHandler(silent)
        root.handlers[:] = handlers
        root.setLevel(level)


@contextlib.contextmanager
def _asked_to_end():
    """Terminate a long-running program once it is idle."""
    has_read = threading.Event()
    read = reading.CloudReading.read

    def read_once(cloud):
        try:
            read(cloud)
        finally:
            has_read.set()

    def wait(_, seconds=None):
        # The exporter reads the cloud in a thread.
        if any('keep_reading' in each.name for each in threading.enumerate()):
            has_read.wait()
        return seconds != 0

    with (
        mock.patch.object(reading.CloudReading, 'read', read_once),
        mock.patch.object(periodic.EndSignals, 'wait', wait),
    ):
        yield
