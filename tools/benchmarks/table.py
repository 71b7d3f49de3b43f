# SPDX-License-Identifier: Apache-2.0
"""Prints benchmark results, and writes them to a file."""

import argparse
from collections.abc import Callable, Sequence
import csv
import dataclasses
import multiprocessing
import pathlib
import sys
from typing import Any

import prettytable


def parser(name: str, default: int | Sequence[int]) -> argparse.ArgumentParser:
    """Return the argument parser of a benchmark.

    :param name: The name of the argument with one or several numbers.
    :param default: The default number or numbers.
    """
    made = argparse.ArgumentParser()
    made.add_argument(
        name,
        type=int,
        nargs='?' if isinstance(default, int) else '*',
        default=default,
    )
    made.add_argument('--csv', help='write the figures to this file too')
    return made


def report(rows: Sequence[Any], path: str | None) -> None:
    """Print rows below the first line of their docstring, and write them.

    Properties are printed as well.

    :param rows: Values of one dataclass, at least one.
    :param path: The file; None for none.
    """
    kind = type(rows[0])
    heads = [field.name for field in dataclasses.fields(kind)]
    heads += [
        name
        for name, value in vars(kind).items()
        if isinstance(value, property)
    ]
    shown = prettytable.PrettyTable([head.replace('_', ' ') for head in heads])
    shown.align = 'r'
    for row in rows:
        cells = [_rounded(getattr(row, head)) for head in heads]
        shown.add_row([_shown(cell) for cell in cells])
    print(kind.__doc__.partition('\n')[0])
    print(shown)
    if path:
        write(path, rows)


def write(path: str | pathlib.Path, rows: Sequence[Any]) -> None:
    """Write rows as CSV, with significant digits only.

    :param path: The file.
    :param rows: Values of one dataclass, at least one.
    """
    with open(path, 'w', newline='', encoding='utf-8') as stream:
        writer = csv.writer(stream, lineterminator='\n')
        writer.writerow(field.name for field in dataclasses.fields(rows[0]))
        writer.writerows(
            map(_rounded, dataclasses.astuple(row)) for row in rows
        )


def _rounded(value: Any) -> Any:
    return float(f'{value:.4g}') if isinstance(value, float) else value


def _shown(cell: Any) -> str:
    return f'{cell:,}' if isinstance(cell, int | float) else str(cell or '-')


def measure_apart(
    about: str | None,
    name: str,
    sizes: Sequence[int],
    measure: Callable[..., dict[str, object]],
    fields: Sequence[str],
    kinds: Sequence[str] = (),
) -> None:
    """Measure each size in a process of its own; print and write the rows.

    So the peak of the memory is that of one measurement.

    :param about: The docstring of the benchmark.
    :param name: The name of the argument with the sizes.
    :param measure: Returns a row for a size and, if there are any, for each of
        ``kinds``.
    """
    made = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawTextHelpFormatter
    )
    made.add_argument(name, nargs='*', type=int, default=list(sizes))
    made.add_argument('--csv', type=pathlib.Path)
    arguments = made.parse_args()
    rows = []
    for size in getattr(arguments, name):
        for kind in [[each] for each in kinds] or [[]]:
            with multiprocessing.Pool(1) as pool:
                rows.append(pool.apply(measure, [size, *kind]))
            sys.stdout.write(f'{rows[-1]}\n')
    if arguments.csv:
        with arguments.csv.open('w', newline='', encoding='utf-8') as stream:
            writer = csv.DictWriter(stream, fields, lineterminator='\n')
            writer.writeheader()
            writer.writerows(rows)
