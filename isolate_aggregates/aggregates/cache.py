# SPDX-License-Identifier: Apache-2.0
"""Caches the index of the aggregates and reads it again when it is too old."""

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

# How often the same trouble is worth a line in the log, in seconds.
_LOG_PERIOD = 60.0

# For how many seconds after a failure the next one is expected.
_TROUBLE_PERIOD = 30.0


@dataclasses.dataclass(frozen=True)
class _Snapshot:
    aggregates: Sequence[Aggregate]
    index: AggregateIndex
    read_at: float


@dataclasses.dataclass
class _Reading:
    """One reading, for all threads that wait for it."""

    started_at: float
    ended: threading.Event = dataclasses.field(default_factory=threading.Event)
    snapshot: _Snapshot | None = None
    error: Exception | None = None
    has_failed: bool = False


@dataclasses.dataclass(frozen=True)
class _Trouble:
    error: exception.IsolateAggregatesError
    at: float


class IndexCache:
    """Returns an index, and reads it again when the last one is too old.

    Any number of threads may use it. A returned index is complete and is never
    changed. Without ``deadline``, a call that needs a new one reads for
    itself; with it, a separate thread reads for all that wait.

    :param read: Reads all aggregates or raises an
        :class:`~isolate_aggregates.exception.IsolateAggregatesError`. If it
        returns the very sequence it returned before, nothing has changed.
    :param ttl: For how many seconds an index may be used, and with
        ``deadline`` twice as long while the next one is being read; 0 reads
        for every call, and each call then sees the state after its start.
    :param max_stale: For how many seconds after it was read an index may be
        used while the aggregates cannot be read; None for no longer than
        ``ttl``.
    :param deadline: For how many seconds a call may wait; None for a source
        that is fast and has its own time limit.
    :param on_new: Called with each new index.
    :param on_failure: Called once for each reading that fails or takes longer
        than the deadline.
    :param clock: Returns the time in seconds.
    :param wait: Waits for an event, for so many seconds at most.
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
        # Guards what follows, and is never held while anything is read.
        self._lock = threading.Lock()
        self._snapshot: _Snapshot | None = None
        self._reading: _Reading | None = None
        self._trouble: _Trouble | None = None
        # What was logged last of the trouble, and when.
        self._logged: tuple[int, float] | None = None

    def get(self) -> AggregateIndex:
        """Return the index of the aggregates.

        :raises AggregatesUnreadable: if they cannot be read and there is no
            snapshot that may take their place.
        """
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

    def _at_once(self, now: float) -> _Snapshot | None:
        """Return the snapshot that may be used while it is read again."""
        snapshot, trouble = self._snapshot, self._trouble
        if snapshot is None:
            return None
        age = now - snapshot.read_at
        if trouble is None or now - trouble.at >= _TROUBLE_PERIOD:
            return snapshot if age < 2 * self._ttl else None
        # Waiting would end as it has just ended for others.
        is_usable = self._max_stale is not None and age < self._max_stale
        return self._instead(trouble.error) if is_usable else None

    def _waited(self, reading: _Reading, asked_at: float) -> _Snapshot:
        """Wait until a reading ends that is new enough for a call."""
        while True:
            self._wait(reading.ended, self._left(reading, asked_at))
            is_new = reading.started_at >= asked_at - self._ttl
            if reading.ended.is_set() and (reading.error or is_new):
                return self._result(reading)
            if self._is_over(asked_at):
                return self._instead(self._late(reading))
            reading = self._join()

    def _left(self, reading: _Reading, asked_at: float) -> float:
        # What one reading is too late for, the next one may be in time for.
        until = min(reading.started_at, asked_at) + self._deadline
        return max(until - self._clock(), 0)

    def _is_over(self, since: float) -> bool:
        return self._clock() - since >= self._deadline

    def _join(self) -> _Reading:
        """Return the reading that is going on; begin one if there is none."""
        with self._lock:
            late = reading = self._reading
            if reading and not reading.ended.is_set():
                if not self._is_over(reading.started_at):
                    return reading
            else:
                late = None
            # One that is late may still end, and is used then.
            begun = self._begin()
        if late:
            self._late(late)
        return begun

    def _begin(self) -> _Reading:
        reading = _Reading(self._clock())
        threading.Thread(
            target=self._run,
            args=(reading,),
            name='isolate-aggregates',
            daemon=True,
        ).start()
        self._reading = reading
        return reading

    def _run(self, reading: _Reading) -> None:
        try:
            self._carry_out(reading)
        finally:
            reading.ended.set()

    def _carry_out(self, reading: _Reading) -> None:
        try:
            # What is read may change from the start on.
            reading.snapshot = self._taken(self._read(), reading.started_at)
        except exception.IsolateAggregatesError as exc:
            reading.error = exc
            self._failed(reading, exc)
        except Exception as exc:
            # Not foreseen, and perhaps nobody is waiting for it.
            LOG.exception('The host aggregates cannot be read.')
            reading.error = exc
        else:
            self._works_again()

    def _taken(
        self, aggregates: Sequence[Aggregate], read_at: float
    ) -> _Snapshot:
        last = self._snapshot
        if last and last.aggregates is aggregates:
            snapshot = dataclasses.replace(last, read_at=read_at)
        else:
            index = AggregateIndex(aggregates)
            snapshot = _Snapshot(aggregates, index, read_at)
            self._on_new(index)
        with self._lock:
            last = self._snapshot
            if last is None or last.read_at <= read_at:
                self._snapshot = snapshot
        return snapshot

    def _late(self, reading: _Reading) -> exception.IsolateAggregatesError:
        error = exception.IsolateAggregatesError(
            'they were not there within [isolate_aggregates] '
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
            logged, self._logged = self._logged, None
        if logged:
            LOG.info('The host aggregates can be read again.')

    def _result(self, reading: _Reading) -> _Snapshot:
        if isinstance(reading.error, exception.IsolateAggregatesError):
            return self._instead(reading.error)
        if reading.error:
            raise reading.error
        assert reading.snapshot is not None
        return reading.snapshot

    def _instead(self, exc: exception.IsolateAggregatesError) -> _Snapshot:
        """Return the snapshot that may be used, now that reading failed."""
        snapshot, now = self._snapshot, self._clock()
        age = now - snapshot.read_at if snapshot else None
        left = (self._max_stale or 0) - (age or 0)
        if snapshot is None or left <= 0:
            error = exception.AggregatesUnreadable(exc, age)
            if self._is_news(logging.ERROR, now):
                LOG.error(
                    '%(error)s Until they can be, requests are refused. '
                    '"isolate-aggregates-status upgrade check" on this '
                    'machine tries it again.%(reported)s',
                    {'error': error, 'reported': _reported(exc)},
                )
            raise error from exc
        if self._is_news(logging.WARNING, now):
            LOG.warning(
                'The host aggregates cannot be read (%(cause)s); using those '
                'read %(age).0f s ago, for %(left).0f s more.',
                {'cause': str(exc).rstrip('.'), 'age': age, 'left': left},
            )
        return snapshot

    def _is_news(self, level: int, now: float) -> bool:
        """Return whether to log the trouble: once a minute, or if it grows."""
        with self._lock:
            if self._logged:
                last, at = self._logged
                if level <= last and now - at < _LOG_PERIOD:
                    return False
            self._logged = level, now
            return True


def _reported(exc: exception.IsolateAggregatesError) -> str:
    """Return what the library below reported, for the log alone.

    It may name addresses, which are no business of those whose request it was.
    """
    first = short(str(exc.__cause__ or '').partition('\n')[0])
    return f' Reported: {first}' if first and first not in str(exc) else ''
