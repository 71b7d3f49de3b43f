# SPDX-License-Identifier: Apache-2.0
"""The page about Placement's mistakes: they are there, over plain HTTP."""

import os
import pathlib
import subprocess
import sys

import pages
import pytest
import runners
import web_servers

PAGE = 'admin/placement-mistakes.rst'


@pytest.fixture(scope='module')
def shell(tmp_path_factory):
    """Run commands beside a Placement and the files of the page."""
    folder = tmp_path_factory.mktemp('mistakes')
    for block in pages.blocks(pages.path(PAGE)):
        if block.language in ('python', 'yaml'):
            (folder / block.caption).write_text(block.text, 'utf-8')
    programs = pathlib.Path(sys.prefix) / 'bin'
    server = tmp_path_factory.mktemp('placement')
    with web_servers.running(web_servers.GUNICORN, server) as placement:

        def run(text):
            return subprocess.run(
                ['bash', '-c', text],
                cwd=folder,
                env={
                    'HOME': str(folder),
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


@pytest.mark.parametrize(
    'command',
    runners.commands_of(PAGE, 'tests/servers/test_mistakes_page.py'),
    ids=lambda command: command.words[-1],
)
def test_what_the_page_shows_is_what_happens(shell, command):
    finished = shell(command.text)
    assert (finished.returncode, finished.stderr) == (0, '')
    assert pages.agrees(command.output, finished.stdout), finished.stdout


def test_each_mistake_has_a_section_a_reproduction_and_a_bug_report():
    from isolate_aggregates.inspect.mistakes import Mistake

    text = pages.path(PAGE).read_text('utf-8')
    names = [mistake.value for mistake in Mistake]
    assert len(names) == 3
    for name in names:
        title = name.capitalize()
        _, found, section = text.partition(f'\n{title}\n{"=" * len(title)}\n')
        assert found
        section = section.partition('\n====')[0]
        assert f'$TOKEN {name.replace(" ", "-")}' in section
        assert ':caption: Bug report' in section
