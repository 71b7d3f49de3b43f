# SPDX-License-Identifier: Apache-2.0
"""Checks whether a document is valid for a JSON schema, and no more.

Nearly all documents are valid. For these jsonschema, which also says what is
wrong with the others, takes ten times as long; and to import it takes as long
as most commands.
"""

from collections.abc import Callable, Mapping, Sequence
import math
import re
from typing import Any

Check = Callable[[Any], bool]

# Objects in objects of the same kind; a cloud has a few. If Python's own limit
# is reached while jsonschema calls its library in Rust, the program ends with
# a panic.
_DEEPEST = 25

# What only describes, or names other parts.
_UNCHECKED = {'$schema', '$defs', 'title', 'description'}
# The keywords of simple parts of a schema, and types.
_OF_TEXT = {'type', 'minLength', 'maxLength', 'pattern', 'description'}
_OF_AMOUNT = {'type', 'minimum', 'maximum', 'description'}
_OF_OBJECT = {
    *('type', 'additionalProperties', 'required', 'properties'),
    *_UNCHECKED,
}
_TEXTS = 'string', ['string', 'null']

# For JSON schema 4.0 is an integer, and YAML has infinity.
IS_TYPE: Mapping[str, Check] = {
    'array': lambda value: type(value) is list,
    'boolean': lambda value: type(value) is bool,
    'integer': lambda value: type(value) is int,
    'null': lambda value: value is None,
    'number': lambda value: (
        type(value) is int or (type(value) is float and math.isfinite(value))
    ),
    'object': lambda value: type(value) is dict,
    'string': lambda value: type(value) is str,
}


