# SPDX-License-Identifier: Apache-2.0
"""On a terminal of 80 columns no command breaks a word."""

from importlib import metadata
import pathlib

import narrow
import pytest

from isolate_aggregates_tools.cli import app

EXAMPLES = pathlib.Path(__file__).parents[2] / 'examples'
CLOUD = ('--snapshot', 'licensed-rack.yaml')
TRAIT = '--trait CUSTOM_LICENSED'

# A change and an answer of each command that takes a cloud file.
ON_FILES = {
    'audit': ('', '--servers'),
    'candidate list': ('--flavor db.licensed', '--flavor app --query'),
    'capacity list': ('--flavor db.licensed',),
    'check': ('--flavor app --host r7-1',),
    'effect show': (
        '--to licensed-rack-moved.yaml',
        '--set rack-7 availability_zone=zone-of-the-licensed-hosts',
    ),
    'explain': ('--flavor app', '--flavor app --hosts --long'),
    'filter list': ('', '--long'),
    'key add': (f'--flavor app {TRAIT}',),
    'key remove': (f'--flavor db.licensed {TRAIT}',),
    'lock create': ('rack-7 --trait CUSTOM_LICENSED_FOR_ANOTHER_PROGRAM',),
    'lock delete': ('rack-7',),
    'lock list': ('', '--long'),
    'lock show': ('rack-7', 'r7-1'),
    'matrix list': ('', '--by lock', '--by aggregate'),
    'provider set': ('r8-1 --trait CUSTOM_LICENSED_FOR_ANOTHER_PROGRAM',),
    'provider unset': (f'r7-1 {TRAIT}',),
    'relocation create': (
        *('--host r7-1', '--out-of-place', '--rolling --host r7-1'),
        *('--host r7-1 --as commands', '--room-for app'),
    ),
    'survival list': ('', '--failures 2'),
    'sync': ('',),
}

# Those of files of another kind.
LEDGER = 'ledger --since 2026-03-01 --until 2026-03-08 --no-cloud --file'
OTHERS = [
    f'{LEDGER} ledger.jsonl --lock trait:CUSTOM_LICENSED_WINDOWS',
    f'{LEDGER} ledger.jsonl --aggregate windows --stays',
    'decision list decisions/nova-scheduler.log',
    'decision list decisions/nova-scheduler.log --long',
    'decision list decisions/shadow.log --shadow',
    'test expectations/hosting.yaml --snapshot hosting.yaml',
]

# They write no tables, or need a live cloud or another program; those of
# reservations have a test with Placement.
NO_TABLES = {'exporter', 'rehearse', 'report save', 'snapshot save'}


def test_each_command_with_a_table_is_here():
    commands = {
        each.name.replace('_', ' ')
        for each in metadata.entry_points(group=app.COMMANDS)
        if not each.name.startswith('reservation_')
    }
    others = {
        name for name in commands for words in OTHERS if words.startswith(name)
    }
    assert {*ON_FILES} | others | NO_TABLES == commands


@pytest.mark.slow
@pytest.mark.parametrize('command', ON_FILES)
def test_a_command_on_a_cloud_file_breaks_no_word(run, monkeypatch, command):
    monkeypatch.chdir(EXAMPLES)
    for words in ON_FILES[command]:
        arguments = *command.split(), *words.split(), *CLOUD
        assert narrow.broken(run, monkeypatch, *arguments) == [], words


@pytest.mark.slow
@pytest.mark.parametrize('words', OTHERS)
def test_neither_does_one_on_another_file(run, monkeypatch, words):
    monkeypatch.chdir(EXAMPLES)
    assert narrow.broken(run, monkeypatch, *words.split()) == []


def test_neither_does_a_table_of_fields(run, monkeypatch, tmp_path):
    """cliff would break the key, which has no blanks."""
    file = tmp_path / 'cloud.yaml'
    file.write_text(
        'version: 1\naggregates:\n- name: windows\n'
        f'  metadata: {{"trait:CUSTOM_{"X" * 47}": required}}\n'
    )
    arguments = 'lock', 'show', 'windows', '--snapshot', str(file)
    assert narrow.broken(run, monkeypatch, *arguments) == []
