# SPDX-License-Identifier: Apache-2.0
"""Builds the package with pbr, also where there is no usable git history."""

import os
import pathlib
import subprocess

import setuptools

_HERE = pathlib.Path(__file__).parent


def _git_works() -> bool:
    try:
        done = subprocess.run(  # noqa: S603
            ['git', 'rev-parse', '--verify', 'HEAD'],  # noqa: S607
            cwd=_HERE,
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0


# pbr takes the version from git, or from the PKG-INFO of an sdist. An
# unpacked archive of the repository, or a checkout that git does not trust,
# has neither, and pbr would refuse to build.
if not (_HERE / 'PKG-INFO').exists() and not _git_works():
    os.environ.setdefault('PBR_VERSION', '0.1.0.dev0')

setuptools.setup(setup_requires=['pbr>=6.0.0'], pbr=True)
