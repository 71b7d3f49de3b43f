# SPDX-License-Identifier: Apache-2.0
"""Writes files atomically."""

from collections.abc import Iterator
import contextlib
import errno
import os
import pathlib
import shutil
import tempfile
from typing import TextIO


def check(path: str | os.PathLike[str]) -> pathlib.Path:
    """Check that a file can be written; return its path without links."""
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
    return target


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a temporary file that replaces the given file when it is closed.

    A new file is accessible only to its owner; a replaced file keeps its
    permissions. Characters that cannot be encoded, for example lone
    surrogates, are written as question marks.

    :raises OSError: if it cannot be written; an existing file is unchanged.
    """
    target = check(path)
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
