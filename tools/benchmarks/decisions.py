# SPDX-License-Identifier: Apache-2.0
"""Measures what the records of decisions cost a request.

    python tools/benchmarks/decisions.py [--csv FILE] [aggregates ...]

``select_destinations`` with our request filters, Placement's answer for 50
hosts and ten host filters that pass all; the aggregates were read before. The
request requires one of 50 traits, and aggregates with the others are closed to
it. For each value of ``decisions`` and for shadow, requests are made in turn;
the medians of processor time count. Records are written to a file.

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
"""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import logging
import pathlib
import statistics
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
from isolate_aggregates.nova import records
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.nova.recorder import Recorder
from isolate_aggregates.nova.shadow import Shadow
from isolate_aggregates.record import LOGGER

AGGREGATES = (100, 1_000, 5_000)
HOSTS, FILTERS = 50, 10
TURNS, BLOCK = 400, 20


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


class Signalling(Shadow):
    """Says when it has compared."""

    def compare(self, trace: Any) -> dict[str, Any]:
        """Compare what would have been different."""
        try:
            return super().compare(trace)
        finally:
            DONE.set()


DONE = threading.Event()


class Selection:
    """A chosen host."""

    service_host = 'host-1-0'


class Unexamined:
    """A Placement that does not answer, so that nothing is examined."""

    def get(self, *args: Any, **kwargs: Any) -> Any:
        """Fail.

        :raises TimeoutError: always.
        """
        raise TimeoutError


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


def measure(number: int, conf: Any) -> Row:
    """Measure with a number of aggregates."""
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

    def recorded(level: str, shadow: Shadow | None = None) -> Recorder:
        return Recorder(level, frozenset(), {}, Unexamined, Observer(), shadow)

    def in_turn(
        *kinds: tuple[Recorder | None, bool],
    ) -> list[float]:
        found: list[list[float]] = [[] for _ in kinds]
        for _ in range(TURNS // BLOCK):
            for (recorder, has_host), times in zip(kinds, found, strict=True):
                wants['host'] = has_host
                with recording(recorder, runner._observer):
                    # Python looks up anew what has just been replaced.
                    once()
                    times += [once() for _ in range(BLOCK)]
        return [statistics.median(times) for times in found]

    with (
        replaced(manager.SchedulerManager, 'select_destinations', select),
        replaced(
            report.SchedulerReportClient,
            'get_allocation_candidates',
            candidates,
        ),
    ):
        once()
        failures = recorded('failures')
        none, some, more, without, failed = in_turn(
            (None, True),
            (failures, True),
            (recorded('narrowed'), True),
            (None, False),
            (failures, False),
        )
        wants['host'] = True
        shadow = recorded('none', Signalling(runner, 1000, replaces=False))
        plain = in_shadow(once, None)
        seen, behind = in_shadow(once, shadow)
    return Row(
        number, none, some - none, more - none, failed - without,
        seen - plain[0], behind,
    )  # fmt: skip


def in_shadow(
    once: Callable[[bool], float], shadow: Recorder | None
) -> tuple[float, float]:
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
    return statistics.median(own), statistics.median(behind)


@contextlib.contextmanager
def recording(recorder: Recorder | None, observer: Any) -> Iterator[None]:
    """Have a recorder, if any, in place."""
    if recorder is None:
        yield
        return
    records.install(recorder)
    if observer:
        observer.decided = records.decided
    yield
    records.uninstall()
    if observer:
        del observer.decided


def main() -> None:
    """Measure and print a table."""
    options = table.parser('aggregates', AGGREGATES).parse_args()
    with tempfile.TemporaryDirectory() as name:
        log = logging.getLogger(LOGGER)
        log.addHandler(logging.FileHandler(pathlib.Path(name, 'log')))
        log.setLevel(logging.INFO)
        log.propagate = False
        with load.configured() as conf, load.database():
            conf.set_override('check_claims', False, ia_conf.GROUP)
            rows = [measure(number, conf) for number in options.aggregates]
    table.report(rows, options.csv)


if __name__ == '__main__':
    sys.exit(main())
