# SPDX-License-Identifier: Apache-2.0
"""``rehearse`` runs a tool away from every network, and says what it did."""

import contextlib
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import threading
import time

import jsonschema
from live_example import ISOLATE
from published_schemas import schema_of
import pytest
import yaml

from isolate_aggregates_tools.rehearse.errors import LauncherEnded, NotIsolated
from isolate_aggregates_tools.rehearse.tool import Launcher

pytest_plugins = ['isolate_aggregates_tools.testing.plugin']

CLOUD = {
    'version': 1,
    'settings': {'scheduler': {'enable_isolated_aggregate_filtering': True}},
    'aggregates': [
        {
            'name': 'gpu',
            'id': 7,
            'metadata': {'trait:CUSTOM_GPU': 'required'},
            'hosts': ['g1'],
        }
    ],
    'providers': [
        {
            'name': name,
            'traits': ['CUSTOM_GPU'] if name == 'g1' else [],
            'inventories': {'VCPU': 8, 'MEMORY_MB': 8192, 'DISK_GB': 100},
        }
        for name in ('g1', 'c1')
    ],
    'flavors': [{'name': 'm1', 'id': 'm1', 'vcpus': 1, 'ram': 64, 'disk': 1}],
}
# A tool: its arguments are requests to Nova, with a body in JSON.
TOOL = """
import json, os, sys, urllib.request

def send(method, url, body=None, **headers):
    content = None if body is None else json.dumps(body).encode()
    headers = {'Content-Type': 'application/json', **headers}
    request = urllib.request.Request(
        url, content, headers, method=method
    )
    return urllib.request.urlopen(request)

auth = os.environ['OS_AUTH_URL']
user = {
    'name': os.environ['OS_USERNAME'],
    'password': os.environ['OS_PASSWORD'],
    'domain': {'id': 'default'},
}
identity = {'methods': ['password'], 'password': {'user': user}}
answer = send('POST', auth + '/auth/tokens', {'auth': {'identity': identity}})
token = answer.headers['X-Subject-Token']
[nova] = [
    service['endpoints'][0]['url']
    for service in json.load(answer)['token']['catalog']
    if service['type'] == 'compute'
]
for line in sys.argv[1:]:
    method, path, *body = line.split(' ', 2)
    try:
        send(
            method,
            nova + path,
            *map(json.loads, body),
            **{'X-Auth-Token': token},
        )
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
"""
UNSET = (
    'POST /os-aggregates/7/action '
    '{"set_metadata": {"metadata": {"trait:CUSTOM_GPU": null}}}'
)
SET = UNSET.replace('null', '"required"')
# A process that is left behind, and has its name.
BEHIND = 'sleep 60 & until grep -q sleep /proc/$!/comm; do :; done'
ADD = 'POST /os-aggregates/7/action {"add_host": {"host": "c1"}}'


def _is_isolated():
    try:
        Launcher().close()
    except NotIsolated:
        return False
    return True


