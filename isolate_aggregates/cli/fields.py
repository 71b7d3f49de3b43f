# SPDX-License-Identifier: Apache-2.0
"""Values of one thing: several lines to people, as they are to machines."""

from collections.abc import Mapping
from typing import Any

from cliff import columns

from isolate_aggregates.text import escaped


class Lines(columns.FormattableColumn[Any]):
    """Several values, to people one in each line."""

    def human_readable(self) -> str:
        """Return the lines."""
        value = self._value
        if isinstance(value, Mapping):
            lines = [f'{k}: {_inline(v)}' for k, v in value.items()]
        else:
            lines = list(map(str, value))
        return '\n'.join(map(escaped, lines))


def field(value: Any) -> Any:
    """Return a value as cliff takes it."""
    return Lines(value) if isinstance(value, Mapping | list) else value


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return ', '.join(f'{amount} {what}' for what, amount in value.items())
    return str(value)
