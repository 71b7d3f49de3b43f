# SPDX-License-Identifier: Apache-2.0
"""Reads YAML files and checks them against a schema, with places and lines."""

from collections.abc import Iterator, Mapping
import math
import os
import pathlib
from typing import Any, NoReturn

import jsonschema
import yaml

from isolate_aggregates.text import meant, short
from isolate_aggregates.tools.cloud.file.yaml_errors import Problem

# Strings, and "<<", which merges another mapping.
KEY_TAGS = ('tag:yaml.org,2002:str', 'tag:yaml.org,2002:merge')


_ENDLESS = 'is nested too deeply, or contains itself'


class Unreadable(ValueError):
    """A file cannot be read as YAML; the message is a predicate."""


class Loader(yaml.SafeLoader):
    """Rejects duplicate keys and keys that are not strings.

    YAML would ignore all but one of the duplicates, and read keys like ``1``
    or ``yes`` as numbers or booleans.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = set()
        for key, _ in node.value:
            if key.tag not in KEY_TAGS:
                self._refuse(key, 'a key must be text; put it in quotes')
            if key.value in keys:
                self._refuse(key, f'the key {key.value!r} is given twice')
            keys.add(key.value)
        return node

    def _refuse(self, key: yaml.Node, problem: str) -> NoReturn:
        raise yaml.constructor.ConstructorError(
            None, None, problem, key.start_mark
        )


def text_of(path: str | os.PathLike[str]) -> str:
    """Return the text of a file.

    :raises Unreadable: if it cannot be read.
    """
    try:
        return pathlib.Path(path).read_text(encoding='utf-8')
    except OSError as exc:
        problem = f'cannot be read: {exc.strerror or exc}'
    except UnicodeDecodeError as exc:
        problem = f'is not UTF-8 text: {exc.reason} at byte {exc.start}'
    raise Unreadable(problem)


def parse(text: str) -> tuple[yaml.Node, Any]:
    """Return a document as nodes with line numbers, and as values.

    :raises Unreadable: if it is not one YAML document.
    """
    try:
        root, document = loaded(text, Loader)
        if root is not None:
            return root, document
        problem = 'is empty'
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        where = (
            f'line {mark.line + 1}, column {mark.column + 1}: ' if mark else ''
        )
        problem = f'is not YAML: {where}{exc.problem}'
    except (yaml.YAMLError, ValueError) as exc:
        problem = f'is not YAML: {" ".join(str(exc).split())}'
    except RecursionError:
        problem = _ENDLESS
    raise Unreadable(problem)


def loaded(text: str, loader_class: Any) -> tuple[yaml.Node | None, Any]:
    """Return a document as nodes and as values, None if it is empty."""
    loader = loader_class(text)
    root = loader.get_single_node()
    return root, None if root is None else loader.construct_document(root)


def validator(schema: Mapping[str, Any]) -> jsonschema.protocols.Validator:
    """Return what checks documents against a schema."""
    base = jsonschema.Draft202012Validator
    # For JSON schema 4.0 is an integer, and YAML has infinity.
    checker = base.TYPE_CHECKER.redefine_many(
        {
            'integer': lambda _, value: type(value) is int,
            'number': lambda _, value: (
                type(value) is int
                or (type(value) is float and math.isfinite(value))
            ),
        }
    )
    return jsonschema.validators.extend(base, type_checker=checker)(schema)


def violations(
    document: Any, checking: jsonschema.protocols.Validator
) -> list[Problem]:
    """Return where a document violates a schema.

    :raises Unreadable: if it contains itself.
    """
    try:
        return [
            Problem((*error.absolute_path, *key), text)
            for error in checking.iter_errors(document)
            for key, text in _explained(error)
        ]
    except RecursionError:
        raise Unreadable(_ENDLESS) from None


def _explained(
    error: jsonschema.ValidationError,
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield messages, each with the key below the place of the error."""
    if error.validator != 'additionalProperties':
        yield (), _explain(error)
        return
    properties = error.schema['properties']
    for key in error.instance:
        if key not in properties:
            yield (key,), f'is not a known key{meant(key, properties)}'


def _explain(error: jsonschema.ValidationError) -> str:
    """Return a message for a violation of the schema."""
    value, rule = error.instance, error.validator_value
    match error.validator:
        case 'const':
            return f'must be {rule!r}, not {value!r}'
        case 'type':
            types = [rule] if isinstance(rule, str) else rule
            what = ' or '.join(_TYPES[kind] for kind in types)
            return f'must be {what}, not {_described(value)}{_colon(error)}'
        case 'required':
            # The message names one property, the rule lists all of them.
            name = error.message.removesuffix(' is a required property')
            return f'has no {name}'
        case 'minimum':
            return f'must be at least {rule}, not {value}'
        case 'maximum':
            return f'must be at most {rule}, not {value}'
        case 'uniqueItems':
            several = [item for item in value if value.count(item) > 1]
            return f'has {several[0]} more than once'
        case 'pattern':
            return f'must be a uuid, not {value!r}'
        case 'enum':
            return f'must be {" or ".join(rule)}, not {_described(value)}'
        case 'minProperties' | 'minItems' | 'minLength':
            return 'must not be empty'
        case 'dependentRequired':
            return f'has no {error.message.split(chr(39))[1]}'
        case 'not':
            # A key that a schema for another key excludes.
            *_, other, _, _, _ = error.absolute_schema_path
            return f'cannot be combined with {other}'
        case 'oneOf':
            names = [choice['required'][0] for choice in rule]
            return f'must have exactly one of {", ".join(names)}'
    return str(error.message)


_TYPES = {
    'array': 'a list',
    'boolean': 'true or false',
    'integer': 'an integer',
    'null': 'null',
    'number': 'a number',
    'object': 'a mapping of keys to values',
    'string': 'text',
}


def _described(value: Any) -> str:
    if isinstance(value, dict):
        return 'a mapping'
    if isinstance(value, list):
        return 'a list'
    return 'nothing' if value is None else short(repr(value))


def _colon(error: jsonschema.ValidationError) -> str:
    """Return a hint if a space after a colon is missing."""
    key = error.absolute_path[-1] if error.absolute_path else ''
    text = error.instance if error.instance is not None else key
    if not isinstance(text, str) or ':' not in text:
        return ''
    name, _, value = text.rpartition(':')
    return f'; YAML requires a space after a colon, "{name}: {value.strip()}"'
