# SPDX-License-Identifier: Apache-2.0
"""The exporter as a separate process, scraped over a real socket."""

import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from samples import parsed

EXAMPLE = pathlib.Path(__file__).parents[2] / 'examples/windows-licensing.yaml'
LICENSED = 'trait:CUSTOM_LICENSED_WINDOWS'
SCHEDULER = 'isolate_aggregates_scheduler'
COUNT = """
import sys
from isolate_aggregates import exception
from isolate_aggregates.nova import worker_metrics
metrics = worker_metrics.WorkerMetrics(['isolate_tenants'], sys.argv[1])
metrics.refused('isolate_tenants', exception.RequestRefused(['no']))
"""
# A timeout in seconds that is long enough even on a slow machine.
LONG = 300


class Exporter:
    """Runs the exporter as a user without any configuration.

    :param home: An empty directory.
    """

    def __init__(self, home):
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith('OS_')
        } | {'HOME': str(home)}
        self._running = []

    def start(self, *arguments):
        """Start it on a free port and return its process and its address."""
        process = subprocess.Popen(
            self._command('--listen', '127.0.0.1:0', *arguments),
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._running.append(process)
        assert select.select([process.stdout], [], [], LONG)[0]
        line = process.stdout.readline()
        match = re.fullmatch(r'Metrics are served at (http://\S+)\.\n', line)
        assert match, process.communicate(timeout=LONG)
        return process, match[1]

    def run(self, *arguments):
        """Run it until it exits."""
        return subprocess.run(
            self._command(*arguments),
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=LONG,
        )

    def stop(self):
        """Kill the processes that still run."""
        for process in self._running:
            process.kill()
            process.communicate()

    def _command(self, *arguments):
        program = (
            'from isolate_aggregates_tools.cli import app; exit(app.main())'
        )
        return [sys.executable, '-c', program, 'exporter', *arguments]


@pytest.fixture
def exporter(tmp_path):
    """The exporter, as a process."""
    home = tmp_path / 'home'
    home.mkdir()
    one = Exporter(home)
    yield one
    one.stop()


def scrape(url, until=lambda found: True):
    """Return the samples of an address as Prometheus reads them."""
    end = time.monotonic() + LONG
    while True:
        with urllib.request.urlopen(url, timeout=LONG) as answer:
            text = answer.read().decode()
        found = parsed(text)
        if until(found):
            return found
        assert time.monotonic() < end, text
        time.sleep(0.1)


def up(value):
    """Return a condition on whether the last reading worked."""
    return lambda found: found[('isolate_aggregates_up',)] == value


def failed(metrics):
    """Return whether a reading has failed."""
    return ('isolate_aggregates_last_failure_timestamp_seconds',) in metrics


def test_a_scrape_returns_metrics_and_sigterm_stops_the_exporter(exporter):
    process, url = exporter.start('--snapshot', str(EXAMPLE))
    metrics = scrape(url, until=up(1))
    assert metrics['isolate_aggregates_lock_hosts', LICENSED] == 2
    assert metrics['isolate_aggregates_lock_used', 'VCPU', LICENSED] == 4
    assert metrics['isolate_aggregates_slots_up',] == 1

    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=LONG) == ('', '')
    assert process.returncode == 0
    with pytest.raises(urllib.error.URLError):
        scrape(url)


def test_control_c_stops_the_exporter(exporter):
    process, _ = exporter.start('--snapshot', str(EXAMPLE))
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=LONG) == ('', '')
    assert process.returncode == 0


def test_values_are_kept_when_the_cloud_cannot_be_read(exporter, tmp_path):
    path = tmp_path / 'cloud.yaml'
    shutil.copy(EXAMPLE, path)
    process, url = exporter.start('--interval', '1', '--snapshot', str(path))
    before = scrape(url, until=up(1))

    path.rename(tmp_path / 'away.yaml')
    metrics = scrape(url, until=up(0))
    assert failed(metrics)
    for key, value in before.items():
        if key[0].startswith('isolate_aggregates_lock'):
            assert metrics[key] == value

    (tmp_path / 'away.yaml').rename(path)
    scrape(url, until=up(1))

    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=LONG)
    assert set(errors.splitlines()) == {
        f'{path} cannot be read: No such file or directory.'
    }


