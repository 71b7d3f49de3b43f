# SPDX-License-Identifier: Apache-2.0
"""Kubernetes accepts the manifests, and the program has their commands."""

import http.client
import pathlib
import subprocess
import sys
from urllib import parse

from cliff import commandmanager
import kubernetes_validate
import pytest
import yaml

from isolate_aggregates_tools.cli import app

ROOT = pathlib.Path(__file__).parents[3]
FOLDER = ROOT / 'etc' / 'deployment' / 'kubernetes'
MANIFESTS = sorted(FOLDER.glob('*.yaml'))
EXAMPLE = ROOT / 'examples' / 'windows-licensing.yaml'
CONFIGURATION = '/etc/isolate-aggregates/isolate-aggregates.conf'

# An old release that is still in use, and the newest known one.
RELEASES = ['1.29', kubernetes_validate.latest_version()]


def manifests(path):
    """Return the objects of a file."""
    return list(yaml.safe_load_all(path.read_text()))


def pods():
    """Yield the pods of all manifests, to be run by a test."""
    for path in MANIFESTS:
        for each in manifests(path):
            spec = each['spec']
            if each['kind'] == 'CronJob':
                spec = spec['jobTemplate']['spec']
            if 'template' in spec:
                yield pytest.param(spec['template']['spec'], id=path.stem)


@pytest.mark.parametrize('release', RELEASES)
@pytest.mark.parametrize('path', MANIFESTS, ids=lambda path: path.stem)
def test_each_manifest_is_valid_for_kubernetes(path, release):
    for each in manifests(path):
        kubernetes_validate.validate(each, release, strict=True)


def test_an_unknown_field_is_detected():
    [deployment, _] = manifests(FOLDER / 'exporter.yaml')
    deployment['spec']['template']['spec']['runAsNonRoot'] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, RELEASES[0], strict=True)


@pytest.mark.parametrize('pod', pods())
def test_a_pod_meets_the_restricted_standard(pod):
    """Restricted is the strictest of the Pod Security Standards."""
    assert pod['securityContext']['runAsNonRoot'] is True
    assert pod['securityContext']['runAsUser'] > 0
    assert pod['securityContext']['seccompProfile'] == {
        'type': 'RuntimeDefault'
    }
    assert pod['automountServiceAccountToken'] is False
    for container in pod['containers']:
        assert container['securityContext'] == {
            'allowPrivilegeEscalation': False,
            'readOnlyRootFilesystem': True,
            'capabilities': {'drop': ['ALL']},
        }
        assert set(container['resources']) == {'requests', 'limits'}


@pytest.mark.parametrize('pod', pods())
def test_arguments_of_a_pod_are_valid(pod):
    for container in pod['containers']:
        name, parsed = run_in(container)
        is_read_only = {}
        if CONFIGURATION in container['args'][0]:
            is_read_only[folder_of(CONFIGURATION)] = True
        if parsed.output:
            is_read_only[folder_of(parsed.output)] = False
        if getattr(parsed, 'sync_textfile', None):
            is_read_only[folder_of(parsed.sync_textfile)] = True
        assert is_read_only == {
            mount['mountPath']: mount.get('readOnly', False)
            for mount in container['volumeMounts']
        }
        if name == 'sync':
            assert parsed.watch or parsed.yes


def folder_of(path):
    """Return the directory of a file in a container."""
    return str(pathlib.PurePosixPath(path).parent)


def run_in(container):
    """Return the command of a container, and its arguments."""
    arguments = container['args']
    if arguments[0].startswith('--config-file='):
        assert arguments[0] == f'--config-file={CONFIGURATION}'
        arguments = arguments[1:]
    commands = commandmanager.CommandManager(app.COMMANDS)
    factory, name, rest = commands.find_command(arguments)
    command = factory(app.IsolateAggregatesApp(), None, cmd_name=name)
    return name, command.get_parser(name).parse_args(rest)


def test_the_exporter_reads_the_file_that_sync_writes():
    deployment, service = manifests(FOLDER / 'sync.yaml')
    sync, exporter = deployment['spec']['template']['spec']['containers']
    written = run_in(sync)[1].output
    assert written
    _, exporting = run_in(exporter)
    assert exporting.sync_textfile == written
    [port] = exporter['ports']
    assert exporting.listen[1] == port['containerPort']
    assert service['spec']['ports'][0]['targetPort'] == port['name']


def test_the_example_configuration_is_valid(run):
    given = f'--config-file={FOLDER / "isolate-aggregates.conf"}'
    result = run(given, 'filter', 'list', '-f', 'csv', '--quote', 'none')
    assert result.code == 0
    assert 'isolate_aggregates,True' in result.out


# As on a read-only file system.
READ_ONLY = """
import errno, os, sys
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
def refuse(event, args):
    if event == 'os.mkdir' or (
        event == 'open' and isinstance(args[0], str) and args[2] & WRITES
    ):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), args[0])
sys.addaudithook(refuse)
from isolate_aggregates_tools.cli import app
sys.exit(app.main())
"""


def test_the_exporter_needs_no_file_to_write_and_answers_its_probes():
    [deployment, service] = manifests(FOLDER / 'exporter.yaml')
    [container] = deployment['spec']['template']['spec']['containers']
    _, command, listen, _ = container['args']
    [port] = container['ports']
    assert listen.endswith(f':{port["containerPort"]}')
    assert service['spec']['ports'][0]['targetPort'] == port['name']
    exporter = subprocess.Popen(
        [
            *(sys.executable, '-c', READ_ONLY, command),
            *('--listen=127.0.0.1:0', f'--snapshot={EXAMPLE}'),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={},
    )
    try:
        assert exporter.stdout
        message = exporter.stdout.readline()
        assert message.startswith('Metrics are served at ')
        there = parse.urlsplit(message.split()[-1].rstrip('.'))
        for probe in ('readinessProbe', 'livenessProbe'):
            asked = container[probe]['httpGet']
            assert asked['port'] == port['name']
            connection = http.client.HTTPConnection(there.netloc)
            connection.request('GET', asked['path'])
            assert connection.getresponse().status == 200
            connection.close()
    finally:
        exporter.terminate()
        exporter.communicate()
    assert exporter.returncode == 0
