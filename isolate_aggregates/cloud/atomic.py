# SPDX-License-Identifier: Apache-2.0
"""Writes files whole or not at all."""

from collections.abc import Iterator
import contextlib
import errno
import os
import pathlib
import shutil
import tempfile
from typing import TextIO


def check(path: str | os.PathLike[str]) -> pathlib.Path:
    """Return where a file is, if it can be written; follow a link.

    :raises OSError: if it cannot be written.
    """
    target = pathlib.Path(path).resolve()
    if target.is_dir():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if target.exists() and not target.is_file():
        # Such as /dev/stdout, which must not be replaced.
        raise OSError(errno.EINVAL, 'Not a regular file')
    # With the slash it must be a directory.
    os.stat(f'{target.parent}/')
    if not os.access(target.parent, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    return target


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a file for writing that takes the place of another at the end.

    A new file is for its owner alone; one that takes the place of another has
    the other's permissions. What is not Unicode text, such as half of a
    surrogate pair, is written as a question mark.

    :raises OSError: if it cannot be written; what was there is left alone.
    """
    target = check(path)
    handle, name = tempfile.mkstemp(
        prefix=f'.{target.name}.', dir=target.parent
    )
    unfinished = pathlib.Path(name)
    try:
        with open(handle, 'w', encoding='utf-8', errors='replace') as stream:
            yield stream
        if target.exists():
            shutil.copymode(target, unfinished)
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
