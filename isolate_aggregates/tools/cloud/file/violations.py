# SPDX-License-Identifier: Apache-2.0
"""Explains where a document violates a JSON schema."""

from collections.abc import Iterator, Mapping
import math
from typing import Any

import jsonschema

from isolate_aggregates.text import short
from isolate_aggregates.tools.cloud.file.checked_yaml import (
    ENDLESS,
    Unreadable,
)
from isolate_aggregates.tools.cloud.file.yaml_errors import Problem
from isolate_aggregates.tools.wording import meant


class Checker:
    """Checks documents against a schema.

    Parts that the schema defines elsewhere, such as inventories, are checked
    once if they are equal.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        base = jsonschema.Draft202012Validator
        # For JSON schema 4.0 is an integer, and YAML has infinity.
        types = base.TYPE_CHECKER.redefine_many(
            {
                'integer': lambda _, value: type(value) is int,
                'number': lambda _, value: (
                    type(value) is int
                    or (type(value) is float and math.isfinite(value))
                ),
            }
        )
        self._check_part = base.VALIDATORS['$ref']
        self._validator = jsonschema.validators.extend(
            base, {'$ref': self._check_once}, type_checker=types
        )(schema)
        # What has a name or an id is equal to nothing else.
        self._unique = {
            f'#/$defs/{name}'
            for name, part in schema.get('$defs', {}).items()
            if {'name', 'id'} & {*part.get('required', ())}
        }
        # The definitions and texts of valid parts.
        self._valid: set[tuple[str, str]] = set()

    def violations(self, document: Any) -> list[Problem]:
        """Return where a document violates the schema.

        :raises Unreadable: if it contains itself.
        """
        try:
            return [
                Problem((*error.absolute_path, *key), text)
                for error in self._validator.iter_errors(document)
                for key, text in _explained(error)
            ]
        except RecursionError:
            raise Unreadable(ENDLESS) from None
        finally:
            self._valid.clear()

    def _check_once(
        self, validator: Any, definition: str, part: Any, schema: Any
    ) -> Iterator[jsonschema.ValidationError]:
        if definition in self._unique:
            yield from self._check_part(validator, definition, part, schema)
            return
        # The same text is a value of the same types.
        key = definition, repr(part)
        if key in self._valid:
            return
        errors = list(self._check_part(validator, definition, part, schema))
        yield from errors
        if not errors:
            self._valid.add(key)


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
