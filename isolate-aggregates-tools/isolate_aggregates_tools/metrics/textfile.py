# SPDX-License-Identifier: Apache-2.0
"""Writes metrics to a file for Node exporter.

Its `textfile collector
<https://github.com/prometheus/node_exporter#textfile-collector>`_ reads them.
"""

from collections.abc import Iterator
import contextlib
import logging

import prometheus_client
from prometheus_client import parser
from prometheus_client.registry import Collector

from isolate_aggregates.conf import SCHEDULER_METRICS
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import files
from isolate_aggregates_tools.metrics import reading

LOG = logging.getLogger(__name__)

# The prefix of the metrics that sync writes to a separate file.
SYNC = 'isolate_aggregates_sync'

_BUILD = 'isolate_aggregates_build_info'

_OWN = {
    reading.UP,
    reading.READ_AT,
    reading.TOOK,
    reading.FAILED_AT,
    _BUILD,
}


def check(path: str, mark: str = _BUILD) -> None:
    """Check that a file can be written.

    :param mark: The name of the first metric in each such file.
    """
    with _errors(path):
        files.check(path, mark)


def write(path: str, registry: Collector, mark: str = _BUILD) -> None:
    """Write metrics to a file, atomically.

    :param mark: The name of the first metric in each such file.
    """
    with _errors(path):
        target = files.check(path, mark)
        prometheus_client.write_to_textfile(str(target), registry)


@contextlib.contextmanager
def _errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise tools_errors.MetricsError(
            f'The metrics cannot be written to {path}: {exc.strerror}.'
        ) from exc


def last_reading(path: str) -> reading.LastReading:
    """Read the last known metrics of a cloud back from a file.

    :returns: No metrics if the file does not exist or is invalid.
    """
    try:
        text = files.read_text(path)
        families = list(parser.text_string_to_metric_families(text))
    except FileNotFoundError:
        return reading.LastReading()
    except (OSError, ValueError, LookupError) as exc:
        LOG.warning('The metrics in %s cannot be kept: %s.', path, exc)
        return reading.LastReading()
    values = {}
    for family in families:
        with contextlib.suppress(IndexError):
            values[family.name] = family.samples[0].value
    return reading.LastReading(
        families=[
            family
            for family in families
            if family.name not in _OWN
            and not family.name.startswith((SCHEDULER_METRICS, SYNC))
        ],
        read_at=values.get(reading.READ_AT),
        took=values.get(reading.TOOK),
        failed_at=values.get(reading.FAILED_AT),
    )
