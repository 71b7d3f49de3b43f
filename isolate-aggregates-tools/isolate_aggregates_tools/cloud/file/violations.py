# SPDX-License-Identifier: Apache-2.0
"""Explains where a document violates a JSON schema."""

from collections.abc import Callable, Iterator, Mapping
import functools
import marshal
import math
import re
from typing import Any

import jsonschema

from isolate_aggregates.suggestions import meant
from isolate_aggregates.text import short
from isolate_aggregates_tools.cloud.file.checked_yaml import (
    ENDLESS,
    Unreadable,
)
from isolate_aggregates_tools.cloud.file.yaml_errors import Problem

# Values in values; a cloud has a few. If Python's own limit is reached while
# jsonschema calls its library in Rust, the program ends with a panic.
_DEEPEST = 25
# The keywords of simple parts of a schema, and types.
_OF_TEXT = {'type', 'minLength', 'maxLength', 'pattern', 'description'}
_OF_AMOUNT = {'type', 'minimum', 'maximum', 'description'}
_OF_MAPPING = {'type', 'additionalProperties', 'description'}
_OF_OBJECT = {
    *('type', 'additionalProperties', 'required', 'properties'),
    'description',
}
_TEXTS = 'string', ['string', 'null']

Check = Callable[[Any], bool]


class Checker:
    """Checks documents against a schema.

    Clouds are large, and most of their values occur many times. So values that
    have been found valid are remembered, and only for those that are not does
    jsonschema follow where in the document they are, which takes the most
    time.
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
        self._validator = jsonschema.validators.extend(
            base,
            {'items': self._check_items, 'properties': self._check_properties},
            type_checker=types,
        )(schema)
        self._named: Mapping[str, Any] = schema.get('$defs', {})
        # Checks of parts of the schema, by identity.
        self._checks: dict[int, Check] = {}
        # Parts of the schema, and their valid values as bytes.
        self._valid: set[tuple[int, bytes]] = set()
        self._depth = 0

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
            self._depth = 0

    def _check_items(
        self, validator: Any, part: Any, instance: Any, schema: Any
    ) -> Iterator[jsonschema.ValidationError]:
        if not isinstance(instance, list):
            return
        for number, value in enumerate(instance):
            if not self._is_valid(validator, part, value):
                yield from validator.descend(value, part, path=number)

    def _check_properties(
        self,
        validator: Any,
        parts: Mapping[str, Any],
        instance: Any,
        schema: Any,
    ) -> Iterator[jsonschema.ValidationError]:
        if not isinstance(instance, dict):
            return
        for key, part in parts.items():
            if key in instance and not self._is_valid(
                validator, part, instance[key]
            ):
                yield from validator.descend(
                    instance[key], part, path=key, schema_path=key
                )

    def _is_valid(self, validator: Any, part: Any, value: Any) -> bool:
        number = id(part)
        if number not in self._checks:
            self._checks[number] = self._check_of(validator, part)
        return self._checks[number](value)

    def _check_of(self, validator: Any, part: Any) -> Check:
        """Return a check of a part of the schema.

        Most values are texts and objects with known keys, for which jsonschema
        takes ten times as long.
        """
        while part.keys() == {'$ref'}:
            part = self._named[part['$ref'].rpartition('/')[2]]
        if part.get('type') in _TEXTS and part.keys() <= _OF_TEXT:
            return _text_check(part)
        if _is_amount(part):
            return _amount_check(part)
        if part.keys() <= _OF_MAPPING and _is_amount(
            part.get('additionalProperties')
        ):
            return functools.partial(
                _are_amounts, _amount_check(part['additionalProperties'])
            )
        if part.get('additionalProperties') is False and (
            part.keys() <= _OF_OBJECT
        ):
            checks = {
                key: self._check_of(validator, each)
                for key, each in part['properties'].items()
            }
            return functools.partial(
                _is_object, checks, {*part.get('required', ())}
            )
        return functools.partial(
            self._is_known, validator.evolve(schema=part), id(part)
        )

    def _is_known(self, validator: Any, number: int, value: Any) -> bool:
        """Return whether a value is valid, or was found to be."""
        key = number, _bytes_of(value)
        if key in self._valid:
            return True
        if self._depth == _DEEPEST:
            raise RecursionError
        self._depth += 1
        is_valid = bool(validator.is_valid(value))
        self._depth -= 1
        if is_valid and key[1]:
            self._valid.add(key)
        return is_valid


def _text_check(part: Mapping[str, Any]) -> Check:
    least, most = part.get('minLength', 0), part.get('maxLength', math.inf)
    search = re.compile(part['pattern']).search if 'pattern' in part else None
    is_optional = part['type'] != 'string'

    def is_text(value: Any) -> bool:
        if type(value) is not str:
            return is_optional and value is None
        return least <= len(value) <= most and (
            search is None or search(value) is not None
        )

    return is_text


def _is_amount(part: Any) -> bool:
    return (
        isinstance(part, Mapping)
        and part.get('type') == 'integer'
        and part.keys() <= _OF_AMOUNT
    )


def _amount_check(part: Mapping[str, Any]) -> Check:
    least, most = part.get('minimum', -math.inf), part.get('maximum', math.inf)
    return lambda value: type(value) is int and least <= value <= most


def _are_amounts(check: Check, value: Any) -> bool:
    return type(value) is dict and all(map(check, value.values()))


def _is_object(
    checks: Mapping[str, Check], required: set[str], value: Any
) -> bool:
    """Return whether a value is an object whose properties are valid."""
    if type(value) is not dict or not value.keys() >= required:
        return False
    for key, each in value.items():
        if key not in checks or not checks[key](each):
            return False
    return True


def _bytes_of(value: Any) -> bytes:
    """Return a value with its types as bytes; none if it has a name or id.

    Values of one schema that have a name or an id are all different.
    """
    try:
        return b'' if _is_unique(value) else marshal.dumps(value, 0)
    except ValueError:
        # A date of YAML, or a value that contains itself.
        return b''


def _is_unique(value: Any) -> bool:
    """Return whether a value has or contains a name or an id."""
    if isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, dict) and bool({'name', 'id'} & value.keys())


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
