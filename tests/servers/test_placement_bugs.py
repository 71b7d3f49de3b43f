# SPDX-License-Identifier: Apache-2.0
"""The bug reports for Placement: what they show is there, over plain HTTP."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pages
import pytest
import web_servers

FOLDER = pages.ROOT / 'doc/source/contributor/upstream/placement'
REPORTS = sorted(path.stem for path in FOLDER.glob('*.txt'))
BUGS = [
    'added-amounts',
    'lost-anchors',
    'oversold-resources',
    'sharing-child',
]
# SQLite has only one writer; ``tests/databases`` runs this one.
ON_SQLITE = [name for name in REPORTS if name != 'oversold-resources']


@pytest.fixture(scope='module')
def shell(tmp_path_factory):
    """Run commands with a Placement and the program of the reports."""
    programs = pathlib.Path(sys.prefix) / 'bin'
    server = tmp_path_factory.mktemp('placement')
    with web_servers.running(web_servers.THREADS, server) as placement:

        def run(text):
            return subprocess.run(
                ['bash', '-c', text],
                cwd=FOLDER,
                env={
                    'PATH': f'{programs}:{os.environ["PATH"]}',
                    'PLACEMENT': placement.url,
                    'TOKEN': 'admin',
                },
                capture_output=True,
                text=True,
            )

        yield run
        # It has cleaned up after itself.
        left = placement.get('/resource_providers').json()
        assert left == {'resource_providers': []}


@pytest.mark.parametrize('name', ON_SQLITE)
def test_a_report_shows_real_output(shell, name):
    report = (FOLDER / f'{name}.txt').read_text('utf-8')
    [shown] = re.findall(r'^  \$ (?:.+\n)+', report, re.MULTILINE)
    command, output = textwrap.dedent(shown)[2:].split('\n', 1)
    assert command.split()[-1] == name
    result = shell(command)
    assert (result.returncode, result.stderr) == (0, '')
    # Uuids are not the same each time.
    real = re.sub('[0-9a-f-]{36}', '...', result.stdout)
    assert pages.agrees(output, real), result.stdout


@pytest.mark.parametrize('name', REPORTS)
def test_a_report_has_the_sections_launchpad_asks_for(name):
    report = (FOLDER / f'{name}.txt').read_text('utf-8')
    titles = re.findall(r'^(.+)\n=+$', report, re.MULTILINE)
    assert titles == [
        'Description',
        'Steps to reproduce',
        'Expected result',
        'Actual result',
        'Environment',
        'Cause',
        'Possible fix',
    ]


def test_each_bug_has_a_section_and_a_report():
    assert sorted([*BUGS, 'missing-409']) == REPORTS
    text = pages.path('admin/placement-mistakes.rst').read_text('utf-8')
    reports = pages.path('contributor/upstream/placement-bugs.rst').read_text()
    for bug in BUGS:
        title = bug.replace('-', ' ').capitalize()
        assert f'\n{title}\n{"=" * len(title)}\n' in text
    for name in REPORTS:
        assert f' placement/{name}.txt' in reports
