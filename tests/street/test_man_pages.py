# SPDX-License-Identifier: Apache-2.0
"""Each command has a manual page that says what the command takes."""

from importlib import metadata
import pathlib
import re
import runpy
import shutil
import subprocess

from cases import cases

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / 'etc' / 'man'
PAGES = {path.name: path for path in sorted(FOLDER.glob('*/*.1'))}
OURS = ('isolate-aggregates', 'isolate-aggregates-')


def own(group):
    """Return the names of the entry points of this repository."""
    return [
        each.name
        for each in metadata.entry_points(group=group)
        if each.dist and each.dist.name.startswith(OURS)
    ]


def test_each_program_and_each_command_has_a_page():
    commands = [
        f'isolate-aggregates-{name.replace("_", "-")}.1'
        for name in own('isolate_aggregates.cli')
    ]
    programs = [f'{name}.1' for name in own('console_scripts')]
    assert len(commands) > 30
    assert sorted(PAGES) == sorted({*commands, *programs})


def test_the_pages_are_those_of_the_commands():
    made = runpy.run_path(str(ROOT / 'tools' / 'man_pages.py'))
    written = made['files']()
    stale = [
        path.name
        for path, text in written.items()
        if not path.exists() or path.read_text('utf-8') != text
    ]
    assert stale == [], 'run "make man"'
    by_hand = set(PAGES.values()) - written.keys()
    assert {path.name for path in by_hand} == {*made['BY_HAND']}


@cases(
    'program',
    {
        name: name
        for name in ('isolate-aggregates-manage', 'isolate-aggregates-status')
    },
)
def test_a_page_written_by_hand_has_what_its_documentation_has(program):
    page = ROOT / f'doc/source/cli/{program.rpartition("-")[2]}.rst'
    words = set(
        re.findall(r'``(--[a-z-]+)|``(\w+)``$', page.read_text('utf-8'), re.M)
    )
    text = PAGES[f'{program}.1'].read_text('utf-8').replace('\\-', '-')
    options = {option for option, _ in words if option}
    assert options
    assert {one for one in options if one not in text} == set()


def test_groff_renders_each_page_without_a_warning():
    if not shutil.which('groff'):
        # Its macros are all that can be checked.
        lines = '\n'.join(path.read_text('utf-8') for path in PAGES.values())
        assert set(re.findall(r'^\.\w+', lines, re.M)) <= {
            *('.TH', '.SH', '.PP', '.TP', '.br')
        }
        return
    rendered = subprocess.run(
        ['groff', '-man', '-ww', '-K', 'utf8', '-T', 'utf8', *PAGES.values()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert rendered.stderr == ''
    assert 'isolate-aggregates-lock-create' in rendered.stdout


def test_each_distribution_installs_its_pages():
    for folder, distribution in (
        ('tools', 'isolate-aggregates-tools'),
        ('reservations', 'isolate-aggregates-reservations'),
    ):
        setup = (ROOT / distribution / 'setup.cfg').read_text('utf-8')
        assert f'share/man/man1 = etc/man/{folder}/*\n' in setup
        assert list((ROOT / distribution / 'etc/man' / folder).glob('*.1'))
