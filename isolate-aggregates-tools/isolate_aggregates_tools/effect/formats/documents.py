# SPDX-License-Identifier: Apache-2.0
"""Reads JSON files of other tools."""

from collections.abc import Mapping
import dataclasses
import json
import os
from typing import Any, NoReturn

from isolate_aggregates.text import short
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import files

_KINDS = {
    dict: 'a mapping',
    list: 'a list',
    str: 'text',
    bool: 'true or false',
    int: 'an integer',
}


@dataclasses.dataclass(frozen=True)
class Part:
    """A value in a file.

    :param place: The path of keys from the top; empty for the whole file.
    """

    value: Any
    path: str
    place: str = ''

    def fail(self, problem: str) -> NoReturn:
        """Raise an error.

        :param problem: What is wrong, as a predicate.
        """
        subject = f': {self.place} ' if self.place else ' '
        raise tools_errors.ChangesFileError(self.path, f'{subject}{problem}')

    def __bool__(self) -> bool:
        return self.value is not None

    def member(self, key: str) -> 'Part':
        """Return a value of a mapping; None if it has no such key."""
        return self.mapping.get(key, Part(None, self.path, self._below(key)))

    @property
    def mapping(self) -> Mapping[str, 'Part']:
        """The values of a mapping; empty if there is none."""
        for key in self._of(dict, {}):
            if not isinstance(key, str):
                self.fail(
                    f'has the key {key!r}, but a key must be text; put it '
                    'in quotes'
                )
        return {
            key: Part(value, self.path, self._below(key))
            for key, value in self._of(dict, {}).items()
        }

    @property
    def items(self) -> list['Part']:
        """The items of a list; empty if there is none."""
        return [
            Part(item, self.path, f'{self.place}[{number}]')
            for number, item in enumerate(self._of(list, []))
        ]

    @property
    def text(self) -> str:
        """A text; empty if there is none."""
        return str(self._of(str, ''))

    @property
    def integer(self) -> int:
        """An integer; 0 if there is none."""
        if isinstance(self.value, bool):
            self.fail('must be an integer, not true or false')
        return int(self._of(int, 0))

    @property
    def required_text(self) -> str:
        """A text that is not empty."""
        if not self.text:
            self.fail('is missing or empty')
        return self.text

    @property
    def texts(self) -> dict[str, str]:
        """The values of a mapping from texts to texts."""
        return {key: part.text for key, part in self.mapping.items() if part}

    def _below(self, key: str) -> str:
        return f'{self.place}.{key}' if self.place else key

    def _of(self, kind: type, default: Any) -> Any:
        if self.value is None:
            return default
        if not isinstance(self.value, kind):
            what = _KINDS.get(type(self.value), short(repr(self.value)))
            self.fail(f'must be {_KINDS[kind]}, not {what}')
        return self.value


def json_of(path: str | os.PathLike[str]) -> Part:
    """Return the document in a JSON file."""
    try:
        document = json.loads(_text(path))
    except json.JSONDecodeError as exc:
        _fail(
            path,
            f'is not JSON: line {exc.lineno}, column {exc.colno}: {exc.msg}',
        )
    except RecursionError:
        _fail(path, 'has lists or mappings that are nested too deeply')
    except ValueError as exc:
        _fail(path, f'is not JSON: {short(exc)}')
    return Part(document, str(path))


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return files.read_text(path, 'utf-8-sig')
    except OSError as exc:
        _fail(path, f'cannot be read: {exc.strerror}')
    except UnicodeDecodeError as exc:
        _fail(path, f'is not UTF-8 text: {exc.reason} at byte {exc.start}')


def _fail(path: str | os.PathLike[str], problem: str) -> NoReturn:
    raise tools_errors.ChangesFileError(str(path), f' {problem}') from None
