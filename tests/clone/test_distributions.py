# SPDX-License-Identifier: Apache-2.0
"""The program works as built by everyone, with git and without.

The build tools are those of the environment of these tests, and so are the
packages that the program needs.
"""

import csv
import email
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

from cases import cases
from pages import ROOT

# What was made in a clone, and folders of tools, which begin with a dot.
LEFT_OUT = (
    *('.git', '.venv*', '.cloud*', '.*_cache', '.hypothesis', '.tox', '.eggs'),
    *('__pycache__', 'build', 'dist', '*.egg-info', '.coverage*', 'htmlcov'),
    *('AUTHORS', 'ChangeLog', 'PKG-INFO', 'reno.cache', 'report.html'),
    '_static',
)
# What setuptools, pbr and reno write into a source distribution.
GENERATED = {
    *('AUTHORS', 'ChangeLog', 'PKG-INFO', 'RELEASENOTES.rst'),
    'releasenotes/notes/reno.cache',
}
PYTHONS = ROOT / 'doc' / 'source' / 'reference' / 'pythons.csv'
EXAMPLE = ROOT / 'examples' / 'windows-licensing.yaml'

ENVIRONMENT = {
    **{
        name: value
        for name, value in os.environ.items()
        if not name.startswith(('GIT_', 'OS_', 'PBR_', 'PYTHON', 'SKIP_'))
    },
    # No directory is trusted because of the user's configuration.
    'GIT_CONFIG_GLOBAL': os.devnull,
    'GIT_CONFIG_NOSYSTEM': '1',
    'GIT_AUTHOR_NAME': 'Somebody',
    'GIT_AUTHOR_EMAIL': 'somebody@example.org',
    'GIT_COMMITTER_NAME': 'Somebody',
    'GIT_COMMITTER_EMAIL': 'somebody@example.org',
}
# As if another user owned the clone.
UNTRUSTED = {'GIT_TEST_ASSUME_DIFFERENT_OWNER': '1'}
# The folders of the distributions, by their packages.
DISTRIBUTIONS = {
    'isolate_aggregates': '.',
    'isolate_aggregates_tools': 'isolate-aggregates-tools',
    'isolate_aggregates_reservations': 'isolate-aggregates-reservations',
}
BUILD_SDIST = """\
import sys
sys.path[:0] = ['tools', '.']
import reproducible
reproducible.build_sdist(sys.argv[1])
"""


