# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of Prometheus metrics per request in nova-scheduler.

    python tools/benchmarks/metrics.py [--csv FILE] [filters]

All metrics of a request that passes are recorded repeatedly, with filters that
always yield the same. Their own time is subtracted. This is measured without
an observer, with metrics disabled, and with metrics enabled, which are written
to a directory in memory if there is one. The best of several runs counts.
"""

from collections.abc import Callable
import dataclasses
import pathlib
import tempfile
import time
import timeit
from typing import Any

import table

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters import RequestFilter
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.nova.worker_metrics import WorkerMetrics
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.request import Request
from isolate_aggregates_tools.request.constraints import RequireRootTrait

FILTERS = 4
REQUESTS = 20_000
RUNS = 7
MEMORY = pathlib.Path('/dev/shm')
SAID = RequireRootTrait('CUSTOM_MEASURED', 'this is measured')


class Measured(RequestFilter):
    """A filter that yields the same constraint for every request."""

    def __call__(
        self, request: Any, aggregates: Any
    ) -> tuple[RequireRootTrait]:
        return (SAID,)


def microseconds(run: Callable[[], object]) -> float:
    """Return the duration in microseconds."""
    seconds = timeit.repeat(run, number=REQUESTS, repeat=RUNS)
    return 1e6 * min(seconds) / REQUESTS


def passing(
    pipeline: Pipeline, observer: Observer | None
) -> Callable[[], None]:
    """Return a function that records a request that passes."""
    request = Request(Flavor('small'))
    aggregates = AggregateIndex()

    def run() -> None:
        started_at = time.monotonic()
        destination = pipeline.evaluate(request, aggregates)
        if observer:
            observer.passed(started_at, destination, False)

    return run


@dataclasses.dataclass(frozen=True)
class Row:
    """Microseconds for each request."""

    what: str
    cost: float


def main() -> None:
    """Measure and print a table."""
    options = table.parser('filters', FILTERS).parse_args()
    names = [f'filter-{i}' for i in range(options.filters)]
    where = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as directory:
        off, on = Observer(), WorkerMetrics(names, directory)
        filters = dict.fromkeys(names, Measured())
        bare = microseconds(passing(Pipeline(filters), None))
        rows = [
            Row(what, microseconds(passing(pipeline, observer)) - bare)
            for what, observer in (('switched off', off), ('switched on', on))
            for pipeline in [Pipeline(filters, observer.timer)]
        ]
        refusal = exception.RequestRefused(['no'])
        rows.append(
            Row(
                'a refusal',
                microseconds(lambda: on.refused(names[0], refusal)),
            )
        )
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
