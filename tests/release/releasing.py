# SPDX-License-Identifier: Apache-2.0
"""Building, as a release is built, and the programs it takes."""

import os
import pathlib
import runpy
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
_FOUND = runpy.run_path(str(ROOT / 'tools' / 'extras.py'))
# The folders of the distributions below the root, by name.
DISTRIBUTIONS = {
    name: folder.relative_to(ROOT)
    for name, folder in _FOUND['DISTRIBUTIONS'].items()
}
# What each extra for users asks for, by distribution and name.
EXTRAS = {name: _FOUND['of_users'](name) for name in DISTRIBUTIONS}


def package_of(distribution):
    """Return the name of the package of a distribution."""
    return distribution.replace('-', '_')


def run(*command, expected=(0,), **options):
    """Run a program; if it fails, the error has its output."""
    result = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    assert result.returncode in expected, f'{command}: {result.stdout}'
    return result.stdout


def tool(name):
    """Return the path of a program that the extra ``release`` brings."""
    return str(pathlib.Path(sys.executable).with_name(name))


def build(checkout, into, *what):
    """Build as a release is built, with the time of the commit."""
    epoch = run('git', 'log', '-1', '--format=%ct', cwd=ROOT).strip()
    run(
        *(sys.executable, '-m', 'build', '--installer', 'uv', *what),
        *('--outdir', into, checkout),
        env={
            **os.environ,
            'PATH': f'{pathlib.Path(sys.executable).parent}:/usr/bin:/bin',
            'SOURCE_DATE_EPOCH': epoch,
        },
    )


def clone(into):
    """Clone the committed state: a release has nothing else."""
    run('git', 'clone', '--quiet', ROOT, into)
    return into
