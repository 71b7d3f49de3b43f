# SPDX-License-Identifier: Apache-2.0
"""The figures of "Large clouds" are those that the benchmark has written."""

import csv
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def measured():
    """Yield the rows of the table as they have to be."""
    path = ROOT / 'benchmarks/results/verification.csv'
    for row in csv.DictReader(path.open(encoding='utf-8')):
        questions = [row[k] for k in ('first', 'minute', 'minute_keys')]
        waits = [
            f'{float(row[key]) / 1000:g} s'
            for key in ('wait', 'wait_hanging', 'wait_later')
        ]
        yield [f'{int(row["aggregates"]):,}', *questions, row['lease'], *waits]


def test_the_table_has_what_was_measured():
    page = ROOT / 'doc/source/admin/large-clouds.rst'
    text = page.read_text(encoding='utf-8')
    _, _, after = text.partition('(``benchmarks/verification.py``)')
    table, _, _ = after.partition('\nEach aggregate')
    cells = re.findall(r'^   [* ] - (.*)$', table, re.MULTILINE)
    rows = [cells[i : i + 8] for i in range(0, len(cells), 8)]
    assert rows[1:] == list(measured())
