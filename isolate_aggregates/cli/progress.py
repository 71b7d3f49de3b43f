# SPDX-License-Identifier: Apache-2.0
"""Shows progress bars on terminals."""

from collections.abc import Iterable, Iterator
import sys
from typing import Any


def reading(
    found: Iterator[Any], what: str, total: int | None
) -> Iterable[Any]:
    return _shown(found, f'Reading {what}', total)


def changing(
    found: Iterator[Any], what: str, total: int | None
) -> Iterable[Any]:
    return _shown(found, f'Changing {what}', total)


def _shown(
    found: Iterable[Any], doing: str, total: int | None
) -> Iterable[Any]:
    """Show the progress of an iteration, if tqdm is installed."""
    if not sys.stderr.isatty():
        return found
    try:
        import tqdm
    except ImportError:
        return found
    return tqdm.tqdm(found, doing, total, unit='', leave=False)
