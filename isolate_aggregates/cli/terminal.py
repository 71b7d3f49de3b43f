# SPDX-License-Identifier: Apache-2.0
"""Makes tables and lines fit the terminal.

Lines are broken between words. Outside tables, a word that is too long has a
line of its own. In a table, it is shortened in its middle, unless it is a
uuid, and only so far that all words of a column still differ.

Columns that do not fit follow in further tables. Each repeats as many of the
first columns as are needed to tell the rows apart; if these do not fit, row
numbers take their place.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
import logging
import re
import shutil
import textwrap
from typing import Any, NamedTuple, TextIO

from cliff import columns

# The maximum length of words: the first of these with which all columns fit,
# or the last.
_LONGEST_WORDS = (40, 28, 20)
_UUID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_WORD = re.compile(r'\s*\S+')
# A word of a shell command, which may have single quotes.
_SHELL_WORD = re.compile(r"\s*(?:[^\s']|'[^']*')+")
_PARAMETER = re.compile(r'\s*&?[^&]+')
_VALUE = re.compile('(?:(?!%2C).)+(?:%2C)?')
_HANGING = '  '
# The width of the borders of a table: per column, and in addition.
_BESIDE, _ONCE = 3, 1
_NUMBER = 'No.'

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
    """Return whether all streams are connected to a terminal.

    :param streams: Standard streams; None for closed ones.
    """
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
    """A formatter for cliff whose tables fit the terminal.

    :param formatter: The formatter of cliff that writes each table.
    :param width: The width to fit; None for that of the terminal.
    """

    def __init__(self, formatter: Any, width: int | None = None) -> None:
        self._formatter = formatter
        self._width = width or shutil.get_terminal_size().columns

    def emit_list(
        self,
        column_names: Sequence[str],
        data: Iterable[Row],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Write the rows as one or more tables."""
        names = [*column_names]
        rows = [[_shown(cell) for cell in row] for row in data]
        first = _telling_apart(rows)
        if first > 1 and not _has_room(names, rows, first, self._width):
            names = [_NUMBER, *names]
            rows = [[at, *row] for at, row in enumerate(rows, 1)]
            first = 1
        for at, chosen in enumerate(_parts(names, rows, first, self._width)):
            if at:
                stdout.write('\n')
            part = [[row[at] for at in chosen] for row in rows]
            some = [names[at] for at in chosen]
            self._formatter.emit_list(
                *_fitted(some, part, self._width, names), stdout, parsed_args
            )

    def emit_one(
        self,
        column_names: Sequence[str],
        data: Row,
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Write the table of one object."""
        rows = [*zip(column_names, map(_shown, data), strict=True)]
        _, fitted = _fitted(('Field', 'Value'), rows, self._width)
        names, values = zip(*fitted, strict=True)
        self._formatter.emit_one(names, values, stdout, parsed_args)


def _shown(cell: Any) -> Any:
    if isinstance(cell, columns.FormattableColumn):
        return cell.human_readable()
    return cell


def _telling_apart(rows: Sequence[Row]) -> int:
    """Return how many of the first columns are needed to tell rows apart."""
    columns = len(rows[0]) if rows else 0
    for most in range(1, columns):
        if len({tuple(map(str, row[:most])) for row in rows}) == len(rows):
            return most
    return max(columns, 1)


def _has_room(
    names: Sequence[str], rows: Sequence[Row], first: int, width: int
) -> bool:
    """Return whether each other column fits beside the first ones."""
    least = [one.width for one in _least_columns(names, rows, width)]
    return _needed([*least[:first], *sorted(least[first:])[-1:]]) <= width


def _parts(
    names: Sequence[str], rows: Sequence[Row], first: int, width: int
) -> Iterator[list[int]]:
    """Yield the indexes of the columns of each table.

    :param first: The number of first columns that each table repeats.
    """
    least = [one.width for one in _least_columns(names, rows, width)]
    again = [*range(first)]
    part = again
    for number in range(first, len(names)):
        needed = _needed([least[at] for at in (*part, number)])
        if needed > width and part != again:
            yield part
            part = again
        part = [*part, number]
    yield part


def _fitted(
    names: Sequence[str],
    rows: Sequence[Row],
    width: int,
    all_names: Sequence[str] = (),
) -> tuple[list[str], list[list[Any]]]:
    """Return the names and rows, with texts wrapped to fit.

    :param all_names: The names of all columns, including those in other
        tables, from which shortened names must differ.
    """
    least = _least_columns(names, rows, width, all_names)
    widths = [one.width for one in least]
    wanted = [
        max(one.width, *(_longest_line(row[at]) for row in rows), 0)
        for at, one in enumerate(least)
    ]
    free = width - _needed(widths)
    while free > 0 and widths != wanted:
        # Widen the narrowest column that needs more.
        at = min(
            (at for at, most in enumerate(wanted) if widths[at] < most),
            key=widths.__getitem__,
        )
        widths[at] += 1
        free -= 1
    return (
        [
            _shortened(name, max(one.longest_name, most))
            for name, one, most in zip(names, least, widths, strict=True)
        ],
        [
            [
                _wrapped(cell, most, one.longest)
                if isinstance(cell, str)
                else cell
                for cell, one, most in zip(row, least, widths, strict=True)
            ]
            for row in rows
        ],
    )


class _Least(NamedTuple):
    """The minimum width of a column.

    :param width: The minimum width.
    :param longest: The length to which its words are shortened.
    :param longest_name: The length to which its name is shortened; names are
        not wrapped.
    """

    width: int
    longest: int
    longest_name: int


def _least_columns(
    names: Sequence[str],
    rows: Sequence[Row],
    width: int,
    all_names: Sequence[str] = (),
) -> list[_Least]:
    """Return the minimum width of each column."""
    words = [
        {word for row in rows for word in str(row[at]).split()}
        for at in range(len(names))
    ]
    found: list[_Least] = []
    for most in _LONGEST_WORDS:
        longest_name = _distinct(all_names or names, most)
        found = [
            _least(name, longest_name, words[at], _distinct(words[at], most))
            for at, name in enumerate(names)
        ]
        if _needed([one.width for one in found]) <= width:
            break
    return found


def _least(
    name: str, longest_name: int, words: Iterable[str], longest: int
) -> _Least:
    return _Least(
        max(
            len(_shortened(name, longest_name)),
            *(len(_shortened(word, longest)) for word in words),
            0,
        ),
        longest,
        longest_name,
    )


def _distinct(words: Iterable[str], most: int) -> int:
    """Return the length to which words can be shortened and still differ.

    :param most: The length to try first.
    """
    long = {word for word in words if len(word) > most}
    while len({_shortened(word, most) for word in long}) < len(long):
        most += 1
    return most


def _needed(widths: Sequence[int]) -> int:
    return sum(widths) + _BESIDE * len(widths) + _ONCE


def _longest_line(cell: Any) -> int:
    return max(map(len, str(cell).splitlines()), default=0)


def _wrapped(text: str, width: int, longest: int) -> str:
    lines = []
    for line in text.splitlines():
        if len(line) <= width:
            lines.append(line)
            continue
        words = (
            _shortened(word, max(width, longest)) for word in line.split()
        )
        lines += textwrap.wrap(
            ' '.join(words),
            width,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return '\n'.join(lines)


def _shortened(word: str, longest: int) -> str:
    if len(word) <= longest or _UUID.search(word):
        return word
    end = (longest - 3) // 2
    return f'{word[: longest - 3 - end]}...{word[-end:]}'
