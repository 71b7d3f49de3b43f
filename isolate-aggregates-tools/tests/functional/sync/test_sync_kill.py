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
import time
from wsgiref import simple_server

import pytest
import requests
from sync_world import GOLD, LICENSED, World

HOSTS = ('h1', 'h2', 'h3')
_VERSION = 'HTTP_OPENSTACK_API_VERSION'

PROGRAM = """
import sys
from isolate_aggregates_tools.cli import app
sys.exit(app.main())
"""
# Waits for a line of its input between the plan and the first change.
WAITING = f"""
import sys
from isolate_aggregates_tools.operate.sync import apply
carry_out = apply.carry_out
def wait(*arguments):
    print('planned', flush=True)
    sys.stdin.readline()
    return carry_out(*arguments)
apply.carry_out = wait
{PROGRAM}"""


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
        self.placement = world.endpoint
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
        path, method = environ['PATH_INFO'], environ['REQUEST_METHOD']
        if path.startswith('/compute'):
            return self._nova(environ, start_response)
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
        answer = self.session.request(
            environ['REQUEST_METHOD'],
            f'{self.placement}{environ["PATH_INFO"]}?{environ["QUERY_STRING"]}',
            data=environ['wsgi.input'].read(
                int(environ.get('CONTENT_LENGTH') or 0)
            ),
            headers={
                'X-Auth-Token': 'admin',
                'Content-Type': environ.get('CONTENT_TYPE', ''),
                'OpenStack-API-Version': environ.get(_VERSION, ''),
            },
        )
        start_response(
            f'{answer.status_code} {answer.reason}',
            [('Content-Type', answer.headers.get('Content-Type', ''))],
        )
        return [answer.content]

    def _nova(self, environ, start_response):
        _, document = self.world.nova.reply(
            environ['REQUEST_METHOD'],
            environ['PATH_INFO'].removeprefix('/compute'),
            environ['QUERY_STRING'],
            {'OpenStack-API-Version': environ.get(_VERSION, 'compute 2.1')},
        )
        start_response('200 OK', [('Content-Type', 'application/json')])
        return [json.dumps(document).encode()]

    def start(self, *arguments):
        """Start the program."""
        self.changes = 0
        self.process = self.another(*arguments)

    def another(self, *arguments, program=PROGRAM):
        """Start the program again."""
        return subprocess.Popen(
            [
                sys.executable,
                '-c',
                program,
                '--os-auth-type=none',
                f'--os-endpoint={self.url}',
                f'--os-compute-endpoint-override={self.url}/compute',
                f'--os-placement-endpoint-override={self.url}',
                'sync',
                *arguments,
            ],
            env={'HOME': self.home, 'PATH': os.environ['PATH']},
            stdin=subprocess.PIPE,
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
def proxy(embedded, conf, tmp_path):
    world = World(embedded, conf)
    for host in HOSTS:
        world.add_host(host)
    world.require('a', HOSTS, LICENSED)
    world.require('b', HOSTS, LICENSED)
    proxy = Cloud(world, str(tmp_path))
    yield proxy
    proxy.close()


@pytest.mark.slow
def test_the_run_after_a_killed_one_completes_it(proxy):
    before = proxy.world.keep()
    proxy.start('--yes')
    assert proxy.finish()[0] == 0
    changes = proxy.changes
    expected = proxy.world.picture()
    assert LICENSED in proxy.world.of('h3', 'traits')

    for number, is_done in [
        (1, False),
        (changes // 2, True),
        (changes, True),
    ]:
        proxy.world.put_back(before)
        proxy.kill = number, is_done
        proxy.start('--yes')
        assert proxy.finish()[0] == -signal.SIGKILL
        last = (number, is_done) == (changes, True)
        assert (proxy.world.picture() == expected) is last
        proxy.kill = None
        proxy.start('--yes')
        assert proxy.finish()[0] == 0
        assert proxy.world.picture() == expected
    proxy.start()
    code, output = proxy.finish()
    assert (code, output.strip()) == (0, 'Nothing to do.')


def test_a_watch_stops_cleanly(proxy):
    proxy.start('--watch', '3600')
    lines = [proxy.process.stdout.readline()]
    assert lines == [
        'h1: add aggregate a; the host is in it, but its resource '
        'provider is not\n'
    ]
    proxy.process.send_signal(signal.SIGTERM)
    code, output = proxy.finish()
    assert code == 0
    assert 'Traceback' not in output
    assert proxy.world.todo() == []


def test_two_runs_with_the_same_plan_do_not_conflict(proxy):
    before = proxy.world.keep()
    proxy.start('--yes')
    assert proxy.finish()[0] == 0
    expected = proxy.world.picture()
    proxy.world.put_back(before)
    running = [proxy.another('--yes', program=WAITING) for _ in range(2)]
    # Neither changes anything before both have planned.
    for process in running:
        assert process.stdout.readline() == 'planned\n'
    for process in running:
        process.stdin.write('go on\n')
        process.stdin.flush()
    outputs = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], outputs
    assert proxy.world.picture() == expected
    assert proxy.world.todo() == []


def test_a_watch_continues_when_another_is_killed(proxy):
    def changes(process):
        """Yield the changes that it reports."""
        return (line for line in process.stdout if ': add ' in line)

    watches = [proxy.another('--watch', '1') for _ in range(2)]
    try:
        while proxy.world.todo():
            time.sleep(0.1)
        killed, other = watches
        killed.kill()
        killed.communicate()
        proxy.world.require('c', HOSTS, GOLD)
        last = f'h3: add trait {GOLD}'
        assert any(line.startswith(last) for line in changes(other))
        other.terminate()
        other.communicate()
        assert other.returncode == 0
    finally:
        for process in watches:
            process.kill()
            process.wait()
