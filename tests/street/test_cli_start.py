# SPDX-License-Identifier: Apache-2.0
"""A command imports only what it needs, and --help imports no command."""

from importlib import metadata
import inspect
import json
import os
import pathlib
import subprocess
import sys

from cases import cases
import pytest

from isolate_aggregates_tools.cli import app
from isolate_aggregates_tools.cli.command_help import descriptions

ROOT = pathlib.Path(__file__).parents[2]
FILE = str(ROOT / 'examples' / 'gpu-hosts.yaml')

# Packages for a live cloud, and packages that only some commands need.
CLOUD = {'keystoneauth1', 'novaclient', 'openstack', 'requests', 'urllib3'}
OTHERS = {
    *('jinja2', 'networkx', 'nova', 'placement', 'sqlalchemy', 'tqdm'),
}
QUERY = [
    'candidate',
    'list',
    '--query',
    '--snapshot',
    FILE,
    '--flavor',
    'ssd.small',
]


def imported(*arguments):
    """Return what a fresh interpreter has imported after a command."""
    program = (
        'import atexit, json, sys; '
        "atexit.register(lambda: print('\\n' + json.dumps([*sys.modules]))); "
        'from isolate_aggregates_tools.cli import app; '
        f'sys.exit(app.main({[*arguments]!r}))'
    )
    result = subprocess.run(
        [sys.executable, '-c', program],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(result.stdout.splitlines()[-1]))


@cases(
    'arguments',
    {
        'version': ['--version'],
        'help': ['--help'],
        'help, as a command': ['help'],
    },
)
def test_version_and_help_load_no_clients(arguments):
    loaded = imported(*arguments)
    assert not loaded & (CLOUD | OTHERS)


@pytest.mark.parametrize('argument', ['--version', '--help'])
def test_the_help_imports_no_command(argument):
    ours = {e.module for e in metadata.entry_points(group=app.COMMANDS)}
    loaded = imported(argument)
    assert 'isolate_aggregates_tools.cli.app' in loaded
    assert not loaded & {*ours, 'oslo_log.log', 'jsonschema'}


def test_a_command_on_a_cloud_file_loads_no_clients():
    loaded = imported(*QUERY)
    assert 'isolate_aggregates_tools.cloud.file.saved_cloud' in loaded
    # Nor what takes as long, and is needed for services, or for files that are
    # not valid.
    needless = {'jsonschema', 'oslo_log.log', 'tenacity'}
    assert not loaded & (CLOUD | OTHERS | needless)


def test_a_command_loads_no_other_command():
    loaded = imported(*QUERY)
    assert 'isolate_aggregates_tools.commands.candidates' in loaded
    assert 'isolate_aggregates_tools.commands.explain' not in loaded
    assert 'isolate_aggregates_reservations' not in loaded


@cases(
    ('line', 'module'),
    {
        'matrix': ('matrix list', 'matrix'),
        'candidates': ('candidate list --flavor ssd.small', 'candidates'),
        'capacity': ('capacity list --flavor ssd.small', 'capacity'),
    },
)
def test_a_command_without_findings_loads_no_audit(line, module):
    loaded = imported(*line.split(), '--snapshot', FILE)
    assert f'isolate_aggregates_tools.{module}' in loaded
    assert not loaded & {
        'isolate_aggregates_tools.advice',
        'isolate_aggregates_tools.audit',
        'isolate_aggregates_tools.effect',
    }


def test_an_option_of_the_cloud_loads_what_parses_it():
    assert 'openstack' in imported('--os-cloud', 'mine', *QUERY)


def test_an_interruption_during_the_start_shows_nothing():
    program = (
        'import os, signal, sys\n'
        'class Interrupts:\n'
        '    def find_spec(self, name, path=None, target=None):\n'
        '        if name == "isolate_aggregates_tools.cli.app":\n'
        '            os.kill(os.getpid(), signal.SIGINT)\n'
        # Shells make background programs ignore it.
        'signal.signal(signal.SIGINT, signal.default_int_handler)\n'
        'sys.meta_path.insert(0, Interrupts())\n'
        'from isolate_aggregates_tools.cli import main\n'
        'sys.exit(main())'
    )
    result = subprocess.run(
        [sys.executable, '-c', program], capture_output=True, text=True
    )
    assert result.returncode == 130
    assert result.stdout + result.stderr == ''


