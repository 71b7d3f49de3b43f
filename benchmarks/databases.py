# SPDX-License-Identifier: Apache-2.0
"""How long reading many aggregates takes on each kind of database.

    python benchmarks/databases.py [--csv FILE] [aggregates]

The aggregates are those of ``filters.py``, each with five hosts, in the tables
that Nova's migrations make. A MariaDB and a PostgreSQL of one's own run on
this machine; what is not installed is left out. Time is processor time of the
reader, the median of several runs, which other work disturbs least. What the
server takes is not in it, but in the time of the clock: the shortest of the
runs.
"""

import argparse
from collections.abc import Callable
import contextlib
import dataclasses
import pathlib
import statistics
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
    every_aggregate_clock: float
    every_host: float
    of_1000_hosts: float


def milliseconds(run: Callable[[], object]) -> tuple[float, float]:
    """Return processor time and time that something takes."""
    used, lasted = [], []
    for _ in range(RUNS):
        start, started = time.process_time(), time.perf_counter()
        run()
        used.append(time.process_time() - start)
        lasted.append(time.perf_counter() - started)
    return statistics.median(used) * 1000, min(lasted) * 1000


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
            *milliseconds(source.aggregates),
            milliseconds(source.hosts)[0],
            milliseconds(lambda: source.aggregates_of(HOSTS))[0],
        )


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument('aggregates', nargs='?', type=int, default=AGGREGATES)
    parser.add_argument('--csv', help='write the figures to this file too')
    options = parser.parse_args()
    rows = []
    print('database    aggregates  all, ms    clock  hosts, ms  of 1000 hosts')
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
                f'{row.every_aggregate_clock:>9.1f}{row.every_host:>11.1f}'
                f'{row.of_1000_hosts:>15.1f}',
                flush=True,
            )
            rows.append(row)
    if options.csv:
        table.write(options.csv, rows)


if __name__ == '__main__':
    main()
