# SPDX-License-Identifier: Apache-2.0
"""Caches the index of the aggregates of a source that may take long."""

from collections.abc import Callable, Sequence
from concurrent import futures
import logging
import math
import time

from isolate_aggregates import exception
from isolate_aggregates.aggregates.aggregate import Aggregate
from isolate_aggregates.aggregates.cache import CachedIndex, IndexCache
from isolate_aggregates.rest.deadline import Deadline

LOG = logging.getLogger(__name__)

# Seconds after a failure in which another one is expected.
_TROUBLE_PERIOD = 30.0


class WaitingCache(IndexCache):
    """A cache whose calls wait for a thread that reads for all of them.

    An index is used for twice as long as ``ttl`` while the next one is being
    read.

    :param deadline: Seconds that a call waits at most.
    """

    def __init__(
        self,
        read: Callable[[], Sequence[Aggregate]],
        deadline: float,
        ttl: float = 0,
        max_stale: float | None = None,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(read, ttl, max_stale, on_failure)
        self._seconds = deadline
        self._deadline = Deadline('Nova', deadline, on_late=self._failed)
        # The last reading, which all calls share, and when it began.
        self._reading: futures.Future[CachedIndex] | None = None
        self._began_at = -math.inf
        # The last failure and its time, until reading succeeds.
        self._trouble: tuple[exception.IsolateAggregatesError, float] | None
        self._trouble = None

    def _renewed(self, asked_at: float) -> CachedIndex:
        while True:
            snapshot = self._at_once(asked_at)
            try:
                reading, began_at = self._join()
                if snapshot:
                    return snapshot
                left = asked_at + self._seconds - time.monotonic()
                self._deadline.wait(reading, left)
            except exception.ServiceUnreachable as exc:
                return self._instead(exc)
            # What is raised would keep the variables of all waiting calls.
            error = reading.exception()
            if isinstance(error, exception.IsolateAggregatesError):
                return self._instead(error)
            if error:
                raise error.with_traceback(None)
            if began_at >= asked_at - self._ttl:
                return reading.result()

    def _at_once(self, now: float) -> CachedIndex | None:
        """Return the snapshot if it can be used while it is refreshed."""
        snapshot, trouble = self._snapshot, self._trouble
        if snapshot is None:
            return None
        age = now - snapshot.read_at
        if trouble is None or now - trouble[1] >= _TROUBLE_PERIOD:
            return snapshot if age < 2 * self._ttl else None
        # Do not wait: other calls have just waited in vain.
        is_usable = self._max_stale is not None and age < self._max_stale
        return self._instead(trouble[0]) if is_usable else None

    def _join(self) -> tuple[futures.Future[CachedIndex], float]:
        """Return the running reading; start one if there is none.

        A late reading may still succeed, and is used then.
        """
        with self._lock:
            now = time.monotonic()
            reading = self._reading
            if (
                reading is None
                or reading.done()
                or now - self._began_at >= self._seconds
            ):
                if reading is not None:
                    self._deadline.give_up(reading)
                reading = self._deadline.start(lambda: self._read_at(now))
                self._reading, self._began_at = reading, now
            return reading, self._began_at

    def _read_at(self, began_at: float) -> CachedIndex:
        try:
            # The data may be as old as the start of the reading.
            snapshot = self._taken(self._read_all(), began_at)
        except exception.IsolateAggregatesError as exc:
            exception.without_frames(exc)
            self._failed(exc)
            raise
        except Exception as exc:
            # Unexpected; log it, as there may be no waiting call to raise it.
            LOG.exception('The host aggregates cannot be read.')
            exception.without_frames(exc)
            raise
        self._trouble = None
        self._works_again()
        return snapshot

    def _failed(self, error: exception.IsolateAggregatesError) -> None:
        self._trouble = error, time.monotonic()
        self._on_failure()