@pytest.fixture(scope='module')
def isolated():
    """Leave out what needs user namespaces, where there are none."""
    if not _is_isolated():
        pytest.skip('the system does not allow user namespaces')


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with a cloud file and a tool, to work in."""
    (tmp_path / 'cloud.yaml').write_text(yaml.safe_dump(CLOUD))
    (tmp_path / 'tool.py').write_text(TOOL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rehearse(files, isolated, run):
    """Run a rehearsal."""

    def rehearsed(*command, options=()):
        words = ('rehearse', '--snapshot', 'cloud.yaml', *options)
        return run(*words, '--', *command)

    return rehearsed


def rehearse_apart(*command, env=None):
    """Run a rehearsal in a process of its own, with what its tool prints."""
    program = (sys.executable, '-m', 'isolate_aggregates_tools', 'rehearse')
    return subprocess.run(
        [*program, '--snapshot', 'cloud.yaml', '--', *command],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def tool(*lines):
    return sys.executable, 'tool.py', *lines


@pytest.mark.parametrize(
    ('command', 'status', 'said'),
    [
        (('true',), 0, 'The tool leaves the cloud as it is.'),
        (('false',), 9, 'The tool failed with status 1.'),
        (('sh', '-c', 'kill -9 $$'), 9, 'The tool was ended by signal 9.'),
        (tool(ADD), 6, 'lock trait:CUSTOM_GPU: gains c1'),
        (tool('DELETE /os-aggregates/7'), 7, 'aggregate gpu is not empty'),
        (
            tool('GET /os-keypairs'),
            8,
            'Not known: GET nova /os-keypairs: this request.',
        ),
        (
            tool('GET /os-hypervisors/detail'),
            8,
            'Not known: what virt drivers report of hypervisors',
        ),
        (tool('GET /os-hypervisors'), 0, 'The tool leaves the cloud as it is'),
        # What is not known counts more than a tool that fails, and so on.
        (
            ('sh', '-c', f'{shlex.join(tool())} "GET /os-keypairs"; exit 3'),
            8,
            'The tool failed with status 3.',
        ),
        (
            (
                *('sh', '-c'),
                f'{shlex.join(tool())} "DELETE /os-aggregates/7"; exit 3',
            ),
            9,
            'is not empty',
        ),
        (
            tool(UNSET, SET),
            0,
            'Only in between, from request 1 of 2 (POST nova '
            '/os-aggregates/7/action) on, servers of flavor m1 may use '
            'g1.',
        ),
        (
            ('sh', '-c', f'{BEHIND}; exit 0'),
            8,
            'the processes that the tool left behind would have done, which '
            'were ended: sleep',
        ),
    ],
)
def test_the_status_and_the_report(rehearse, command, status, said):
    result = rehearse(*command, options=('--detailed-exitcode',))
    assert said in result.out
    assert result.code == status


def test_the_document_is_that_of_effect(rehearse):
    result = rehearse(
        *tool(UNSET, SET, 'GET /os-keypairs', 'DELETE /os-aggregates/7'),
        options=('-f', 'json'),
    )
    document = json.loads(result.out)
    jsonschema.validate(document, schema_of('rehearse'))
    assert len(document['steps']) == 2
    assert len(document['gaps']) == 1
    assert document['refused'] == [
        {
            'step': 'DELETE nova /os-aggregates/7',
            'reason': 'aggregate gpu is not empty',
        }
    ]
    assert document['unknown'] == ['GET nova /os-keypairs: this request']


def test_the_cloud_afterwards_can_be_saved_and_tested(rehearse, files):
    assert rehearse(*tool(ADD), options=('--output', 'new.yaml')).code == 0
    saved = yaml.safe_load((files / 'new.yaml').read_text())
    assert saved['aggregates'][0]['hosts'] == ['c1', 'g1']


def test_no_credentials_reach_the_tool(isolated, files, tmp_path):
    home = tmp_path / 'home'
    config = home / '.config' / 'openstack'
    config.mkdir(parents=True)
    secret = 'correct horse battery staple'
    content = {
        'clouds': {
            'prod': {
                'auth': {'password': secret, 'auth_url': 'https://prod/v3'},
                'region_name': 'north',
                'compute_default_microversion': '2.79',
                'volume_api_version': secret,
            }
        }
    }
    for path in (config / 'clouds.yaml', files / 'clouds.yaml'):
        path.write_text(yaml.safe_dump(content))
    (config / 'secure.yaml').write_text(yaml.safe_dump(content))
    script = (
        'env; cat clouds.yaml ~/.config/openstack/*.yaml '
        '"$OS_CLIENT_CONFIG_FILE" "$OS_CLIENT_SECURE_FILE"'
    )
    result = rehearse_apart(
        *('sh', '-c', script),
        env={
            'HOME': str(home),
            'OS_PASSWORD': secret,
            'OS_AUTH_URL': 'https://prod/v3',
            'OS_TOKEN': secret,
            'OS_CLOUD': 'prod',
            'TF_VAR_os_password': secret,
            'OS_PLACEMENT_API_VERSION': '1.29',
            'OS_IDENTITY_API_VERSION': secret,
        },
    )
    assert result.returncode == 0, result.stderr
    assert secret not in result.stderr
    assert 'https://prod' not in result.stderr
    assert 'OS_CLOUD=prod' in result.stderr
    written = result.stderr.rpartition('clouds:\n')[2]
    assert 'prod:' in written
    assert 'region_name: north' in written
    # Tools work as these say.
    assert "compute_default_microversion: '2.79'" in written
    assert 'OS_PLACEMENT_API_VERSION=1.29' in result.stderr
    # They are still there.
    assert secret in (files / 'clouds.yaml').read_text()


def test_nothing_leaves_the_machine(isolated, files):
    script = (
        'import socket\n'
        'for family, address in ((2, "192.0.2.1"), (10, "2001:db8::1")):\n'
        '    try:\n'
        '        socket.socket(family).connect((address, 80))\n'
        '    except OSError as error:\n'
        '        print(error.strerror)\n'
        'print([name for _, name in socket.if_nameindex()])\n'
    )
    result = rehearse_apart(sys.executable, '-c', script)
    assert result.stderr.count('Network is unreachable') == 2
    assert "['lo']" in result.stderr


@pytest.mark.parametrize(
    ('url', 'listed'),
    [
        ('https://keystone.example/v3', 'CONNECT proxy keystone.example:443'),
        ('http://192.0.2.1:5000/v3', 'GET proxy http://192.0.2.1:5000/v3'),
    ],
)
def test_a_tool_that_goes_elsewhere_is_refused_and_listed(
    rehearse, url, listed
):
    script = f'import urllib.request\nurllib.request.urlopen("{url}")'
    result = rehearse(sys.executable, '-c', script)
    assert result.code == 8
    assert listed in result.out


def test_a_tool_without_proxies_reaches_nothing(rehearse):
    script = (
        'import urllib.request as asked\n'
        'handler = asked.ProxyHandler({})\n'
        'asked.build_opener(handler).open("http://192.0.2.1:5000/v3")'
    )
    result = rehearse(sys.executable, '-c', script)
    assert result.code == 9
    assert 'The tool failed with status 1.' in result.out


def test_the_working_folder_stays_as_it_is(rehearse, files):
    result = rehearse('sh', '-c', 'echo x > new; echo y >> tool.py; rm -r old')
    assert not (files / 'new').exists()
    assert (files / 'tool.py').read_text() == TOOL
    assert (
        'What the tool wrote to the working folder is not kept: new, tool.py.'
    ) in result.out


def test_a_tool_is_ended_after_its_time(rehearse):
    began = time.monotonic()
    result = rehearse(
        *('sh', '-c', 'sleep 300; echo no'), options=('--time-limit', '1')
    )
    assert time.monotonic() - began < 60
    assert result.code == 9
    assert 'The tool was ended after 1 second.' in result.out


@pytest.mark.parametrize(
    'number', [signal.SIGTERM, signal.SIGHUP], ids=['SIGTERM', 'SIGHUP']
)
def test_a_signal_to_end_leaves_nothing_behind(
    files, isolated, tmp_path_factory, number
):
    folder = tmp_path_factory.mktemp('temporary')
    script = 'echo $$ > /proc/self/fd/2; exec sleep 300'
    with subprocess.Popen(
        [
            *(sys.executable, '-m', 'isolate_aggregates_tools', 'rehearse'),
            *('--snapshot', 'cloud.yaml', '--', 'sh', '-c', script),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, 'TMPDIR': str(folder)},
        # nohup ignores one of them.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    ) as process:
        tool = int(process.stderr.readline())
        assert list(folder.iterdir())
        process.send_signal(number)
        assert process.wait(60) == 128 + number
        assert process.stderr.read() == ''
    assert not list(folder.iterdir())
    assert not pathlib.Path('/proc', str(tool)).exists()


def test_ctrl_c_ends_the_tool_too(files, isolated):
    script = 'echo $$ > /proc/self/fd/2; exec sleep 300'
    with subprocess.Popen(
        [
            *(sys.executable, '-m', 'isolate_aggregates_tools', 'rehearse'),
            *('--snapshot', 'cloud.yaml', '--', 'sh', '-c', script),
        ],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Who starts the tests in the background ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        number = int(process.stderr.readline())
        # As a terminal does: to all of them.
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
    assert not pathlib.Path('/proc', str(number)).exists()


def test_where_there_are_no_namespaces_it_refuses(run, files, monkeypatch):
    text = Launcher.__init__.__globals__['_LAUNCHER'].read_text()
    broken = files / 'launcher.py'
    # As where the system restricts user namespaces.
    broken.write_text(text.replace('_LIBC.unshare(', '_LIBC.setns(-1 + 0 * '))
    monkeypatch.setitem(Launcher.__init__.__globals__, '_LAUNCHER', broken)
    words = ('rehearse', '--snapshot', 'cloud.yaml')
    result = run(*words, '--', 'true')
    assert result.code == 1
    assert result.err.count('\n') == 1
    assert 'give --any-network' in result.err
    result = run(*words, '--any-network', '--', 'true')
    assert result.code == 0
    assert 'The tool could reach other networks.' in result.out
    assert 'stays, as it could not be protected' in result.out


def test_there_is_such_a_program(run, files):
    result = run('rehearse', '--snapshot', 'cloud.yaml', '--', 'ansible-plybk')
    assert result.code == 1
    assert "There is no program 'ansible-plybk'" in result.err
    result = run('rehearse', '--snapshot', 'cloud.yaml')
    assert result.code == 2


def test_a_live_cloud_is_read_and_not_changed(
    run, live, config, in_environment, isolated, tmp_path, monkeypatch
):
    """Without a file, the tool changes a copy of the live cloud."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'tool.py').write_text(TOOL)
    before = list(live.nova.aggregates)
    step = 'POST /os-aggregates {"aggregate": {"name": "made"}}'
    result = run(
        *('--config-file', config(ISOLATE), 'rehearse', '-f', 'json', '--'),
        *(sys.executable, 'tool.py', step),
    )
    assert (result.code, result.err) == (0, '')
    assert 'made' in result.out
    assert live.nova.aggregates == before


