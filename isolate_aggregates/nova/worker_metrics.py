# SPDX-License-Identifier: Apache-2.0
"""Records the metrics of a worker of nova-scheduler.

Each worker writes its own files, and the exporter adds them up. This is the
`multiprocess mode
<https://prometheus.github.io/client_python/multiprocess/>`_ of
prometheus-client. It needs no port, socket or thread in nova-scheduler, and
loses no counts between two scrapes. The client reads the environment variable
for this mode on import. Other libraries of Nova may import it before, so the
mode is also set explicitly here.

The client maps its files into memory. The kernel ends a process that writes to
such a file if the file system is full, or if someone has truncated the file.
So the files are written with ordinary writes here, which fail instead.
"""

from collections.abc import Callable, Iterable, Sequence
import errno
import os
import struct
import time

from oslo_log import log as logging
import prometheus_client
from prometheus_client import mmap_dict, values

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.record import CAUSES, EFFECTS

LOG = logging.getLogger(__name__)

OPTION = 'scheduler_metrics_directory'
# What prometheus-client reads.
_VARIABLE = 'PROMETHEUS_MULTIPROC_DIR'

# Seconds; from a filter with nothing to do to one that reads a database.
_BUCKETS = (
    0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0,
    3.0,
)  # fmt: skip

_SHARES = (0.01, 0.1, 0.5, 0.9, 1.0)

# What prometheus-client raises for invalid files.
_UNUSABLE = (OSError, ValueError, LookupError, RuntimeError, struct.error)

# The reasons for refusals by exception; the first match counts. True if the
# refusal is attributed to one filter, whose name becomes a label.
_REASONS: Sequence[
    tuple[type[exception.IsolateAggregatesError], str, bool]
] = (
    (exception.QueryNotShortened, 'query_length', False),
    (exception.RequestRefused, 'filter', True),
    (exception.FilterError, 'filter_error', True),
    (exception.AggregatesUnreadable, 'aggregates_unreadable', False),
    (exception.ServiceError, 'service', False),
    (exception.IsolateAggregatesError, 'other', False),
)


class _File:
    """The values of one process in a file, without mmap.

    Replaces ``prometheus_client.mmap_dict.MmapedDict``, in the same format:
    the number of bytes in use, then entries that each have the length of a
    key, the key, a value and its time. Not thread-safe; the client holds a
    lock.
    """

    _USED = struct.Struct('i4x')
    _VALUE = struct.Struct('dd')

    def __init__(self, name: str) -> None:
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        self._file = os.fdopen(handle, 'r+b', buffering=0)
        self._values: dict[str, tuple[float, float]] = {}
        self._places: dict[str, int] = {}
        self._end = self._USED.size
        if not os.fstat(self._file.fileno()).st_size:
            self._write(0, self._USED.pack(self._end))
        # A process with the same pid has written it.
        for (
            key,
            value,
            at,
            place,
        ) in mmap_dict.MmapedDict.read_all_values_from_file(name):
            self._values[key] = value, at
            self._places[key] = place
            self._end = place + self._VALUE.size

    def read_value(self, key: str) -> tuple[float, float]:
        """Return a value and its time; 0 for a new key, which is added."""
        if key not in self._places:
            self._add(key)
        return self._values[key]

    def write_value(self, key: str, value: float, at: float) -> None:
        """Set a value and its time."""
        if key not in self._places:
            self._add(key)
        self._write(self._places[key], self._VALUE.pack(value, at))
        self._values[key] = value, at

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _add(self, key: str) -> None:
        name = key.encode()
        padded = name + b' ' * (8 - (len(name) + 4) % 8)
        entry = struct.pack('i', len(name)) + padded + self._VALUE.pack(0, 0)
        self._write(self._end, entry)
        # Readers see the entry only now.
        end = self._end + len(entry)
        self._write(0, self._USED.pack(end))
        self._places[key] = end - self._VALUE.size
        self._values[key] = 0.0, 0.0
        self._end = end

    def _write(self, place: int, data: bytes) -> None:
        if os.pwrite(self._file.fileno(), data, place) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _count_into(directory: str) -> None:
    """Make prometheus-client write its metrics to files in a directory."""
    current = os.environ.setdefault(_VARIABLE, directory)
    if current != directory:
        raise exception.ConfigError(
            f'[{ia_conf.GROUP}] {OPTION}',
            f'is {directory}, but {_VARIABLE} in the environment of '
            f'nova-scheduler is {current}; set both to the same directory, or '
            'remove the variable.',
        )
    values.MmapedDict = _File  # type: ignore[assignment,attr-defined]
    # The client may have been imported before the variable was set.
    if values.ValueClass is values.MutexValue:
        values.ValueClass = values.get_value_class()


