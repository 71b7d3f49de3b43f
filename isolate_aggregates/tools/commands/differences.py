# SPDX-License-Identifier: Apache-2.0
"""Reports answers of Placement that differ from its documentation."""

from collections.abc import Iterable
from typing import Any

from isolate_aggregates.tools.comparison import Difference


def lines(difference: Difference | None) -> Iterable[str]:
    """Yield the lines of a table about a difference."""
    if difference is not None:
        yield ''
        yield from difference.sentences


def document(difference: Difference | None) -> dict[str, Any] | None:
    """Return a difference as part of a document."""
    if difference is None:
        return None
    return {
        'leaves_out': list(difference.left_out),
        'adds': list(difference.added),
        'other_amounts': list(difference.other_amounts),
        'error': difference.failure,
        'queried': difference.was_queried,
    }