def test_tools_are_tested_by_a_fixture(isolated, files, rehearsal):
    held = rehearsal('cloud.yaml', clouds=['prod'])
    assert held.run(tool(ADD), timeout=60) == 0
    [gpu] = held.cloud.aggregates
    assert gpu.hosts == {'c1', 'g1'}
    assert (held.refused, held.unknown) == ([], [])
    script = f'grep -q prod: "$OS_CLIENT_CONFIG_FILE" || exit 3; {BEHIND}'
    assert held.run(['sh', '-c', script]) == 0
    assert held.run(tool('DELETE /os-aggregates/7')) == 0
    assert held.run(tool('GET /os-keypairs')) == 0
    assert held.run(['sleep', '300'], timeout=0.1) is None
    assert held.refused == [
        'DELETE nova /os-aggregates/7: aggregate gpu is not empty'
    ]
    assert held.unknown == [
        'GET nova /os-keypairs: this request',
        'what sleep would have done, which ran on',
    ]


def test_a_tool_can_run_after_one_that_was_ended(isolated, files, rehearsal):
    held = rehearsal('cloud.yaml')
    assert held.run(['sleep', '300'], timeout=0.1) is None
    assert held.run(['sh', '-c', 'exit 3'], timeout=60) == 3
    assert held.run(tool(ADD)) == 0
    [gpu] = held.cloud.aggregates
    assert gpu.hosts == {'c1', 'g1'}


