# SPDX-License-Identifier: Apache-2.0
"""The playbook that installs and configures the plugin, with real Ansible."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

from operator_tools import PROGRAMS, ROOT
import pytest

PLAYBOOK = ROOT / 'etc' / 'deployment' / 'ansible' / 'isolate-aggregates.yml'
# The environment of the tests has what the packages require.
OFFLINE = '--no-deps --no-build-isolation --no-index'

pytestmark = pytest.mark.slow


@pytest.fixture
def machine(tmp_path):
    """An environment with Nova, and a folder for configuration."""
    if not (PROGRAMS / 'ansible-playbook').exists():
        pytest.skip('the tools of operators are not installed')
    nova = tmp_path / 'nova'
    subprocess.run([sys.executable, '-m', 'venv', nova], check=True)
    [packages] = nova.glob('lib/python3*/site-packages')
    (packages / 'tests.pth').write_text(sysconfig.get_path('purelib'))
    (tmp_path / 'nova.conf').write_text('[DEFAULT]\ndebug = false\n')
    return tmp_path


@pytest.fixture
def sources(tmp_path_factory):
    """A copy, as pip builds in the folder that it installs from."""
    copy = tmp_path_factory.mktemp('sources') / 'copy'
    ignored = shutil.ignore_patterns(
        *('.*', 'build', 'dist', 'doc', 'findings', 'tests')
    )
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    return copy


@pytest.fixture
def play(machine, tmp_path_factory):
    """Return a function that runs the playbook, and its tasks by name."""
    home = tmp_path_factory.mktemp('home')

    def run(group, **variables):
        done = subprocess.run(
            [
                PROGRAMS / 'ansible-playbook',
                *('--inventory', 'localhost,', '--connection', 'local'),
                *('--extra-vars', json.dumps(variables)),
                copied(machine, group),
            ],
            env={
                'PATH': f'{PROGRAMS}:{os.environ["PATH"]}',
                'HOME': str(home),
                'LC_ALL': 'C.UTF-8',
                # The copy has no history.
                'PBR_VERSION': '0.1.0',
                'ANSIBLE_STDOUT_CALLBACK': 'ansible.posix.json',
                'ANSIBLE_LOCALHOST_WARNING': 'false',
            },
            capture_output=True,
            text=True,
            check=False,
        )
        document = json.loads(done.stdout[done.stdout.index('{') :])
        return {
            task['task']['name']: task['hosts']['localhost']
            for play in document['plays']
            for task in play['tasks']
            if 'localhost' in task['hosts']
        }

    return run


# Nova's configuration is global in a process.
READ = """
import json, sys
from nova import conf
conf.CONF([], default_config_files=sys.argv[1:], default_config_dirs=[])
found = conf.CONF.filter_scheduler
is_on = conf.CONF.scheduler.enable_isolated_aggregate_filtering
print(json.dumps([found.available_filters, found.enabled_filters, is_on]))
"""


def as_nova_reads(*paths):
    """Return what Nova reads from files: modules, host filters, and if on."""
    done = subprocess.run(
        [sys.executable, '-c', READ, *paths],
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def copied(folder, group):
    """Return the playbook, with this machine in one of its groups."""
    text = PLAYBOOK.read_text('utf-8')
    assert f'hosts: {group}\n' in text
    path = folder / 'playbook.yml'
    path.write_text(text.replace(f'hosts: {group}\n', 'hosts: localhost\n'))
    return path


@pytest.fixture
def variables(machine, sources):
    """The variables of the play about nova-scheduler."""
    return {
        'ansible_python_interpreter': sys.executable,
        'nova_venv': str(machine / 'nova'),
        'nova_config': str(machine / 'nova.conf'),
        'isolate_aggregates_package': str(sources),
        'isolate_aggregates_pip_arguments': OFFLINE,
    }


def test_what_the_check_does_not_pass_is_not_written(machine, play, variables):
    tasks = play('nova_schedulers', **variables)
    installed, folder, written = tasks.values()
    assert installed['changed'], installed
    assert folder['changed']
    assert written['failed'], written
    # The check has read it: only services are missing.
    said = written['stdout']
    failed = [
        part for part in said.split('Check: ') if 'Result: Failure' in part
    ]
    assert {part.split()[0] for part in failed} == {'Aggregate', 'Placement'}
    for name in ('Nova', 'Start', 'Registration', 'Request filters'):
        assert f'Check: {name} ' in said, said
    assert not [*(machine / 'nova.conf.d').iterdir()]


def test_what_passes_is_written_once(machine, play, variables):
    """The check is replaced by one with only warnings, as nothing is up."""
    play('nova_schedulers', **variables)
    check = machine / 'nova' / 'bin' / 'isolate-aggregates-status'
    check.write_text('#!/bin/sh\nexit 1\n')
    variables['isolate_aggregates_package'] = 'pip'
    tasks = play('nova_schedulers', **variables)
    assert tasks['Switch isolated aggregates on']['changed'], tasks
    assert tasks['Check what nova-scheduler would read']['rc'] == 1
    assert not tasks['Check what nova-scheduler would read'].get('failed')
    assert 'Restart nova-scheduler' in tasks
    [path] = (machine / 'nova.conf.d').iterdir()
    available, enabled, is_on = as_nova_reads(path)
    *_, default, _ = as_nova_reads()
    assert available == [
        'nova.scheduler.filters.all_filters',
        'isolate_aggregates.nova.all_filters',
    ]
    assert enabled == [*default, 'IsolatedAggregatesFilter']
    assert is_on

    again = play('nova_schedulers', **variables)
    assert not again['Switch isolated aggregates on']['changed']
    assert 'Restart nova-scheduler' not in again


def test_the_commands_are_installed(machine, play, sources):
    venv = machine / 'tools'
    folders = [sources, sources / 'isolate-aggregates-tools']
    tasks = play(
        'isolate_aggregates_operators',
        ansible_python_interpreter=sys.executable,
        isolate_aggregates_venv=str(venv),
        isolate_aggregates_packages=[str(folder) for folder in folders],
        isolate_aggregates_pip_arguments='--no-deps',
    )
    [installed] = tasks.values()
    assert installed['changed'], installed
    assert pathlib.Path(venv, 'bin', 'isolate-aggregates').exists()
