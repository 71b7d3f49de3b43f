# SPDX-License-Identifier: Apache-2.0
"""What new users see in the first hour, on a terminal of 80 columns."""

import contextlib
import fcntl
from importlib import metadata
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import termios

from cases import cases
from hypothesis import given
from hypothesis import strategies as st
import pages
import pytest
import runners
from stevedore.extension import ExtensionManager
from thorough import examples

from isolate_aggregates_tools.cli import app, terminal
from isolate_aggregates_tools.repairs import commands

ROOT = pathlib.Path(__file__).parents[2]
WIDTH = 80
BIN = pathlib.Path(sys.executable).parent
OURS = str(BIN / 'isolate-aggregates')

COMMANDS = sorted(
    e.name.replace('_', ' ') for e in metadata.entry_points(group=app.COMMANDS)
)


@pytest.fixture(autouse=True)
def _terminal(monkeypatch):
    monkeypatch.setenv('COLUMNS', '80')
    # Its name is in the usage of each command.
    monkeypatch.setattr(sys, 'argv', [OURS])


@pytest.fixture
def see(run):
    """Run a command; no line is wider than the terminal."""

    def seen(*arguments):
        result = run(*arguments)
        output = result.out + result.err
        assert [line for line in output.splitlines() if len(line) > 80] == []
        assert 'Traceback' not in output
        return result

    return seen


@cases(
    ('words', 'said'),
    {
        'written wrong': (
            'filter lsit --no-such',
            "There is no command 'filter lsit' (did you mean filter list?). "
            'See isolate-aggregates --help.',
        ),
        'not complete': (
            'filter',
            "There is no command 'filter' (did you mean filter list?). See "
            'isolate-aggregates --help.',
        ),
        'the beginning of several': (
            'reservation host',
            "Several commands begin with 'reservation host'. See "
            'isolate-aggregates help reservation host.',
        ),
        'the beginning of one': (
            'rep --output page.html',
            "There is no command 'rep' (did you mean report save?). See "
            'isolate-aggregates --help.',
        ),
        'another word': (
            'move win-1',
            "There is no command 'move win-1' (did you mean relocation "
            'create?). See isolate-aggregates --help.',
        ),
        'two other words': (
            'reservation find',
            "There is no command 'reservation find' (did you mean "
            'reservation calendar list?). See isolate-aggregates help '
            'reservation.',
        ),
        'another second word': (
            'lock add win',
            "There is no command 'lock add win' (did you mean lock create?). "
            'See isolate-aggregates help lock.',
        ),
        'a word for another program': (
            'limit show',
            "There is no command 'limit show' (did you mean "
            'isolate-aggregates-status upgrade check?). See '
            'isolate-aggregates --help.',
        ),
        'like another one of the group': (
            'reservation lend',
            "There is no command 'reservation lend' (did you mean reservation "
            'end?). See isolate-aggregates help reservation.',
        ),
        'like none of the group': (
            'lock win-hosts',
            "There is no command 'lock win-hosts'. See isolate-aggregates "
            'help lock.',
        ),
        'the group written wrong': (
            'lok',
            "There is no command 'lok' (did you mean lock?). See "
            'isolate-aggregates --help.',
        ),
        'help for one written wrong': (
            'help lock creat',
            "There is no command 'lock creat' (did you mean lock create?). "
            'See isolate-aggregates help lock.',
        ),
        'help for none': (
            'help nosuch',
            "There is no command 'nosuch'. See isolate-aggregates --help.",
        ),
    },
)
def test_an_unknown_command_is_named(run, words, said):
    result = run(*words.split())
    assert (result.code, result.out, result.err) == (2, '', f'{said}\n')


@cases(
    ('column', 'said'),
    {
        'written wrong': ('Hosst', ' (did you mean Hosts?)'),
        'like no other': ('Nosuch', ''),
    },
)
def test_an_unknown_column_is_named(run, column, said):
    result = run('lock', 'list', *CAMPUS, '-c', column)
    assert (result.code, result.out) == (2, '')
    assert result.err == (
        f'There is no column {column}{said}; the columns are Lock, '
        'Aggregates, Hosts, VCPU, MEMORY_MB, DISK_GB.\n'
    )


# Help


def test_the_help_lists_commands_first_grouped_by_task(see):
    result = see('--help')
    assert result.code == 0
    tasks = re.findall(r'^(\w[^:\n]*):\n((?:  .*\n)+)', result.out, re.M)
    titles = [title for title, _ in tasks]
    assert titles[:4] == [
        'Start with',
        'See which servers may use which hosts',
        'Isolate hosts',
        'Maintain isolation',
    ]
    assert titles[-2:] == ['options', 'cloud options']
    listed = {
        title: re.findall(r'^  (\S+(?: \S+)*)', lines, re.M)
        for title, lines in tasks[:-2]
    }
    assert sorted(name for names in listed.values() for name in names) == [
        *sorted([*COMMANDS, 'complete', 'help'])
    ]
    assert listed['Others'] == ['complete', 'help']
    assert 'lock delete' in listed['Isolate hosts']
    assert re.findall(r'\S+-$', result.out, re.MULTILINE) == []