def test_the_package_runs_as_a_program():
    result = subprocess.run(
        [
            sys.executable,
            '-m',
            'isolate_aggregates_tools',
            'lock',
            'list',
            '--no-such',
        ],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2
    assert result.stderr == (
        'isolate-aggregates lock list: there is no option --no-such. See '
        'isolate-aggregates lock list --help.\n'
    )


@pytest.mark.parametrize(
    ('shell', 'said'),
    [
        (
            '"$@" candidate list --query --snapshot "$FILE" '
            '--flavor ssd.small >/dev/full',
            'The output cannot be written: No space left on device.\n',
        ),
        (
            '"$@" lock list --snapshot "$FILE" >/dev/full',
            'The output cannot be written: No space left on device.\n',
        ),
        *(
            (
                f'"$@" {words} >/dev/full',
                'The output cannot be written: No space left on device.\n',
            )
            for words in (
                *('--help', 'help', 'help lock', '--version'),
                *('lock list --help', 'complete bash'),
            )
        ),
        (
            '"$@" --log-file /dev/full lock list --snapshot /nowhere',
            '/nowhere cannot be read: No such file or directory.\n'
            'Log file /dev/full cannot be written: No space left on device.\n',
        ),
        # As in many containers.
        (
            'PYTHONUNBUFFERED=1 "$@" --version >/dev/full',
            'The output cannot be written: No space left on device.\n',
        ),
        (
            '"$@" candidate list --query --snapshot "$FILE" '
            '--flavor ssd.small >&-',
            'The standard output is closed.\n',
        ),
        (
            '"$@" candidate list --query --snapshot /dev/zero '
            '--flavor ssd.small',
            '/dev/zero cannot be read: Not a text file.\n',
        ),
        (
            '"$@" --config-file /dev/zero candidate list --query '
            '--flavor ssd.small',
            'The configuration /dev/zero cannot be read: Not a text file.\n',
        ),
    ],
)
def test_streams_without_room_or_end_are_answered(shell, said):
    result = subprocess.run(
        [
            *('sh', '-c', shell, 'sh'),
            *(sys.executable, '-m', 'isolate_aggregates_tools'),
        ],
        capture_output=True,
        text=True,
        # Output is in a buffer until the end.
        env={**os.environ, 'FILE': FILE, 'PYTHONUNBUFFERED': ''},
    )
    assert (result.returncode, result.stdout) == (1, '')
    assert result.stderr == said


def test_names_that_the_terminal_cannot_show_are_escaped(tmp_path):
    path = tmp_path / 'cloud.yaml'
    text = (ROOT / 'examples/windows-licensing.yaml').read_text('utf-8')
    path.write_text(text.replace('win-hosts', '日本'), 'utf-8')
    output = subprocess.run(
        [
            *(
                sys.executable,
                '-m',
                'isolate_aggregates_tools',
                'lock',
                'show',
                'win-1',
            ),
            *('--snapshot', str(path)),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, 'PYTHONIOENCODING': 'ascii'},
    )
    assert (output.returncode, output.stderr) == (0, '')
    assert r'\u65e5\u672c' in output.stdout


# The help lines of commands that are not imported


def test_the_help_lists_each_command_with_its_own_summary():
    said = {
        e.name: inspect.getdoc(e.load()).splitlines()[0]
        for e in metadata.entry_points(group=app.COMMANDS)
    }
    assert said == descriptions()


# Options of a cloud


def test_options_of_the_cloud_can_be_given_anywhere():
    plain = app.IsolateAggregatesApp([]).parser
    options = {
        name
        for action in app.IsolateAggregatesApp().parser._actions
        for name in action.option_strings
    }
    of_the_cloud = options - set(plain._option_string_actions)
    assert '--os-cloud' in of_the_cloud
    assert '--insecure' in of_the_cloud
    for name in sorted(of_the_cloud):
        for given in (
            [name, 'x'],
            ['candidate', 'list', '--query', f'{name}=x'],
        ):
            known = app.IsolateAggregatesApp(given).parser
            assert name in known._option_string_actions, given


def test_the_help_says_how_to_list_the_options_of_the_cloud(run):
    brief = run('--help').out
    assert 'isolate-aggregates --os-cloud <name> --help' in brief
    assert '--os-project-name' not in brief
    assert '--os-project-name' in run('--os-cloud', 'mine', '--help').out
