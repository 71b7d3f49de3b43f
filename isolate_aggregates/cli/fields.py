# SPDX-License-Identifier: Apache-2.0
"""Values of one thing: several lines to people, as they are to machines."""

from collections.abc import Mapping
from typing import Any

from cliff import columns


class Lines(columns.FormattableColumn[Any]):
    """Several values, to people one in each line."""

    def human_readable(self) -> str:
        """Return the lines."""
        value = self._value
        if isinstance(value, Mapping):
            return '\n'.join(f'{k}: {_inline(v)}' for k, v in value.items())
        return '\n'.join(map(str, value))


def field(value: Any) -> Any:
    """Return a value as cliff takes it."""
    return Lines(value) if isinstance(value, Mapping | list) else value


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return ', '.join(f'{amount} {what}' for what, amount in value.items())
    return str(value)
