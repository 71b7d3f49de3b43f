# SPDX-License-Identifier: Apache-2.0
"""Keeps what was measured in a file."""

import csv
import dataclasses
import pathlib
from typing import Any


def write(path: str | pathlib.Path, rows: list[Any]) -> None:
    """Write rows as CSV, with as many digits as mean anything.

    :param path: The file.
    :param rows: Values of one dataclass, at least one.
    """
    with open(path, 'w', newline='', encoding='utf-8') as stream:
        writer = csv.writer(stream, lineterminator='\n')
        writer.writerow(f.name for f in dataclasses.fields(rows[0]))
        for row in rows:
            writer.writerow(
                float(f'{value:.4g}') if isinstance(value, float) else value
                for value in dataclasses.astuple(row)
            )
