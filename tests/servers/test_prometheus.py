# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes a real exporter and runs every query we ship.

The exporter reads the Windows licensing example as a live cloud, with a real
Placement. Prometheus and promtool are those of Debian's package.
"""

import contextlib
import copy
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from urllib import parse, request

from fake_projects import OTHER, SALES, FakeProjects
from http_fakes import NOVA
from live_example import ISOLATE
import pytest
import yaml

from isolate_aggregates.aggregates import Aggregate, domains
from isolate_aggregates.conf import SCHEDULER_METRICS
from isolate_aggregates_tools import domains as tools_domains

ROOT = pathlib.Path(__file__).parents[2]
RULES = ROOT / 'etc/prometheus/isolate-aggregates.rules.yml'
RULES_TEST = RULES.with_suffix('.test.yml')
DASHBOARD = ROOT / 'etc/grafana/isolate-aggregates.json'

HOST = '127.0.0.1'
# Seconds that nothing here takes, even on a slow machine.
LONG = 300
# The values of Grafana's variables.
VARIABLES = {
    '$cluster': '.*',
    '$lock': '.*',
    '$flavor': '.*',
    '$__rate_interval': '1m',
}
NO_EXPORTER = 'IsolationExporterDown: there is no exporter'
COUNT = """
import sys, time
from isolate_aggregates import exception
from isolate_aggregates_tools.request.constraints import RequireRootTrait
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.nova import worker_metrics
from isolate_aggregates.conf import SCHEDULER_METRICS
metrics = worker_metrics.WorkerMetrics(['isolate_aggregates'], sys.argv[1])
destination = Destination()
destination.add(RequireRootTrait('CUSTOM_A', 'x'), 'isolate_aggregates')
metrics.passed(time.monotonic(), destination, True)
metrics.refused('isolate_aggregates', exception.RequestRefused(['no']))
metrics.timer('isolate_aggregates', 0.001)
"""


def program(name):
    """Return the path of a program; without it the test is skipped."""
    found = shutil.which(name)
    if not found:
        pytest.skip(f'there is no {name}; "apt-get install prometheus"')
    return found


def free_port():
    """Return a port that nothing listens on."""
    with socket.create_server((HOST, 0)) as unused:
        return int(unused.getsockname()[1])


def alerts():
    """Return the rules that we ship."""
    groups = yaml.safe_load(RULES.read_text('utf-8'))['groups']
    return [rule for group in groups for rule in group['rules']]


def queries():
    """Yield the queries of the dashboard as Grafana sends them."""
    for panel in json.loads(DASHBOARD.read_text('utf-8'))['panels']:
        for target in panel.get('targets', ()):
            query = target['expr']
            for variable, value in VARIABLES.items():
                query = query.replace(variable, value)
            yield query


class Prometheus:
    """A Prometheus of our own on this machine.

    :param folder: An empty folder for its files.
    :param target: What it scrapes.
    """

    def __init__(self, folder, target):
        self._listen = f'{HOST}:{free_port()}'
        self._log = folder / 'prometheus.log'
        configuration = folder / 'prometheus.yml'
        configuration.write_text(
            yaml.safe_dump(
                {
                    'global': {
                        'scrape_interval': '200ms',
                        'scrape_timeout': '200ms',
                        'evaluation_interval': '200ms',
                    },
                    # A pattern, so the path must not have brackets.
                    'rule_files': [str(shutil.copy(RULES, folder))],
                    'scrape_configs': [
                        {
                            'job_name': 'isolate-aggregates',
                            'static_configs': [{'targets': [target]}],
                        }
                    ],
                }
            ),
            'utf-8',
        )
        self._command = [
            program('prometheus'),
            f'--config.file={configuration}',
            f'--storage.tsdb.path={folder / "data"}',
            f'--web.listen-address={self._listen}',
        ]

    @contextlib.contextmanager
    def running(self):
        """Run it, and end it."""
        with self._log.open('w') as output:
            process = subprocess.Popen(
                self._command, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(LONG)
            finally:
                process.kill()

    def get(self, path, **parameters):
        """Ask its API; None while it does not answer."""
        url = f'http://{self._listen}/api/v1/{path}'
        with (
            contextlib.suppress(OSError),
            request.urlopen(f'{url}?{parse.urlencode(parameters)}') as answer,
        ):
            return json.load(answer)['data']
        return None

    def series(self, query):
        """Return what a query finds; nothing while it does not answer."""
        result = self.get('query', query=query)
        return result['result'] if result else []

    def wait(self, condition):
        """Wait until something is so."""
        until = time.monotonic() + LONG
        while not condition():
            assert time.monotonic() < until, self._log.read_text('utf-8')
            time.sleep(0.05)


class Watcher(threading.Thread):
    """Asks Prometheus while the exporter runs in this process; ends it.

    :param watch: What to ask.
    """

    def __init__(self, watch):
        super().__init__(daemon=True)
        self._watch = watch
        self._main = threading.current_thread().ident
        self.error = None

    def run(self):
        """Ask, and let the exporter end."""
        try:
            self._watch()
        except BaseException as exc:
            self.error = exc
        finally:
            assert self._main
            signal.pthread_kill(self._main, signal.SIGTERM)


def counted(folder):
    """Return the directory that a worker of nova-scheduler counted into."""
    directory = folder / 'counts'
    directory.mkdir()
    subprocess.run([sys.executable, '-c', COUNT, directory], check=True)
    return directory


def serve_servers(http):
    """Let Nova have a server that is out of place."""
    server = {
        'id': 'server-1',
        'name': 'server-1',
        'tenant_id': 'demo',
        'status': 'ACTIVE',
        'OS-EXT-SRV-ATTR:host': 'win-1',
        'image': {'id': 'of-no-use'},
        'flavor': {
            'original_name': 'm1.small',
            'vcpus': 1,
            'ram': 2048,
            'disk': 20,
            'ephemeral': 0,
            'swap': 0,
            'extra_specs': {},
        },
    }
    http.get(f'{NOVA}/servers', json={'servers': [server]})
    http.get(
        f'{NOVA}/servers/detail',
        json=lambda asked, _: {
            'servers': [] if 'marker' in asked.qs else [server]
        },
    )


@pytest.mark.smoke
@pytest.mark.usefixtures('in_environment')
def test_every_query_matches_metrics_of_a_real_exporter(
    run, live, http, config, tmp_path
):
    promtool = program('promtool')
    serve_servers(http)
    configured = config(f'{ISOLATE}[isolate_aggregates]\ntrait_sources=flavor')
    FakeProjects(http)
    tags = domains.tag(SALES) | tools_domains.tags(SALES, [OTHER])
    # Placement takes no other for a uuid.
    uuid = '5a1e5000-0000-4000-8000-000000000000'
    live.nova.aggregates.append(Aggregate(uuid, 'sales', tags, id=99))
    synced = tmp_path / 'sync.prom'
    result = run(
        *('--config-file', configured, 'sync', '--yes'),
        *('--output', str(synced)),
    )
    assert result.code == 0
    listen = f'{HOST}:{free_port()}'
    prometheus = Prometheus(tmp_path, listen)
    metrics = re.findall(r'isolate_aggregates_\w+', RULES.read_text('utf-8'))
    answers = {}
    groups = []
    text = []

    def has_scraped():
        # A rate needs two scrapes.
        return prometheus.series(
            'isolate_aggregates_up == 1 and on (instance) '
            f'count_over_time({SCHEDULER_METRICS}_requests_total[1m]) > 1'
        )

    def evaluated():
        groups[:] = prometheus.get('rules')['groups']
        return all(
            rule['health'] != 'unknown'
            for group in groups
            for rule in group['rules']
        )

    def watch():
        prometheus.wait(has_scraped)
        prometheus.wait(evaluated)
        asked = {*queries(), *metrics}
        asked.update(rule['expr'] for rule in alerts())
        for query in asked:
            answers[query] = prometheus.series(query)
        with request.urlopen(f'http://{listen}/metrics') as answer:
            text.append(answer.read())

    with prometheus.running():
        watcher = Watcher(watch)
        watcher.start()
        result = run(
            *('--config-file', configured, 'exporter', '--servers'),
            *('--listen', listen, '--interval', '1'),
            *('--scheduler', str(counted(tmp_path))),
            *('--sync-textfile', str(synced)),
        )
        watcher.join()
    assert (result.code, result.err) == (0, '')
    if watcher.error:
        raise watcher.error

    # Names, units and types are as Prometheus wants them.
    checked = subprocess.run(
        [promtool, 'check', 'metrics'], input=text[0], capture_output=True
    )
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout + checked.stderr == b''

    assert [query for query in queries() if not answers[query]] == []

    # What the alerts look at is there; it is well but for one server.
    assert [name for name in metrics if not answers[name]] == []
    assert [rule['alert'] for rule in alerts() if answers[rule['expr']]] == [
        'ServersOutOfPlace'
    ]
    assert {rule['health'] for group in groups for rule in group['rules']} == {
        'ok'
    }


@pytest.mark.smoke
def test_the_alerts_fire_when_they_should_and_only_then(tmp_path):
    promtool = program('promtool')
    # The test names the rules by a pattern, relative to its own folder.
    for arguments in (
        ('check', 'rules', shutil.copy(RULES, tmp_path)),
        ('test', 'rules', shutil.copy(RULES_TEST, tmp_path)),
    ):
        result = subprocess.run(
            [promtool, *arguments], capture_output=True, text=True
        )
        assert result.returncode == 0, result.stdout + result.stderr
    fires = {}
    for case in yaml.safe_load(RULES_TEST.read_text('utf-8'))['tests']:
        for one in case['alert_rule_test']:
            known = fires.setdefault(one['alertname'], set())
            known.add(bool(one['exp_alerts']))
    assert fires == {rule['alert']: {True, False} for rule in alerts()}


def in_cloud(case, cluster):
    """Return a case of which all series have a label for their cloud."""
    labelled = copy.deepcopy(case)
    for series in labelled['input_series']:
        series['series'] = series['series'].replace(
            '{', f'{{cluster="{cluster}", '
        )
    for check in labelled['alert_rule_test']:
        for alert in check['exp_alerts']:
            alert['exp_labels']['cluster'] = cluster
    return labelled


def pairs_of_clouds():
    """Yield each case that fires, beside a cloud whose alert does not.

    They come in both orders, as an alert may only look at the first series.
    """
    cases = yaml.safe_load(RULES_TEST.read_text('utf-8'))['tests']
    quiet = {
        check['alertname']: case
        for case in cases
        for check in case['alert_rule_test']
        if not check['exp_alerts']
    }
    for case in cases:
        [check] = case['alert_rule_test']
        # Without any exporter there is no cloud to name.
        if check['exp_alerts'] and case['name'] != NO_EXPORTER:
            for faulty, healthy in (('a', 'b'), ('b', 'a')):
                pair = in_cloud(case, faulty)
                other = in_cloud(quiet[check['alertname']], healthy)
                pair['input_series'] += other['input_series']
                pair['name'] += f'; in cloud {faulty} of two'
                yield pair


@pytest.mark.smoke
def test_an_alert_fires_for_the_right_one_of_two_clouds(tmp_path):
    promtool = program('promtool')
    cases = list(pairs_of_clouds())
    assert {
        check['alertname']
        for case in cases
        for check in case['alert_rule_test']
    } == {rule['alert'] for rule in alerts()}
    shutil.copy(RULES, tmp_path)
    path = tmp_path / 'clouds.test.yml'
    tests = {
        'rule_files': [RULES.name],
        'evaluation_interval': '1m',
        'tests': cases,
    }
    path.write_text(yaml.safe_dump(tests), 'utf-8')
    result = subprocess.run(
        [promtool, 'test', 'rules', path], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
