# SPDX-License-Identifier: Apache-2.0
"""Finds the record of a decision in a line of a log.

A log has text of tenants: names, scheduler hints, properties of images. A line
has a record only if its beginning, or the envelope that a log collector puts
around it, says that our logger has written it; both are out of reach of that
text.
"""

from collections.abc import Mapping
import contextlib
import enum
import json
import re
from typing import Any

from isolate_aggregates.record import CONFIGURATION, LOGGER, SCHEMA

_FAMILY = SCHEMA.rpartition('/')[0] + '/'
# A record begins with its schema. The quotes in its own texts are escaped, so
# the last such beginning is that of the record, whatever the names of project
# and user before it are.
_BEGINNING = f'{{"schema":"{SCHEMA.partition("/")[0]}/'
# The same inside a JSON string.
_ESCAPED = _BEGINNING.replace('"', '\\"')

_TIME = r'\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)*(?:Z|[+-]\d\d:?\d\d)? '
_LEVEL = 'TRACE|DEBUG|INFO|AUDIT|WARNING|ERROR|CRITICAL'
# A log without the names of loggers has the message after the level.
_NO_LEVEL = rf'(?!(?:{_LEVEL})\b)'
# syslog, also as journalctl writes it: time, host, program.
_SYSLOG = (
    rf'(?:<\d+>)?(?:{_TIME}|[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d )'
    rf'(?:{_NO_LEVEL}[\w.-]+ )?{_NO_LEVEL}[\w./-]+(?:\[\d+\])?: '
    # RFC 5424: time, host, program, process, message, no structured data.
    rf'|<\d+>1 {_TIME}\S+ \S+ \S+ \S+ - (?:\ufeff)?'
)
# What containerd, CRI-O, and "docker logs -t" write.
_RUNTIME = rf'{_TIME}(?:std(?:out|err) (?P<part>[FP]) )?'
# "kubectl logs --prefix", "docker compose logs".
_COLLECTED = r'(?:\[pod/[\w./-]+\] |[\w.-]+ +\| )?'
_HEADER = re.compile(
    rf'{_COLLECTED}(?:{_RUNTIME})??(?:{_SYSLOG})?(?:{_TIME})?(?:\d+ )?'
    rf'(?P<level>{_LEVEL})[ :]\[?(?P<logger>[\w.]+)\]?[ :]'
)
_CONTAINER = re.compile(_COLLECTED + _RUNTIME + r'(?=\{)')
# Colors, as of DevStack.
_COLOR = re.compile('\x1b\\[[0-9;]*m')

# The keys of the logger and of the text, in JSON that names the logger: that
# of oslo.log, of journald, of the fluentd of kolla-ansible.
_NAMED = (
    ('name', 'message'),
    ('LOGGER_NAME', 'MESSAGE'),
    ('python_module', 'Payload'),
)
# The keys of a whole line, in JSON that does not: of journald, of Docker and
# Fluent Bit, of logcli, of Filebeat.
_WHOLE = ('MESSAGE', 'log', 'line', 'message')
# Docker around oslo.log's JSON, in an export.
_DEPTH = 3

_DECODER = json.JSONDecoder()

# What oslo.log's JSON of our logger begins with, before and after the text.
_OSLO_BEGINNING = '{"message": "'
_OSLO_NAME = re.compile(
    rf', "asctime": "[^"\\\\]*", "name": "{re.escape(LOGGER)}", '
)


class Unread(enum.Enum):
    """Why a line that seems to have a record is not counted."""

    CUT = 'cut off'
    VERSION = 'of an unknown version'
    FORMAT = 'in an unknown format'
    INVALID = 'without what a record must have'


def of_line(line: bytes) -> dict[str, Any] | Unread | None:
    """Return the record in a line.

    :returns: Why it is not counted, if it seems to have one. None for all
        other lines.
    """
    # Most lines of a log are not ours.
    if _LOGGER not in line and b'"MESSAGE":[' not in line:
        return None
    return _of_text(line.decode(errors='replace'), _DEPTH)


_LOGGER = LOGGER.encode()


def _of_text(text: str, depth: int) -> dict[str, Any] | Unread | None:
    text = _plain(text)
    container = None if text.startswith('{') else _CONTAINER.match(text)
    json_at = container.end() if container else 0
    if text.startswith('{', json_at):
        if container and container['part'] == 'P':
            return Unread.CUT
        return _of_json(text[json_at:], depth)
    header = _HEADER.match(text)
    if header is None:
        return _unknown(text)
    if header['logger'] != LOGGER or header['level'] != 'INFO':
        return None
    return _record(text, header.end())


def _of_json(text: str, depth: int) -> dict[str, Any] | Unread | None:
    if text.startswith(_OSLO_BEGINNING):
        # The rest has the same text again, which would take as long.
        with contextlib.suppress(ValueError):
            inner, end = _DECODER.raw_decode(text, len(_OSLO_BEGINNING) - 1)
            if _OSLO_NAME.match(text, end):
                return _record(inner, 0)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return _unknown(text)
    if not isinstance(document, dict) or not depth:
        return _unknown(text)
    for name_key, text_key in _NAMED:
        if isinstance(name := document.get(name_key), str):
            if name != LOGGER:
                return None
            inner = _text(document.get(text_key))
            # Of journald it may be the whole line.
            if inner.startswith('{') and not inner.startswith(_BEGINNING):
                return _of_json(inner, depth - 1)
            return _record(inner, 0)
    for key in _WHOLE:
        if inner := _text(document.get(key)):
            return _of_text(inner, depth - 1)
    return _unknown(text)


def _plain(text: str) -> str:
    """Return a line without colors and spaces at its end."""
    return (_COLOR.sub('', text) if '\x1b' in text else text).rstrip()


def _text(value: Any) -> str:
    if isinstance(value, list):
        # journald writes so what has control characters.
        try:
            value = bytes(value).decode(errors='replace')
        except (TypeError, ValueError):
            return ''
    return value if isinstance(value, str) else ''


def _unknown(text: str) -> Unread | None:
    """Return whether what is not read looks like a record."""
    is_like = _BEGINNING in text or _ESCAPED in text
    return Unread.FORMAT if is_like and LOGGER in text else None


def _record(text: str, start: int) -> dict[str, Any] | Unread | None:
    """Return the record at the end of what our logger has written."""
    text = _plain(text)
    at = text.rfind(_BEGINNING, start)
    try:
        if at < 0:
            return Unread.CUT
        document, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return Unread.CUT
    if end != len(text):
        return Unread.CUT
    schema = document['schema']
    if schema == CONFIGURATION:
        return None
    if schema != SCHEMA:
        return Unread.VERSION if schema.startswith(_FAMILY) else None
    return document if _is_complete(document) else Unread.INVALID


def _is_complete(document: Mapping[str, Any]) -> bool:
    """Return whether a record has what is read of it, of the right type."""
    try:
        flavor = document['flavor']
        return (
            isinstance(document['at'], str)
            and isinstance(document['request'], str)
            and isinstance(document['operation'], str)
            and isinstance(document['result'], str)
            and isinstance(document['server'], str | None)
            and isinstance(document['project'], str | None)
            and isinstance(flavor['id'], str)
            and isinstance(flavor.get('name', ''), str)
            # It is left out of a line that would be too long.
            and isinstance(document.get('keys', {}), dict)
            and isinstance(document.get('cause', ''), str)
            and isinstance(document.get('detail', {}), dict)
            and isinstance(document.get('shadow', {}), dict)
        )
    except (LookupError, TypeError, AttributeError):
        return False