class WorkerMetrics(Observer):
    """Records the metrics of one worker.

    :raises ConfigError: if the directory cannot be used.
    """

    def __init__(self, filters: Iterable[str], directory: str) -> None:
        self.timer = self._took
        self._has_failed = False
        _count_into(directory)
        try:
            self._make(tuple(filters))
        except _UNUSABLE as exc:
            # A file with the pid of this process may be there already.
            raise exception.ConfigError(
                f'[{ia_conf.GROUP}] {OPTION}',
                f'is {directory}, where nothing can be written: '
                f'{getattr(exc, "strerror", None) or exc}.',
            ) from exc

    def _make(self, filters: Sequence[str]) -> None:
        self._requests = prometheus_client.Counter(
            f'{ia_conf.SCHEDULER_METRICS}_requests',
            'Requests that the request filters have judged.',
            registry=None,
        )
        self._refusals = prometheus_client.Counter(
            f'{ia_conf.SCHEDULER_METRICS}_refusals',
            'Requests that were refused, by reason and, if a filter refused '
            'them, by filter.',
            ['reason', 'filter'],
            registry=None,
        )
        narrowings = prometheus_client.Counter(
            f'{ia_conf.SCHEDULER_METRICS}_requests_narrowed',
            'Requests that passed, but that a filter keeps from some hosts.',
            ['filter'],
            registry=None,
        )
        self._unreadable = prometheus_client.Counter(
            f'{ia_conf.SCHEDULER_METRICS}_aggregate_read_failures',
            'Reads of the host aggregates that failed or took too long.',
            registry=None,
        )
        self._no_hosts = prometheus_client.Counter(
            f'{ia_conf.SCHEDULER_METRICS}_no_host',
            'Requests that got no host, by primary cause.',
            ['cause'],
            registry=None,
        )
        self._shadowed = prometheus_client.Counter(
            f'{ia_conf.SCHEDULER_METRICS}_shadow',
            'Requests that filters in shadow have decided, by what they would '
            'have changed.',
            ['effect'],
            registry=None,
        )
        self._shortened = prometheus_client.Counter(
            f'{ia_conf.SCHEDULER_METRICS}_queries_shortened',
            'Requests whose query was too long for Placement and was '
            'shortened.',
            registry=None,
        )
        self._excluded = prometheus_client.Histogram(
            f'{ia_conf.SCHEDULER_METRICS}_excluded_after_placement_ratio',
            'Hosts that were excluded after a shortened query, as a share of '
            '[scheduler] max_placement_results.',
            buckets=_SHARES,
            registry=None,
        )
        self._request_seconds = prometheus_client.Histogram(
            f'{ia_conf.SCHEDULER_METRICS}_request_duration_seconds',
            'How long all request filters took for a request that passed.',
            buckets=_BUCKETS,
            registry=None,
        )
        filter_seconds = prometheus_client.Histogram(
            f'{ia_conf.SCHEDULER_METRICS}_filter_duration_seconds',
            'How long one request filter took for a request.',
            ['filter'],
            buckets=_BUCKETS,
            registry=None,
        )
        self._filter_seconds = {
            name: filter_seconds.labels(name) for name in filters
        }
        # Initialize the counters to 0, so that rate() sees the first count.
        for cause in CAUSES:
            self._no_hosts.labels(cause)
        for effect in EFFECTS:
            self._shadowed.labels(effect)
        self._narrowed = {name: narrowings.labels(name) for name in filters}
        for _, reason, is_of_filter in _REASONS:
            for name in ('', *(filters if is_of_filter else ())):
                self._refusals.labels(reason, name)

    def _took(self, name: str, seconds: float) -> None:
        self._count(self._filter_seconds[name].observe, seconds)

    def passed(
        self,
        started_at: float,
        destination: Destination,
        is_shortened: bool,
    ) -> None:
        """Count a request that passed the filters."""
        self._count(self._requests.inc)
        for name in {
            conclusion.filter_name for conclusion in destination.yielded
        }:
            self._count(self._narrowed[name].inc)
        self._count(
            self._request_seconds.observe, time.monotonic() - started_at
        )
        if is_shortened:
            self._count(self._shortened.inc)

    def refused(
        self, name: str, error: exception.IsolateAggregatesError
    ) -> None:
        """Count a request that was refused."""
        reason, of_filter = next(
            (reason, is_of_filter)
            for kind, reason, is_of_filter in _REASONS
            if isinstance(error, kind)
        )
        self._count(self._requests.inc)
        refusals = self._refusals.labels(reason, name if of_filter else '')
        self._count(refusals.inc)

    def excluded(self, hosts: int, most: int) -> None:
        """Count the hosts that were excluded after a shortened query."""
        self._count(self._excluded.observe, hosts / most)

    def no_host(self, cause: str) -> None:
        """Count a request that got no host."""
        counter = self._no_hosts.labels(cause)
        self._count(counter.inc)

    def shadowed(self, effect: str) -> None:
        """Count a request that filters in shadow have decided."""
        counter = self._shadowed.labels(effect)
        self._count(counter.inc)

    def unreadable(self) -> None:
        """Count a failure to read the aggregates."""
        self._count(self._unreadable.inc)

    def _count(self, count: Callable[..., None], *amount: float) -> None:
        """Update a metric; log the first failure and ignore all others."""
        try:
            count(*amount)
        except Exception as exc:
            # For example, the directory is gone. Scheduling must go on.
            if not self._has_failed:
                LOG.error('Nothing is counted for Prometheus: %s.', exc)
            self._has_failed = True
