# SPDX-License-Identifier: Apache-2.0
"""How long reading many aggregates takes on each kind of database.

    python benchmarks/databases.py [--csv FILE] [aggregates]

The aggregates are those of ``filters.py``, each with five hosts, in the tables
that Nova's migrations make. A MariaDB and a PostgreSQL of one's own run on
this machine; what is not installed is left out. Time is that of a clock, as
the server takes part of it in another process: the shortest of several runs.
"""

import argparse
from collections.abc import Callable
import contextlib
import dataclasses
import pathlib
import sys
import tempfile
import time

from filters import fill
from nova import objects
import table

ROOT = pathlib.Path(__file__).parents[1]
sys.path.append(str(ROOT / 'tests' / 'databases'))

objects.register_all()

from nova_database import KINDS, NovaDatabase  # noqa: E402

AGGREGATES = 10_000
RUNS = 15
# Nova gives the host filters all candidates at once, at most so many.
HOSTS = [f'host-{number}' for number in range(1000)]


@dataclasses.dataclass(frozen=True)
class Row:
    """Milliseconds with one kind of database."""

    database: str
    aggregates: int
    every_aggregate: float
    every_host: float
    of_1000_hosts: float


def milliseconds(run: Callable[[], object]) -> float:
    """Return the shortest time that something has taken."""
    found = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found) * 1000


def measure(kind: str, number: int, folder: pathlib.Path) -> Row:
    """Measure with one kind of database."""
    database = NovaDatabase(kind, folder / kind, KINDS[kind])
    with contextlib.closing(database), database.in_use():
        fill(number)
        source = database.source()
        assert len(source.aggregates()) == number
        return Row(
            kind,
            number,
            milliseconds(source.aggregates),
            milliseconds(source.hosts),
            milliseconds(lambda: source.aggregates_of(HOSTS)),
        )


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument('aggregates', nargs='?', type=int, default=AGGREGATES)
    parser.add_argument('--csv', help='write the figures to this file too')
    options = parser.parse_args()
    rows = []
    print('database    aggregates  all, ms  hosts, ms  of 1000 hosts, ms')
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        for kind, server in KINDS.items():
            if server is not None and not server.is_installed():
                print(f'{kind:<12}not installed')
                continue
            row = measure(kind, options.aggregates, folder)
            print(
                f'{kind:<12}{row.aggregates:>10}{row.every_aggregate:>9.1f}'
                f'{row.every_host:>11.1f}{row.of_1000_hosts:>19.1f}',
                flush=True,
            )
            rows.append(row)
    if options.csv:
        table.write(options.csv, rows)


if __name__ == '__main__':
    main()
