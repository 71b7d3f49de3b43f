# SPDX-License-Identifier: Apache-2.0
"""What counting for Prometheus costs each request in nova-scheduler.

    python benchmarks/metrics.py [--csv FILE] [filters]

Everything that is told of a request that passes is done again and again over
filters that always say the same, which is not in the figures: without any
hook, with metrics switched off, and with metrics switched on, which write to a
directory in memory where there is one. Of several runs the best counts.
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
from isolate_aggregates.filters.constraints import RequireRootTrait
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.inspect.metrics.observer import Observer
from isolate_aggregates.inspect.metrics.scheduler import WorkerMetrics
from isolate_aggregates.request import Flavor, Request

FILTERS = 4
REQUESTS = 20_000
RUNS = 7
MEMORY = pathlib.Path('/dev/shm')
SAID = RequireRootTrait('CUSTOM_MEASURED', 'this is measured')


def narrowing(request: Any, aggregates: Any) -> tuple[RequireRootTrait]:
    """Be a filter that always says the same."""
    return (SAID,)


def microseconds(run: Callable[[], object]) -> float:
    """Return how long something takes."""
    seconds = timeit.repeat(run, number=REQUESTS, repeat=RUNS)
    return 1e6 * min(seconds) / REQUESTS


def passing(
    pipeline: Pipeline, observer: Observer | None
) -> Callable[[], None]:
    """Return what is done for a request that passes."""
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
        filters = dict.fromkeys(names, narrowing)
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
