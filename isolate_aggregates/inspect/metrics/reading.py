# SPDX-License-Identifier: Apache-2.0
"""Reads a cloud periodically, and reports the result.

When a reading fails, the last values stay, with the time they are from. A
failed reading is never reported as zero.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
import threading
import time

from oslo_log import log as logging
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
    UP: 'Whether the last reading of the cloud worked.',
    READ_AT: 'When the reading began that the values are from.',
    TOOK: 'How long that reading took.',
    FAILED_AT: 'When a reading failed last; absent if none did.',
}


class Stopped(Exception):
    """What is being read is not waited for any more."""


@dataclasses.dataclass(frozen=True)
class Known:
    """What is known of a cloud.

    :param families: The metrics of the last reading that worked.
    :param read_at: When that began; None if none worked so far.
    :param failed_at: When a reading failed last; None if none did.
    """

    families: Sequence[Metric] = ()
    read_at: float | None = None
    took: float | None = None
    failed_at: float | None = None
    is_up: bool = False


class CloudReading(Collector):
    """The metrics of a cloud, as they were read last.

    :param clock: Returns the time, in seconds since 1970.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[Metric]],
        known: Known = Known(),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._read = read
        # Never changed but replaced, as it is collected from other threads.
        self._known = known
        self._clock = clock

    def read(self) -> None:
        """Read the cloud.

        :raises IsolateAggregatesError: if it cannot be read; what was read
            before is kept.
        """
        began = self._clock()
        try:
            families = tuple(self._read())
        except Exception:
            self._known = dataclasses.replace(
                self._known, failed_at=began, is_up=False
            )
            raise
        self._known = dataclasses.replace(
            self._known,
            families=families,
            read_at=began,
            took=self._clock() - began,
            is_up=True,
        )

    def collect(self) -> Iterator[Metric]:
        """Yield what was read last, and how that went."""
        known = self._known
        values = {
            UP: float(known.is_up),
            READ_AT: known.read_at,
            TOOK: known.took,
            FAILED_AT: known.failed_at,
        }
        yield from known.families
        for name, value in values.items():
            if value is not None:
                yield GaugeMetricFamily(name, _HELP[name], value)


class Build(Collector):
    """Tells the version of this package."""

    def collect(self) -> Iterator[Metric]:
        """Yield it."""
        version = pbr.version.VersionInfo('isolate-aggregates')
        yield InfoMetricFamily(
            'isolate_aggregates_build',
            'The version of isolate-aggregates that reads the cloud.',
            {'version': version.release_string()},
        )


def keep_reading(
    reading: CloudReading, interval: float, stopped: threading.Event
) -> None:
    """Read a cloud again and again.

    :param interval: Seconds between the end of a reading and the next one.
    """
    while not stopped.is_set():
        try:
            reading.read()
        except Stopped:
            return
        except exception.IsolateAggregatesError as exc:
            LOG.error('%s', exc)
        except Exception:
            # Not foreseen, but the next reading may do better.
            LOG.exception('The cloud cannot be read.')
        stopped.wait(interval)
