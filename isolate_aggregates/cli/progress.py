# SPDX-License-Identifier: Apache-2.0
"""Shows progress to a person; a pipe or a log gets none."""

from collections.abc import Iterable, Iterator
from typing import Any

import tqdm


def reading(
    found: Iterator[Any], what: str, total: int | None
) -> Iterable[Any]:
    """Show the progress of reading."""
    return shown(found, f'Reading {what}', total)


def changing(
    found: Iterator[Any], what: str, total: int | None
) -> Iterable[Any]:
    """Show the progress of changing."""
    return shown(found, f'Changing {what}', total)


def shown(
    found: Iterable[Any], doing: str, total: int | None = None
) -> Iterable[Any]:
    """Show the progress of what comes one by one."""
    return tqdm.tqdm(found, doing, total, unit='', leave=False, disable=None)
