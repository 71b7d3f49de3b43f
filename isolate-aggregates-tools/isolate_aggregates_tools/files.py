# SPDX-License-Identifier: Apache-2.0
"""Reads text of files, and writes files atomically."""

from collections.abc import Iterator
import contextlib
import errno
import os
import pathlib
import shutil
import stat
import tempfile
from typing import BinaryIO, TextIO

# How much of a file is read to see what it is, in bytes.
_HEAD = 4096


def check(path: str | os.PathLike[str], mark: str | None) -> pathlib.Path:
    """Check that a file can be written; return its path without links.

    Only an earlier output is replaced, not a file that was named by mistake,
    such as the input. An empty file may be one of mktemp.

    :param mark: What each earlier output has near its beginning; None to
        replace no file.
    :raises OSError: if it cannot be written, or must not be replaced.
    """
    target = pathlib.Path(path).resolve()
    if target.is_dir():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if target.exists() and not target.is_file():
        # For example /dev/stdout, which must not be replaced.
        raise OSError(errno.EINVAL, 'Not a regular file')
    # With the slash, this fails unless it is a directory.
    os.stat(f'{target.parent}/')
    if not os.access(target.parent, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    if target.exists():
        _check_replaceable(target, mark)
    return target


def _check_replaceable(target: pathlib.Path, mark: str | None) -> None:
    if mark is None:
        raise OSError(
            errno.EEXIST, 'it exists already; remove it or name another file'
        )
    with target.open('rb') as stream:
        head = stream.read(_HEAD)
    if head and mark.encode() not in head:
        raise OSError(
            errno.EEXIST,
            'it exists already and was not written by this command; remove it '
            'or name another file',
        )


class StandardInput(str):
    """The name of the standard input in place of that of a file.

    It can be read only once, so this keeps what was read.
    """

    _content: bytes | None = None

    def read(self) -> bytes:
        """Return all that was written to it."""
        if self._content is None:
            with open(0, 'rb', closefd=False) as stream:
                self._content = _head_of_text(stream) + stream.read()
        return self._content


def named(text: str) -> str:
    """Return the file that an argument names; a dash is standard input."""
    return StandardInput('standard input') if text == '-' else text


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file that should be text.

    A device without an end, such as /dev/zero, is not read on.

    :raises OSError: if it cannot be read or is not text.
    """
    if isinstance(path, StandardInput):
        return path.read()
    with open(path, 'rb') as stream:
        return _head_of_text(stream) + stream.read()


def read_text(path: str | os.PathLike[str], encoding: str = 'utf-8') -> str:
    """Return the text of a file; see :func:`read_bytes`.

    :raises OSError: if it cannot be read or is not text.
    :raises UnicodeDecodeError: if it has another encoding.
    """
    return read_bytes(path).decode(encoding)


def check_text(path: str | os.PathLike[str]) -> None:
    """Check that a file that others read can be read, and has an end.

    :raises OSError: if it cannot be read or is not text.
    """
    with open(path, 'rb') as stream:
        _head_of_text(stream)


def _head_of_text(stream: BinaryIO) -> bytes:
    head = stream.read(_HEAD)
    check_head(stream, head)
    return head


def check_head(stream: BinaryIO, head: bytes) -> None:
    """Check that a device begins as text; otherwise it may have no end.

    :raises OSError: if it does not.
    """
    is_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    if not is_file and b'\0' in head:
        raise OSError(errno.EINVAL, 'Not a text file')


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], mark: str | None
) -> Iterator[TextIO]:
    """Open a temporary file that replaces the given file when it is closed.

    A new file is accessible only to its owner; a replaced file keeps its
    permissions. Characters that cannot be encoded, for example lone
    surrogates, are written as question marks.

    :param mark: As for :func:`check`.
    :raises OSError: if it cannot be written; an existing file is unchanged.
    """
    target = check(path, mark)
    handle, name = tempfile.mkstemp(
        prefix=f'.{target.name}.', dir=target.parent
    )
    temporary = pathlib.Path(name)
    try:
        with open(handle, 'w', encoding='utf-8', errors='replace') as stream:
            yield stream
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
