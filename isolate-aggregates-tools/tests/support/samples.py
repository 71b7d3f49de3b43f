# SPDX-License-Identifier: Apache-2.0
"""Metrics as Prometheus reads them, and as the page lists them."""

import re

import prometheus_client
from prometheus_client import parser


def samples(*collectors):
    """Return what collectors give."""
    registry = prometheus_client.CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    return parsed(prometheus_client.generate_latest(registry).decode())


def parsed(text):
    """Return the values in a text by name and sorted labels."""
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def documented(page):
    """Return the labels of each metric in the tables of a page."""
    rows = re.findall(
        r'^   \* - ``(isolate_\w+)``\n     - ?(.*)$', page, re.MULTILINE
    )
    return {
        name: {label for label in labels.split(', ') if label}
        for name, labels in rows
    }
