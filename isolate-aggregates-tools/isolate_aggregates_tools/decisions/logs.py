# SPDX-License-Identifier: Apache-2.0
"""Reads the records of decisions in log files."""

from collections import Counter
from collections.abc import Iterable, Iterator
import contextlib
import dataclasses
import gzip
import io
import sys
from typing import Any, BinaryIO, cast
import zlib

from isolate_aggregates_tools import errors, files
from isolate_aggregates_tools.decisions.lines import Unread, of_line

#: The name of the standard input in place of a file.
STDIN = '-'

_GZIP = b'\x1f\x8b'
# Longer lines are not read: records have a hundredth of it.
_LONGEST = 1 << 20
# A line of JSON would take part of two reads of Python's usual 8 KiB.
_BUFFER = 1 << 17


@dataclasses.dataclass
class NotRead:
    """What of logs was not read.

    :param lines: The numbers of lines that seem to have records, by reason.
    :param truncated: The compressed files that end early.
    """

    lines: Counter[Unread] = dataclasses.field(default_factory=Counter)
    truncated: list[str] = dataclasses.field(default_factory=list)

    def sentences(self) -> Iterator[str]:
        """Yield what was not read, without full stops."""
        for reason in Unread:
            if number := self.lines[reason]:
                lines = 'record is' if number == 1 else 'records are'
                yield f'{number} {lines} {reason.value}'
        for name in self.truncated:
            yield f'{name} ends early, as a compressed file'


def records(
    names: Iterable[str], not_read: NotRead
) -> Iterator[dict[str, Any]]:
    """Yield the records in log files, and note what is not read.

    :param names: The files, which may be compressed with gzip.
    :raises LogError: if one of them cannot be read.
    """
    for name in names:
        try:
            with _opened(name) as stream:
                for line in _lines(stream):
                    found = of_line(line)
                    if isinstance(found, dict):
                        yield found
                    elif found is not None:
                        not_read.lines[found] += 1
        except (EOFError, zlib.error, gzip.BadGzipFile):
            not_read.truncated.append(name)
        except OSError as exc:
            raise errors.LogError(name, exc.strerror or str(exc)) from exc


@contextlib.contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == STDIN:
        given = cast('io.RawIOBase', sys.stdin.buffer)
        own = io.BufferedReader(given, _BUFFER)
        try:
            yield own
        finally:
            # It would close the standard input.
            own.detach()
        return
    # It may be a pipe, which is opened once and not rewound.
    with io.BufferedReader(io.FileIO(name), _BUFFER) as stream:
        if stream.peek(len(_GZIP)).startswith(_GZIP):
            with gzip.GzipFile(fileobj=stream) as text:
                yield cast('BinaryIO', text)
        else:
            files.check_head(stream, stream.peek())
            yield stream


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    while line := stream.readline(_LONGEST):
        yield line
        while len(line) == _LONGEST and not line.endswith(b'\n'):
            line = stream.readline(_LONGEST)
