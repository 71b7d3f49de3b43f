# SPDX-License-Identifier: Apache-2.0
"""Prints the extras for users, as setup.cfg has them.

Makefile and tests read the list from here, so an extra is added in setup.cfg
alone.
"""

import configparser
import pathlib

DEVELOPERS = {'doc', 'release', 'test', 'unit'}


def of_users() -> dict[str, str]:
    """Return what each extra for users asks for, by name."""
    setup = configparser.ConfigParser()
    setup.read(pathlib.Path(__file__).parents[1] / 'setup.cfg')
    return {
        name: wanted
        for name, wanted in setup['extras'].items()
        if name not in DEVELOPERS
    }


if __name__ == '__main__':
    print(','.join(of_users()))
