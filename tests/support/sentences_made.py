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

from isolate_aggregates import exception, reservations
from isolate_aggregates.reservations import actions, status
import isolate_aggregates.reservations.commands
import isolate_aggregates.tools.errors  # noqa: F401

_ROOT = pathlib.Path(reservations.__file__).parent


def _errors(error: type = exception.IsolateAggregatesError) -> Iterator[type]:
    yield error
    for each in error.__subclasses__():
        yield from _errors(each)


def _name(call: ast.Call) -> str:
    function = call.func
    return getattr(function, 'attr', None) or getattr(function, 'id', '')


def _calls(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield the calls in the order of the text, with the function's name."""
    for child in ast.iter_child_nodes(node):
        inner = names
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            inner = (*names, child.name)
        if isinstance(child, ast.Call) and _name(child) in _classes():
            yield '.'.join(names), child.lineno
        yield from _calls(child, inner)


@functools.cache
def _classes() -> frozenset[str]:
    """The names of the classes whose objects tell something."""
    told = (status.Problem, actions.Refuse, *_errors())
    return frozenset(each.__name__ for each in told)


@functools.cache
def places() -> dict[tuple[str, int], str]:
    """All places, by file and line; without those of Blazar's plugin."""
    found = {}
    for path in sorted(_ROOT.rglob('*.py')):
        inside = path.relative_to(_ROOT).with_suffix('').parts
        if 'blazar' in inside:
            continue
        numbers: dict[str, int] = {}
        for function, line in _calls(ast.parse(path.read_text()), ()):
            place = '.'.join((*inside, function))
            numbers[place] = numbers.get(place, 0) + 1
            found[str(path), line] = f'{place} {numbers[place]}'
    return found


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The places whose sentences were made since the test began."""
    found: set[str] = set()

    def watched(initialize):  # type: ignore[no-untyped-def]
        @functools.wraps(initialize)
        def watching(*args: object, **values: object) -> None:
            frame = sys._getframe(1)
            while frame is not None:
                key = frame.f_code.co_filename, frame.f_lineno
                if key in places():
                    found.add(places()[key])
                    break
                frame = frame.f_back  # type: ignore[assignment]
            initialize(*args, **values)

        return watching

    for each in (status.Problem, actions.Refuse, *_errors()):
        monkeypatch.setattr(each, '__init__', watched(each.__init__))
    return found
