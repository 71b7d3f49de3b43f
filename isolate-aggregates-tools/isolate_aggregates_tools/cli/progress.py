# SPDX-License-Identifier: Apache-2.0
"""Shows progress bars on terminals."""

from collections.abc import Iterable, Iterator
import sys
from typing import Any


def reading(
    items: Iterator[Any], what: str, total: int | None
) -> Iterable[Any]:
    return _with_bar(items, f'Reading {what}', total)


def changing(
    items: Iterator[Any], what: str, total: int | None
) -> Iterable[Any]:
    return _with_bar(items, f'Changing {what}', total)


def testing(items: Iterable[Any], total: int | None) -> Iterable[Any]:
    return _with_bar(items, 'Testing mutations', total)


def _with_bar(
    items: Iterable[Any], title: str, total: int | None
) -> Iterable[Any]:
    """Show the progress of an iteration, if tqdm is installed."""
    if not sys.stderr.isatty():
        return items
    try:
        import tqdm
    except ImportError:
        return items
    return tqdm.tqdm(items, title, total, unit='', leave=False)
