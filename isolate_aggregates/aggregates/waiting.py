# SPDX-License-Identifier: Apache-2.0
"""Caches the index of the aggregates of a source that may take long."""

from collections.abc import Callable, Sequence
import dataclasses
import threading
import time

from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.aggregates.aggregate import Aggregate
from isolate_aggregates.aggregates.cache import CachedIndex, IndexCache
from isolate_aggregates.rest.deadline import MOST_LATE

LOG = logging.getLogger(__name__)

# Seconds after a failure in which another one is expected.
_TROUBLE_PERIOD = 30.0


@dataclasses.dataclass
class _Reading:
    """One reading of the aggregates, shared by all waiting threads."""

    started_at: float
    ended: threading.Event = dataclasses.field(default_factory=threading.Event)
    snapshot: CachedIndex | None = None
    error: Exception | None = None
    has_failed: bool = False


@dataclasses.dataclass(frozen=True)
class _Trouble:
    error: exception.IsolateAggregatesError
    at: float


class WaitingCache(IndexCache):
    """A cache whose calls wait for a thread that reads for all of them.

    An index is used for twice as long as ``ttl`` while the next one is being
    read.

    :param deadline: Seconds that a call waits at most.
    :param wait: Waits for an event, with a timeout in seconds.
    """

    def __init__(
        self,
        read: Callable[[], Sequence[Aggregate]],
        deadline: float,
        ttl: float = 0,
        max_stale: float | None = None,
        on_failure: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[
            [threading.Event, float], object
        ] = threading.Event.wait,
    ) -> None:
        super().__init__(read, ttl, max_stale, on_failure, clock)
        self._deadline = deadline
        self._wait = wait
        self._reading: _Reading | None = None
        self._readings = 0
        self._trouble: _Trouble | None = None

    def _renewed(self, asked_at: float) -> CachedIndex:
        reading = self._join()
        return self._at_once(asked_at) or self._waited(reading, asked_at)

    def _at_once(self, now: float) -> CachedIndex | None:
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

    def _waited(self, reading: _Reading, asked_at: float) -> CachedIndex:
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
            if late and self._readings >= MOST_LATE:
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
        super()._works_again()

    def _result(self, reading: _Reading) -> CachedIndex:
        if isinstance(reading.error, exception.IsolateAggregatesError):
            return self._instead(reading.error)
        if reading.error:
            # Raised in each waiting call, so remove what the last one added.
            raise reading.error.with_traceback(None)
        assert reading.snapshot is not None
        return reading.snapshot
