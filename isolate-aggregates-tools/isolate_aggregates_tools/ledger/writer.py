# SPDX-License-Identifier: Apache-2.0
"""Appends to a ledger file.

It is opened, locked and checked once, by the program that looks at the cloud.
Nothing is kept in memory but the last state.
"""

from collections.abc import Callable
import contextlib
import errno
import fcntl
import os
import pathlib
import threading
import time
from typing import Any

from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.ledger import chain
from isolate_aggregates_tools.ledger.state import State
from isolate_aggregates_tools.ledger.times import as_text

# Bytes of a file before the next one begins.
_SIZE = 67_108_864
# Seconds after which a line is written even if nothing has changed.
QUIET = 3600


class LedgerWriter:
    """Appends a line whenever the state of a cloud has changed.

    :param interval: Seconds between two looks at the cloud. A longer pause is
        recorded.
    :raises LedgerError: if the file cannot be written, or if another process
        writes it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        interval: int,
        size: int = _SIZE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = pathlib.Path(path).absolute()
        self._interval = interval
        self._size = size
        self._clock = clock
        # The last state that is in the file; None if it has to be written as
        # a whole.
        self._state: State | None = None
        self._looked: int | None = None
        self._written = 0
        # The exporter looks in a thread, and closes the file in another one.
        self._turn = threading.Lock()
        self._is_closed = False
        try:
            self._lock = os.open(
                self._path.with_name(f'{self._path.name}.lock'),
                os.O_RDWR | os.O_CREAT | os.O_CLOEXEC,
                0o600,
            )
        except OSError as exc:
            raise self._error(exc) from exc
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._check()
            self._tail = chain.tail(self._path)
        except BlockingIOError as exc:
            os.close(self._lock)
            raise tools_errors.LedgerError(
                str(path), 'another process writes it; use another file'
            ) from exc
        except OSError as exc:
            os.close(self._lock)
            raise self._error(exc) from exc

    def _check(self) -> None:
        """Check that an existing file is a ledger, however damaged."""
        with (
            contextlib.suppress(FileNotFoundError),
            self._path.open('rb') as stream,
        ):
            if stream.read(1) not in (b'', b'{'):
                raise OSError(
                    errno.EEXIST,
                    'it exists already and is no ledger; name another file',
                )

    def look(self, state: State) -> None:
        """Record the state of a cloud, as it was just read.

        :raises LedgerError: if it cannot be written; the next call writes the
            whole state.
        """
        with self._turn:
            if not self._is_closed:
                self._look(state)

    def _look(self, state: State) -> None:
        now = int(self._clock())
        changes = state.changes(self._state)
        pause = None if self._looked is None else now - self._looked
        is_late = pause is not None and pause > chain.LATE * self._interval
        if (
            changes
            or self._state is None
            or is_late
            or now - self._written >= QUIET
        ):
            # Until it is written, the next line has to have all of it.
            before, self._state = self._state, None
            self._append(now, before is None, state, changes)
            self._written = now
        self._state = state
        self._looked = now

    def close(self) -> None:
        """Record the time of the last look, and let others write the file."""
        with self._turn:
            self._is_closed = True
            try:
                if self._state is not None and self._looked != self._written:
                    self._append(self._looked, False, self._state, {})
            finally:
                os.close(self._lock)

    def _append(
        self,
        now: int | None,
        is_full: bool,
        state: State,
        changes: dict[str, Any],
    ) -> None:
        try:
            if not is_full and self._rotates():
                is_full, changes = True, state.changes(None)
            line = chain.encode(
                {
                    'line': self._tail.number + 1,
                    'time': as_text(now),
                    'before': as_text(self._looked),
                    'interval': self._interval,
                    'last': self._tail.digest,
                    'full': is_full,
                    **changes,
                }
            )
            _write(self._path, line + b'\n', self._tail.is_broken)
        except OSError as exc:
            with contextlib.suppress(OSError):
                self._check()
            self._tail = chain.tail(self._path)
            raise self._error(exc) from exc
        self._tail = chain.Tail(chain.digest(line), self._tail.number + 1)

    def _rotates(self) -> bool:
        """Begin a new file if the present one has reached its size."""
        if not self._path.exists() or self._path.stat().st_size < self._size:
            return False
        self._path.rename(chain.rotated(self._path))
        return True

    def _error(self, exc: OSError) -> tools_errors.LedgerError:
        return tools_errors.LedgerError(str(self._path), f'{exc.strerror}')


def _write(path: pathlib.Path, line: bytes, is_broken: bool) -> None:
    """Append a line, so that it is on the disk when this returns."""
    is_new = not path.exists()
    descriptor = os.open(
        path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        # End the line that a crash has cut off.
        rest = memoryview(b'\n' + line if is_broken else line)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if is_new:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
