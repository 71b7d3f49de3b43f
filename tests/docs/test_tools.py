# SPDX-License-Identifier: Apache-2.0
"""Commands of common tools have the documented output."""

from importlib import metadata
import re
import shutil
import subprocess
import tomllib

from cases import cases
from openstackclient import shell
from packaging import requirements
import pages
import pytest
import runners
import terminal

from isolate_aggregates_tools.cli import app

UNITS = pages.ROOT / 'etc' / 'systemd'
COMPLETION = '/etc/bash_completion.d/'


def shown(beginning):
    """Return the words of the shown commands that begin so."""
    found = {
        tuple(each.command.words)
        for page in pages.PAGES
        for each in runners.shown(page)
        if each.runner == 'tests/docs/test_tools.py'
        and each.command.text.startswith(beginning)
    }
    assert found, beginning
    return sorted(found)


@pytest.mark.parametrize('words', shown('make '), ids=' '.join)
def test_make_knows_the_shown_targets_and_variables(words):
    asked = subprocess.run(
        [*words, '--dry-run'],
        cwd=pages.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    for argument in words[2:]:
        name, _, value = argument.partition('=')
        assert value in asked.stdout or name in read_by_tests()


def test_make_warns_of_nothing_in_a_path_with_a_space(tmp_path):
    for target in ('e2e', 'test-rest'):
        asked = subprocess.run(
            [
                *('make', '--dry-run', target),
                f'CLIENTS_VENV={tmp_path}/a b/clients',
                f'OPERATOR_VENV={tmp_path}/a b/operator',
            ],
            cwd=pages.ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert asked.stderr == ''
        assert f'-m venv "{tmp_path}/a b/' in asked.stdout


def read_by_tests():
    """Return the environment variables that tests read."""
    return {
        name
        for path in (pages.ROOT / 'tests').rglob('*.py')
        for name in re.findall(
            r"environ\.get\('(\w+)'", path.read_text('utf-8')
        )
    }


def test_make_demo_and_all_tests_are_run_before_each_change():
    gate = (pages.ROOT / '.ci' / 'run').read_text().splitlines()
    lines = {line.strip() for line in gate}
    # As another user, where there may be one.
    assert {'for target in demo test; do', 'make test'} <= lines
    assert {'make demo', 'make test-gate'} <= set(gate)


@pytest.mark.parametrize('name', ['Makefile', '.ci/run', 'pyproject.toml'])
def test_only_the_runner_knows_folders_of_tests_and_options(name):
    text = (pages.ROOT / name).read_text('utf-8')
    if name == 'pyproject.toml':
        # But for what pytest runs if it is given no folder.
        text = tomllib.loads(text)['tool']['tox']['legacy_tox_ini']
    folders = '|'.join(
        path.name for path in (pages.ROOT / 'tests').iterdir() if path.is_dir()
    )
    told = re.findall(
        rf'(?<![=/])tests/(?:{folders})(?![\w/])|\bpytest --?\w|--cov\w*'
        r'|--junitxml|--timeout|(?:run_tests\.py|make) .* -[nmk] ',
        text,
    )
    assert told == []


EDITABLE = '{{"dir_info": {{"editable": true}}, "url": "file://{clone}"}}'


@cases(
    ('origin', 'is_kept'),
    {
        'this clone': (EDITABLE, True),
        'pip install .': (
            '{{"dir_info": {{}}, "url": "file://{clone}"}}',
            False,
        ),
        'another clone': (EDITABLE.replace('{clone}', '{clone}-2'), False),
        'a released package': (None, False),
    },
)
@pytest.mark.parametrize('target', ['test', 'demo', 'lint', 'docs'])
def test_make_replaces_an_installation_of_another_clone(
    target, origin, is_kept, tmp_path
):
    package = 'lib/python3.11/site-packages/isolate_aggregates-1.0.dist-info'
    information = tmp_path / package
    information.mkdir(parents=True)
    if origin:
        text = origin.format(clone=pages.ROOT)
        (information / 'direct_url.json').write_text(text)
    for stamp in ('.demo', '.all'):
        (tmp_path / stamp).touch()
    for name in ('plugin', 'tools', 'reservations'):
        alone = tmp_path.with_name(f'{tmp_path.name}-{name}')
        alone.mkdir()
        (alone / '.all').touch()
    would = subprocess.run(
        ['make', '--dry-run', f'VENV={tmp_path}', target],
        cwd=pages.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ('pip install' not in would.stdout) is is_kept


@pytest.mark.parametrize('words', shown('pip install '), ids=' '.join)
def test_pip_installs_this_package_with_existing_extras(words):
    # By their names, or as folders of a clone.
    wanted = [
        requirements.Requirement(
            re.sub(r'^[./]+(.*/)?', '', word) or 'isolate-aggregates'
        )
        for word in words[2:]
        if re.match(r'[./]+|isolate-aggregates', word)
    ]
    assert wanted
    for requirement in wanted:
        names = metadata.metadata(requirement.name).get_all('Provides-Extra')
        assert requirement.extras <= set(names)


def test_packages_of_a_cloud_are_those_of_bindep():
    [words] = shown('sudo apt-get install')
    lines = (pages.ROOT / 'bindep.txt').read_text().splitlines()
    known = {line.split()[0]: line for line in lines if line[:1] != '#'}
    named = {word for word in words[3:] if not word.startswith('-')}
    assert named <= known.keys()
    assert {n for n, line in known.items() if 'cloud' in line} <= named


def test_a_virtual_environment_is_made_and_entered(tmp_path):
    [(*make, folder)] = shown('python3 -m venv')
    [(*enter, script)] = shown('. .venv')
    # What pip would be needed for is not done here.
    made = ' '.join([*make, '--without-pip', folder])
    with terminal.Terminal(tmp_path, {}, {}) as typing:
        entered = typing.type(f'{made} && {" ".join(enter)} {script}')
        assert (entered.code, entered.output) == (0, '')
        assert str(tmp_path) in typing.type('command -v python').output


@pytest.mark.parametrize('words', shown('systemctl '), ids=' '.join)
def test_systemctl_commands_name_existing_units(words):
    assert words[:3] in (
        ('systemctl', 'enable', '--now'),
        ('systemctl', 'disable', '--now'),
    )
    assert all((UNITS / unit).is_file() for unit in words[3:])


@pytest.mark.parametrize(
    'unit', sorted(UNITS.iterdir()), ids=lambda unit: unit.name
)
def test_systemd_understands_a_unit(unit):
    analyze = shutil.which('systemd-analyze')
    if not analyze:
        pytest.skip('systemd is not installed')
    looked = subprocess.run(
        [analyze, 'verify', '--man=no', unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (looked.returncode, looked.stderr) == (0, '')


@pytest.mark.parametrize('name', ['isolate-aggregates', 'openstack'])
def test_the_shell_understands_its_completion(
    name, tmp_path, without_configuration, monkeypatch
):
    # What a program takes from the path it was started with.
    monkeypatch.setattr(app.IsolateAggregatesApp, 'NAME', name)
    monkeypatch.setattr(shell.OpenStackShell, 'NAME', name)
    programs = {'isolate-aggregates': app.main, 'openstack': shell.main}
    [command] = [
        each.command
        for each in runners.shown(pages.path('cli/openstack.rst'))
        if each.command.text.startswith(f'{name} complete')
    ]
    text = command.text.replace(f'sudo tee {COMPLETION}', 'tee ')
    assert text != command.text
    with terminal.Terminal(tmp_path, programs, {}) as typing:
        written = typing.type(text)
        assert written.code == 0
        known = typing.type(f'. ./{name} && complete -p {name}')
    assert known.code == 0, known.output
    assert '_isolation_' in written.output or name != 'openstack'
