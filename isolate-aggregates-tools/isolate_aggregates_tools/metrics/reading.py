# SPDX-License-Identifier: Apache-2.0
"""Reads a cloud periodically and exports its metrics.

If reading fails, the previous values are kept, with their time. A failure is
never exported as zero.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
import logging
import threading
import time

import pbr.version
from prometheus_client.metrics_core import (
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from isolate_aggregates import exception

LOG = logging.getLogger(__name__)

UP = 'isolate_aggregates_up'
READ_AT = 'isolate_aggregates_snapshot_timestamp_seconds'
TOOK = 'isolate_aggregates_snapshot_duration_seconds'
FAILED_AT = 'isolate_aggregates_last_failure_timestamp_seconds'

_HELP = {
    UP: 'Whether the last reading of the cloud succeeded.',
    READ_AT: 'Start time of the reading that the values are from.',
    TOOK: 'Duration of that reading.',
    FAILED_AT: 'Time of the last failed reading; absent if none failed.',
}


class Stopped(Exception):
    """Raised to abort a reading when the process stops."""


@dataclasses.dataclass(frozen=True)
class LastReading:
    """The last known metrics of a cloud.

    :param families: The metrics of the last successful reading.
    :param read_at: The start of that reading; None if there was none.
    :param failed_at: The time of the last failure; None if there was none.
    """

    families: Sequence[Metric] = ()
    read_at: float | None = None
    took: float | None = None
    failed_at: float | None = None
    is_up: bool = False


class CloudReading(Collector):
    """Exports the metrics of a cloud from the last successful reading.

    :param clock: Returns the time, in seconds since 1970.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[Metric]],
        last: LastReading = LastReading(),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._read = read
        # Replaced but never modified, as other threads collect it.
        self._last = last
        self._clock = clock

    def read(self) -> None:
        """Read the cloud.

        :raises IsolateAggregatesError: if it cannot be read; the previous
            metrics are kept.
        """
        began = self._clock()
        try:
            families = tuple(self._read())
        except Exception:
            self._last = dataclasses.replace(
                self._last, failed_at=began, is_up=False
            )
            raise
        self._last = dataclasses.replace(
            self._last,
            families=families,
            read_at=began,
            took=self._clock() - began,
            is_up=True,
        )

    def collect(self) -> Iterator[Metric]:
        """Yield the last metrics, and the result of the last reading."""
        last = self._last
        values = {
            UP: float(last.is_up),
            READ_AT: last.read_at,
            TOOK: last.took,
            FAILED_AT: last.failed_at,
        }
        yield from last.families
        for name, value in values.items():
            if value is not None:
                yield GaugeMetricFamily(name, _HELP[name], value)


class Build(Collector):
    """Exports the version of this package."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metric."""
        version = pbr.version.VersionInfo('isolate-aggregates')
        yield InfoMetricFamily(
            'isolate_aggregates_build',
            'The version of isolate-aggregates that reads the cloud.',
            {'version': version.release_string()},
        )


def keep_reading(
    reading: CloudReading, interval: float, stop: threading.Event
) -> None:
    """Read a cloud repeatedly until stopped.

    :param interval: Seconds between the end of a reading and the next one.
    """
    while not stop.is_set():
        try:
            reading.read()
        except Stopped:
            return
        except exception.IsolateAggregatesError as exc:
            LOG.error('%s', exc)
        except Exception:
            # Unexpected, but the next reading may succeed.
            LOG.exception('The cloud cannot be read.')
        stop.wait(interval)