def test_without_a_command_the_help_is_shown_as_an_error(see):
    result = see()
    assert result.code == 2
    assert result.out == ''
    assert result.err == see('help').out == see('--help').out


@pytest.mark.parametrize('command', COMMANDS)
def test_each_help_fits_the_terminal(see, command):
    result = see('help', *command.split())
    assert result.code == 0
    assert result.out.startswith('usage: ')
    assert f' {command} ' in result.out.splitlines()[0]
    assert re.findall(r'\S+-$', result.out, re.MULTILINE) == []


# On a terminal


def on_terminal(*arguments, cwd=ROOT, program=OURS):
    """Run a program on a terminal of 80 columns and return the screen."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(
        theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, WIDTH, 0, 0)
    )
    environment = {k: v for k, v in os.environ.items() if k != 'COLUMNS'}
    environment['BIN'] = str(BIN)
    with subprocess.Popen(
        [program, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env=environment,
    ):
        os.close(theirs)
        shown = b''
        # Linux raises this when no process has the terminal open any more.
        with contextlib.suppress(OSError):
            while read := os.read(ours, 65536):
                shown += read
    os.close(ours)
    return shown.decode().replace('\r\n', '\n')


CAMPUS = ('--snapshot', 'examples/campus.yaml')
WRONG = """\
version: 1
aggregates:
- name: win
  hosts: [h1, h3]
  metadata:
    trait:CUSTOM_WIN: required
providers:
- {name: h1, inventories: {VCPUS: 8}}
- {name: h2, traits: [custom_win], aggregates: [wn]}
"""


def fits(output):
    """Check for tracebacks; return whether the output fits the terminal."""
    assert output.strip()
    assert 'Traceback' not in output
    assert 'usage:' not in output
    return max(map(len, output.splitlines())) <= WIDTH


@pytest.mark.parametrize(
    'arguments',
    [
        pytest.param(('lock', 'list', *CAMPUS), id='list'),
        pytest.param(
            ('matrix', 'list', *CAMPUS), id='matrix', marks=pytest.mark.slow
        ),
        pytest.param(('audit', *CAMPUS), id='audit', marks=pytest.mark.slow),
        pytest.param(
            ('explain', *CAMPUS, '--flavor', 'm1.large'), id='explain'
        ),
        pytest.param(
            ('lock', 'show', 'gpus', *CAMPUS),
            id='show',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ('filter', 'list'), id='filter list', marks=pytest.mark.slow
        ),
        pytest.param(
            ('effect', 'show', *CAMPUS, '--to', CAMPUS[1]),
            id='empty',
            marks=pytest.mark.slow,
        ),
        pytest.param(('explain', '--flavr', 'x'), id='a wrong option'),
        pytest.param(
            ('limit', 'shwo', '--x'),
            id='a wrong command',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ('capacity', 'list', '--flavor', 'x'),
            id='no credentials',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ('audit', '--snapshot', 'wrong.yaml'), id='a wrong cloud file'
        ),
    ],
)
def test_no_line_is_wider_than_the_terminal(tmp_path, arguments):
    (tmp_path / 'examples').symlink_to(ROOT / 'examples')
    (tmp_path / 'wrong.yaml').write_text(WRONG)
    assert fits(on_terminal(*arguments, cwd=tmp_path))


def test_the_list_of_filters_has_each_name_in_full():
    output = on_terminal('filter', 'list', '--long')
    assert ' isolate_aggregates ' in output
    assert ' AggregateMultiTenancyIsolation ' in output
    # The origin is shown only on request.
    assert 'Origin' not in output
    assert 'Origin' in on_terminal('filter', 'list', '-c', 'Origin')


@pytest.mark.slow
def test_the_demo_fits_the_terminal():
    output = on_terminal('examples/demo.sh', program='sh')
    assert fits(output)
    assert 'What to type next' in output


@pytest.mark.slow
def test_the_tutorial_fits_the_terminal(tmp_path):
    page = pages.path('user/tutorial.rst')
    typed = [
        on_terminal(*command.words[1:], cwd=tmp_path)
        for command in runners.played(page, tmp_path)
    ]
    assert len(typed) >= 5
    assert all(map(fits, typed))


# A user's own cloud file. Each test has one mistake; the error names the line.
OWN = """\
version: 1
aggregates:
- name: win-hosts
  hosts: [win-1]
  metadata:
    trait:CUSTOM_WIN: required
flavors:
- name: m1.small
  vcpus: 1
  ram: 512
  disk: 1
