# SPDX-License-Identifier: Apache-2.0
"""Builds the package with pbr, also where there is no usable git history."""

import os
import pathlib
import subprocess

import setuptools

_HERE = pathlib.Path(__file__).parent


def _git(*arguments: str) -> str:
    """Return what git prints; nothing if it is missing or fails."""
    try:
        done = subprocess.run(  # noqa: S603
            ['git', *arguments],  # noqa: S607
            cwd=_HERE,
            capture_output=True,
            check=False,
            text=True,
        )
    except OSError:
        return ''
    return done.stdout.strip() if done.returncode == 0 else ''


def _git_knows_version() -> bool:
    return bool(
        _git('describe', '--tags')
        or _git('rev-list', '--count', 'HEAD') not in ('', '1')
    )


# pbr takes the version from git, or from the PKG-INFO of an sdist. An
# unpacked archive of the repository, a checkout that git does not trust and a
# clone of the newest commit alone have neither: pbr would refuse to build, or
# count from 0.0.0.
if not (_HERE / 'PKG-INFO').exists() and not _git_knows_version():
    os.environ.setdefault('PBR_VERSION', '0.1.0.dev0')

setuptools.setup(setup_requires=['pbr>=6.0.0'], pbr=True)
