# SPDX-License-Identifier: Apache-2.0
"""Prints the extras of each distribution that are for users.

With ``--requirements`` it prints what all of them and the extras require.

Makefile and tests read the extras from here, so an extra is added in one
setup.cfg alone.
"""

import configparser
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[1]
DEVELOPERS = {'doc', 'release', 'test', 'unit'}
# Their folders, by name; each requires those before it.
DISTRIBUTIONS = {
    'isolate-aggregates': ROOT,
    'isolate-aggregates-tools': ROOT / 'isolate-aggregates-tools',
    'isolate-aggregates-reservations': ROOT
    / 'isolate-aggregates-reservations',
}


def of_users(distribution: str) -> dict[str, str]:
    """Return what each extra for users asks for, by name."""
    setup = configparser.ConfigParser()
    setup.read(DISTRIBUTIONS[distribution] / 'setup.cfg')
    return {
        name: wanted
        for name, wanted in setup['extras'].items()
        if name not in DEVELOPERS
    }


def foreign() -> list[str]:
    """Return all that users may get, but for our own distributions."""
    return [
        line
        for name, folder in DISTRIBUTIONS.items()
        for text in (
            (folder / 'requirements.txt').read_text('utf-8'),
            *of_users(name).values(),
        )
        for line in text.splitlines()
        if line and not line.startswith(('#', 'isolate-aggregates'))
    ]


if __name__ == '__main__':
    if sys.argv[1:] == ['--requirements']:
        print(*foreign(), sep='\n')
    else:
        for name in sys.argv[1:] or DISTRIBUTIONS:
            print(','.join(of_users(name)))
