# SPDX-License-Identifier: Apache-2.0
"""Measures the processor time of whole commands on a small cloud file.

    python tools/benchmarks/start.py [--csv FILE] [--before PROGRAM] [times]

Each command runs in a process of its own, several times; the least counts.
With ``--before`` the program of another environment and the one of this
environment run in turn.
"""

import dataclasses
import os
import pathlib
import subprocess
import sys

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


def measure(program: pathlib.Path, arguments: tuple[str, ...]) -> float:
    """Run a command; return its seconds of processor time."""
    process = subprocess.Popen(
        [program, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure and print a table."""
    parser = table.parser('times', TIMES)
    parser.add_argument(
        '--before', type=pathlib.Path, help='another isolate-aggregates'
    )
    options = parser.parse_args()
    own = pathlib.Path(sys.executable).with_name('isolate-aggregates')
    rows: list[Row | Change] = []
    for arguments in COMMANDS:
        name = ' '.join(arguments).partition(' --')[0]
        if not options.before:
            measured = [measure(own, arguments) for _ in range(options.times)]
            rows.append(Row(name, min(measured)))
            continue
        pairs = [
            (measure(options.before, arguments), measure(own, arguments))
            for _ in range(options.times)
        ]
        before, after = map(min, zip(*pairs, strict=True))
        rows.append(Change(name, before, after))
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
