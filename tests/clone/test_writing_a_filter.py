# SPDX-License-Identifier: Apache-2.0
"""The steps on the page "Writing a filter" work as shown.

The page is followed from top to bottom: its files are written, and its
commands are run by a shell. The environment of these tests is used instead of
a new one, and its build tools instead of those that pip would download. With
``FRESH=1`` pip downloads everything, as for a reader; this needs the package
index and takes minutes.
"""

import configparser
import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig

from pages import ROOT, SOURCE, agrees, blocks
import pytest

PAGE = SOURCE / 'contributor' / 'writing-a-filter.rst'
BEGIN = '$ mkdir drain-filter\n$ cd drain-filter\n'
FRESH = bool(os.environ.get('FRESH'))
# What was made in a clone, and folders of tools, which begin with a dot.
LEFT_OUT = ('.[!i]*', '__pycache__', 'build', 'dist', '*.egg-info')

# Packages of the tests' environment are found in the new one, those that are
# installed there by name too.
LINK = 'import site; site.addsitedir({site!r})\n'
PIP = """\
#!/bin/sh
exec {python} -m pip --python {own_python} \
    --disable-pip-version-check "$@" --no-build-isolation --no-index
"""
PROGRAM = """\
#!/bin/sh
'''exec' {own_python} "$0" "$@"
' '''
import sys
from isolate_aggregates_tools.cli.app import main
sys.exit(main())
"""


class Reader:
    """Follows the steps of a page.

    :param folder: The directory to start in, which contains the clone.
    """

    def __init__(self, folder):
        self.cwd = folder
        self._venv = folder / 'drain-filter' / '.venv'
        tools = pathlib.Path(sys.executable).parent
        self._environment = {
            'PATH': f'{self._venv / "bin"}:{tools}:{os.environ["PATH"]}',
            'HOME': str(folder),
            'PBR_VERSION': '1.0',
            # Tables are as wide as they have to be.
            'COLUMNS': '200',
        }

    def follow(self, block):
        """Execute a block of the page: write a file, or run commands.

        Yields each command, its shown output, and its real output.
        """
        if block.caption:
            (self.cwd / block.caption).write_text(block.text)
        elif block.language == 'console':
            text = block.text.replace('\\\n', ' ')
            for part in re.split(r'^\$ ', text, flags=re.MULTILINE)[1:]:
                line, _, shown = part.partition('\n')
                yield line, shown, self._do(line)

    def run(self, *command):
        """Run a program with the modules of the folder they are in."""
        return subprocess.run(
            command,
            cwd=self.cwd,
            env={**self._environment, 'PYTHONPATH': str(self.cwd)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def passes(self, command):
        """Run a program that must not find anything."""
        result = self.run(*command.split())
        assert result.returncode == 0, result.stdout

    def _do(self, line):
        words = line.split()
        if words[0] == 'cd':
            self.cwd = (self.cwd / words[1]).resolve(strict=True)
        elif not FRESH and line == 'python3 -m venv .venv':
            self._make_environment()
        elif not FRESH and line.startswith("pip install '../isolate"):
            # What it would fetch is there already.
            pass
        elif words[0] != '.':
            return self.run('bash', '-c', line).stdout
        return ''

    def _make_environment(self):
        subprocess.run(
            [sys.executable, '-m', 'venv', '--without-pip', self._venv],
            check=True,
        )
        [packages] = self._venv.glob('lib/*/site-packages')
        site = sysconfig.get_path('purelib')
        (packages / 'link.pth').write_text(LINK.format(site=site))
        for name, text in (('pip', PIP), ('isolate-aggregates', PROGRAM)):
            program = self._venv / 'bin' / name
            program.write_text(
                text.format(
                    own_python=shlex.quote(f'{self._venv}/bin/python'),
                    python=shlex.quote(sys.executable),
                )
            )
            program.chmod(0o755)


@pytest.fixture
def reader(tmp_path):
    """Somebody with a clone and nothing else."""
    clone = tmp_path / 'isolate-aggregates'
    if FRESH:
        # To build the package pbr asks git what belongs to it.
        subprocess.run(['git', 'clone', '-q', ROOT, clone], check=True)
    else:
        # As it is, committed or not.
        ignored = shutil.ignore_patterns(*LEFT_OUT)
        shutil.copytree(ROOT, clone, ignore=ignored)
    return Reader(tmp_path)


def test_following_the_page_gives_the_shown_output(reader):
    followed = 0
    for block in blocks(PAGE):
        for line, shown, printed in reader.follow(block):
            assert agrees(shown, printed), f'{line}\n{printed}'
            followed += 1
    assert followed > 25


def test_in_this_package_the_filter_passes_lint_and_tests(reader):
    for block in blocks(PAGE):
        # As far as the files go; the other test follows the rest.
        if block.caption or '../drain-filter/' in block.text:
            list(reader.follow(block))
        elif 'mkdir' in block.text:
            list(reader.follow(dataclasses.replace(block, text=BEGIN)))
    reader.passes('ruff check isolate_aggregates tests/unit')
    reader.passes('ruff format --check isolate_aggregates tests/unit')
    reader.passes('lint-imports --no-cache')
    reader.passes('mypy isolate_aggregates/filters/drain.py')
    tested = reader.run(
        *('pytest', '-q', 'tests/unit/test_filter_drain.py'),
        'tests/docs/test_docs.py',
        *('-k', 'filter_drain or each_filter or one_that_reno_takes'),
    )
    # All that is missing is the page.
    [failure] = re.findall('^FAILED (.+?) -', tested.stdout, re.MULTILINE)
    assert failure == (
        'tests/docs/test_docs.py::'
        'test_each_filter_has_a_page_with_an_example[drain]'
    )
    notes = reader.cwd / 'releasenotes' / 'notes'
    assert len(list(notes.glob('filter-drain-*.yaml'))) == 1


def test_the_extras_shown_for_installation_exist():
    [(folder, extras)] = re.findall(
        r"'\.\./isolate-aggregates/([a-z-]+)\[(.+)\]'", PAGE.read_text('utf-8')
    )
    parser = configparser.ConfigParser()
    parser.read(ROOT / folder / 'setup.cfg')
    assert set(extras.split(',')) <= set(parser['extras'])
