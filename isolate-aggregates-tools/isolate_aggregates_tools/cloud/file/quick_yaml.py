# SPDX-License-Identifier: Apache-2.0
"""Reads YAML files quickly, and leaves those with mistakes to checked_yaml.

libyaml's events become values at once. Nodes with lines, which only messages
need, would take five times as long and four times the memory. JSON, which is
YAML, takes a fifth of that.
"""

from collections.abc import Callable, Sequence
import contextlib
import json
from typing import Any, NoReturn

import yaml

from isolate_aggregates_tools.cloud.file.checked_yaml import TEXT_TAG

# PyYAML has libyaml, unless it was built where that is missing.
_Loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class Doubtful(ValueError):
    """The file is wrong, or too unusual to be read quickly."""


def load(text: str) -> Any:
    """Return the document of a text; the same as :func:`checked_yaml.parse`.

    :raises Doubtful: if it may be something else.
    """
    # libyaml drops byte order marks, wherever they are.
    if '\ufeff' in text[1:]:
        raise Doubtful
    # YAML takes no other character that JSON would not escape.
    if text.startswith('{') and text.isascii() and '\x7f' not in text:
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(
                text,
                object_pairs_hook=_mapping,
                parse_float=_number,
                parse_constant=_doubt,
            )
    try:
        return _Composer(text).document()
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise Doubtful from exc


def _mapping(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise Doubtful
    return mapping


def _number(text: str) -> float:
    # For YAML, 1e3 is text.
    return _doubt() if 'e' in text.lower() else float(text)


def _doubt(_: str = '') -> NoReturn:
    raise Doubtful


class _Composer:
    """Composes the values of a text without tags."""

    def __init__(self, text: str) -> None:
        self._loader: Any = _Loader(text)
        self._next: Callable[[], Any] = self._loader.get_event
        # The values of scalars, of which most occur many times.
        self._plain: dict[str, Any] = {}
        self._quoted: dict[str, str] = {}
        self._anchors: dict[str, Any] = {}

    def document(self) -> Any:
        self._expect(yaml.StreamStartEvent)
        self._expect(yaml.DocumentStartEvent)
        value = self._value(self._next())
        self._expect(yaml.DocumentEndEvent)
        self._expect(yaml.StreamEndEvent)
        return value

    def _expect(self, kind: type[yaml.Event]) -> None:
        if not isinstance(self._next(), kind):
            raise Doubtful

    def _value(self, event: Any) -> Any:
        if type(event) is yaml.AliasEvent:
            if event.anchor not in self._anchors:
                raise Doubtful
            return self._anchors[event.anchor]
        if event.tag or event.anchor in self._anchors:
            raise Doubtful
        value = self._new_value(event)
        if event.anchor:
            self._anchors[event.anchor] = value
        return value

    def _new_value(self, event: Any) -> Any:
        if type(event) is yaml.ScalarEvent:
            return self._scalar(event)
        if type(event) is yaml.MappingStartEvent:
            return self._mapping()
        return self._sequence()

    def _mapping(self) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while type(event := self._next()) is not yaml.MappingEndEvent:
            key = self._value(event)
            if type(key) is not str or key in mapping:
                raise Doubtful
            mapping[key] = self._value(self._next())
        return mapping

    def _sequence(self) -> list[Any]:
        values = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            values.append(self._value(event))
        return values

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text = event.value
        if not event.implicit[0]:
            return self._quoted.setdefault(text, text)
        if text not in self._plain:
            self._plain[text] = self._plain_value(text)
        return self._plain[text]

    def _plain_value(self, text: str) -> Any:
        tag = self._loader.resolve(yaml.ScalarNode, text, (True, False))
        if tag == TEXT_TAG:
            return text
        return self._loader.construct_object(yaml.ScalarNode(tag, text))
