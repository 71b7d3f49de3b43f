# SPDX-License-Identifier: Apache-2.0
"""The lines of README, pasted on a fresh Debian."""

import os
import runpy
import shlex
import shutil
import subprocess
import sys

import pages
import pytest
from sphinx import application
from sphinx.writers import text as writers_text
import yaml

TOOL = pages.ROOT / 'tools' / 'first_hour.py'


@pytest.fixture
def tool(monkeypatch):
    # Where it finds the pages.
    monkeypatch.setattr(sys, 'path', [*sys.path])
    return runpy.run_path(str(TOOL))


def test_the_lines_are_pasted_as_they_stand(tool):
    lines = tool['lines']()
    text = tool['README'].read_text('utf-8')
    assert lines.packages == ['python3-venv', 'make', 'git']
    assert 'make test' not in lines.typed
    assert [one.split()[0] for one in lines.typed] == [
        *('make', 'python3', '.', 'pip', 'pip'),
        *('isolate-aggregates', 'isolate-aggregates', 'diff'),
    ]
    # What changes a cloud is rehearsed, on a system that lets no process have
    # a network of its own.
    *rehearsal, _, bash, option, changes = shlex.split(lines.typed[5])
    assert rehearsal[1:3] == ['rehearse', '--any-network']
    assert (bash, option) == ('bash', '-ec')
    assert [line for line in changes.splitlines() if line[0] != ' '] == [
        'export OS_CLOUD=mycloud',
        *['isolate-aggregates --config-file /etc/nova/nova.conf \\'] * 2,
    ]
    assert 'lock create' in changes
    for typed in [*lines.typed[:5], changes, lines.typed[6]]:
        for line in typed.splitlines():
            assert line.strip() in text
    assert '...' not in lines.conf
    assert 'IsolatedAggregatesFilter' in lines.conf


def test_the_rehearsed_cloud_has_nothing_of_what_the_lines_add(tool):
    path = pages.ROOT / tool['EXAMPLE']
    example = yaml.safe_load(path.read_text('utf-8'))
    before = yaml.safe_load(tool['before'](path.read_text('utf-8')))
    lock, key = 'metadata', 'trait:CUSTOM_LICENSED_WINDOWS'
    assert example['aggregates'][0].pop(lock) == {key: 'required'}
    assert example['images'][0]['properties'].pop(key) == 'required'
    assert before == example
    with pytest.raises(ValueError, match='is not what README makes'):
        tool['before'](yaml.safe_dump(before))


@pytest.mark.parametrize(
    ('text', 'counted'),
    [
        ('Some words.\n\n   $ lock create x\n   done\n', (6, True)),
        ('One ``lock create`` in\na sentence.\n', (6, False)),
    ],
)
def test_words_are_counted_until_an_aggregate_is_isolated(
    tool, text, counted, tmp_path
):
    path = tmp_path / 'README.rst'
    path.write_text(text)
    assert tool['words'](path) == counted


def test_the_script_types_each_command_and_notes_its_end(tool, tmp_path):
    home = tmp_path / 'an operator'
    (home / 'isolate-aggregates').mkdir(parents=True)
    functions = tool['script'].__globals__
    functions['HOME'] = str(home)
    functions['CLONE'] = str(home / 'isolate-aggregates')
    text = tool['script'](["printf '%s|' a \\\n   'b c'", 'false', 'true'])
    ended = subprocess.run(
        ['bash', '-c', text], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, 'a|b c|')
    [noted] = (home / 'times').read_text().splitlines()
    moment, _, command = noted.partition('\t')
    assert float(moment) > 0
    assert command == "printf '%s|' a 'b c'"


def test_the_first_screen_has_at_most_60_lines(tmp_path, monkeypatch):
    """What it is, how it is installed and switched on, and one answer."""
    text = (pages.ROOT / 'README.rst').read_text('utf-8')
    first, _, rest = text.partition('How it works\n====')
    assert rest
    (tmp_path / 'index.rst').write_text(first)
    (tmp_path / 'conf.py').touch()
    # As wide as a terminal.
    monkeypatch.setattr(writers_text, 'MAXWIDTH', 80)
    folders = [str(tmp_path)] * 2 + [str(tmp_path / 'built')] * 2
    application.Sphinx(*folders, 'text', status=None).build()
    rendered = (tmp_path / 'built' / 'index.txt').read_text().splitlines()
    # Without what separates paragraphs, titles and rows.
    lines = [one for one in rendered if one.strip(' +-=*')]
    assert 40 < len(lines) <= 60


@pytest.mark.slow
def test_a_new_user_gets_to_the_first_answer():
    if os.geteuid() or not shutil.which('mmdebstrap'):
        pytest.skip("the superuser and Debian's mmdebstrap are needed")
    told = subprocess.run(
        [sys.executable, TOOL], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    assert 'words until an aggregate is isolated' in told
