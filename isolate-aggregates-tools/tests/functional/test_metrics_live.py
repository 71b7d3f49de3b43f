# SPDX-License-Identifier: Apache-2.0
"""The exporter of a live cloud, and its arguments.

The cloud is the Windows licensing example, with a real Placement.
"""

import contextlib
import dataclasses
import json
import signal
import socket
import sys
import threading
import time
import urllib.request

from cases import cases
from http_fakes import NOVA
from live_example import EXAMPLE, ISOLATE
import pytest
from samples import parsed

from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.commands import exporter

EXAMPLES = EXAMPLE.parent
LICENSED = 'trait:CUSTOM_LICENSED_WINDOWS'


class Prometheus(threading.Thread):
    """Scrapes the exporter of this process, and stops it.

    :param steps: The steps: each an action, and the condition on the values to
        wait for before the next step.
    """

    def __init__(self, *steps):
        super().__init__(daemon=True)
        self._steps = steps
        self._main = threading.current_thread().ident
        self.scrapes = []
        with socket.create_server(('127.0.0.1', 0)) as free:
            self.listen = f'127.0.0.1:{free.getsockname()[1]}'

    def run(self):
        """Do all steps."""
        # Without the handler, a signal would end the tests.
        while not self._scrape():
            time.sleep(0.01)
        try:
            for act, condition in self._steps:
                act()
                while not condition(found := self._scrape()):
                    time.sleep(0.01)
                self.scrapes.append(found)
        finally:
            assert self._main
            signal.pthread_kill(self._main, signal.SIGTERM)

    def _scrape(self):
        with contextlib.suppress(OSError):
            url = f'http://{self.listen}/metrics'
            with urllib.request.urlopen(url) as answer:
                return parsed(answer.read().decode())
        return {}


def up(value):
    """Return a condition on whether the last reading worked."""
    return lambda found: found[('isolate_aggregates_up',)] == value


def nothing():
    """Do nothing."""


@pytest.mark.usefixtures('in_environment')
def test_a_live_cloud_is_read_again_and_again(run, live, http, config):
    def break_nova():
        http.get(f'{NOVA}/os-aggregates', status_code=500)

    def repair_nova():
        # A host without the trait.
        locked, *others = live.nova.aggregates
        more = dataclasses.replace(locked, hosts=locked.hosts | {'linux-1'})
        live.nova.aggregates = [more, *others]
        live.nova.answer(http)

    prometheus = Prometheus(
        (nothing, up(1)), (break_nova, up(0)), (repair_nova, up(1))
    )
    prometheus.start()
    result = run(
        *('--config-file', config(ISOLATE), 'exporter', '--interval', '1'),
        *('--listen', prometheus.listen),
    )
    assert result.code == 0
    prometheus.join()
    first, broken, repaired = prometheus.scrapes
    hosts = ('isolate_aggregates_lock_hosts', LICENSED)
    found = ('isolate_aggregates_audit_findings', 'error', 'trait-missing')
    assert first[hosts] == 2
    assert first['isolate_aggregates_lock_used', 'VCPU', LICENSED] == 4
    assert found not in first
    # The old values stay until there are new ones.
    assert broken[hosts] == 2
    assert repaired[hosts] == 3
    assert repaired[found] == 1
    assert 'Nova' in result.err
    assert 'Traceback' not in result.err


@pytest.mark.usefixtures('in_environment')
def test_unlistable_servers_affect_only_the_slots(
    run, live, http, config, tmp_path
):
    path = tmp_path / 'isolation.prom'
    export = (
        *('--config-file', config(ISOLATE)),
        *('exporter', '--output', str(path)),
    )
    # So many flavors that it matters which are used most.
    live.nova.flavors += [
        Flavor(f'new-{number}', f'new-{number}', 1) for number in range(9)
    ]
    http.get(f'{NOVA}/servers', status_code=403)
    result = run(*export)
    # The cloud was read, so the reading has not failed.
    assert result.code == 0
    assert result.err.startswith('Free slots cannot be counted')
    content = parsed(path.read_text('utf-8'))
    assert content['isolate_aggregates_lock_hosts', LICENSED] == 2
    assert content['isolate_aggregates_up',] == 1
    assert content['isolate_aggregates_slots_up',] == 0
    assert not any(
        key[0].endswith(('lock_slots', 'zone_slots', 'free_slots'))
        for key in content
    )

    http.get(f'{NOVA}/servers', json={'servers': []})
    http.get(f'{NOVA}/servers/detail', json={'servers': []})
    result = run(*export)
    assert (result.code, result.err) == (0, '')
    content = parsed(path.read_text('utf-8'))
    assert content['isolate_aggregates_slots_up',] == 1
    # Ten in the zone and ten in none.
    assert sum(key[0].endswith('zone_slots') for key in content) == 20


