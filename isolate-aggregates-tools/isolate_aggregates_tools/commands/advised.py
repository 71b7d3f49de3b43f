# SPDX-License-Identifier: Apache-2.0
"""Writes repairs for people."""

from collections.abc import Iterator

from isolate_aggregates_tools.advice.effects import Advice
from isolate_aggregates_tools.cli import terminal


def lines(place: str, repair: Advice) -> Iterator[str]:
    """Yield a repair, and below it whom it lets in."""
    if not repair.line:
        yield place + repair.text
        return
    yield terminal.Shell(place + repair.line)
    if repair.text:
        yield f'      {repair.text}'
