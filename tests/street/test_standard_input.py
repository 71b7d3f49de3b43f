# SPDX-License-Identifier: Apache-2.0
"""``--snapshot -`` is the standard input, in every command that has it."""

import contextlib
from importlib import metadata
import os
import pathlib

from cases import cases

from isolate_aggregates_tools.cli import app

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = ROOT / 'examples' / 'licensed-rack.yaml'
COMMANDS = {
    e.name.replace('_', ' '): e
    for e in metadata.entry_points(group=app.COMMANDS)
}
EXPECTATIONS = """\
version: 1
expectations:
- {name: hosts, flavor: app, min_hosts: 1}
"""

# Arguments for the example. The exporter serves until it is ended, unless it
# writes a file.
WORDS = {
    'audit': '--servers',
    'candidate list': '--flavor app',
    'capacity list': '--flavor app',
    'check': '--flavor app --host r7-1',
    'effect show': '--set rack-7 trait:CUSTOM_LICENSED=required',
    'explain': '--flavor app',
    'exporter': '--servers --output metrics.prom',
    'filter list': '',
    'key add': '--flavor db.licensed --trait CUSTOM_LICENSED',
    'key remove': '--flavor app --trait CUSTOM_LICENSED',
    'lock create': 'rack-7 --trait CUSTOM_LICENSED',
    'lock delete': 'rack-7',
    'lock list': '',
    'lock show': 'rack-7',
    'matrix list': '',
    'provider set': 'r7-1 --trait CUSTOM_LICENSED',
    'provider unset': 'r7-1 --trait CUSTOM_LICENSED',
    'rehearse': '--any-network -- true',
    'relocation create': '--out-of-place',
    'report save': '--output report.html',
    'reservation calendar list': '',
    'reservation history list': '',
    'reservation host list': '',
    'reservation list': '',
    'survival list': '',
    'sync': '',
    'test': 'expected.yaml',
}
# It needs a reservation, which a test of the reservations has.
OTHERS = {'reservation show'}


@contextlib.contextmanager
def standard_input(path):
    """Let this process read a file as its standard input."""
    before = os.dup(0)
    try:
        with open(path, 'rb') as stream:
            os.dup2(stream.fileno(), 0)
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


def test_every_command_for_cloud_files_is_tested():
    program = app.IsolateAggregatesApp([])
    assert {*WORDS} | OTHERS == {
        name
        for name, entry_point in COMMANDS.items()
        if '--snapshot'
        in entry_point.load()(program, None)
        .get_parser(name)
        ._option_string_actions
    }


@cases('command', {name: name for name in WORDS})
def test_a_dash_is_the_standard_input(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'expected.yaml').write_text(EXPECTATIONS)
    first, separator, last = WORDS[command].partition('-- ')

    def result(path):
        words = [*first.split(), '--snapshot', path]
        words += [separator.strip(), *last.split()] if separator else []
        return run(*command.split(), *words)

    of_file = result(str(EXAMPLE))
    with standard_input(EXAMPLE):
        piped = result('-')
    assert (piped.code, piped.err) == (of_file.code, of_file.err)
    assert without_name(piped.out) == without_name(of_file.out)
    assert of_file.code in (0, 3, 4, 7, 8), of_file.err


def without_name(text):
    """Return an output without where its cloud is from, and the time."""
    named = text.replace(str(EXAMPLE), 'standard input')
    return [line for line in named.splitlines() if 'UTC' not in line]


def test_what_is_wrong_with_it_names_it(run, tmp_path):
    path = tmp_path / 'wrong.yaml'
    path.write_text('version: 1\naggregates: 5\n')
    with standard_input(path):
        result = run('lock', 'list', '--snapshot', '-')
    assert result.code == 1
    assert result.err.startswith('Cloud file standard input')
    assert 'line 2' in result.err


def test_a_device_without_an_end_is_not_read_on(run):
    with standard_input('/dev/zero'):
        result = run('lock', 'list', '--snapshot', '-')
    assert (result.code, result.err) == (
        1,
        'standard input cannot be read: Not a text file.\n',
    )
