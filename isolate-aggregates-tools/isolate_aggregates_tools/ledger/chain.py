# SPDX-License-Identifier: Apache-2.0
"""The lines of a ledger file: how they are encoded, chained and split.

Each line is a JSON object with the SHA-256 of the line before it. A file that
has reached its size is renamed to ``<file>.<number>``, and the next one goes
on with the chain. See ``doc/source/admin/ledger.rst``.
"""

from collections.abc import Iterator
import dataclasses
import hashlib
import json
import mmap
import os
import pathlib
import re
from typing import Any

from isolate_aggregates_tools import errors as tools_errors

# Looks that are more than so many intervals apart leave a gap between them.
LATE = 2


@dataclasses.dataclass(frozen=True)
class Tail:
    """The end of a ledger.

    :param digest: The SHA-256 of the last line; None if there is no line.
    :param number: The number of the last line that is whole.
    :param is_broken: Whether the last line was cut off by a crash.
    """

    digest: str | None = None
    number: int = 0
    is_broken: bool = False


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a ledger file.

    :param document: Its content; None if it cannot be read.
    """

    path: pathlib.Path
    place: int
    digest: str
    document: dict[str, Any] | None


def encode(document: dict[str, Any]) -> bytes:
    """Return a line, without its end."""
    return json.dumps(
        document, separators=(',', ':'), ensure_ascii=True
    ).encode()


def digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def files(path: str | os.PathLike[str]) -> list[pathlib.Path]:
    """Return the files of a ledger that exist, the oldest first."""
    newest = pathlib.Path(path)
    pattern = re.compile(rf'{re.escape(newest.name)}\.(\d+)')
    try:
        numbered = [
            (int(match[1]), other)
            for other in newest.parent.iterdir()
            if (match := pattern.fullmatch(other.name))
        ]
        rotated = [other for _, other in sorted(numbered)]
        return [*rotated, newest] if newest.exists() else rotated
    except OSError as exc:
        raise tools_errors.LedgerError(str(path), f'{exc.strerror}') from exc


def rotated(path: pathlib.Path) -> pathlib.Path:
    """Return the name that a file gets when it has reached its size."""
    older = [other for other in files(path) if other != path]
    number = int(older[-1].suffix[1:]) + 1 if older else 1
    return path.with_name(f'{path.name}.{number}')


def lines(path: pathlib.Path) -> Iterator[Line]:
    """Yield the lines of a file, one at a time."""
    try:
        with open(path, 'rb') as stream:
            for place, line in enumerate(stream, 1):
                text = line.removesuffix(b'\n')
                yield Line(path, place, digest(text), _decoded(text))
    except OSError as exc:
        raise tools_errors.LedgerError(str(path), f'{exc.strerror}') from exc


def tail(path: pathlib.Path) -> Tail:
    """Return the end of a ledger, without reading all of it.

    :raises OSError: if it cannot be read.
    """
    for file in reversed(files(path)):
        text, is_whole = _last_line(file)
        if text is None:
            continue
        document = _decoded(text) if is_whole else None
        number = document.get('line') if document else None
        if isinstance(number, int):
            return Tail(digest(text), number)
        number = 0
        for line in lines(file):
            if line.document:
                number = int(line.document.get('line', number))
        return Tail(digest(text), number, not is_whole)
    return Tail()


def _last_line(path: pathlib.Path) -> tuple[bytes | None, bool]:
    """Return the last line, and whether it has an end."""
    with open(path, 'rb') as stream:
        if not os.fstat(stream.fileno()).st_size:
            return None, True
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text:
            is_whole = text[-1:] == b'\n'
            end = len(text) - is_whole
            return text[text.rfind(b'\n', 0, end) + 1 : end], is_whole


def _decoded(text: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None
