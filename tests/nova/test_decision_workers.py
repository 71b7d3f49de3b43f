# SPDX-License-Identifier: Apache-2.0
"""Workers record after forks, SIGHUP and logrotate, with both backends."""

import json
import pathlib
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = pathlib.Path(__file__).with_name('decision_workers.py')
OURS = 'isolate-aggregates-records'
PATIENCE = 120


def lines(path):
    """Return process, thread and record of each whole line."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith('\n'):
            process, thread, text = line.split(' ', 2)
            found.append((int(process), thread, json.loads(text)))
    return found


def workers(path, others):
    """Wait for records of two workers, and return their processes.

    :param others: The processes that are not meant.
    """
    found = set()
    until = time.monotonic() + PATIENCE
    while len(found) < 2 and time.monotonic() < until:
        time.sleep(0.1)
        found = {process for process, *_ in lines(path)} - others
    return found


@pytest.mark.slow
@pytest.mark.parametrize('backend', ['threading', 'eventlet'])
def test_workers_record_after_signals_and_rotation(tmp_path, backend):
    log, rotated = tmp_path / 'decisions.log', tmp_path / 'decisions.log.1'
    with (
        (tmp_path / 'output').open('w') as output,
        subprocess.Popen(
            [sys.executable, PROGRAM, backend, log],
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as program,
    ):
        try:
            first = workers(log, {program.pid})
            log.rename(rotated)
            program.send_signal(signal.SIGHUP)
            # Native threads: others take their place, while they may write.
            ended = first if backend == 'threading' else set()
            second = workers(log, {program.pid, *ended})
        finally:
            program.terminate()
            try:
                program.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                program.kill()
    said = (tmp_path / 'output').read_text()
    assert len(first) == len(second) == 2, said
    if backend == 'eventlet':
        assert first == second
    written = [*lines(rotated), *lines(log)]
    # The thread of the process that forks has written one itself.
    [*_, own] = [line for line in written if line[0] == program.pid]
    assert own[1] == OURS
    for process, thread, record in written:
        if process != program.pid:
            assert thread == OURS
            assert record['cause'] == 'no_candidates'
