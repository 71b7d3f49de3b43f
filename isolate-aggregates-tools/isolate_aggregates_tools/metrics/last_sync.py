# SPDX-License-Identifier: Apache-2.0
"""Writes and reads the time of the last successful ``sync``."""

from collections.abc import Iterator
import logging

import prometheus_client
from prometheus_client import parser
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from isolate_aggregates_tools import files
from isolate_aggregates_tools.metrics import textfile

LOG = logging.getLogger(__name__)

SUCCEEDED_AT = f'{textfile.SYNC}_last_success_timestamp_seconds'


def check(path: str) -> None:
    """Check that the file can be written."""
    textfile.check(path, SUCCEEDED_AT)


def write(path: str, succeeded_at: float) -> None:
    """Write the time of a successful ``sync`` to a file, atomically.

    :param succeeded_at: The time, in seconds since 1970.
    """
    registry = prometheus_client.CollectorRegistry()
    gauge = prometheus_client.Gauge(
        SUCCEEDED_AT,
        'Time of the last successful sync.',
        registry=registry,
    )
    gauge.set(succeeded_at)
    textfile.write(path, registry, SUCCEEDED_AT)


class LastSync(Collector):
    """Exports what ``sync`` has written, and whether it could be read."""

    def __init__(self, path: str) -> None:
        self._path = path

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        try:
            text = files.read_text(self._path)
            families = [
                family
                for family in parser.text_string_to_metric_families(text)
                if family.name == SUCCEEDED_AT
            ]
            if not families:
                raise ValueError(f'it has no {SUCCEEDED_AT}')
        except (OSError, ValueError, LookupError) as exc:
            LOG.error(
                'The metrics that sync wrote to %(path)s cannot be read: '
                '%(cause)s.',
                {'path': self._path, 'cause': exc},
            )
            families = []
        yield from families
        yield GaugeMetricFamily(
            f'{textfile.SYNC}_up',
            'Whether the time of the last successful sync could be read.',
            float(bool(families)),
        )