def test_a_tool_that_ignores_its_end_is_killed(isolated, files, rehearsal):
    held = rehearsal('cloud.yaml')
    script = "trap '' TERM; while :; do sleep 1; done"
    assert held.run(['sh', '-c', script], timeout=0.1) is None
    assert held.run(['sh', '-c', 'exit 3']) == 3


def test_a_launcher_that_is_ended_from_outside_is_said(isolated, files):
    with contextlib.closing(Launcher()) as launcher:
        script = 'kill -9 $PPID; sleep 2'
        for _ in range(2):
            with pytest.raises(LauncherEnded, match='not known'):
                launcher.run(['sh', '-c', script], os.environ)


@pytest.fixture
def interrupt():
    """Return what raises KeyboardInterrupt here after a time in seconds."""

    def interrupted(*_):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGUSR1, interrupted)
    yield lambda after: threading.Timer(
        after, os.kill, (os.getpid(), signal.SIGUSR1)
    ).start()
    signal.signal(signal.SIGUSR1, old)


@pytest.mark.parametrize('lasting', ['0.6', '300'])
def test_a_late_answer_is_not_that_of_the_next_tool(
    isolated, files, rehearsal, interrupt, lasting
):
    """After Ctrl-C, the tool ends by itself meanwhile, or is ended."""
    held = rehearsal('cloud.yaml')
    interrupt(0.3)
    with pytest.raises(KeyboardInterrupt):
        held.run(['sh', '-c', f'sleep {lasting}; exit 5'])
    time.sleep(0.6 if lasting == '0.6' else 0)
    assert held.run(['sh', '-c', 'exit 3']) == 3
    assert held.run(['sh', '-c', 'exit 4'], timeout=60) == 4