providers:
- name: win-1
  aggregates: [win-hosts]
  inventories: {VCPU: 8, MEMORY_MB: 4096, DISK_GB: 100}
"""
MISTAKES = [
    ('trait:CUSTOM_WIN: required', 'trait:CUSTOM_WIN:required', 5),
    ('aggregates: [win-hosts]', 'aggregates: [win-host]', 14),
    ('  aggregates: [win-hosts]', '  traits: [custom_win]', 14),
    ('VCPU: 8', 'VCPUS: 8', 15),
    ('  vcpus: 1', '  vcpu: 1', 9),
    ('  hosts: [win-1]', ' hosts: [win-1]', 4),
]


def ask(path, flavor='m1.small'):
    """Ask for the hosts of a server; return the output."""
    output = on_terminal(
        'candidate', 'list', '--snapshot', path.name, '--flavor', flavor,
        cwd=path.parent,
    )  # fmt: skip
    assert fits(output)
    return output


def test_a_new_cloud_file_gives_an_answer(tmp_path):
    path = tmp_path / 'c.yaml'
    path.write_text(OWN)
    assert '1 host may be used' in ask(path)
    assert "'m1.smal' in c.yaml (did you mean m1.small?)" in ' '.join(
        ask(path, 'm1.smal').split()
    )


@pytest.mark.parametrize(
    ('right', 'wrong', 'line'),
    [
        pytest.param(*mistake, marks=pytest.mark.slow if number else ())
        for number, mistake in enumerate(MISTAKES)
    ],
)
def test_a_mistake_in_a_cloud_file_is_named_with_its_line(
    tmp_path, right, wrong, line
):
    path = tmp_path / 'c.yaml'
    path.write_text(OWN.replace(right, wrong, 1))
    assert f'line {line}' in ask(path)


def test_an_extra_spec_that_nova_ignores_is_reported_once(tmp_path):
    path = tmp_path / 'c.yaml'
    path.write_text(
        OWN.replace(
            '  disk: 1\n', '  disk: 1\n  extra_specs: {trait:CUSTOM_WIN: x}\n'
        )
    )
    assert ask(path).count('Nova ignores it') == 1


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        ('matrix list', 'There are no compute hosts.\n'),
        (
            'matrix list --by lock',
            'There are no locks and no compute hosts.\n',
        ),
        ('matrix list --by aggregate', 'There are no aggregates.\n'),
        (
            'capacity list --flavor f',
            'No more servers of this flavor fit. Use explain to see why.\n',
        ),
        ('explain --flavor f', 'There are no compute hosts.\n'),
    ],
)
def test_a_cloud_without_hosts_is_reported(tmp_path, arguments, said):
    (tmp_path / 'c.yaml').write_text(
        'version: 1\nflavors: [{name: f, vcpus: 1}]\n'
    )
    output = on_terminal(
        *arguments.split(), '--snapshot', 'c.yaml', cwd=tmp_path
    )
    assert output == said


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        ('lock list', 'No aggregate is locked'),
        ('matrix list', 'no flavors'),
        ('audit', 'no flavors'),
        ('sync', 'Nothing to do'),
        ('effect show --to c.yaml', 'The file describes the same cloud'),
    ],
)
def test_an_empty_cloud_is_reported(tmp_path, arguments, said):
    (tmp_path / 'c.yaml').write_text('version: 1\n')
    words = arguments.split()
    output = on_terminal(*words, '--snapshot', 'c.yaml', cwd=tmp_path)
    assert fits(output)
    assert said in output


@examples(8)
@given(st.lists(st.text('abc \\\'$"=', max_size=30), min_size=1))
def test_folded_commands_can_be_pasted(arguments):
    line = commands.shown((('printf', r'%s\0', *arguments),))
    result = subprocess.run(
        ['bash', '-c', terminal.folded(terminal.Shell(line), 20)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == ''.join(f'{one}\0' for one in arguments)


def test_a_command_that_two_distributions_provide_is_refused(
    run, tmp_path, monkeypatch
):
    """Either of them could change the cloud."""
    info = tmp_path / 'other-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Name: other\nVersion: 1.0\n', 'utf-8')
    (info / 'entry_points.txt').write_text(
        f'[{app.COMMANDS}]\nlock_create = json:JSONDecoder\n', 'utf-8'
    )
    monkeypatch.syspath_prepend(tmp_path)
    # Otherwise found once in a process.
    monkeypatch.setattr(ExtensionManager, 'ENTRY_POINT_CACHE', {})
    finished = run('lock', 'create', 'win-hosts')
    assert finished.code == 2
    assert finished.err.startswith(
        'Command lock create is provided more than once, by '
        'isolate-aggregates-tools (isolate_aggregates_tools.commands.'
    )
    assert finished.err.endswith(
        'other (json:JSONDecoder); uninstall all but one of these '
        'distributions.\n'
    )
    # All others are as they were.
    assert run('filter', 'list').code == 0
