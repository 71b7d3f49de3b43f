# SPDX-License-Identifier: Apache-2.0
"""The control plane stops all processes that it started, and no others."""

import json
import os
import subprocess
import sys
import time

from control_plane.configuration import Configuration
from control_plane.plane import Plane
from control_plane.processes import Process
from control_plane.settings import Settings
from control_plane.tasks import Task, run_all
import psutil
import pytest
import yaml

SLEEP = 'import time; time.sleep(600)'
# Prints the pid of its child.
PARENT = (
    'import subprocess, sys; '
    f'child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}]); '
    'print(child.pid, flush=True); child.wait()'
)


@pytest.fixture
def process(tmp_path):
    found = Process(tmp_path / 'process.json', tmp_path / 'process.log')
    yield found
    found.stop()


def test_a_later_run_finds_and_ends_a_process_with_its_children(process):
    process.start([sys.executable, '-c', PARENT], {})
    while not (said := process.log.read_text()):
        assert process.is_running()
    child = psutil.Process(int(said))

    later = Process(process.pid_file, process.log)
    assert later.is_running()
    later.stop(patience=1)
    assert not later.is_running()
    assert not child.is_running()


def test_a_process_that_reuses_a_pid_is_left_alone(process):
    process.start([sys.executable, '-c', SLEEP], {})
    record = json.loads(process.pid_file.read_text())
    # It starts in a later tick, like any process that reuses the pid.
    time.sleep(0.05)
    other = subprocess.Popen([sys.executable, '-c', SLEEP])
    try:
        process.stop()
        process.pid_file.write_text(json.dumps(record | {'pid': other.pid}))

        assert not process.is_running()
        process.stop()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_stopping_a_missing_process_does_nothing(process):
    assert not process.is_running()
    process.stop()


def test_a_process_gets_its_own_environment(process, monkeypatch):
    monkeypatch.setenv('OS_CLOUD', 'of somebody else')
    process.start(['env'], {'TOLD': 'this'})
    while process.is_running():
        pass
    told = process.log.read_text().splitlines()
    assert {'TOLD=this', f'HOME={os.environ["HOME"]}'} <= set(told)
    assert not any(line.startswith('OS_') for line in told)


def test_a_task_waits_for_its_requirements():
    done = []
    run_all(
        [
            Task('roof', lambda: done.append('roof'), ('walls',)),
            Task('walls', lambda: done.append('walls'), ('ground',)),
            Task('ground', lambda: done.append('ground')),
        ]
    )
    assert done == ['ground', 'walls', 'roof']


def test_no_task_starts_after_a_failed_one():
    done = []

    def fail():
        raise RuntimeError('no ground')

    with pytest.raises(RuntimeError, match='no ground'):
        run_all(
            [
                Task('walls', lambda: done.append('walls'), ('ground',)),
                Task('ground', fail),
            ]
        )
    assert done == []


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / 'etc').mkdir()
    plane = Plane(Settings(tmp_path, 1024))
    with pytest.raises(RuntimeError, match='is not empty'):
        plane.up()
    plane.down()
    assert list(tmp_path.iterdir()) == [tmp_path / 'etc']


def test_a_shell_and_a_client_find_a_folder_with_any_name(tmp_path):
    settings = Settings(tmp_path / "it's here: #1", 18700)
    settings.state.mkdir()
    configuration = Configuration(settings, lambda name: 'sqlite://')
    for name in ('openrc', 'clouds.yaml'):
        configuration.write(name, name)
    found = subprocess.check_output(
        ['bash', '-c', f'. {settings.openrc} && cat "$OS_CLIENT_CONFIG_FILE"'],
        text=True,
    )
    [one, *_] = yaml.safe_load(found)['clouds'].values()
    assert one['isolation_config_file'] == f'{settings.etc}/nova/nova.conf'


@pytest.mark.parametrize('port', ['abc', '80', '65530'])
def test_invalid_ports_are_refused(port, tmp_path, monkeypatch):
    monkeypatch.setenv('E2E_STATE', str(tmp_path))
    monkeypatch.setenv('E2E_BASE_PORT', port)
    with pytest.raises(RuntimeError, match=f"E2E_BASE_PORT is '{port}'"):
        Settings.from_environment()
