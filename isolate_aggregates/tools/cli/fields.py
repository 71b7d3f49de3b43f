# SPDX-License-Identifier: Apache-2.0
"""Cells of tables, and the same values in formats for machines."""

from collections.abc import Mapping
import json
from typing import Any

from cliff import columns

from isolate_aggregates.text import escaped


class Lines(columns.FormattableColumn[Any]):
    """Several values, one per line in a table."""

    def human_readable(self) -> str:
        value = self._value
        if isinstance(value, Mapping):
            lines = [f'{k}: {_inline(v)}' for k, v in value.items()]
        else:
            lines = list(map(str, value))
        return '\n'.join(map(escaped, lines))


class Value(columns.FormattableColumn[Any]):
    """A value of any type, empty in a table if it is None."""

    def human_readable(self) -> str:
        return str(plain(self._value))


def plain(cell: Any, nothing: str = '') -> Any:
    """Return a cell for the formats csv, value and shell.

    :returns: A text or a number; JSON for lists and mappings.
    """
    if isinstance(cell, columns.FormattableColumn):
        cell = cell.machine_readable()
    if cell is None:
        return nothing
    if isinstance(cell, Mapping | list | tuple):
        text = json.dumps(cell, ensure_ascii=False)
        return text if text.isprintable() else json.dumps(cell)
    return escaped(cell) if isinstance(cell, str) else cell


def field(value: Any) -> Any:
    """Return a value as a cell for cliff."""
    return Lines(value) if isinstance(value, Mapping | list) else value


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return ', '.join(f'{amount} {what}' for what, amount in value.items())
    return str(value)
