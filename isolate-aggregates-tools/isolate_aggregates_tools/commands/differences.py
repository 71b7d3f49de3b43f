# SPDX-License-Identifier: Apache-2.0
"""Shows the differences between two clouds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from isolate_aggregates.text import escaped
from isolate_aggregates_tools.cli import output
from isolate_aggregates_tools.cloud import diff
from isolate_aggregates_tools.effect import documents

COLUMNS = ('Kind', 'Name', 'What', 'Before', 'After')


def rows(changes: Iterable[diff.Change]) -> list[tuple[Any, ...]]:
    """Return a row for each difference."""
    return [
        (each.kind, each.name, each.what, *_shown(each)) for each in changes
    ]


def document(
    changes: Iterable[diff.Change],
) -> tuple[documents.Difference, ...]:
    """Return differences for a JSON document."""
    return tuple(
        documents.Difference(
            kind=change.kind,
            name=change.name,
            what=change.what,
            before=before.machine_readable(),
            after=after.machine_readable(),
        )
        for change in changes
        for before, after in [_shown(change)]
    )


def _shown(change: diff.Change) -> list[output.Value]:
    """Return the cells Before and After; for an object, "present" or empty."""
    both = change.before, change.after
    if not change.what:
        return [output.Value(value and 'present') for value in both]
    return [
        _Names(value, other or ())
        # The order of a setting may matter.
        if isinstance(value, list) and change.kind != 'setting'
        else output.Value(value)
        for value, other in (both, both[::-1])
    ]


class _Names(output.Value):
    """A list of names; a table shows only those that others lack."""

    def __init__(self, value: list[Any], others: Sequence[Any]) -> None:
        super().__init__(value)
        self._others = others

    def human_readable(self) -> str:
        some = [
            _name(item) for item in self._value if item not in self._others
        ]
        same = len(self._value) - len(some)
        parts = [', '.join(some)] if some else []
        return ' and '.join([*parts, f'{same} in both'] if same else parts)


def _name(item: Any) -> str:
    if isinstance(item, Mapping):
        # An aggregate, or a port of a server.
        item = item.get('name') or item.get('uuid') or item['id']
    return escaped(str(item))
