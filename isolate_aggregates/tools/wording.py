# SPDX-License-Identifier: Apache-2.0
"""Suggestions, unabridged names, and escaped documents."""

from collections.abc import Iterable, Iterator
import contextlib
import difflib
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


def meant(name: str, names: Iterable[str], prefix: str = '') -> str:
    """Suggest the most similar name, as a question.

    :param prefix: A prefix that all names have and that does not count.
    :returns: The question with a leading space; empty if no name is similar.
    """
    near = difflib.get_close_matches(
        name.removeprefix(prefix),
        [one.removeprefix(prefix) for one in names if one.startswith(prefix)],
        n=1,
    )
    return f' (did you mean {prefix}{near[0]}?)' if near else ''
