# SPDX-License-Identifier: Apache-2.0
"""Counts the queries for verifying rollups, and measures waiting requests.

    python benchmarks/verification.py [--csv FILE] [aggregates ...]

A simulated clock is used, so every run has the same result. Placement takes
10 ms per response, or does not respond. Each aggregate has a separate lock,
like that of a customer or a lease. The limit is that of gunicorn. *first* are
the queries before the first request is sent to Placement, *minute* those per
minute from then on: while no request has a key, and while one request per
second has the key of one of 100 customers. *lease* are the queries for one
more aggregate. *wait* is the longest wait of a request: of the first one, of
one after the lease, and while Placement hangs, of the first one and of all
later ones.
"""

from collections.abc import Iterable
import dataclasses
import threading
from typing import Any

import table

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.query_limit import Shortener, VerifiedMembers
from isolate_aggregates.request import Flavor
from isolate_aggregates.tools.request import Request

AGGREGATES = (200, 1_000, 5_000)
CUSTOMERS = 100
LIMIT = 4000
REST = 104
ANSWER = 0.01
TIMEOUT = 5.0
MINUTE = 60
PIPELINE = Pipeline({'isolate_aggregates': IsolateAggregates()})


@dataclasses.dataclass(frozen=True)
class Row:
    """Questions, and milliseconds that requests wait."""

    aggregates: int
    first: int
    minute: int
    minute_keys: int
    lease: int
    wait: float
    wait_lease: float
    wait_hanging: float
    wait_later: float


class Worker(threading.Condition):
    """A simulated worker: its clock, Placement, and the verifying thread.

    :param number: The number of aggregates.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.now = 0.0
        self.questions = 0
        self.hangs = False
        self.members = VerifiedMembers(
            lambda: self,  # type: ignore[arg-type, return-value]
            LIMIT,
            lambda: self.now,
            self,
            NoThread,  # type: ignore[arg-type]
        )
        self.shortener = Shortener(
            LIMIT, PIPELINE.locks, self.members, lambda: self.now
        )
        self.have(number)

    def have(self, number: int) -> None:
        """Set the number of aggregates."""
        self.index = AggregateIndex(
            Aggregate(
                f'{i:08d}-0000-4000-8000-000000000000',
                f'customer {i}',
                {f'trait:CUSTOM_{i}': 'required'},
            )
            for i in range(number)
        )

    def resource_providers(self, **query: Any) -> Iterable[dict[str, str]]:
        """Return no missing host, or hang."""
        self.questions += 1
        if self.hangs:
            self.now += TIMEOUT
            raise exception.ServiceUnreachable('Placement', None, 'hangs.')
        self.now += ANSWER
        return ()

    def wait(self, timeout: float | None = None) -> bool:
        """Run the thread while a request waits, until the timeout."""
        until = self.now + (timeout or 0)
        if self.hangs:
            # Its query is in progress.
            self.now = until
            return False
        pause = self.members.step()
        self.now = min(until, self.now + pause)
        return True

    def ask(self, key: int | None) -> float:
        """Send a request; return how long it waits."""
        traits = {} if key is None else {f'trait:CUSTOM_{key}': 'required'}
        request = Request(Flavor('f', extra_specs=traits))
        started_at = self.now
        destination = PIPELINE.evaluate(request, self.index)
        try:
            self.shortener.shorten(destination, self.index, REST)
        except exception.QueryNotShortened:
            if not self.hangs:
                raise
        return self.now - started_at

    def work(self, until: float) -> None:
        """Run the thread until a given time."""
        while self.now < until:
            pause = self.members.step()
            self.now = min(until, self.now + pause)


class NoThread:
    """A fake thread; the benchmark runs its steps."""

    def __init__(self, **kwargs: Any) -> None:
        pass

    def start(self) -> None:
        """Do nothing."""

    def is_alive(self) -> bool:
        """Return that it runs."""
        return True

    def join(self, timeout: float) -> None:
        """Do nothing."""


def minute(worker: Worker, keys: bool) -> int:
    """Return the number of queries per minute in the steady state."""
    before = 0
    for _ in range(5):
        before = worker.questions
        for second in range(MINUTE):
            worker.ask(second % CUSTOMERS if keys else None)
            worker.work(worker.now + 1)
    return worker.questions - before


def measure(number: int) -> Row:
    """Measure with a number of aggregates."""
    worker = Worker(number)
    wait = worker.ask(None)
    first = worker.questions
    plain = minute(worker, keys=False)
    worker.have(number + 1)
    before = worker.questions
    wait_lease = worker.ask(None)
    # Nothing else is due so soon.
    worker.members.step()
    lease = worker.questions - before
    with_keys = minute(worker, keys=True)
    hanging = Worker(number)
    hanging.hangs = True
    wait_hanging = hanging.ask(None)
    wait_later = 0.0
    for _ in range(100):
        wait_later = max(wait_later, hanging.ask(None))
        hanging.work(hanging.now + 1)
    return Row(
        number,
        first,
        plain,
        with_keys,
        lease,
        1000 * wait,
        1000 * wait_lease,
        1000 * wait_hanging,
        1000 * wait_later,
    )


def main() -> None:
    """Measure and print a table."""
    options = table.parser('aggregates', AGGREGATES).parse_args()
    rows = [measure(number) for number in options.aggregates]
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
