# SPDX-License-Identifier: Apache-2.0
"""Makes lines and tables with many columns fit the terminal.

Lines are folded between words; a word that is too long has a line of its own.
So are the cells of a table, of which cliff would break the words; columns that
do not fit so follow in further tables. Only a word that does not fit
beside the first column is broken, between its parts if it has some.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
import logging
import re
import shutil
import sys
from typing import Any, TextIO

from cliff import columns

_WORD = re.compile(r'\s*\S+')
# A word of a shell command, which may have single quotes.
_SHELL_WORD = re.compile(r"\s*(?:[^\s']|'[^']*')+")
_PARAMETER = re.compile(r'\s*&?[^&]+')
_VALUE = re.compile('(?:(?!%2C).)+(?:%2C)?')
_HANGING = '  '
# Where a word that is too long is broken, if it has one.
_JOINT = re.compile('[-_./]')
# The width of the borders of a table: per column, and in addition.
_BESIDE, _ONCE = 3, 1
# What a cell is folded between: words, and the parts of ``key:name=value``.
# URLs and times stay whole.
_PIECE = re.compile(
    r'\s*(?:[a-z]+://\S+|(?:[^\s:=]|(?<=\d):(?=\d))+[:=]?|[:=])'
)

Row = Sequence[Any]


class Shell(str):
    """A line with commands that can be pasted even when it is folded."""

    __slots__ = ()


class Query(str):
    """A query string, which is folded between parameters, not at blanks."""

    __slots__ = ()


_WORDS = {Shell: _SHELL_WORD, Query: _PARAMETER}


class Formatter(logging.Formatter):
    """Folds log messages to the width of the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return folded(super().format(record))


def is_attended(*streams: TextIO | None) -> bool:
    """Return whether all streams are connected to a terminal."""
    return all(stream is not None and stream.isatty() for stream in streams)


def folded(text: str, width: int | None = None) -> str:
    """Fold the lines of a text; words that are too long stay whole.

    :param width: The width to fit; None for that of the terminal.
    """
    width = width or shutil.get_terminal_size().columns
    return '\n'.join(
        _folded(line, width, type(text)) for line in text.split('\n')
    )


def _folded(line: str, width: int, kind: type[str]) -> str:
    if len(line) <= width:
        return line
    # Each word with the blanks before it.
    words = _WORDS.get(kind, _WORD).findall(line)
    end = ' \\' if kind is Shell else ''
    indent = line[: len(line) - len(line.lstrip())]
    if kind is Query:
        room = width - len(indent + _HANGING)
        words = [
            part
            for word in words
            for part in (_VALUE.findall(word) if len(word) > room else [word])
        ]
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + len(end) <= width:
            lines[-1] += word
        else:
            lines.append(f'{indent}{_HANGING}{word.lstrip()}')
    return f'{end}\n'.join(lines)


class Tables:
    """A formatter for cliff that splits tables with too many columns."""

    def __init__(self, formatter: Any, width: int | None = None) -> None:
        self._formatter = formatter
        self._width = width or shutil.get_terminal_size().columns

    def emit_one(
        self,
        column_names: Sequence[str],
        data: Row,
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Write fields and values as a table."""
        rows = [
            (name, _text(cell))
            for name, cell in zip(column_names, data, strict=True)
        ]
        self.emit_list(('Field', 'Value'), rows, stdout, parsed_args)

    def emit_list(
        self,
        column_names: Sequence[str],
        data: Iterable[Row],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Write the rows as one or more tables."""
        rows = [*data]
        texts = [[_text(cell) for cell in row] for row in rows]
        # cliff leaves the widths as they are.
        unlimited = argparse.Namespace(
            **{**vars(parsed_args), 'max_width': sys.maxsize}
        )
        parts = _parts(column_names, texts, self._width)
        for number, part in enumerate(parts):
            if number:
                stdout.write('\n')
            names = [column_names[at] for at in part]
            cells = [[row[at] for at in part] for row in texts]
            widths = _fitting(names, cells, self._width)
            wrapped: list[list[Any]] = [
                [*map(_wrapped, row, widths)] for row in cells
            ]
            # cliff aligns numbers.
            for row, shown in zip(rows, wrapped, strict=True):
                for place, at in enumerate(part):
                    if isinstance(row[at], int | float):
                        shown[place] = row[at]
            self._formatter.emit_list(names, wrapped, stdout, unlimited)


def _text(cell: Any) -> str:
    if isinstance(cell, columns.FormattableColumn):
        cell = cell.human_readable()
    return str(cell)


def _parts(
    names: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> Iterator[Sequence[int]]:
    """Yield the indexes of the columns of each table.

    Each table repeats as many of the first columns as tell the rows apart, if
    that leaves room for each of the others.
    """
    everything = range(len(names))
    least = _least(names, rows)
    first = _telling_apart(rows)
    while first > 1 and any(
        _needed([*least[:first], other]) > width for other in least[first:]
    ):
        first -= 1
    part = key_columns = [*range(first)]
    for number in everything[first:]:
        total = _needed([least[at] for at in (*part, number)])
        if total > width and part != key_columns:
            yield part
            part = key_columns
        part = [*part, number]
    yield part


def _least(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column in which no word is broken."""
    return [
        max(
            len(name),
            *(
                len(piece.strip())
                for row in rows
                for piece in _PIECE.findall(row[at])
            ),
            0,
        )
        for at, name in enumerate(names)
    ]


def _narrowed(
    widths: Sequence[int], names: Sequence[str], room: int
) -> list[int]:
    """Return widths that fit, as far as the names of the columns let them.

    The widest columns become narrower.
    """
    narrowed = [*widths]
    order = sorted(range(len(names)), key=lambda at: widths[at])
    for place, at in enumerate(order):
        share = room // (len(order) - place)
        narrowed[at] = max(min(widths[at], share), len(names[at]))
        room -= narrowed[at]
    return narrowed


def _fitting(
    names: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> list[int]:
    """Return the widths of the columns of a table."""
    borders = _needed([0] * len(names))
    widths = _narrowed(_least(names, rows), names, width - borders)
    room = width - _needed(widths)
    wanted = [
        max(len(line) for row in rows for line in (*row[at].splitlines(), ''))
        - widths[at]
        for at in range(len(names))
        if rows
    ]
    # Those that want least get all of it; the others share what is left.
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    for place, at in enumerate(order):
        more = min(wanted[at], room // (len(order) - place))
        if more > 0:
            widths[at] += more
            room -= more
    return widths


def _wrapped(text: str, width: int) -> str:
    """Return a cell in lines of a width."""
    lines = []
    for line in text.split('\n'):
        last = line[: len(line) - len(line.lstrip())]
        for piece in _PIECE.findall(line.strip()):
            if last.strip() and len(last + piece) > width:
                lines.append(last)
                last = ''
            last = last + piece if last else piece.lstrip()
            while len(last) > width:
                *_, end = (
                    width,
                    *(m.end() for m in _JOINT.finditer(last, 1, width)),
                )
                lines.append(last[:end])
                last = last[end:]
        lines.append(last)
    return '\n'.join(lines)


def _telling_apart(rows: Sequence[Sequence[str]]) -> int:
    """Return how many of the first columns are needed to tell rows apart."""
    most = len(rows[0]) - 1 if rows else 1
    for number in range(1, most):
        if len({tuple(row[:number]) for row in rows}) == len(rows):
            return number
    return max(most, 1)


def _needed(widths: Sequence[int]) -> int:
    return sum(widths) + _BESIDE * len(widths) + _ONCE
