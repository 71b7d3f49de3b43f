# SPDX-License-Identifier: Apache-2.0
"""What verifying rollups asks of Placement, and how long requests wait.

    python benchmarks/verification.py [--csv FILE] [aggregates ...]

Nothing here takes time but waiting, so a clock of its own is used and every
run gives the same figures. Placement takes 10 ms for each answer, or does not
answer. Each aggregate has a lock of its own, as a customer or a lease has, and
the limit is that of gunicorn. *first* are the questions asked before the first
query is sent, *minute* those of each minute from then on: while no request has
a key, and while a request each second has that of one of 100 customers.
*lease* are the questions about one aggregate more. *wait* is the longest wait
of a request: of the first one, of one after the lease, and while Placement
hangs, of the first and of all later ones.
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
from isolate_aggregates.request import Flavor, Request

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
    """A worker of nova-scheduler: time, Placement, and a thread that asks.

    :param number: How many aggregates there are.
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
        """Let there be a number of aggregates."""
        self.index = AggregateIndex(
            Aggregate(
                f'{i:08d}-0000-4000-8000-000000000000',
                f'customer {i}',
                {f'trait:CUSTOM_{i}': 'required'},
            )
            for i in range(number)
        )

    def resource_providers(self, **query: Any) -> Iterable[dict[str, str]]:
        """Answer that no host is missing, or do not answer."""
        self.questions += 1
        if self.hangs:
            self.now += TIMEOUT
            raise exception.ServiceUnreachable('Placement', None, 'hangs.')
        self.now += ANSWER
        return ()

    def wait(self, timeout: float | None = None) -> bool:
        """Let the thread work while a request waits, for so long at most."""
        until = self.now + (timeout or 0)
        if self.hangs:
            # Its question is on the way.
            self.now = until
            return False
        pause = self.members.step()
        self.now = min(until, self.now + pause)
        return True

    def ask(self, key: int | None) -> float:
        """Return how long a request waits."""
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
        """Let the thread work until some time."""
        while self.now < until:
            pause = self.members.step()
            self.now = min(until, self.now + pause)


class NoThread:
    """In the place of the thread, whose steps are taken here."""

    def __init__(self, **kwargs: Any) -> None:
        pass

    def start(self) -> None:
        """Do nothing."""

    def join(self, timeout: float) -> None:
        """Do nothing."""


def minute(worker: Worker, keys: bool) -> int:
    """Return the questions of a minute, once all is as it stays."""
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
