# SPDX-License-Identifier: Apache-2.0
"""The page on releasing, done in a clone up to where it leaves the machine."""

import email
import os
import pathlib
import re
import shlex
import sys
import zipfile

import pytest
from releasing import DISTRIBUTIONS, ROOT, clone, package_of, run, tool

PAGE = ROOT / 'doc' / 'source' / 'contributor' / 'releasing.rst'
BIN = pathlib.Path(sys.executable).parent


def _line(beginning):
    """Return the first command of the page that begins so."""
    lines = [line.strip() for line in PAGE.read_text().splitlines()]
    first = next(each for each in lines if each.startswith(f'$ {beginning}'))
    return first.removeprefix('$ ')


def _whole(beginning):
    """Return the first command of the page that begins so, with all lines."""
    text = PAGE.read_text()
    return re.search(
        rf'^ +\$ ({re.escape(beginning)}(?:.*\\\n)*.*)', text, re.M
    )[1]


def _shown(beginning):
    """Return the words of this command."""
    return shlex.split(_line(beginning))


class Releaser:
    """Somebody with a clone and the environment of ``make release-check``.

    :param checkout: The clone.
    """

    def __init__(self, checkout):
        self.checkout = checkout
        (checkout / '.venv-release').symlink_to(BIN.parent)

    def types(self, *words, **options):
        """Run the commands of the page."""
        if words[0] == 'make':
            # Not to be made again, though the clone is newer.
            words += ('--old-file=.venv-release/.release',)
        name = {'GIT_COMMITTER_NAME': 'r', 'GIT_COMMITTER_EMAIL': 'r@r.test'}
        author = {'GIT_AUTHOR_NAME': 'r', 'GIT_AUTHOR_EMAIL': 'r@r.test'}
        path = {'PATH': f'{BIN}:{os.environ["PATH"]}'}
        return run(
            *words,
            cwd=self.checkout,
            env={**os.environ, **path, **name, **author},
            **options,
        )

    def built(self):
        """Return the names of what has been built."""
        return {path.name for path in (self.checkout / 'dist').iterdir()}


@pytest.fixture
def releaser(tmp_path):
    return Releaser(clone(tmp_path / 'clone'))


def test_following_the_page_builds_a_release(releaser):
    notes = releaser.types(*_shown('reno report'))
    assert '``isolate_aggregates``' in notes
    releaser.types(*_shown('git tag'))
    releaser.types(*_shown('make dist'))
    assert releaser.built() == {
        f'{package_of(name)}-0.1.0{ending}'
        for name in DISTRIBUTIONS
        for ending in ('-py3-none-any.whl', '.tar.gz')
    }
    assert _shown('reno report --version')[-1] == '0.1.0'
    told = releaser.types(*_shown('reno report --version'))
    assert '0.1.0\n=====' in told


def test_the_metadata_says_where_the_code_is_hosted(releaser, tmp_path):
    releaser.types('sh', '-c', _whole('sed --in-place'))
    releaser.types('git', 'commit', '--quiet', '--all', '-m', 'Hosted')
    releaser.types(*_shown('make dist'))
    for path in (releaser.checkout / 'dist').glob('*.whl'):
        with zipfile.ZipFile(path) as wheel:
            [name] = [n for n in wheel.namelist() if n.endswith('/METADATA')]
            metadata = email.message_from_bytes(wheel.read(name))
        assert [
            one.partition(', ')[0] for one in metadata.get_all('Project-URL')
        ] == ['Source', 'Documentation', 'Bug Tracker']


def test_after_a_release_the_version_must_be_raised(releaser):
    releaser.types(*_shown('git tag'))
    releaser.types('git', 'commit', '--quiet', '--allow-empty', '-m', 'Next')
    refused = releaser.types(*_shown('make dist'), expected=(2,))
    assert 'target version' in refused
    releaser.types('sh', '-c', _line("sed --in-place 's/"))
    releaser.types(*_shown('make dist'))
    built = releaser.built()
    assert len(built) == 6
    assert all('-0.2.0.dev1' in name for name in built)
    # They still require each other.
    told = releaser.types(
        *('uv', 'pip', 'install', '--dry-run', '--target', 'none'),
        *('--find-links', 'dist', '--pre', 'isolate-aggregates-reservations'),
    )
    assert told.count('==0.2.0.dev1') == 3, told


def test_the_constraints_are_those_of_the_releases_that_are_tested():
    files = (ROOT / 'tests' / 'release' / 'constraints').iterdir()
    script = (ROOT / 'tests' / 'release' / 'test_install.py').read_text()
    for release in (path.stem for path in files):
        assert f"'{release}': 'nova" in script


def test_the_programs_of_the_page_come_with_the_extra():
    for program in ('reno', 'twine', 'uv', 'pip-audit', 'cyclonedx-py'):
        assert pathlib.Path(tool(program)).is_file(), program
