# SPDX-License-Identifier: Apache-2.0
"""Keeps of OpenStack's lists of requirements what concerns this package.

Reads upper constraints from standard input and prints the lines of packages
that Nova or isolate-aggregates require::

    curl -L https://releases.openstack.org/constraints/upper/2025.1 |
        python tests/release/excerpt_constraints.py 'nova<32'

Without Nova it reads the global requirements and prints the names of those
that a requirements.txt of ours names::

    python tests/release/excerpt_constraints.py < global-requirements.txt
"""

import pathlib
import sys
import tempfile

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from releasing import DISTRIBUTIONS, ROOT, run, tool

EXTRAS = 'embedded,metrics,osc,testing'


def _name(line):
    try:
        return canonicalize_name(Requirement(line.partition('#')[0]).name)
    except InvalidRequirement:
        return ''


def main():
    """Print what concerns this package."""
    if sys.argv[1:]:
        _constraints(sys.argv[1], sys.stdin.read())
        return
    names = {
        _name(line.strip())
        for place in DISTRIBUTIONS.values()
        for line in (ROOT / place / 'requirements.txt')
        .read_text()
        .splitlines()
    }
    for name in sorted(names & {_name(line) for line in sys.stdin} - {''}):
        print(name)


def _constraints(nova, constraints):
    """Resolve with all constraints, and print those that took part."""
    with tempfile.TemporaryDirectory() as directory:
        full = pathlib.Path(directory, 'constraints.txt')
        full.write_text(constraints)
        folder = pathlib.Path(directory, 'wanted.in')
        folder.write_text(
            f'{nova}\nisolate-aggregates @ {ROOT.as_uri()}\n'
            f'isolate-aggregates-tools[{EXTRAS}] @ '
            f'{(ROOT / "isolate-aggregates-tools").as_uri()}\n'
        )
        compiled = run(
            *(tool('uv'), 'pip', 'compile', '--quiet', '--no-header'),
            *('--no-annotate', '--python', sys.executable),
            *('--constraints', full, folder),
        )
    used = {_name(line) for line in compiled.splitlines()}
    for line in constraints.splitlines():
        if _name(line) in used - {''}:
            print(line)


if __name__ == '__main__':
    main()
