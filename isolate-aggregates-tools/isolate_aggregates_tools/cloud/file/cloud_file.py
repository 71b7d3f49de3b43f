# SPDX-License-Identifier: Apache-2.0
"""Reads and writes cloud files, which describe a cloud in YAML."""

from collections.abc import Iterator
import contextlib
import functools
import gc
import importlib.resources
import os
import re

import yaml

from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import files
from isolate_aggregates_tools.cloud.file import (
    checked_yaml,
    quick_yaml,
    serialize,
    yaml_errors,
)
from isolate_aggregates_tools.cloud.file import document as cloud_document
from isolate_aggregates_tools.cloud.file.contradictions import Contradictions
from isolate_aggregates_tools.cloud.file.violations import Checker
from isolate_aggregates_tools.cloud.snapshot import Snapshot

# How each written file begins; lists of expectations have a version, too.
_MARK = 'version: 1\nsettings:'
_RARE_BREAK = re.compile('[\x85\u2028\u2029]')


def load(path: str | os.PathLike[str]) -> Snapshot:
    """Read a cloud file.

    :raises CloudFileError: if it cannot be read or is invalid. The message has
        the file, the problems and their places.
    """
    # It makes millions of objects, none of which is garbage: to look for it
    # again and again takes a third of the time.
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        return _load(path, checked_yaml.text_of(path))
    except checked_yaml.Unreadable as exc:
        raise tools_errors.CloudFileError(path, of_file=str(exc)) from None
    finally:
        if is_collecting:
            gc.enable()


def _load(path: str | os.PathLike[str], text: str) -> Snapshot:
    with contextlib.suppress(
        quick_yaml.Doubtful,
        checked_yaml.Unreadable,
        Contradictions,
    ):
        document = quick_yaml.load(text)
        if not _checker().violations(document):
            return cloud_document.to_snapshot(document, str(path))
    # Now to say what is wrong, and where.
    root, document = checked_yaml.parse(text)
    problems = _checker().violations(document)
    if not problems:
        try:
            return cloud_document.to_snapshot(document, str(path))
        except Contradictions as exc:
            problems = list(exc.problems)
    raise tools_errors.CloudFileError(
        path, yaml_errors.messages(problems, root)
    )


def save(snapshot: Snapshot, path: str | os.PathLike[str]) -> None:
    """Write a cloud file atomically."""
    document = serialize.document(snapshot)
    with _write_errors(path), files.replacing(path, _MARK) as stream:
        yaml.dump(
            document,
            stream,
            Dumper=_Dumper,
            allow_unicode=True,
            sort_keys=False,
        )


def check_output(path: str | os.PathLike[str]) -> None:
    """Check that a cloud file can be written, before a cloud is read."""
    with _write_errors(path):
        files.check(path, _MARK)


@contextlib.contextmanager
def _write_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise tools_errors.CloudFileError(
            path, of_file=f'cannot be written: {exc.strerror or exc}'
        ) from exc


class _Dumper(yaml.SafeDumper):
    """Escapes Unicode line breaks, which YAML would read as spaces."""

    def represent_str(self, text: str) -> yaml.ScalarNode:
        style = '"' if _RARE_BREAK.search(text) else None
        return self.represent_scalar('tag:yaml.org,2002:str', text, style)


_Dumper.add_representer(str, _Dumper.represent_str)


@functools.cache
def _checker() -> Checker:
    source = importlib.resources.files(__package__) / 'schema.yaml'
    return Checker(quick_yaml.load(source.read_text(encoding='utf-8')))
