# SPDX-License-Identifier: Apache-2.0
"""Lets a benchmark import what the tests use."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / 'isolate-aggregates-tools' / 'tests'
RESERVATIONS = ROOT / 'isolate-aggregates-reservations' / 'tests'
SUPPORT = tuple(
    folder / 'support' for folder in (ROOT / 'tests', TOOLS, RESERVATIONS)
)


def use(*folders: str) -> None:
    """Make the modules of the tests importable.

    :param folders: Folders with tests, by their paths from the root.
    """
    wanted = [*(ROOT / folder for folder in folders), *SUPPORT]
    sys.path[:0] = [str(folder) for folder in wanted]
