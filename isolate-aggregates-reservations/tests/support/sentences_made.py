# SPDX-License-Identifier: Apache-2.0
"""Where reservations make the sentences that tell problems and refusals.

A place is the name of a function, and which of its sentences: the first is
``problems.status_of 1``. So a sentence can be worded anew without changing its
place, and a new one has a place of its own.
"""

import ast
from collections.abc import Iterator
import functools
import pathlib
import sys

import pytest

from isolate_aggregates import exception
from isolate_aggregates_reservations import actions, status
from isolate_aggregates_reservations import api as reservations
import isolate_aggregates_tools.errors  # noqa: F401

_ROOT = pathlib.Path(reservations.__file__).parent


def _errors(error: type = exception.IsolateAggregatesError) -> Iterator[type]:
    yield error
    for each in error.__subclasses__():
        yield from _errors(each)


def _name(call: ast.Call) -> str:
    function = call.func
    return getattr(function, 'attr', None) or getattr(function, 'id', '')


def _calls(
    node: ast.AST, told: frozenset[str], names: tuple[str, ...] = ()
) -> Iterator[tuple[str, int]]:
    """Yield the calls in the order of the text, with the function's name."""
    for child in ast.iter_child_nodes(node):
        inner = names
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            inner = (*names, child.name)
        if isinstance(child, ast.Call) and _name(child) in told:
            yield '.'.join(names), child.lineno
        yield from _calls(child, told, inner)


def told() -> tuple[type, ...]:
    """The classes whose objects tell something."""
    return (status.Problem, actions.Refuse, *_errors())


@functools.cache
def places(room: str = '', *others: str) -> dict[tuple[str, int], str]:
    """All places, by file and line.

    :param room: A package, or all but that of Blazar's plugin.
    :param others: What else tells something there.
    """
    names = frozenset({each.__name__ for each in told()} | {*others})
    found = {}
    for path in sorted((_ROOT / room).rglob('*.py')):
        inside = path.relative_to(_ROOT / room).with_suffix('').parts
        if 'blazar' in inside:
            continue
        numbers: dict[str, int] = {}
        for function, line in _calls(ast.parse(path.read_text()), names):
            place = '.'.join((*inside, function))
            numbers[place] = numbers.get(place, 0) + 1
            found[str(path), line] = f'{place} {numbers[place]}'
    return found


def watched(function, known, found):  # type: ignore[no-untyped-def]
    """Return a function that notes from which known place it is called."""

    @functools.wraps(function)
    def watching(*args: object, **values: object) -> object:
        frame = sys._getframe(1)
        while frame is not None:
            key = frame.f_code.co_filename, frame.f_lineno
            if key in known:
                found.add(known[key])
                break
            frame = frame.f_back  # type: ignore[assignment]
        return function(*args, **values)

    return watching


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The places whose sentences were made since the test began."""
    found: set[str] = set()
    for each in told():
        monkeypatch.setattr(
            each, '__init__', watched(each.__init__, places(), found)
        )
    return found
