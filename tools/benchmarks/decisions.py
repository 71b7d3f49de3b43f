# SPDX-License-Identifier: Apache-2.0
"""Measures what the records of decisions cost a request.

    python tools/benchmarks/decisions.py [--csv FILE] [--before CHECKOUT]
        [aggregates ...]

``select_destinations`` with our request filters, Placement's answer for 50
hosts and ten host filters that pass all; the aggregates were read before. The
request requires one of 50 traits, and aggregates with the others are closed to
it. For each value of ``decisions`` and for shadow, requests are made in turn.
Of the medians of processor time of twenty requests the least counts: on a
machine with other load, only that tells what a change costs. Records are
written to a file.

none
    All of it without records.
failures, narrowed, shadow
    What these add in the thread of the request; a request that gets a host
    leaves a record with *narrowed* only.
failed
    What a request adds that gets no host, with *failures*: the record is
    written by another thread, which has Placement examined.
behind
    Processor time of the other thread for a request in shadow. Native threads
    share the interpreter, so another request can wait for it so long.

With ``--before`` another checkout of this project, of before there were
records, and this one run in turn, each level three times in a process of its
own. It logged the constraints on each request. That takes some five minutes,
or ten beside other load.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import logging
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any
import uuid

import filters as load
from nova import context as nova_context
from nova import exception as nova_exception
from nova import filters as nova_filters
from nova.scheduler import filters as host_filters
from nova.scheduler import manager
from nova.scheduler.client import report
import table

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.nova.messages import Observer

AGGREGATES = (100, 1_000, 5_000)
HOSTS, FILTERS = 50, 10
TURNS, BLOCK = 1000, 20
# How many processes measure each level with ``--before``, and in how many
# blocks each, as other load comes and goes.
PROCESSES, BLOCKS = 3, 100
LOGGER = 'isolate_aggregates'


@dataclasses.dataclass(frozen=True)
class Row:
    """Milliseconds of processor time for each request."""

    aggregates: int
    none: float
    failures: float
    narrowed: float
    failed: float
    shadow: float
    behind: float


@dataclasses.dataclass(frozen=True)
class Change:
    """Milliseconds of processor time for each request, by checkout."""

    aggregates: int
    before: float
    none: float
    failures: float
    narrowed: float


class Passes(nova_filters.BaseFilter):
    """A host filter that passes all."""

    def _filter_one(self, obj: Any, spec: Any) -> bool:
        return True


class Host:
    """A host with the names that Nova's states have."""

    def __init__(self, number: int) -> None:
        self.uuid, self.host = (
            str(uuid.UUID(int=number)),
            f'host-{number + 1}-0',
        )


DONE = threading.Event()


class Selection:
    """A chosen host."""

    service_host = 'host-1-0'


class Unexamined:
    """A Placement that does not answer, so that nothing is examined."""

    def read(self, *args: Any, **kwargs: Any) -> Any:
        """Fail.

        :raises ServiceUnreachable: always.
        """
        raise exception.ServiceUnreachable('Placement', None, 'is gone.')


def candidates(*args: Any, **kwargs: Any) -> Any:
    """Return what Nova makes of an answer of Placement."""
    summaries = {
        str(uuid.UUID(int=number)): {
            'root_provider_uuid': str(uuid.UUID(int=number))
        }
        for number in range(HOSTS)
    }
    return list(summaries), summaries, '1.36'


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute for a while."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    yield
    setattr(owner, name, before)


def recorded(level: str, shadow: Any = None) -> Any:
    """Return a recorder of a level."""
    # An older checkout has none.
    from isolate_aggregates.nova.recorder import Recorder

    return Recorder(level, frozenset(), {}, Unexamined, Observer(), shadow)


def signalling(runner: Any) -> Any:
    """Return filters in shadow that say when they have compared."""
    from isolate_aggregates.nova.shadow import Shadow

    class Signalling(Shadow):
        def compare(self, trace: Any) -> dict[str, Any]:
            try:
                return super().compare(trace)
            finally:
                DONE.set()

    return Signalling(runner, 1000, replaces=False)


@contextlib.contextmanager
def requests(
    number: int, conf: Any
) -> Iterator[tuple[Any, dict[str, bool], Callable[..., float]]]:
    """Return the filters, what happens to requests, and a request.

    :returns: The runner; whether there is a host; and a function that makes a
        request and returns its duration.
    """
    load.fill(number)
    context = nova_context.get_admin_context()
    runner = load.runner(conf, 3600, 0)
    client = report.SchedulerReportClient.__new__(report.SchedulerReportClient)
    handler = host_filters.HostFilterHandler()
    passing = [Passes() for _ in range(FILTERS)]
    hosts = [Host(each) for each in range(HOSTS)]
    wants: dict[str, bool] = {'host': True}

    def select(self: Any, context: Any, spec_obj: Any, **kwargs: Any) -> Any:
        if kwargs['decides']:
            runner(context, spec_obj)
            runner.finish(context, spec_obj)
        client.get_allocation_candidates(context, None)
        handler.get_filtered_objects(passing, hosts, spec_obj)
        if not wants['host']:
            raise nova_exception.NoValidHost(reason='')
        return [[Selection]]

    def once(decides: bool = True) -> float:
        spec = load.make_spec(context)
        begin = time.thread_time()
        with contextlib.suppress(nova_exception.NoValidHost):
            manager.SchedulerManager.select_destinations(
                None,
                context,
                spec_obj=spec,
                instance_uuids=[spec.instance_uuid],
                decides=decides,
            )
        return 1000 * (time.thread_time() - begin)

    with (
        replaced(manager.SchedulerManager, 'select_destinations', select),
        replaced(
            report.SchedulerReportClient,
            'get_allocation_candidates',
            candidates,
        ),
    ):
        once()
        yield runner, wants, once


