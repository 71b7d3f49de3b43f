# SPDX-License-Identifier: Apache-2.0
"""Counts the staged incidents whose cause is known from the log.

    python tools/benchmarks/incidents.py [--csv FILE]

Runs the tests of records, ``tests/nova_functional/test_records*.py``: each
stages an incident on a real nova-scheduler and fails if the record does not
name its cause. Takes some ten minutes.

told
    Of these incidents, those whose cause the line told that nova-scheduler
    logged before there were records (``tests/nova_functional/former_log.py``).
cut
    Those whose line was longer than 300 characters, and was cut.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import from_tests
import table

FOLDER = from_tests.ROOT / 'tests' / 'nova_functional'


@dataclasses.dataclass(frozen=True)
class Row:
    """The number of incidents with a cause, which all records name."""

    cause: str
    incidents: int
    told: int
    cut: int


def stage(path: pathlib.Path) -> None:
    """Run the tests, which write into a file what the line told."""
    subprocess.run(
        [
            *(sys.executable, '-m', 'pytest', '-q', '--timeout=0'),
            *('-p', 'no:cacheprovider', f'--confcutdir={FOLDER}'),
            *sorted(map(str, FOLDER.glob('test_records*.py'))),
        ],
        cwd=from_tests.ROOT,
        env={**os.environ, 'FORMER_LOG': str(path)},
        stdout=sys.stderr,
        check=True,
    )


def count(path: pathlib.Path) -> list[Row]:
    """Return the sums of the incidents, of which each counts once."""
    incidents = {}
    for line in path.read_text('utf-8').splitlines():
        found = json.loads(line)
        incidents.setdefault(found['test'], found)
    by_cause = collections.defaultdict(list)
    for found in incidents.values():
        by_cause[found['cause']].append(found)
    by_cause['all'] = list(incidents.values())
    return [
        Row(
            cause,
            len(some),
            sum(found['told'] for found in some),
            sum(found['line'].endswith('...') for found in some),
        )
        for cause, some in sorted(
            by_cause.items(), key=lambda item: (item[0] == 'all', item[0])
        )
    ]


def main() -> None:
    """Count and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--csv', type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / 'incidents'
        stage(path)
        table.report(count(path), options.csv)


if __name__ == '__main__':
    main()
