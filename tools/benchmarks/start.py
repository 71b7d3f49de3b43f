# SPDX-License-Identifier: Apache-2.0
"""Measures what whole commands on a small cloud file cost a processor.

    python tools/benchmarks/start.py [--csv FILE] [--before PROGRAM]
        [--instructions] [times]

Each command runs in a process of its own, several times; the least time
counts. Before that it runs once, so that Python has compiled what it imports,
as pip does when it installs.
With ``--before`` the program of another environment and the one of this
environment run in turn.
With ``--instructions`` valgrind counts billions of instructions instead, once.
They are the same within a thousandth on a machine with other load, where the
time of one and the same command may double. It is a package of Debian.

``candidate list`` starts a real Placement. The last row, *imports of
Placement*, is a process that only imports what this needs, none of it of this
project: what ``candidate list`` cannot go below. With ``--before`` it is
compared with ``candidate list`` of the other environment.
"""

from collections.abc import Callable
import dataclasses
import os
import pathlib
import re
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
    """Seconds of processor time, or instructions, of a command."""

    command: str
    amount: float


@dataclasses.dataclass(frozen=True)
class Change:
    """Seconds of processor time, or instructions, by program."""

    command: str
    before: float
    amount: float

    @property
    def of_before(self) -> float:
        """The share of what it took before."""
        return self.amount / self.before


def _environment(compiled: str) -> dict[str, str]:
    environment = {**os.environ, 'PYTHONPYCACHEPREFIX': compiled}
    environment.pop('PYTHONDONTWRITEBYTECODE', None)
    return environment


def measure(
    program: pathlib.Path, arguments: tuple[str, ...], compiled: str
) -> float:
    """Run a command that succeeds; return its seconds of processor time.

    :param compiled: A folder for what Python compiles.
    """
    process = subprocess.Popen(
        [program, *arguments],
        env=_environment(compiled),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f'{program} {" ".join(arguments)} failed')
    return usage.ru_utime + usage.ru_stime


def count(
    program: pathlib.Path, arguments: tuple[str, ...], compiled: str
) -> float:
    """Run a command; return its billions of instructions.

    :param compiled: As for :func:`measure`.
    """
    told = subprocess.run(
        [
            *('valgrind', '--tool=cachegrind', '--cache-sim=no'),
            '--cachegrind-out-file=/dev/null',
            # Python's, as a script only names it.
            program.with_name('python'),
            *((program,) if program.name != 'python' else ()),
            *arguments,
        ],
        env={**_environment(compiled), 'PYTHONHASHSEED': '0'},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    ).stderr
    [number] = re.findall(r'I +refs: +([\d,]+)', told)
    return int(number.replace(',', '')) / 1e9


def main() -> None:
    """Measure and print a table."""
    parser = table.parser('times', TIMES)
    parser.add_argument(
        '--before', type=pathlib.Path, help='another isolate-aggregates'
    )
    parser.add_argument(
        '--instructions',
        action='store_true',
        help='count instructions instead of time; needs valgrind',
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as compiled:
        rows = compare(
            options.before,
            1 if options.instructions else options.times,
            compiled,
            count if options.instructions else measure,
        )
    table.report(rows, options.csv)


def compare(
    other_program: pathlib.Path | None,
    times: int,
    compiled: str,
    cost: Callable[[pathlib.Path, tuple[str, ...], str], float] = measure,
) -> list[Row | Change]:
    """Measure each command, with that of another environment in turn.

    :param compiled: As for :func:`measure`.
    :param cost: What to measure.
    """
    own = pathlib.Path(sys.executable).with_name('isolate-aggregates')
    python = own.with_name('python')
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
            [cost(*turn, compiled) for turn in turns] for _ in range(times)
        ]
        least = [min(each) for each in zip(*measured, strict=True)]
        rows.append(
            Change(name, *least) if other_program else Row(name, *least)
        )
    return rows


if __name__ == '__main__':
    main()
