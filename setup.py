# SPDX-License-Identifier: Apache-2.0
"""Builds a distribution with pbr, also where there is no usable git history.

The three distributions of the repository share this file: it builds that of
the folder in which it runs.
"""

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
TRACKED = 'git ls-files --full-name setup.py'
HISTORY = 'git describe --tags || git rev-parse --verify HEAD~1'

HIDDEN = {'.ci', '.gitignore', '.zuul.yaml'}
GENERATED = {'__pycache__', '_static', 'build', 'dist', 'reno.cache'}


def output(command: str) -> str | None:
    """Return the output of a shell command; None if it fails."""
    finished = subprocess.run(  # noqa: S602
        command, shell=True, capture_output=True, text=True
    )
    return None if finished.returncode else finished.stdout.strip()


def files() -> list[str]:
    """Return the files of this folder that belong to its distribution.

    Folders of other distributions do not; what links point to does.
    """
    names = [
        path
        for path in pathlib.Path().iterdir()
        if path.name in HIDDEN
        or (
            not path.name.startswith('.')
            and path.suffix != '.egg-info'
            and not (path / 'setup.cfg').exists()
        )
    ]
    paths = {path for name in names for path in (name, *name.rglob('*'))}
    return sorted(
        str(path)
        for path in paths
        if path.is_file() and not GENERATED.intersection(path.parts)
    )


setup = configparser.ConfigParser()
setup.read('setup.cfg')
name, version = setup['metadata']['name'], setup['metadata']['version']
is_first = name == 'isolate-aggregates'
place = 'setup.py' if is_first else f'{name}/setup.py'
is_tracked = output(TRACKED) == place
if not os.path.exists('PKG-INFO') and not (
    is_tracked and output(HISTORY) is not None
):
    os.environ.setdefault('PBR_VERSION', f'{version}.dev0')
if not (is_tracked and is_first):
    # For git a link is no folder, and of a folder it knows no authors.
    os.environ['SKIP_GIT_SDIST'] = '1'
    os.environ['SKIP_WRITE_GIT_CHANGELOG'] = '1'
    os.environ['SKIP_GENERATE_AUTHORS'] = '1'
    os.environ['SKIP_GENERATE_RENO'] = '1'
    extra_files.set_extra_files(files())

setuptools.setup(pbr=True)
