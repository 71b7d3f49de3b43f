# SPDX-License-Identifier: Apache-2.0
"""Builds the package with pbr, also where there is no usable git history."""

import configparser
import os
import pathlib
import subprocess

from pbr import extra_files
import setuptools

# pbr asks git what belongs to the package, and takes the version from git, or
# from the PKG-INFO of an sdist. An unpacked archive of the repository and a
# checkout that git does not trust have neither: pbr would leave out all that
# is not Python code, and refuse to build. In a repository of something else it
# would take the files and the version of that. A clone of the newest commit
# alone has the files, but pbr would count from 0.0.0.
TRACKED = 'test "$(git ls-files --full-name setup.py)" = setup.py'
HISTORY = 'git describe --tags || git rev-parse --verify HEAD~1'

# What is taken from the folder where git does not say.
TREE = (
    *('.ci', '.gitignore', '.zuul.yaml'),
    'bindep.txt',
    *('LICENSE', 'Makefile', 'README.rst', 'SECURITY.rst'),
    *('devstack', 'doc', 'etc', 'examples', 'findings'),
    *('isolate_aggregates', 'pyproject.toml', 'releasenotes'),
    *('requirements.txt', 'setup.cfg', 'setup.py', 'tests', 'tools'),
)
GENERATED = {'__pycache__', '_static', 'build', 'reno.cache'}


def succeeds(command: str) -> bool:
    """Return whether a shell command succeeds."""
    finished = subprocess.run(command, shell=True, capture_output=True)  # noqa: S602
    return finished.returncode == 0


def files() -> list[str]:
    """Return the files of this folder that git would name."""
    paths = {
        path
        for name in TREE
        for path in (pathlib.Path(name), *pathlib.Path(name).rglob('*'))
    }
    return sorted(
        str(path)
        for path in paths
        if path.is_file() and not GENERATED.intersection(path.parts)
    )


is_tracked = succeeds(TRACKED)
if not os.path.exists('PKG-INFO') and not (is_tracked and succeeds(HISTORY)):
    setup = configparser.ConfigParser()
    setup.read('setup.cfg')
    version = setup['metadata']['version']
    os.environ.setdefault('PBR_VERSION', f'{version}.dev0')
if not is_tracked:
    os.environ['SKIP_GIT_SDIST'] = '1'
    os.environ['SKIP_WRITE_GIT_CHANGELOG'] = '1'
    os.environ['SKIP_GENERATE_AUTHORS'] = '1'
    os.environ['SKIP_GENERATE_RENO'] = '1'
    extra_files.set_extra_files(files())

setuptools.setup(pbr=True)
