# SPDX-License-Identifier: Apache-2.0
"""Unabridged names, and escaped documents."""

from collections.abc import Iterator
import contextlib
from typing import Any

from isolate_aggregates.text import UNABRIDGED, escaped


def all_escaped(value: Any) -> Any:
    """Escape all texts in a nested value.

    :param value: Texts, numbers, and lists, tuples and dicts of these.
    """
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, dict):
        return {
            all_escaped(key): all_escaped(one) for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [all_escaped(one) for one in value]
    return value


@contextlib.contextmanager
def unabridged() -> Iterator[None]:
    """Within this context, :func:`listed` does not abbreviate names."""
    token = UNABRIDGED.set(True)
    try:
        yield
    finally:
        UNABRIDGED.reset(token)


def is_unabridged() -> bool:
    """Return whether names must not be abbreviated."""
    return UNABRIDGED.get()
