# SPDX-License-Identifier: Apache-2.0
"""sync runs in a separate process and is killed while it changes Placement.

Placement and a fake Nova run in this process, with real sockets. The server
kills sync at a given change: before it is carried out, or after that and
before the response.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from wsgiref import simple_server

import pytest
import requests
from sync_world import GOLD, LICENSED, World

HOSTS = ('h1', 'h2', 'h3')


class Quiet(simple_server.WSGIRequestHandler):
    """Writes no log to the standard error of the tests."""

    def log_message(self, *args):
        """Log nothing."""


class Cloud:
    """Placement and Nova on one socket.

    :param world: Placement as the tests see it, and what Nova has.
    """

    def __init__(self, world, home):
        self.home = home
        self.world = world
        self.session = requests.Session()
        self.placement = world.wire.get_endpoint()
        self.changes = 0
        # The number of the change at which sync is killed, and whether that
        # change is still carried out.
        self.kill = None
        self.process = None
        self.server = simple_server.make_server(
            '127.0.0.1', 0, self._answer, handler_class=Quiet
        )
        self.url = f'http://127.0.0.1:{self.server.server_port}'
        self._thread = threading.Thread(target=self.server.serve_forever)
        self._thread.start()

    def close(self):
        """Stop listening."""
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()

    def _answer(self, environ, start_response):
        self.query = environ['QUERY_STRING']
        path, method = environ['PATH_INFO'], environ['REQUEST_METHOD']
        if path.startswith('/compute'):
            return self._nova(path, start_response)
        if method != 'GET':
            self.changes += 1
            if self.kill and self.changes == self.kill[0]:
                if self.kill[1]:
                    self._placement(environ, lambda *_: None)
                self.process.kill()
                self.process.wait()
                start_response('503 Nobody is left to be answered', [])
                return []
        return self._placement(environ, start_response)

    def _placement(self, environ, start_response):
        version = 'HTTP_OPENSTACK_API_VERSION'
        answer = self.session.request(
            environ['REQUEST_METHOD'],
            f'{self.placement}{environ["PATH_INFO"]}?{environ["QUERY_STRING"]}',
            data=environ['wsgi.input'].read(
                int(environ.get('CONTENT_LENGTH') or 0)
            ),
            headers={
                'X-Auth-Token': 'admin',
                'Content-Type': environ.get('CONTENT_TYPE', ''),
                'OpenStack-API-Version': environ.get(version, ''),
            },
        )
        start_response(
            f'{answer.status_code} {answer.reason}',
            [('Content-Type', answer.headers.get('Content-Type', ''))],
        )
        return [answer.content]

    def _nova(self, path, start_response):
        document = {
            '/compute': {
                'version': {
                    'id': 'v2.1',
                    'status': 'CURRENT',
                    'min_version': '2.1',
                    'version': '2.96',
                }
            },
            '/compute/os-aggregates': {
                'aggregates': [
                    {
                        'id': number,
                        'uuid': a.uuid,
                        'name': a.name,
                        'metadata': dict(a.metadata),
                        'hosts': sorted(a.hosts),
                        'availability_zone': None,
                    }
                    for number, a in enumerate(self.world.nova.groups.values())
                ]
            },
            '/compute/os-hypervisors/detail': {
                'hypervisors': [
                    {
                        'id': node.uuid,
                        'hypervisor_hostname': node.name,
                        'service': {'host': node.host},
                    }
                    for node in self.world.nova.nodes
                    if 'marker' not in self.query
                ]
            },
        }[path]
        start_response('200 OK', [('Content-Type', 'application/json')])
        return [json.dumps(document).encode()]

    def start(self, *arguments):
        """Start the program."""
        self.changes = 0
        self.process = self.another(*arguments)

    def another(self, *arguments, options=()):
        """Start the program again."""
        program = 'import sys; from isolate_aggregates.cli import app; '
        return subprocess.Popen(
            [
                sys.executable,
                '-c',
                f'{program} sys.exit(app.main())',
                *options,
                '--os-auth-type=none',
                f'--os-endpoint={self.url}',
                f'--os-compute-endpoint-override={self.url}/compute',
                f'--os-placement-endpoint-override={self.url}',
                'sync',
                *arguments,
            ],
            env={'HOME': self.home, 'PATH': os.environ['PATH']},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(self):
        """Wait for the end; return the exit status and the output."""
        output, _ = self.process.communicate(timeout=300)
        # The server handles one request at a time, so after this request, all
        # requests of the killed process have been handled.
        requests.get(f'{self.url}/compute', timeout=300).raise_for_status()
        return self.process.returncode, output


@pytest.fixture
def cloud(embedded, conf, tmp_path):
    world = World(embedded, conf)
    for host in HOSTS:
        world.add_host(host)
    world.require('a', HOSTS, LICENSED)
    world.require('b', HOSTS, LICENSED)
    cloud = Cloud(world, str(tmp_path))
    yield cloud
    cloud.close()


@pytest.mark.slow
def test_the_run_after_a_killed_one_completes_it(cloud):
    before = cloud.world.keep()
    cloud.start('--yes')
    assert cloud.finish()[0] == 0
    changes = cloud.changes
    expected = cloud.world.picture()
    assert LICENSED in cloud.world.of('h3', 'traits')

    for number, is_done in [
        (1, False),
        (changes // 2, True),
        (changes, True),
    ]:
        cloud.world.put_back(before)
        cloud.kill = number, is_done
        cloud.start('--yes')
        assert cloud.finish()[0] == -signal.SIGKILL
        last = (number, is_done) == (changes, True)
        assert (cloud.world.picture() == expected) is last
        cloud.kill = None
        cloud.start('--yes')
        assert cloud.finish()[0] == 0
        assert cloud.world.picture() == expected
    cloud.start()
    code, output = cloud.finish()
    assert (code, output.strip()) == (0, 'Nothing to do.')


def test_a_watch_stops_cleanly(cloud):
    cloud.start('--watch', '3600')
    lines = [cloud.process.stdout.readline()]
    assert lines == [
        'h1, h1: add aggregate a; the host is in it, but its resource '
        'provider is not\n'
    ]
    cloud.process.send_signal(signal.SIGTERM)
    code, output = cloud.finish()
    assert code == 0
    assert 'Traceback' not in output
    assert cloud.world.todo() == []


def test_concurrent_runs_do_not_conflict(cloud):
    before = cloud.world.keep()
    cloud.start('--yes')
    assert cloud.finish()[0] == 0
    expected = cloud.world.picture()
    cloud.world.put_back(before)
    running = [cloud.another('--yes'), cloud.another('--yes')]
    outputs = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], outputs
    assert cloud.world.picture() == expected
    assert cloud.world.todo() == []


def test_one_watch_works_and_another_takes_over_when_it_is_killed(
    cloud, tmp_path
):
    """Another process takes over automatically."""
    conf = tmp_path / 'isolate-aggregates.conf'
    conf.write_text(
        f'[isolate_aggregates]\ncoordination_url = file://{tmp_path}\n'
    )
    options = ['--verbose', f'--config-file={conf}']

    def line(process):
        """Return its next log message on its work or on the election."""
        for text in process.stdout:
            if ': add ' in text or 'work' in text:
                return text
        raise AssertionError('it has ended')

    first = cloud.another('--watch', '1', options=options)
    assert 'This process was elected to work.' in line(first)
    assert line(first).startswith('h1, h1: add aggregate a')
    second = cloud.another('--watch', '1', options=options)
    assert 'Another process works; this one waits.' in line(second)
    first.kill()
    first.communicate()
    cloud.world.require('c', HOSTS, GOLD)
    assert 'This process was elected to work.' in line(second)
    changed = [line(second)]
    while 'h3, h3: add trait CUSTOM_GOLD' not in changed[-1]:
        changed.append(line(second))
    assert 'h1, h1: add aggregate c' in ''.join(changed)
    second.terminate()
    _, _ = second.communicate()
    assert second.returncode == 0
