# SPDX-License-Identifier: Apache-2.0
"""JSON documents of commands: dataclasses, and the schemas of these.

The fields of a dataclass are the keys of an object. ``Annotated`` adds the
description of a key, or more of its schema. A field whose name is reserved in
Python ends with an underscore, which the key has not. Sets are sorted.

Each document names its schema, whose id ends with its version. The schemas are
files in ``schemas`` of each distribution, which ``make sample`` writes.
"""

from collections.abc import Mapping, Set
import dataclasses
import types
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

Count = Annotated[int, {'minimum': 0}]
Time = Annotated[str, {'format': 'date-time'}]
SHA256 = Annotated[str, {'pattern': '^[0-9a-f]{64}$'}]
Names = tuple[str, ...]

# Within a version, keys are only added.
VERSION = 1

_TYPES = {
    bool: 'boolean',
    dict: 'object',
    float: 'number',
    int: 'integer',
    str: 'string',
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Aggregate:
    """A host aggregate."""

    name: str
    uuid: str


def content(value: Any) -> Any:
    """Return a document as JSON writes it."""
    if dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value))
        return {_key(name): content(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return list(map(content, value))
    if isinstance(value, Set):
        return sorted(value)
    if isinstance(value, Mapping):
        return {key: content(one) for key, one in value.items()}
    return value


def one_of(*values: str) -> dict[str, Any]:
    """Return the schema of a text that is one of some."""
    return {'enum': list(values)}


def schema(kind: Any, title: str) -> dict[str, Any]:
    """Return the JSON schema of a kind of documents."""
    draft = 'https://json-schema.org/draft/2020-12/schema'
    return {'$schema': draft, 'title': title, **_schema(kind)}


def schema_id(command: str) -> str:
    """Return the id of the schema of the document of a command.

    :param command: Its name, such as "lock list".
    """
    return f'isolate-aggregates/{command.replace(" ", "-")}/{VERSION}'


def published(
    schemas: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    """Return the schemas as they are published, with ids.

    :param schemas: By the name of the command.
    """
    return {
        command: {
            '$schema': each['$schema'],
            '$id': schema_id(command),
            **with_id(each, command),
        }
        for command, each in schemas.items()
    }


def with_id(schema: Mapping[str, Any], *commands: str) -> dict[str, Any]:
    """Return a schema whose documents also name that of their command."""
    if 'anyOf' in schema:
        some = [with_id(each, *commands) for each in schema['anyOf']]
        return {**schema, 'anyOf': some}
    if schema['type'] != 'object':
        # Rows, of which there may be none.
        return {**schema}
    return {
        **schema,
        'required': ['schema', *schema['required']],
        'properties': {
            'schema': one_of(*map(schema_id, commands)),
            **schema['properties'],
        },
    }


def _key(name: str) -> str:
    return name.removesuffix('_')


def _schema(kind: Any) -> dict[str, Any]:
    arguments, origin = get_args(kind), get_origin(kind)
    if kind is Any:
        return {}
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        names = [field.name for field in dataclasses.fields(kind)]
        return {
            'type': 'object',
            'additionalProperties': False,
            'required': list(map(_key, names)),
            'properties': {_key(name): _schema(hints[name]) for name in names},
        }
    if origin is Annotated:
        found = _schema(arguments[0])
        for more in arguments[1:]:
            found |= {'description': more} if isinstance(more, str) else more
        return found
    if origin in (tuple, frozenset):
        return {'type': 'array', 'items': _schema(arguments[0])}
    if origin is Mapping:
        return {
            'type': 'object',
            'additionalProperties': _schema(arguments[1]),
        }
    if origin in (types.UnionType, Union):
        some = [_schema(one) for one in arguments if one is not type(None)]
        null = [{'type': 'null'}] * (type(None) in arguments)
        if all(each.keys() == {'type'} for each in some):
            return {'type': [each['type'] for each in (*some, *null)]}
        return {'anyOf': [*null, *some]}
    return {'type': _TYPES[origin or kind]}
