# SPDX-License-Identifier: Apache-2.0
"""Reads the metrics that the workers of nova-scheduler record.

The workers write files in the `multiprocess mode
<https://prometheus.github.io/client_python/multiprocess/>`_ of
prometheus-client. Neither side needs a port, a socket or a thread in
nova-scheduler, and no counts are lost between two scrapes.
"""

from collections.abc import Iterator
import logging
import os
import struct

from prometheus_client import metrics_core, multiprocess
from prometheus_client.registry import Collector

from isolate_aggregates.conf import SCHEDULER_METRICS

LOG = logging.getLogger(__name__)

# What prometheus-client raises for invalid files.
_UNREADABLE = (OSError, ValueError, LookupError, RuntimeError, struct.error)


class Workers(Collector):
    """Exports the metrics of all nova-scheduler workers on this machine."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def collect(self) -> Iterator[metrics_core.Metric]:
        """Yield the sums over all workers, and whether they could be read."""
        try:
            families = list(self._families())
        except _UNREADABLE as exc:
            # The client's own error for a missing directory refers to the
            # environment of nova-scheduler.
            is_there = os.path.isdir(self._directory)
            LOG.error(
                'The counts of nova-scheduler in %(directory)s cannot be '
                'read: %(cause)s.',
                {
                    'directory': self._directory,
                    'cause': exc if is_there else 'it is not a directory',
                },
            )
            families = []
            up = 0
        else:
            up = 1
        yield from families
        yield metrics_core.GaugeMetricFamily(
            f'{SCHEDULER_METRICS}_up',
            'Whether the counts of nova-scheduler could be read.',
            up,
        )

    def _families(self) -> Iterator[metrics_core.Metric]:
        reader = multiprocess.MultiProcessCollector(None, self._directory)
        for family in reader.collect():
            # Other plugins may write to the same files.
            if family.name.startswith(SCHEDULER_METRICS):
                yield family
