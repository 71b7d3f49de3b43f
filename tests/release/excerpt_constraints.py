# SPDX-License-Identifier: Apache-2.0
"""Keeps of OpenStack's upper constraints what is installed beside Nova.

Reads them from standard input and prints the lines of packages that Nova or
isolate-aggregates require::

    curl -L https://releases.openstack.org/constraints/upper/2025.1 |
        python tests/release/excerpt_constraints.py 'nova<32'
"""

import pathlib
import sys
import tempfile

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from releasing import ROOT, run, tool

EXTRAS = 'embedded,metrics,osc,testing'


def _name(line: str) -> str:
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return ''


def main() -> None:
    """Resolve with all constraints, and print those that took part."""
    constraints = sys.stdin.read()
    with tempfile.TemporaryDirectory() as directory:
        full = pathlib.Path(directory, 'constraints.txt')
        full.write_text(constraints)
        wanted = pathlib.Path(directory, 'wanted.in')
        wanted.write_text(
            f'{sys.argv[1]}\nisolate-aggregates[{EXTRAS}] @ {ROOT.as_uri()}\n'
        )
        compiled = run(
            *(tool('uv'), 'pip', 'compile', '--quiet', '--no-header'),
            *('--no-annotate', '--python', sys.executable),
            *('--constraints', full, wanted),
        )
    used = {_name(line) for line in compiled.splitlines()}
    for line in constraints.splitlines():
        if _name(line) in used - {''}:
            print(line)


if __name__ == '__main__':
    main()