class Checks:
    """The checks of the parts of a schema.

    :param schema: A schema of draft 2020-12, of which each reference is to one
        of its own ``$defs``.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._named: Mapping[str, Any] = schema.get('$defs', {})
        # By identity of the part.
        self._made: dict[int, Check] = {}
        self._depth = 0

    def of(self, part: Any) -> Check:
        """Return the check of a part of the schema.

        :returns: A function that returns True only for valid values, and False
            for some that jsonschema accepts: those of a part with a keyword
            that it does not know, and lists of different mappings that must be
            unique. It raises RecursionError if a value contains itself, or too
            many of its kind in each other.
        """
        while part.keys() == {'$ref'}:
            part = self._named[part['$ref'].rpartition('/')[2]]
        number = id(part)
        if number not in self._made:
            # For a part that refers to itself.
            self._made[number] = lambda value: self._is_valid(number, value)
            self._made[number] = self._new(part)
        return self._made[number]

    def _is_valid(self, number: int, value: Any) -> bool:
        """Check a value in another one of its kind."""
        if self._depth == _DEEPEST:
            raise RecursionError
        self._depth += 1
        try:
            return self._made[number](value)
        finally:
            self._depth -= 1

    def _new(self, part: Mapping[str, Any]) -> Check:
        # Most values are texts, amounts and objects with known keys.
        if part.get('type') in _TEXTS and part.keys() <= _OF_TEXT:
            return _text_check(part)
        if part.get('type') == 'integer' and part.keys() <= _OF_AMOUNT:
            return _amount_check(part)
        if part.get('additionalProperties') is False and (
            part.get('type') == 'object' and part.keys() <= _OF_OBJECT
        ):
            checks = {
                key: self.of(each) for key, each in part['properties'].items()
            }
            required = {*part.get('required', ())}
            return lambda value: _is_object(checks, required, value)
        # Several keywords may have one function.
        makers = {
            _OF_KEYWORD.get(keyword, Checks._unknown)
            for keyword in part
            if keyword not in _UNCHECKED
        }
        return _all([make(self, part) for make in makers])

    def _unknown(self, part: Mapping[str, Any]) -> Check:
        return lambda value: False

    def _type(self, part: Mapping[str, Any]) -> Check:
        types = part['type']
        names = [types] if isinstance(types, str) else types
        return _any([IS_TYPE[name] for name in names])

    def _values(self, part: Mapping[str, Any]) -> Check:
        values = [part['const']] if 'const' in part else part['enum']
        # True is 1 for Python, and not for JSON schema.
        known = {(type(each), each) for each in values}
        return lambda value: (
            isinstance(value, str | int) and (type(value), value) in known
        )

    def _properties(self, part: Mapping[str, Any]) -> Check:
        if 'properties' in part:
            return self._unknown(part)
        check = self.of(part['additionalProperties'])
        return lambda value: (
            not isinstance(value, dict) or all(map(check, value.values()))
        )

    def _names(self, part: Mapping[str, Any]) -> Check:
        check = self.of(part['propertyNames'])
        return lambda value: (
            not isinstance(value, dict) or all(map(check, value))
        )

    def _items(self, part: Mapping[str, Any]) -> Check:
        check = self.of(part['items'])
        return lambda value: (
            not isinstance(value, list) or all(map(check, value))
        )

    def _unique(self, part: Mapping[str, Any]) -> Check:
        return lambda value: not isinstance(value, list) or _differ(value)

    def _length(self, part: Mapping[str, Any]) -> Check:
        is_long = _text_check(part)
        return lambda value: not isinstance(value, str) or is_long(value)

    def _amount(self, part: Mapping[str, Any]) -> Check:
        least, most = _bounds(part)
        is_number = IS_TYPE['number']
        return lambda value: not is_number(value) or least <= value <= most

    def _choice(self, part: Mapping[str, Any]) -> Check:
        if part['if'].keys() != {'type'}:
            # Valid values of others may not be found.
            return self._unknown(part)
        condition = self.of(part['if'])
        then, otherwise = self.of(part['then']), self.of(part['else'])
        return lambda value: (
            then(value) if condition(value) else otherwise(value)
        )

    def _one_at_least(self, part: Mapping[str, Any]) -> Check:
        return _any([self.of(each) for each in part['anyOf']])


# Makes the check of each keyword from the part that has it.
_OF_KEYWORD: Mapping[str, Callable[[Checks, Mapping[str, Any]], Check]] = {
    'additionalProperties': Checks._properties,
    'anyOf': Checks._one_at_least,
    'const': Checks._values,
    'else': Checks._choice,
    'enum': Checks._values,
    'if': Checks._choice,
    'items': Checks._items,
    'maxLength': Checks._length,
    'maximum': Checks._amount,
    'minLength': Checks._length,
    'minimum': Checks._amount,
    'propertyNames': Checks._names,
    'then': Checks._choice,
    'type': Checks._type,
    'uniqueItems': Checks._unique,
}


def _all(checks: Sequence[Check]) -> Check:
    first, *rest = checks
    if not rest:
        return first
    others = _all(rest)
    return lambda value: first(value) and others(value)


def _any(checks: Sequence[Check]) -> Check:
    first, *rest = checks
    if not rest:
        return first
    others = _any(rest)
    return lambda value: first(value) or others(value)


def _differ(values: list[Any]) -> bool:
    """Return whether all values differ; for mappings and lists, False.

    What JSON schema takes for the same, such as 1 and 1.0, Python does, too.
    """
    try:
        return len(set(values)) == len(values)
    except TypeError:
        return False


def _text_check(part: Mapping[str, Any]) -> Check:
    least, most = part.get('minLength', 0), part.get('maxLength', math.inf)
    search = re.compile(part['pattern']).search if 'pattern' in part else None
    is_optional = part.get('type') == _TEXTS[1]

    def is_text(value: Any) -> bool:
        if type(value) is not str:
            return is_optional and value is None
        return least <= len(value) <= most and (
            search is None or search(value) is not None
        )

    return is_text


def _bounds(part: Mapping[str, Any]) -> tuple[float, float]:
    return part.get('minimum', -math.inf), part.get('maximum', math.inf)


def _amount_check(part: Mapping[str, Any]) -> Check:
    least, most = _bounds(part)
    return lambda value: type(value) is int and least <= value <= most


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
