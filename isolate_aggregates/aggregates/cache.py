# SPDX-License-Identifier: Apache-2.0
"""Keeps the index of the aggregates as fresh as it is asked to be."""

from collections.abc import Callable, Sequence
import dataclasses
import threading
import time

from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.aggregates.aggregate import Aggregate
from isolate_aggregates.aggregates.index import AggregateIndex

LOG = logging.getLogger(__name__)

# How often the same trouble is worth a line in the log, in seconds.
_WARNING_PERIOD = 60.0


@dataclasses.dataclass(frozen=True)
class _Snapshot:
    aggregates: Sequence[Aggregate]
    index: AggregateIndex
    read_at: float


class IndexCache:
    """Gives out an index, read anew when the last one is too old.

    Any number of threads may use one. An index that is given out is whole and
    is never changed.

    :param read: Reads all aggregates or raises an
        :class:`~isolate_aggregates.exception.IsolateAggregatesError`. If it
        returns the very sequence it returned before, nothing has changed.
    :param ttl: For how many seconds an index may be used; 0 reads for every
        call, and each call then gets what was there after it began.
    :param max_stale: For how many seconds after it was read an index may be
        used while the aggregates can not be read; None for no longer than
        ``ttl``.
    :param on_new: Called with each new index.
    :param clock: Tells the time in seconds.
    """

    def __init__(
        self,
        read: Callable[[], Sequence[Aggregate]],
        ttl: float = 0,
        max_stale: float | None = None,
        on_new: Callable[[AggregateIndex], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._ttl = ttl
        self._max_stale = max_stale
        self._on_new = on_new
        self._clock = clock
        self._snapshot: _Snapshot | None = None
        self._refreshing = threading.Lock()
        self._warned_at: float | None = None

    def get(self) -> AggregateIndex:
        """Return the index of the aggregates.

        :raises AggregatesUnreadable: if they can not be read and there is no
            snapshot that may take their place.
        """
        if not self._ttl:
            return self._refresh().index
        snapshot, age = self._current()
        if snapshot and age < self._ttl:
            return snapshot.index
        # One thread reads; the others go on with what there is, unless that
        # is too old even for them.
        if self._refreshing.acquire(
            blocking=snapshot is None or age >= 2 * self._ttl
        ):
            try:
                snapshot, age = self._current()
                if snapshot and age < self._ttl:
                    return snapshot.index
                return self._refresh().index
            finally:
                self._refreshing.release()
        assert snapshot is not None
        return snapshot.index

    def _current(self) -> tuple[_Snapshot | None, float]:
        snapshot = self._snapshot
        return snapshot, self._clock() - snapshot.read_at if snapshot else 0

    def _refresh(self) -> _Snapshot:
        # What is read may change from here on.
        started_at = self._clock()
        try:
            aggregates = self._read()
        except exception.IsolateAggregatesError as exc:
            return self._instead(exc)
        last = self._snapshot
        if last and last.aggregates is aggregates:
            snapshot = dataclasses.replace(last, read_at=started_at)
        else:
            index = AggregateIndex(aggregates)
            snapshot = _Snapshot(aggregates, index, started_at)
            if self._on_new:
                self._on_new(index)
        if last is None or last.read_at <= started_at:
            self._snapshot = snapshot
        return snapshot

    def _instead(self, exc: exception.IsolateAggregatesError) -> _Snapshot:
        """Return the snapshot that may be used, now that reading failed."""
        snapshot, age = self._current()
        if snapshot is None:
            raise exception.AggregatesUnreadable(exc, None) from exc
        if self._max_stale is None or age >= self._max_stale:
            raise exception.AggregatesUnreadable(exc, age) from exc
        now = self._clock()
        if self._warned_at is None or now - self._warned_at >= _WARNING_PERIOD:
            self._warned_at = now
            LOG.warning(
                'The host aggregates can not be read (%(cause)s); using those '
                'read %(age).0f s ago, for %(left).0f s more.',
                {'cause': exc, 'age': age, 'left': self._max_stale - age},
            )
        return snapshot
