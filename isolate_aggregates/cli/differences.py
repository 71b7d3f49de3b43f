# SPDX-License-Identifier: Apache-2.0
"""What Placement answers otherwise than it should, in a report."""

from collections.abc import Iterable
from typing import Any

from isolate_aggregates.inspect.mistakes import Difference


def lines(difference: Difference | None) -> Iterable[str]:
    """Yield what to say if Placement does not answer as documented."""
    if difference is not None:
        yield ''
        yield from difference.sentences


def document(difference: Difference | None) -> dict[str, Any] | None:
    """Return the same for machines."""
    if difference is None:
        return None
    return {
        'leaves_out': list(difference.left_out),
        'adds': list(difference.added),
        'other_amounts': list(difference.other_amounts),
        'error': difference.failure,
        'known_mistakes': [one.value for one in difference.mistakes],
        'suspected': [one.value for one in difference.suspects],
        'extra_specs': dict(difference.instead),
        'in_place_of': dict(difference.of),
    }
