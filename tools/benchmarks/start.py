# SPDX-License-Identifier: Apache-2.0
"""Measures the processor time of whole commands on a small cloud file.

    python tools/benchmarks/start.py [--csv FILE] [--before PROGRAM] [times]

Each command runs in a process of its own, several times; the least counts.
Before that it runs once, so that Python has compiled what it imports, as pip
does when it installs.
With ``--before`` the program of another environment and the one of this
environment run in turn.

``candidate list`` starts a real Placement. The last row, *imports of
Placement*, is a process that only imports what this needs, none of it of this
project: what ``candidate list`` cannot go below. With ``--before`` it is
compared with ``candidate list`` of the other environment.
"""

import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile

import from_tests
import table

CLOUD = from_tests.ROOT / 'examples' / 'windows-licensing.yaml'
TIMES = 5
COMMANDS = (
    ('--version',),
    ('lock', 'list', '--snapshot', str(CLOUD)),
    ('explain', '--flavor', 'm1.large', '--snapshot', str(CLOUD)),
    ('candidate', 'list', '--flavor', 'm1.large', '--snapshot', str(CLOUD)),
)
# What isolate_aggregates_tools.embedded imports.
IMPORTS = """
from keystoneauth1 import adapter, session, token_endpoint
from oslo_config import cfg
from oslo_db.sqlalchemy import enginefacade
from placement import conf, db_api, deploy, policy
from placement.db.sqlalchemy import migration
from placement.objects import resource_class, trait
from wsgi_intercept import interceptor
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """Seconds of processor time of a command."""

    command: str
    seconds: float


@dataclasses.dataclass(frozen=True)
class Change:
    """Seconds of processor time of a command, by program."""

    command: str
    before: float
    seconds: float

    @property
    def of_before(self) -> float:
        """The share of the time before."""
        return self.seconds / self.before


def measure(
    program: pathlib.Path, arguments: tuple[str, ...], compiled: str
) -> float:
    """Run a command that succeeds; return its seconds of processor time.

    :param compiled: A folder for what Python compiles.
    """
    environment = {**os.environ, 'PYTHONPYCACHEPREFIX': compiled}
    environment.pop('PYTHONDONTWRITEBYTECODE', None)
    process = subprocess.Popen(
        [program, *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f'{program} {" ".join(arguments)} failed')
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure and print a table."""
    parser = table.parser('times', TIMES)
    parser.add_argument(
        '--before', type=pathlib.Path, help='another isolate-aggregates'
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as compiled:
        rows = compare(options.before, options.times, compiled)
    table.report(rows, options.csv)


def compare(
    other_program: pathlib.Path | None, times: int, compiled: str
) -> list[Row | Change]:
    """Measure each command, with that of another environment in turn.

    :param compiled: As for :func:`measure`.
    """
    own = pathlib.Path(sys.executable).with_name('isolate-aggregates')
    python = pathlib.Path(sys.executable)
    runs = [
        (' '.join(arguments).partition(' --')[0], own, arguments, arguments)
        for arguments in COMMANDS
    ]
    runs.append(
        ('imports of Placement', python, ('-c', IMPORTS), COMMANDS[-1])
    )
    rows: list[Row | Change] = []
    for name, program, arguments, other in runs:
        turns = [(program, arguments)]
        if other_program:
            turns.insert(0, (other_program, other))
        for turn in turns:
            measure(*turn, compiled)
        measured = [
            [measure(*turn, compiled) for turn in turns] for _ in range(times)
        ]
        least = [min(each) for each in zip(*measured, strict=True)]
        rows.append(
            Change(name, *least) if other_program else Row(name, *least)
        )
    return rows


if __name__ == '__main__':
    main()
