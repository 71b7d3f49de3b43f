# SPDX-License-Identifier: Apache-2.0
"""Background processes that are tracked by pid files.

A pid can be reused after its process has ended. So a pid file also has the
start time of the process, in ticks since boot; both together are unique.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess

import psutil

# For services that finish what they are at.
_SECONDS = 20


@dataclasses.dataclass(frozen=True)
class Process:
    """A process in the background.

    :param pid_file: The pid file.
    :param log: The file to which its output is appended.
    """

    pid_file: pathlib.Path
    log: pathlib.Path

    def is_running(self):
        """Return whether it runs."""
        return self._find() is not None

    def start(self, command, environment):
        """Start it.

        :param command: The program and its arguments.
        :param environment: What is added to the environment.
        """
        with self.log.open('ab') as output:
            started = subprocess.Popen(
                command,
                env=_inherited() | environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # It stays when a terminal is closed or Control-C is hit.
                start_new_session=True,
            )
        self.pid_file.write_text(
            json.dumps({'pid': started.pid, 'ticks': _ticks(started.pid)}),
            'utf-8',
        )

    def stop(self, patience=_SECONDS):
        """Terminate it with its children, and wait until it is gone.

        :param patience: Seconds to wait before it is killed.
        """
        found = self._find()
        if found is not None:
            _end(found, patience)
        self.pid_file.unlink(missing_ok=True)

    def _find(self):
        with contextlib.suppress(FileNotFoundError, psutil.NoSuchProcess):
            record = json.loads(self.pid_file.read_text('utf-8'))
            found = psutil.Process(record['pid'])
            if (
                _ticks(found.pid) == record['ticks']
                and found.status() != psutil.STATUS_ZOMBIE
            ):
                return found
        return None


def _inherited():
    # Neither whose cloud the starter uses nor where its modules are.
    mine = ('OS_', 'PYTHON')
    return {k: v for k, v in os.environ.items() if not k.startswith(mine)}


def _ticks(pid):
    """Return when a process was started, as proc(5) has it.

    :raises FileNotFoundError: if it is gone.
    """
    stat = pathlib.Path(f'/proc/{pid}/stat').read_text('utf-8')
    # The name, the second field, is in parentheses and may have blanks.
    return int(stat.rpartition(')')[2].split()[19])


def _end(process, patience):
    with contextlib.suppress(psutil.NoSuchProcess):
        family = [process, *process.children(recursive=True)]
        process.terminate()
        _, left = psutil.wait_procs(family, patience)
        for member in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        psutil.wait_procs(left, _SECONDS)
