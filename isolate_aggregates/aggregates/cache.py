# SPDX-License-Identifier: Apache-2.0
"""Caches the index of the aggregates, and refreshes it when it is too old."""

from collections.abc import Callable, Sequence
import dataclasses
import logging
import threading
import time

from isolate_aggregates import exception
from isolate_aggregates.aggregates.aggregate import Aggregate
from isolate_aggregates.aggregates.index import AggregateIndex
from isolate_aggregates.text import short

LOG = logging.getLogger(__name__)

# The interval in seconds at which the same failure is logged.
_LOG_PERIOD = 60.0


@dataclasses.dataclass(frozen=True)
class CachedIndex:
    """An index, and when its aggregates were read."""

    aggregates: Sequence[Aggregate]
    index: AggregateIndex
    read_at: float


class IndexCache:
    """A thread-safe cache for the index of the aggregates.

    A returned index is complete and never modified. Each call that needs a new
    index reads the aggregates itself, so the source must be fast and have a
    timeout of its own. For others there is
    :class:`~isolate_aggregates.aggregates.waiting.WaitingCache`.

    :param read: Reads all aggregates, or raises an
        :class:`~isolate_aggregates.exception.IsolateAggregatesError`. If
        nothing has changed, it may return the identical sequence again.
    :param ttl: Seconds for which an index is used. With 0, every call reads
        the aggregates and sees the state after its start.
    :param max_stale: Seconds after the reading for which an index is used if
        the aggregates cannot be read; None to use it only for ``ttl``.
    :param on_failure: Called once for each reading that fails or takes too
        long.
    """

    def __init__(
        self,
        read: Callable[[], Sequence[Aggregate]],
        ttl: float = 0,
        max_stale: float | None = None,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._read = read
        self._ttl = ttl
        self._max_stale = max_stale
        self._on_failure = on_failure
        # Guards the following attributes; never held while reading.
        self._lock = threading.Lock()
        self._snapshot: CachedIndex | None = None
        # Level and time of the last logged failure.
        self._logged: tuple[int, float] | None = None

    def get(self) -> AggregateIndex:
        """Return the index of the aggregates."""
        asked_at = time.monotonic()
        snapshot = self._snapshot
        if snapshot and asked_at - snapshot.read_at < self._ttl:
            return snapshot.index
        return self._renewed(asked_at).index

    def _renewed(self, asked_at: float) -> CachedIndex:
        """Return an index that is recent enough for a call."""
        try:
            snapshot = self._taken(self._read_all(), asked_at)
        except exception.IsolateAggregatesError as exc:
            exception.without_frames(exc)
            self._on_failure()
            return self._instead(exc)
        except Exception:
            LOG.exception('The host aggregates cannot be read.')
            raise
        self._works_again()
        return snapshot

    def _read_all(self) -> Sequence[Aggregate]:
        try:
            return self._read()
        except BaseException as exc:
            if isinstance(exc, Exception) or exception.ends_process(exc):
                raise
            # It would end the thread of the request without an answer.
            raise RuntimeError(f'the aggregate source raised {exc!r}') from exc

    def _taken(
        self, aggregates: Sequence[Aggregate], read_at: float
    ) -> CachedIndex:
        last = self._snapshot
        if last and last.aggregates is aggregates:
            snapshot = dataclasses.replace(last, read_at=read_at)
        else:
            index = AggregateIndex(aggregates)
            snapshot = CachedIndex(aggregates, index, read_at)
        with self._lock:
            last = self._snapshot
            if last is None or last.read_at <= read_at:
                self._snapshot = snapshot
        return snapshot

    def _works_again(self) -> None:
        with self._lock:
            was_logged, self._logged = self._logged, None
        if was_logged:
            LOG.info('The host aggregates can be read again.')

    def _instead(self, exc: exception.IsolateAggregatesError) -> CachedIndex:
        """Return the last snapshot after a failure, if it is recent enough."""
        snapshot, now = self._snapshot, time.monotonic()
        age = now - snapshot.read_at if snapshot else None
        seconds_left = (self._max_stale or 0) - (age or 0)
        if snapshot is None or seconds_left <= 0:
            error = exception.AggregatesUnreadable(exc, age)
            if self._is_news(logging.ERROR, now):
                LOG.error(
                    '%(error)s Requests are refused until they can be read. '
                    'To try again, run "isolate-aggregates-status upgrade '
                    'check" on this machine.%(reported)s',
                    {'error': error, 'reported': _reported(exc)},
                )
            raise error from exc
        if self._is_news(logging.WARNING, now):
            LOG.warning(
                'The host aggregates cannot be read (%(cause)s); using those '
                'read %(age).0f s ago, for %(left).0f s more.',
                {
                    'cause': str(exc).rstrip('.'),
                    'age': age,
                    'left': seconds_left,
                },
            )
        return snapshot

    def _is_news(self, level: int, now: float) -> bool:
        """Return whether to log a failure: once a minute, or if it worsens."""
        with self._lock:
            if self._logged:
                last, at = self._logged
                if level <= last and now - at < _LOG_PERIOD:
                    return False
            self._logged = level, now
            return True


def _reported(exc: exception.IsolateAggregatesError) -> str:
    """Return the original error of the library, for the log only.

    It may have addresses that users must not see.
    """
    first = short(str(exc.__cause__ or '').partition('\n')[0])
    return f' Reported: {first}' if first and first not in str(exc) else ''
