# SPDX-License-Identifier: Apache-2.0
"""Says where a document violates a JSON schema, and how.

Imported late: jsonschema takes longer to import than most commands.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsonschema

from isolate_aggregates.suggestions import meant
from isolate_aggregates.text import short
from isolate_aggregates_tools.cloud.file.schema_checks import IS_TYPE, Check
from isolate_aggregates_tools.cloud.file.yaml_errors import Problem


def problems(
    schema: Mapping[str, Any],
    document: Any,
    check_of: Callable[[Any], Check],
) -> list[Problem]:
    """Return where a document violates a schema.

    Clouds are large, and jsonschema follows where in the document a value is,
    which takes the most time. It does so only for those that are not valid.

    :param check_of: Returns the check of a part of the schema.
    :raises RecursionError: if it contains itself.
    """

    def items(
        validator: Any, part: Any, instance: Any, _: Any
    ) -> Iterator[jsonschema.ValidationError]:
        if not isinstance(instance, list):
            return
        is_valid = check_of(part)
        for number, value in enumerate(instance):
            if not is_valid(value):
                yield from validator.descend(value, part, path=number)

    def properties(
        validator: Any, parts: Mapping[str, Any], instance: Any, _: Any
    ) -> Iterator[jsonschema.ValidationError]:
        if not isinstance(instance, dict):
            return
        for key, part in parts.items():
            if key in instance and not check_of(part)(instance[key]):
                yield from validator.descend(
                    instance[key], part, path=key, schema_path=key
                )

    base = jsonschema.Draft202012Validator
    types = base.TYPE_CHECKER.redefine_many(
        {
            name: lambda _, value, is_type=is_type: is_type(value)
            for name, is_type in IS_TYPE.items()
        }
    )
    validator = jsonschema.validators.extend(
        base,
        {'items': items, 'properties': properties},
        type_checker=types,
    )(schema)
    return [
        Problem((*error.absolute_path, *key), text)
        for error in validator.iter_errors(document)
        for key, text in _explained(error)
    ]


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
