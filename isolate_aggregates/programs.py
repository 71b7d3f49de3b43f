# SPDX-License-Identifier: Apache-2.0
"""Reads configuration files, and writes what programs print."""

from collections.abc import Callable, Sequence
import contextlib
import errno
import io
import os
import sys
import traceback

from oslo_config import cfg

from isolate_aggregates.exception import IsolateAggregatesError
from isolate_aggregates.text import short


def read(
    conf: cfg.ConfigOpts, arguments: Sequence[str], project: str, program: str
) -> None:
    """Parse arguments and configuration files.

    :param program: Whose files are read if the arguments name none.
    :raises IsolateAggregatesError: if they cannot be read; it quotes no line
        of them, as there may be a password.
    """
    files = cfg.find_config_files(project, program)
    directories = cfg.find_config_dirs(project, program)
    try:
        conf(
            arguments,
            project=project,
            default_config_files=files,
            default_config_dirs=directories,
        )
        for directory in conf.config_dir:
            # In place of a directory, oslo.config ignores a file.
            os.listdir(directory)
    except (cfg.Error, OSError, ValueError) as exc:
        raise IsolateAggregatesError(_problem(exc)) from exc


def _problem(exc: Exception) -> str:
    inner = exc.__context__
    if isinstance(inner, cfg.ParseError):
        # Its text quotes the line.
        path, why = inner.filename, f'line {inner.lineno}: {inner.msg}'
    elif isinstance(exc, UnicodeError):
        # It does not name the file, which a caller of the decoder does.
        path, why = 'file', 'it is not UTF-8 text'
        for frame, _ in traceback.walk_tb(exc.__traceback__):
            path = frame.f_locals.get('config_file', path)
    elif isinstance(exc, OSError):
        path, why = exc.filename, exc.strerror or short(exc)
    elif isinstance(exc, cfg.ConfigDirNotFoundError):
        path, why = exc.config_dir, os.strerror(errno.ENOENT)
    elif files := getattr(exc, 'config_files', ()):
        denied = isinstance(exc, cfg.ConfigFilesPermissionDeniedError)
        path = files[0]
        why = os.strerror(errno.EACCES if denied else errno.ENOENT)
    else:
        return f'The configuration cannot be read: {short(exc)}.'
    return f'The configuration {path} cannot be read: {why}.'


def run(
    program: Callable[[Sequence[str]], int],
    arguments: Sequence[str] | None,
    failed: int,
) -> int:
    """Run a program, and return its exit status.

    :param failed: That after an error, which is printed.
    """
    output = io.StringIO()
    status = failed
    try:
        # argparse hides that its output cannot be written.
        with contextlib.redirect_stdout(output):
            status = program(sys.argv[1:] if arguments is None else arguments)
    except SystemExit as exc:
        status = int(exc.code or 0)
    except IsolateAggregatesError as exc:
        print(exc, file=sys.stderr)
    finally:
        try:
            print(output.getvalue(), end='', flush=True)
        except OSError as exc:
            # Python would try again at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            problem = f'The output cannot be written: {exc.strerror}.'
            print(problem, file=sys.stderr)
            status = failed
    return status
