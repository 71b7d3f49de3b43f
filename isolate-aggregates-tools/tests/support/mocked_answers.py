# SPDX-License-Identifier: Apache-2.0
"""Answers of Placement, of the real one and of a mocked one, to compare."""

from collections.abc import Mapping
import dataclasses
import json
from typing import Any

# Generations count changes, errors have words and numbers of their own, and
# some errors do not say what they depend on.
_FREE = (
    'generation',
    'resource_provider_generation',
    'detail',
    'message',
    'request_id',
)
_HEADERS = (
    'Allow',
    'Cache-Control',
    'Content-Type',
    'OpenStack-API-Version',
)


@dataclasses.dataclass(frozen=True)
class Comparable:
    """What has to be the same of two answers."""

    status: int
    headers: Mapping[str, str]
    document: Any


def comparable(status, headers, document):
    """Return an answer without what may differ."""
    headers = {name.lower(): value for name, value in headers.items()}
    kept = {name: headers.get(name.lower()) for name in _HEADERS}
    if status < 400:
        kept['Vary'] = headers.get('vary')
    if document is None:
        del kept['Content-Type']
    return Comparable(status, kept, in_order(document))


def in_order(value):
    """Return JSON in one order, without what may differ."""
    if isinstance(value, Mapping):
        return {
            key: 'something' if key in _FREE else in_order(item)
            for key, item in sorted(value.items())
        }
    if isinstance(value, list | tuple | set):
        return sorted(map(in_order, value), key=json.dumps)
    return value
