# SPDX-License-Identifier: Apache-2.0
"""JSON documents of commands: dataclasses, and the schemas of these.

The fields of a dataclass are the keys of an object. ``Annotated`` adds the
description of a key, or more of its schema.
"""

from collections.abc import Mapping
import dataclasses
import types
from typing import Annotated, Any, get_args, get_origin, get_type_hints

Count = Annotated[int, {'minimum': 0}]

_TYPES = {bool: 'boolean', int: 'integer', str: 'string', dict: 'object'}


def content(value: Any) -> Any:
    """Return a document as JSON writes it."""
    if dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value))
        return {name: content(getattr(value, name)) for name in names}
    if isinstance(value, tuple):
        return list(map(content, value))
    return value


def schema(kind: type, title: str) -> dict[str, Any]:
    """Return the JSON schema of a kind of documents."""
    draft = 'https://json-schema.org/draft/2020-12/schema'
    return {'$schema': draft, 'title': title, **_schema(kind)}


def _schema(kind: Any) -> dict[str, Any]:
    arguments, origin = get_args(kind), get_origin(kind)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        names = [field.name for field in dataclasses.fields(kind)]
        return {
            'type': 'object',
            'additionalProperties': False,
            'required': names,
            'properties': {name: _schema(hints[name]) for name in names},
        }
    if origin is Annotated:
        found = _schema(arguments[0])
        for more in arguments[1:]:
            found |= {'description': more} if isinstance(more, str) else more
        return found
    if origin is tuple:
        return {'type': 'array', 'items': _schema(arguments[0])}
    if origin is Mapping:
        return {
            'type': 'object',
            'additionalProperties': _schema(arguments[1]),
        }
    if origin is types.UnionType:
        some = _schema(arguments[0])
        if some.keys() == {'type'}:
            return {'type': [some['type'], 'null']}
        return {'anyOf': [{'type': 'null'}, some]}
    return {'type': _TYPES[origin or kind]}
