# SPDX-License-Identifier: Apache-2.0
"""Reads and writes files of expectations."""

from collections.abc import Iterable, Iterator, Mapping
import contextlib
import functools
import importlib.resources
import json
import os
from typing import Any

import yaml

from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import files
from isolate_aggregates_tools.cloud.file import checked_yaml, yaml_errors
from isolate_aggregates_tools.cloud.file.violations import Checker
from isolate_aggregates_tools.expectations import checks
from isolate_aggregates_tools.expectations.expectation import (
    Check,
    Expectation,
)
from isolate_aggregates_tools.expectations.matching import Place
from isolate_aggregates_tools.expectations.survives import Survives

VERSION = 1

_PLACES = {
    'aggregates': 'aggregate',
    'hosts': 'host',
    'locks': 'lock',
    'reservations': 'reservation',
}

# Keys by which a cloud file is known.
_OF_CLOUDS = {'aggregates', 'flavors', 'providers', 'settings'}


def load(path: str | os.PathLike[str]) -> list[Expectation]:
    """Read a file of expectations.

    :raises ExpectationsFileError: if it cannot be read or is invalid. The
        message has the file, the problems and their lines.
    """
    try:
        root, document = checked_yaml.parse(checked_yaml.text_of(path))
        problems = _checker().violations(document)
    except checked_yaml.Unreadable as exc:
        raise tools_errors.ExpectationsFileError(
            path, of_file=str(exc)
        ) from None
    if problems and _is_cloud(document):
        raise tools_errors.ExpectationsFileError(
            path,
            of_file='is a cloud file, not a file of expectations; name it '
            'with --snapshot',
        )
    if problems:
        raise tools_errors.ExpectationsFileError(
            path, yaml_errors.messages(problems, root)
        )
    lines = yaml_errors.item_lines(root, 'expectations')
    return [
        _expectation(entry, line)
        for entry, line in zip(document['expectations'], lines, strict=True)
    ]


def _is_cloud(document: object) -> bool:
    return (
        isinstance(document, Mapping)
        and 'expectations' not in document
        and not _OF_CLOUDS.isdisjoint(document)
    )


def check_new(path: str | os.PathLike[str]) -> None:
    """Check that a file can be written and does not exist yet."""
    with _write_errors(path):
        files.check(path, None)


def save(
    entries: Iterable[Mapping[str, Any]], path: str | os.PathLike[str]
) -> None:
    """Write a file of expectations atomically."""
    document = {'version': VERSION, 'expectations': list(entries)}
    with _write_errors(path), files.replacing(path, None) as stream:
        yaml.safe_dump(document, stream, allow_unicode=True, sort_keys=False)


@contextlib.contextmanager
def _write_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise tools_errors.ExpectationsFileError(
            path, of_file=f'cannot be written: {exc.strerror}'
        ) from exc


@functools.cache
def _checker() -> Checker:
    source = importlib.resources.files(__package__) / 'schema.json'
    return Checker(json.loads(source.read_text('utf-8')))


def _expectation(entry: Mapping[str, Any], line: int) -> Expectation:
    check = _check(entry)
    return Expectation(entry.get('name', str(check)), line, check)


def _check(entry: Mapping[str, Any]) -> Check:
    match entry.get('tenant_images'):
        case 'open_no_lock':
            return checks.ImagesOfTenants()
        case 'can_open_no_lock':
            return checks.AnyImage()
    if 'survives' in entry:
        return Survives(_place(entry['survives']), entry.get('failures', 1))
    [rule] = _rules(entry)
    servers = checks.Servers(
        _names(entry, 'flavor'),
        _names(entry, 'image'),
        _names(entry, 'project'),
        entry.get('availability_zone'),
    )
    return checks.ServersCheck(servers, rule)


def _rules(entry: Mapping[str, Any]) -> Iterator[checks.Rule]:
    """Yield the rule of an expectation, which has exactly one."""
    if 'only' in entry:
        yield checks.Only(_place(entry['only']))
    if 'exactly' in entry:
        yield checks.Only(_place(entry['exactly']), is_exact=True)
    if 'never' in entry:
        yield checks.Never(_place(entry['never']))
    if 'min_hosts' in entry:
        yield checks.MinHosts(entry['min_hosts'])
    if 'min_room' in entry:
        yield checks.MinRoom(entry['min_room'])


def _place(entry: Mapping[str, Any]) -> Place:
    return Place(**{f: _names(entry, key) for f, key in _PLACES.items()})


def _names(entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    names = entry.get(key, ())
    return (names,) if isinstance(names, str) else tuple(names)
