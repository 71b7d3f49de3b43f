# SPDX-License-Identifier: Apache-2.0
"""Stays of servers on hosts.

All times are whole seconds since 1970 in UTC, as Nova keeps them.
"""

from collections.abc import Iterable
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """A time from its first second up to, but without, its last one.

    :param end: None if it has not ended.
    """

    start: int
    end: int | None = None

    def overlaps(self, start: int, end: int) -> bool:
        """Return whether it has a part in a time."""
        return self.start < end and (self.end is None or self.end > start)


@dataclasses.dataclass(frozen=True, slots=True)
class Stay(Span):
    """A server on a host.

    ``start`` is the earliest possible start and ``end`` the latest possible
    end, so that no host is missing from a ledger.

    :param start_by: The latest possible start; None if ``start`` is exact.
    :param end_from: The earliest possible end; None if ``end`` is exact.
    :param flavor: The name of its flavor; None if unknown.
    :param cores: The VCPUs of its flavor; None if unknown.
    :param keys: The locks that it has the keys to; None if unknown.
    """

    server: str = ''
    host: str = ''
    project: str = ''
    flavor: str | None = None
    cores: int | None = None
    keys: frozenset[str] | None = frozenset()
    start_by: int | None = None
    end_from: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether both ends are known to the second."""
        return self.start_by is None and self.end_from is None


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans that neither overlap nor touch, in order."""
    result: list[Span] = []
    for span in sorted(spans, key=lambda each: each.start):
        last = result[-1] if result else None
        if last is None or (last.end is not None and last.end < span.start):
            result.append(Span(span.start, span.end))
        elif last.end is not None:
            end = None if span.end is None else max(last.end, span.end)
            result[-1] = Span(last.start, end)
    return result
