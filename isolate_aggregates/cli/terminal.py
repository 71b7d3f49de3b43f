# SPDX-License-Identifier: Apache-2.0
"""Tables and lines that fit the terminal they are shown on.

Lines end between words. In a table, a word that is too long, such as the name
of a trait, is shortened in its middle, but not a uuid; columns for which there
is no room follow as another table, with the first column again. Elsewhere it
has a line of its own.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
import logging
import re
import shutil
import textwrap
from typing import Any, TextIO

from cliff import columns

# How long a word must be to be shortened: the first of these with which all
# columns fit, or else the last.
_LONGEST_WORDS = (40, 28, 20)
_UUID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_WORD = re.compile(r'\s*\S+')
# As repairs are quoted.
_SHELL_WORD = re.compile(r"\s*(?:[^\s']|'[^']*')+")
_HANGING = '  '
# What a table needs for each column beside its text, and once.
_BESIDE, _ONCE = 3, 1

Row = Sequence[Any]


class Shell(str):
    """A line with commands that can be pasted even when it is folded."""

    __slots__ = ()


class Formatter(logging.Formatter):
    """Folds what is logged for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as lines."""
        return folded(super().format(record))


def is_attended(*streams: TextIO | None) -> bool:
    """Tell whether a person reads and writes there.

    :param streams: Standard streams, None for those that are closed.
    """
    return all(stream is not None and stream.isatty() for stream in streams)


def folded(text: str, width: int | None = None) -> str:
    """Return a text whose lines fit, but for words that do not.

    :param width: How many columns the terminal has.
    """
    width = width or shutil.get_terminal_size().columns
    return '\n'.join(
        _folded(line, width, isinstance(text, Shell))
        for line in text.split('\n')
    )


def _folded(line: str, width: int, is_shell: bool) -> str:
    if len(line) <= width:
        return line
    # Each with the blanks before it.
    words = (_SHELL_WORD if is_shell else _WORD).findall(line)
    end = ' \\' if is_shell else ''
    indent = line[: len(line) - len(line.lstrip())]
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + len(end) <= width:
            lines[-1] += word
        else:
            lines.append(f'{indent}{_HANGING}{word.lstrip()}')
    return f'{end}\n'.join(lines)


class Tables:
    """A formatter of cliff whose tables fit.

    :param formatter: Writes a table.
    :param width: How many columns the terminal has.
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
        """Write one table, or more."""
        rows = [[_shown(cell) for cell in row] for row in data]
        for number, chosen in enumerate(
            _parts(column_names, rows, self._width)
        ):
            if number:
                stdout.write('\n')
            part = [[row[at] for at in chosen] for row in rows]
            names = [column_names[at] for at in chosen]
            self._formatter.emit_list(
                *_fitted(names, part, self._width), stdout, parsed_args
            )

    def emit_one(
        self,
        column_names: Sequence[str],
        data: Row,
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Write the table of one thing."""
        rows = [*zip(column_names, map(_shown, data), strict=True)]
        _, fitted = _fitted(('Field', 'Value'), rows, self._width)
        names, values = zip(*fitted, strict=True)
        self._formatter.emit_one(names, values, stdout, parsed_args)


def _shown(cell: Any) -> Any:
    if isinstance(cell, columns.FormattableColumn):
        return cell.human_readable()
    return cell


def _parts(
    names: Sequence[str], rows: Sequence[Row], width: int
) -> Iterator[list[int]]:
    """Yield the numbers of the columns of each table."""
    least = _least_widths(names, rows, width)[0]
    part = [0]
    for number in range(1, len(names)):
        needed = _needed([least[at] for at in (*part, number)])
        if needed > width and len(part) > 1:
            yield part
            part = [0]
        part.append(number)
    yield part


def _fitted(
    names: Sequence[str], rows: Sequence[Row], width: int
) -> tuple[list[str], list[list[Any]]]:
    """Return names and rows, their texts on as many lines as need be."""
    widths, longest = _least_widths(names, rows, width)
    wanted = [
        max(least, *(_longest_line(row[at]) for row in rows), 0)
        for at, least in enumerate(widths)
    ]
    free = width - _needed(widths)
    while free > 0 and widths != wanted:
        # The narrowest of those that are too narrow.
        at = min(
            (at for at, most in enumerate(wanted) if widths[at] < most),
            key=widths.__getitem__,
        )
        widths[at] += 1
        free -= 1
    head = [
        _shortened(name, max(longest, most))
        for name, most in zip(names, widths, strict=True)
    ]
    return (
        head if len(set(head)) == len(head) else [*names],
        [
            [
                _wrapped(cell, most, longest)
                if isinstance(cell, str)
                else cell
                for cell, most in zip(row, widths, strict=True)
            ]
            for row in rows
        ],
    )


def _least_widths(
    names: Sequence[str], rows: Sequence[Row], width: int
) -> tuple[list[int], int]:
    """Return the least width of each column, and of words to be shortened."""
    found: list[int] = []
    for longest in _LONGEST_WORDS:
        found = [
            max(
                # Names of columns are in one line.
                len(_shortened(name, longest)),
                *(_least(row[at], longest) for row in rows),
                0,
            )
            for at, name in enumerate(names)
        ]
        if _needed(found) <= width:
            break
    return found, longest


def _needed(widths: Sequence[int]) -> int:
    return sum(widths) + _BESIDE * len(widths) + _ONCE


def _least(cell: Any, longest: int) -> int:
    """Return the width of the longest word, as it is shortened."""
    return max(
        (len(_shortened(word, longest)) for word in str(cell).split()),
        default=0,
    )


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