def execute(*command, cwd, **variables):
    """Return the output of a program that must succeed."""
    result = subprocess.run(
        command,
        cwd=cwd,
        env={**ENVIRONMENT, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def commit(folder):
    """Make a repository of a folder."""
    execute('git', 'init', '--quiet', cwd=folder)
    execute('git', 'add', '--all', cwd=folder)
    execute('git', 'commit', '--quiet', '--message', 'All', cwd=folder)


def archive(folder):
    """Unpack an archive of the repository, committed or not."""
    tree = folder / 'isolate-aggregates'
    shutil.copytree(
        ROOT, tree, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT)
    )
    return tree


def clone(folder):
    tree = archive(folder)
    commit(tree)
    return tree


def archive_in_another_repository(folder):
    (folder / 'module.py').touch()
    commit(folder)
    execute('git', 'tag', '7.0.0', cwd=folder)
    return archive(folder)


def archive_committed_to_another_repository(folder):
    tree = archive(folder)
    commit(folder)
    execute('git', 'tag', '7.0.0', cwd=folder)
    return tree


def build_sdist(folder, out, **variables):
    execute(sys.executable, '-c', BUILD_SDIST, out, cwd=folder, **variables)
    [path] = out.glob('*.tar.gz')
    return path


def build_wheel(folder, out, **variables):
    execute(
        *(sys.executable, '-m', 'pip', 'wheel', '--quiet', '--no-deps'),
        *('--no-build-isolation', '--no-index', '--wheel-dir', out, '.'),
        cwd=folder,
        **variables,
    )
    [path] = out.glob('*.whl')
    return path


def files_of(folder):
    """Return what is in a folder of a distribution, and behind its links.

    Neither git's own files nor other distributions belong to it.
    """
    found = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        here = pathlib.Path(place).relative_to(folder)
        if here == pathlib.Path():
            folders[:] = [
                name
                for name in folders
                if name != '.git' and name not in DISTRIBUTIONS.values()
            ]
        found |= {str(here / name) for name in names}
    return found


def shared_files():
    """Return the names below share/ of what the pages refer to."""
    examples = EXAMPLE.parent
    names = {
        f'examples/{path.relative_to(examples)}'
        for pattern in (
            '*.yaml',
            '*.jsonl',
            'decisions/*',
            'expectations/*.yaml',
        )
        for path in examples.glob(pattern)
    }
    for folder in ('container', 'deployment', 'grafana', 'prometheus'):
        names |= {
            str(path.relative_to(ROOT / 'etc'))
            for path in (ROOT / 'etc' / folder).rglob('*')
            if path.is_file()
        }
    units = (ROOT / 'etc' / 'systemd').iterdir()
    return names | {f'systemd/{path.name}' for path in units}


def check_metadata(metadata):
    """An index says what it runs with, and how far it is."""
    classifiers = metadata.get_all('Classifier')
    with PYTHONS.open(newline='') as file:
        tried = {
            row['Python'] for row in csv.DictReader(file) if row['Passed']
        }
    named = [
        end
        for one in classifiers
        if re.fullmatch(r'3\.\d+', end := one.rpartition(' ')[2])
    ]
    assert named == sorted(tried)
    assert metadata['Requires-Python'] == f'>={named[0]}'
    [status] = [one for one in classifiers if 'Development Status' in one]
    assert status == 'Development Status :: 3 - Alpha'
    assert {'Environment :: OpenStack', 'Typing :: Typed'} < {*classifiers}
    assert metadata['License'] == 'Apache-2.0'
    assert metadata['Description-Content-Type'].startswith('text/x-rst')


@cases(
    ('make_tree', 'variables', 'by_sdist'),
    {
        'clone': (clone, {}, False),
        'clone and sdist': (clone, {}, True),
        'untrusted clone': (clone, UNTRUSTED, False),
        'archive': (archive, {}, False),
        'archive and sdist': (archive, {}, True),
        'archive in another repository': (
            archive_in_another_repository,
            {},
            False,
        ),
        'archive committed to another repository': (
            archive_committed_to_another_repository,
            {},
            False,
        ),
    },
)
def test_the_installed_program_works(make_tree, variables, by_sdist, tmp_path):
    tree = make_tree(tmp_path)
    wheels, shared = [], set()
    for package, place in DISTRIBUTIONS.items():
        folder, out = tree / place, tmp_path / 'dist' / package
        expected = files_of(folder)
        if by_sdist:
            sdist = build_sdist(folder, out, **variables)
            unpacked = tmp_path / 'unpacked' / package
            unpacked.mkdir(parents=True)
            execute('tar', '-xf', sdist, cwd=unpacked)
            [folder] = unpacked.iterdir()
            sources = {
                name
                for name in files_of(folder) - GENERATED
                if not name.startswith(f'{package}.egg-info/')
            }
            assert sources == expected - {'.gitignore'}
        wheel = build_wheel(folder, out, **variables)
        wheels.append(wheel)
        # Not the version of the other repository.
        assert wheel.name.startswith(f'{package}-0.')
        with zipfile.ZipFile(wheel) as opened:
            names = opened.namelist()
            [metadata] = [n for n in names if n.endswith('/METADATA')]
            check_metadata(email.message_from_bytes(opened.read(metadata)))
        shared |= {
            name.partition('/share/isolate-aggregates/')[2]
            for name in names
            if '/share/isolate-aggregates/' in name
        }
        assert {
            name
            for name in names
            if not name.partition('/')[0].endswith(('.data', '.dist-info'))
        } == {name for name in expected if name.startswith(f'{package}/')}
    assert shared == shared_files()

    site = tmp_path / 'site'
    execute(
        *(sys.executable, '-m', 'pip', 'install', '--quiet', '--no-deps'),
        *('--no-index', '--target', site, *wheels),
        cwd=tmp_path,
    )
    installed = {'PYTHONPATH': str(site), 'COLUMNS': '200'}
    for package in DISTRIBUTIONS:
        imported = execute(
            *(sys.executable, '-c'),
            f'import {package}; print({package}.__file__)',
            cwd=tmp_path,
            **installed,
        )
        assert imported.startswith(str(site))
    program = site / 'bin' / 'isolate-aggregates'
    locks = execute(
        *(program, 'lock', 'list', '--snapshot', EXAMPLE),
        cwd=tmp_path,
        **installed,
    )
    assert 'CUSTOM_LICENSED_WINDOWS' in locks
    page = tmp_path / 'page.html'
    execute(
        *(program, 'report', 'save', '--snapshot', EXAMPLE, '--output', page),
        cwd=tmp_path,
        **installed,
    )
    text = page.read_text('utf-8')
    for part in ('<style>', '<script'):
        assert part in text
