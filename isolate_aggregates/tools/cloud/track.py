# SPDX-License-Identifier: Apache-2.0
"""The interface for showing the progress of long operations."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

# Takes an iterator, the plural name of its items and their number if known;
# yields the items.
Track = Callable[[Iterator[Any], str, int | None], Iterable[Any]]


def untracked(
    items: Iterator[Any], what: str, total: int | None
) -> Iterable[Any]:
    """Show no progress."""
    return items
