# SPDX-License-Identifier: Apache-2.0
"""Caches the index of the aggregates, and refreshes it when it is too old."""

from collections.abc import Callable, Sequence
import dataclasses
import math
import threading
import time

from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.aggregates.aggregate import Aggregate
from isolate_aggregates.aggregates.index import AggregateIndex
from isolate_aggregates.text import short

LOG = logging.getLogger(__name__)

# The interval in seconds at which the same failure is logged.
_LOG_PERIOD = 60.0

# The most readings at the same time, all but one of them late.
_MOST_READINGS = 4

# Seconds after a failure in which another one is expected.
_TROUBLE_PERIOD = 30.0


@dataclasses.dataclass(frozen=True)
class _CachedIndex:
    aggregates: Sequence[Aggregate]
    index: AggregateIndex
    read_at: float


@dataclasses.dataclass
class _Reading:
    """One reading of the aggregates, shared by all waiting threads."""

    started_at: float
    ended: threading.Event = dataclasses.field(default_factory=threading.Event)
    snapshot: _CachedIndex | None = None
    error: Exception | None = None
    has_failed: bool = False


@dataclasses.dataclass(frozen=True)
class _Trouble:
    error: exception.IsolateAggregatesError
    at: float


class IndexCache:
    """A thread-safe cache for the index of the aggregates.

    A returned index is complete and never modified. Without ``deadline``, each
    call that needs a new index reads the aggregates itself. With ``deadline``,
    a separate thread reads them for all waiting calls.

    :param read: Reads all aggregates, or raises an
        :class:`~isolate_aggregates.exception.IsolateAggregatesError`. If
        nothing has changed, it may return the identical sequence again.
    :param ttl: Seconds for which an index is used; with ``deadline``, twice as
        long while the next one is being read. With 0, every call reads the
        aggregates and sees the state after its start.
    :param max_stale: Seconds after the reading for which an index is used if
        the aggregates cannot be read; None to use it only for ``ttl``.
    :param deadline: Seconds that a call waits at most; None for a source that
        is fast and has its own timeout.
    :param on_failure: Called once for each reading that fails or exceeds the
        deadline.
    :param wait: Waits for an event, with a timeout in seconds.
    """

    def __init__(
        self,
        read: Callable[[], Sequence[Aggregate]],
        ttl: float = 0,
        max_stale: float | None = None,
        deadline: float | None = None,
        on_new: Callable[[AggregateIndex], None] = lambda index: None,
        on_failure: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[
            [threading.Event, float], object
        ] = threading.Event.wait,
    ) -> None:
        self._read = read
        self._ttl = ttl
        self._max_stale = max_stale
        self._waits = deadline is not None
        self._deadline = math.inf if deadline is None else deadline
        self._on_new = on_new
        self._on_failure = on_failure
        self._clock = clock
        self._wait = wait
        # Guards the following attributes; never held while reading.
        self._lock = threading.Lock()
        self._snapshot: _CachedIndex | None = None
        self._reading: _Reading | None = None
        self._readings = 0
        self._trouble: _Trouble | None = None
        # Level and time of the last logged failure.
        self._logged: tuple[int, float] | None = None

    def get(self) -> AggregateIndex:
        """Return the index of the aggregates."""
        asked_at = self._clock()
        snapshot = self._snapshot
        if snapshot and asked_at - snapshot.read_at < self._ttl:
            return snapshot.index
        if not self._waits:
            reading = _Reading(asked_at)
            self._carry_out(reading)
            return self._result(reading).index
        reading = self._join()
        snapshot = self._at_once(asked_at)
        return (snapshot or self._waited(reading, asked_at)).index

    def _at_once(self, now: float) -> _CachedIndex | None:
        """Return the snapshot if it can be used while it is refreshed."""
        snapshot, trouble = self._snapshot, self._trouble
        if snapshot is None:
            return None
        age = now - snapshot.read_at
        if trouble is None or now - trouble.at >= _TROUBLE_PERIOD:
            return snapshot if age < 2 * self._ttl else None
        # Do not wait: other calls have just waited in vain.
        is_usable = self._max_stale is not None and age < self._max_stale
        return self._instead(trouble.error) if is_usable else None

    def _waited(self, reading: _Reading, asked_at: float) -> _CachedIndex:
        """Wait for a reading that is recent enough for a call."""
        while True:
            self._wait(reading.ended, self._left(reading, asked_at))
            is_new = reading.started_at >= asked_at - self._ttl
            if reading.ended.is_set() and (reading.error or is_new):
                return self._result(reading)
            if self._is_over(asked_at):
                return self._instead(self._late(reading))
            reading = self._join()

    def _left(self, reading: _Reading, asked_at: float) -> float:
        # If this reading is too old for the call, wait for the next one. There
        # is none if too many are late.
        since = min(reading.started_at, asked_at)
        until = (asked_at if self._is_over(since) else since) + self._deadline
        return max(until - self._clock(), 0)

    def _is_over(self, since: float) -> bool:
        return self._clock() - since >= self._deadline

    def _join(self) -> _Reading:
        """Return the running reading; start one if there is none."""
        with self._lock:
            late = reading = self._reading
            if reading and not reading.ended.is_set():
                if not self._is_over(reading.started_at):
                    return reading
            else:
                late = None
            if late and self._readings >= _MOST_READINGS:
                # The source hangs; more threads would hang as well.
                current = late
            else:
                # A late reading may still succeed, and is used then.
                current = self._begin()
        if late:
            self._late(late)
        return current

    def _begin(self) -> _Reading:
        reading = _Reading(self._clock())
        threading.Thread(
            target=self._run,
            args=(reading,),
            name='isolate-aggregates',
            daemon=True,
        ).start()
        self._reading = reading
        self._readings += 1
        return reading

    def _run(self, reading: _Reading) -> None:
        try:
            self._carry_out(reading)
        finally:
            with self._lock:
                self._readings -= 1
            reading.ended.set()

    def _carry_out(self, reading: _Reading) -> None:
        try:
            # The data may be as old as the start of the reading.
            reading.snapshot = self._taken(self._read(), reading.started_at)
        except exception.IsolateAggregatesError as exc:
            exception.without_frames(exc)
            reading.error = exc
            self._failed(reading, exc)
        except Exception as exc:
            # Unexpected; log it, as there may be no waiting call to raise it.
            LOG.exception('The host aggregates cannot be read.')
            exception.without_frames(exc)
            reading.error = exc
        else:
            self._works_again()

    def _taken(
        self, aggregates: Sequence[Aggregate], read_at: float
    ) -> _CachedIndex:
        last = self._snapshot
        if last and last.aggregates is aggregates:
            snapshot = dataclasses.replace(last, read_at=read_at)
        else:
            index = AggregateIndex(aggregates)
            snapshot = _CachedIndex(aggregates, index, read_at)
            self._on_new(index)
        with self._lock:
            last = self._snapshot
            if last is None or last.read_at <= read_at:
                self._snapshot = snapshot
        return snapshot

    def _late(self, reading: _Reading) -> exception.IsolateAggregatesError:
        error = exception.IsolateAggregatesError(
            'reading them took longer than [isolate_aggregates] '
            f'aggregate_deadline = {self._deadline:g} seconds'
        )
        self._failed(reading, error)
        return error

    def _failed(
        self, reading: _Reading, error: exception.IsolateAggregatesError
    ) -> None:
        with self._lock:
            self._trouble = _Trouble(error, self._clock())
            is_told, reading.has_failed = reading.has_failed, True
        if not is_told:
            self._on_failure()

    def _works_again(self) -> None:
        with self._lock:
            self._trouble = None
            was_logged, self._logged = self._logged, None
        if was_logged:
            LOG.info('The host aggregates can be read again.')

    def _result(self, reading: _Reading) -> _CachedIndex:
        if isinstance(reading.error, exception.IsolateAggregatesError):
            return self._instead(reading.error)
        if reading.error:
            # Raised in each waiting call, so remove what the last one added.
            raise reading.error.with_traceback(None)
        assert reading.snapshot is not None
        return reading.snapshot

    def _instead(self, exc: exception.IsolateAggregatesError) -> _CachedIndex:
        """Return the last snapshot after a failure, if it is recent enough."""
        snapshot, now = self._snapshot, self._clock()
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