@pytest.mark.parametrize(
    'name', ['windows-licensing', 'gpu-hosts', 'shared-storage', 'campus']
)
def test_slots_in_zones_are_what_capacity_says(run, config, tmp_path, name):
    example = str(EXAMPLES / f'{name}.yaml')
    path = tmp_path / 'isolation.prom'
    snapshot = cloud_file.load(example)
    flavors = snapshot.flavors[:4]
    names = ','.join(flavor.name for flavor in flavors)
    result = run(
        '--config-file',
        config(f'[isolate_aggregates]\nmetrics_flavors = {names}\n'),
        *('exporter', '--snapshot', example, '--output', str(path)),
    )
    assert (result.code, result.err) == (0, '')
    zones = {one.availability_zone for one in snapshot.aggregates} - {None}
    content = parsed(path.read_text('utf-8'))
    for flavor in flavors:
        told = {
            key: value
            for key, value in content.items()
            if key[0] == 'isolate_aggregates_zone_free_slots'
            and flavor.id in key
        }
        ask = (
            'capacity',
            'list',
            '--snapshot',
            example,
            '--flavor',
            flavor.id,
        )
        assert (
            sum(told.values())
            == json.loads(run(*ask, '-f', 'json').out)['total']
        )
        for zone in zones:
            [value] = (told[key] for key in told if zone in key)
            result = run(*ask, '--availability-zone', zone, '-f', 'json')
            assert json.loads(result.out)['total'] == value


def test_missing_credentials_are_visible_in_the_textfile(run, tmp_path):
    path = tmp_path / 'isolation.prom'
    result = run('exporter', '--output', str(path))
    assert result.code == 1
    assert result.err.startswith('There are no credentials for a cloud')
    assert parsed(path.read_text('utf-8'))[('isolate_aggregates_up',)] == 0


def test_without_prometheus_client_it_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, 'prometheus_client', None)
    result = run('exporter', '--snapshot', 'x')
    assert (result.code, result.out, result.err) == (
        1,
        '',
        'The metrics need prometheus-client; install '
        'isolate-aggregates-tools[metrics].\n',
    )


@cases(
    'arguments',
    {
        'no port': ['--listen', 'localhost'],
        'no address': ['--listen', ':9889'],
        'no number': ['--listen', '127.0.0.1:x'],
        'too great a port': ['--listen', '127.0.0.1:65536'],
        'with a user': ['--listen', 'a@127.0.0.1:1'],
        'with a path': ['--listen', '127.0.0.1:1/x'],
        'no brackets': ['--listen', '::1:9889'],
        'one bracket': ['--listen', '[::1:9889'],
        'both': ['--listen', '127.0.0.1:1', '--output', 'x'],
        'no pause': ['--interval', '0'],
        'no service': ['--interval', '9', '--output', 'x'],
        'nothing left': ['--no-cloud'],
        'a cloud after all': [
            '--no-cloud',
            '--sync-textfile',
            'x',
            '--snapshot',
            'y',
        ],
        'no cloud': ['--no-cloud', '--scheduler', 'x', '--servers'],
    },
)
def test_invalid_arguments_are_refused(run, arguments):
    assert run('exporter', *arguments).code == 2


@pytest.mark.parametrize(
    ('text', 'address'),
    [
        ('127.0.0.1:9889', ('127.0.0.1', 9889)),
        ('[::1]:0', ('::1', 0)),
        ('localhost:80', ('localhost', 80)),
    ],
)
def test_addresses_have_a_host_and_a_port(text, address):
    assert exporter._address(text) == address


def test_a_stopped_reading_is_abandoned():
    stopped = threading.Event()
    closed = []

    def found():
        try:
            yield from range(3)
        finally:
            closed.append(True)

    read = exporter._until(stopped, found())
    assert next(read) == 0
    stopped.set()
    from isolate_aggregates_tools.metrics.reading import Stopped

    with pytest.raises(Stopped):
        next(read)
    assert closed == [True]