def measure(number: int, conf: Any) -> Row:
    """Measure with a number of aggregates."""
    with requests(number, conf) as (runner, wants, once):
        return measured(number, runner, wants, once)


def measured(
    number: int,
    runner: Any,
    wants: dict[str, bool],
    once: Callable[..., float],
) -> Row:
    """Measure requests in turn."""

    def in_turn(
        *kinds: tuple[Any, bool],
    ) -> list[float]:
        found: list[list[float]] = [[] for _ in kinds]
        for _ in range(TURNS // BLOCK):
            for (recorder, has_host), times in zip(kinds, found, strict=True):
                wants['host'] = has_host
                with recording(recorder, runner._observer):
                    # Python looks up anew what has just been replaced.
                    once()
                    times.append(
                        statistics.median(once() for _ in range(BLOCK))
                    )
        return [min(times) for times in found]

    failures = recorded('failures')
    none, some, more, without, failed = in_turn(
        (None, True),
        (failures, True),
        (recorded('narrowed'), True),
        (None, False),
        (failures, False),
    )
    wants['host'] = True
    plain = in_shadow(once, None)
    seen, behind = in_shadow(once, recorded('none', signalling(runner)))
    return Row(
        number, none, some - none, more - none, failed - without,
        seen - plain[0], behind,
    )  # fmt: skip


def in_shadow(once: Callable[..., float], shadow: Any) -> tuple[float, float]:
    """Return the times of a request and of the other thread for it."""
    own, behind = [], []
    with recording(shadow, None):
        for _ in range(TURNS // 4):
            begin = time.process_time()
            DONE.clear()
            own.append(once(False))
            if shadow:
                DONE.wait()
            behind.append(1000 * (time.process_time() - begin) - own[-1])
    return min(medians(own)), min(medians(behind))


def medians(times: Sequence[float]) -> list[float]:
    """Return the medians of blocks."""
    return [
        statistics.median(times[n : n + BLOCK])
        for n in range(0, len(times), BLOCK)
    ]


@contextlib.contextmanager
def recording(recorder: Any, observer: Any) -> Iterator[None]:
    """Have a recorder, if any, in place."""
    if recorder is None:
        yield
        return
    from isolate_aggregates.nova import records

    records.install(recorder)
    if observer:
        observer.decided = records.decided
    yield
    records.uninstall()
    if observer:
        del observer.decided


def alone(level: str, number: int, conf: Any) -> float:
    """Return the least median of requests of one level, in this process."""
    recorder = None if level in ('before', 'none') else recorded(level)
    with (
        requests(number, conf) as (runner, _, once),
        recording(recorder, runner._observer),
    ):
        for _ in range(BLOCK):
            once()
        return min(
            statistics.median(once() for _ in range(BLOCK))
            for _ in range(BLOCKS)
        )


def compared(
    numbers: Sequence[int], checkout: pathlib.Path
) -> Iterator[Change]:
    """Measure another checkout and this one in turn."""
    levels = [each.name for each in dataclasses.fields(Change)][1:]
    found: dict[str, list[list[float]]] = {level: [] for level in levels}
    for _ in range(PROCESSES):
        for level, times in found.items():
            path = [str(checkout.resolve())] if level == 'before' else []
            output = subprocess.run(
                [
                    *(sys.executable, __file__, '--level', level),
                    *map(str, numbers),
                ],
                env={**os.environ, 'PYTHONPATH': os.pathsep.join(path)},
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout
            times.append([float(each) for each in output.split()])
    for n, number in enumerate(numbers):
        least = {
            level: min(each[n] for each in times)
            for level, times in found.items()
        }
        yield Change(number, **least)


def main() -> None:
    """Measure and print a table."""
    made = table.parser('aggregates', AGGREGATES)
    made.add_argument('--before', type=pathlib.Path)
    made.add_argument('--level', help='measure and print only one')
    options = made.parse_args()
    if options.before:
        changes = compared(options.aggregates, options.before)
        table.report(list(changes), options.csv)
        return
    with tempfile.TemporaryDirectory() as name:
        log = logging.getLogger(LOGGER)
        log.addHandler(logging.FileHandler(pathlib.Path(name, 'log')))
        log.setLevel(logging.INFO)
        log.propagate = False
        with load.configured() as conf, load.database():
            conf.set_override('check_claims', False, ia_conf.GROUP)
            if options.level:
                for number in options.aggregates:
                    print(alone(options.level, number, conf))
                return
            rows = [measure(number, conf) for number in options.aggregates]
    table.report(rows, options.csv)


if __name__ == '__main__':
    sys.exit(main())
