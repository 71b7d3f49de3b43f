# SPDX-License-Identifier: Apache-2.0
"""How a person can be shown the progress of what takes long."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

# Takes what comes one by one, what it is, in the plural, and how many will
# come if that is known; gives it back.
Track = Callable[[Iterator[Any], str, int | None], Iterable[Any]]


def untracked(
    found: Iterator[Any], what: str, total: int | None
) -> Iterable[Any]:
    """Show no progress."""
    return found