def test_without_a_reading_metrics_are_absent_not_zero(exporter, tmp_path):
    _, url = exporter.start('--snapshot', str(tmp_path / 'missing.yaml'))
    metrics = scrape(url, until=failed)
    assert {key[0] for key in metrics} == {
        'isolate_aggregates_build_info',
        'isolate_aggregates_up',
        'isolate_aggregates_last_failure_timestamp_seconds',
    }
    assert metrics[('isolate_aggregates_up',)] == 0


def test_the_exporter_stops_while_a_service_hangs(exporter):
    # It accepts everything and returns nothing.
    with socket.create_server(('127.0.0.1', 0)) as silent:
        port = silent.getsockname()[1]
        exporter._environment |= {
            'OS_AUTH_TYPE': 'none',
            'OS_ENDPOINT': f'http://127.0.0.1:{port}/',
        }
        process, _ = exporter.start()
        silent.settimeout(LONG)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=LONG) == ('', '')
    assert process.returncode == 0


def test_a_port_in_use_is_one_sentence(exporter):
    with socket.create_server(('127.0.0.1', 0)) as other:
        where = f'127.0.0.1:{other.getsockname()[1]}'
        result = exporter.run('--listen', where, '--snapshot', str(EXAMPLE))
    assert (result.returncode, result.stdout) == (1, '')
    assert result.stderr == (
        f'The metrics cannot be served at {where}: Address already in use.\n'
    )


def test_counts_of_nova_scheduler_can_be_exported_alone(exporter, tmp_path):
    directory = tmp_path / 'counts'
    _, url = exporter.start('--no-cloud', '--scheduler', str(directory))
    metrics = scrape(url)
    assert metrics[f'{SCHEDULER}_up',] == 0
    assert {key[0] for key in metrics} == {
        'isolate_aggregates_build_info',
        f'{SCHEDULER}_up',
    }

    directory.mkdir()
    for _ in range(2):
        subprocess.run([sys.executable, '-c', COUNT, directory], check=True)
    metrics = scrape(url)
    assert metrics[f'{SCHEDULER}_up',] == 1
    assert metrics[f'{SCHEDULER}_requests_total',] == 2
    refused = (f'{SCHEDULER}_refusals_total', 'filter', 'isolate_tenants')
    assert metrics[refused] == 2


def test_the_textfile_is_kept_when_the_cloud_is_down(exporter, tmp_path):
    path, cloud = tmp_path / 'isolation.prom', tmp_path / 'cloud.yaml'
    shutil.copy(EXAMPLE, cloud)
    arguments = ('--snapshot', str(cloud), '--output', str(path))
    first = exporter.run(*arguments)
    assert (first.returncode, first.stdout, first.stderr) == (0, '', '')
    before = path.read_text('utf-8')
    # Node exporter runs as another user.
    assert path.stat().st_mode & 0o044 == 0o044 & ~current_umask()

    cloud.unlink()
    second = exporter.run(*arguments)
    assert (second.returncode, second.stdout) == (1, '')
    assert second.stderr == (
        f'{cloud} cannot be read: No such file or directory.\n'
    )
    after = path.read_text('utf-8')
    assert 'isolate_aggregates_up 1.0' in before
    assert 'isolate_aggregates_up 0.0' in after
    for line in before.splitlines():
        if 'isolate_aggregates_up' not in line:
            assert line in after.splitlines()


def test_what_is_no_file_is_refused_before_it_is_read(exporter, tmp_path):
    path = tmp_path / 'pipe'
    os.mkfifo(path)
    result = exporter.run('--snapshot', str(EXAMPLE), '--output', str(path))
    assert (result.returncode, result.stdout) == (1, '')
    assert result.stderr == (
        f'The metrics cannot be written to {path}: Not a regular file.\n'
    )


def current_umask():
    """Return the umask of this process."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
