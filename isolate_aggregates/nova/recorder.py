# SPDX-License-Identifier: Apache-2.0
"""Completes the records of decisions in a thread of its own, and writes them.

A request waits for nothing of it: while the queue is full, its record is
written as it is. Placement is asked about requests that got no host, at most
some times each second, and never twice at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
import contextlib
import dataclasses
import functools
import hashlib
import json
import queue
import threading
import time
from typing import TYPE_CHECKING, Any
import weakref

from nova import objects
from oslo_log import log as logging

from isolate_aggregates.nova import recheck
from isolate_aggregates.record import (
    CONFIGURATION,
    LOGGER,
    closing,
    encoded,
    line_of,
)
from isolate_aggregates.text import short

if TYPE_CHECKING:
    from isolate_aggregates.examination import Question
    from isolate_aggregates.nova.records import Trace
    from isolate_aggregates.nova.shadow import Shadow
    from isolate_aggregates.placement import PlacementReader

# Operators route the records by this name.
RECORDS = logging.getLogger(LOGGER)
LOG = logging.getLogger(__name__)

# Longer lines are cut by syslog or split by container runtimes.
_LONGEST = 8000
# The parts that a record that is too long loses first.
_LESS_NEEDED = ('keys', 'requires', 'locks', 'shadow', 'detail', 'hosts')

_QUEUE = 100
# The most examinations at once, and per second afterwards.
_BURST, _RATE = 20, 1.0
# Equal queries have the same cause for so many seconds.
_KEPT, _KEPT_SECONDS = 64, 10.0
# Nova's answer leaves first.
_DELAY = 0.05
# The causes that Placement is asked again about.
_EXAMINED = ('no_candidates', 'placement_rejected', 'locked')


@dataclasses.dataclass(eq=False)
class _Job:
    record: dict[str, Any]
    make: Callable[[], dict[str, Any]]
    is_examined: bool
    trace: Trace
    at: float = dataclasses.field(default_factory=time.monotonic)


class Recorder:
    """Writes the records of a worker.

    :param level: The value of ``decisions``.
    :param omitted: The value of ``decisions_omit``.
    :param configuration: What is logged about the configuration.
    :param placement: Returns a client of Placement with a short timeout.
    :param observer: Counts causes and effects.
    :param shadow: The filters without an effect; None if there are none.
    """

    def __init__(
        self,
        level: str,
        omitted: frozenset[str],
        configuration: Mapping[str, Any],
        placement: Callable[[], PlacementReader],
        observer: Any,
        shadow: Shadow | None = None,
    ) -> None:
        self.omitted, self.shadow = omitted, shadow
        self._level = level
        self._placement = functools.cache(placement)
        self._observer = observer
        self._queue: queue.Queue[_Job | None] = queue.Queue(_QUEUE)
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._tokens, self._filled_at = float(_BURST), time.monotonic()
        self._kept: dict[Any, tuple[float, dict[str, Any]]] = {}
        text = json.dumps(configuration, sort_keys=True, default=str)
        self.digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        RECORDS.info(
            '%s',
            encoded(
                {
                    'schema': CONFIGURATION,
                    'config': self.digest,
                    **configuration,
                }
            ),
        )

    def wants(self, has_failed: bool, is_narrowed: bool) -> bool:
        """Return whether a request leaves a record."""
        if has_failed:
            # Its cause is counted, too.
            return self._level != 'none'
        return (
            self._level == 'all' or (is_narrowed and self._level == 'narrowed')
        ) and RECORDS.isEnabledFor(logging.INFO)

    def write(
        self, make: Callable[[], dict[str, Any]], trace: Trace, is_wanted: bool
    ) -> None:
        """Write a record: at once if it is complete, else by the thread.

        :param make: Returns the record.
        :param is_wanted: Whether it is written even if filters in shadow have
            nothing to add. Otherwise the thread makes it, if it is needed.
        """
        record = make() if is_wanted else {}
        is_examined = record.get('cause') in _EXAMINED
        if not is_examined and self.shadow is None:
            self._emit(record, trace)
            return
        trace.keep_names()
        try:
            self._queue.put_nowait(_Job(record, make, is_examined, trace))
        except queue.Full:
            problem = 'too many requests at once'
            if is_examined:
                record['examined'] = f'no: {problem}'
            if self.shadow is not None:
                self._observer.shadowed('failed')
                record = record or make()
                record['shadow'] = {'effect': 'failed', 'reason': problem}
            self._emit(record, trace)
            return
        with self._starting:
            # Late, as workers are forked after the start.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._work, name='isolate-aggregates-records',
                    daemon=True,
                )  # fmt: skip
                self._thread.start()

    def close(self) -> None:
        """Let the thread end after what it has been given."""
        self._is_closed = True
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(None)

    def _work(self) -> None:
        while True:
            job = self._queue.get()
            if job is not None:
                self._complete(job)
            # Nothing is kept of a request while there is no other.
            del job
            with self._starting:
                if self._is_closed and self._queue.empty():
                    # A request that had begun before may need another one.
                    self._thread = None
                    return

    def _complete(self, job: _Job) -> None:
        time.sleep(max(0, job.at + _DELAY - time.monotonic()))
        try:
            self._compare(job)
            if job.is_examined:
                self._examine(job.record, job.trace)
            if job.record:
                self._emit(job.record, job.trace)
        except Exception:
            LOG.exception('A decision is not recorded.')

    def _compare(self, job: _Job) -> None:
        """Have the filters in shadow decide."""
        if self.shadow is None:
            return
        try:
            found = self.shadow.compare(job.trace)
        except Exception as exc:
            found = {'effect': 'failed', 'reason': short(exc)}
        self._observer.shadowed(found['effect'])
        if found['effect'] != 'none':
            job.record = job.record or job.make()
            job.record['shadow'] = found

    def _examine(self, record: dict[str, Any], trace: Trace) -> None:
        """Find out why there was no host."""
        try:
            found = self._examined(record['cause'], trace)
        except Exception as exc:
            found = {'examined': f'no: {short(exc)}'}
            LOG.debug('A decision is not examined.', exc_info=True)
        detail = record.get('detail', {}) | found.pop('detail', {})
        record |= found | ({'detail': detail} if detail else {})

    def _emit(self, record: dict[str, Any], trace: Trace) -> None:
        line = line_of(record)
        if len(line) > _LONGEST:
            left_out: list[str] = []
            record['left_out'] = left_out
            for name in _LESS_NEEDED:
                if len(line) > _LONGEST and record.pop(name, None):
                    left_out.append(name)
                    line = line_of(record)
        # This thread may have the context of another request.
        RECORDS.info('%s', line, context=trace.context)
        if cause := record.get('cause'):
            self._observer.no_host(cause)

    def _examined(self, cause: str, trace: Trace) -> dict[str, Any]:
        """Return what is found out about a request without a host."""
        from isolate_aggregates.examination import examine

        question = _question(cause, trace)
        if cause == 'locked' and not question.hosts:
            return {}
        # A query has only uuids: other locks may have the same. The reference
        # is weak, because an index is large.
        decision = trace.decision
        key = question, decision and weakref.ref(decision.aggregates)
        now = time.monotonic()
        kept = self._kept.pop(key, None)
        if kept is None or now - kept[0] > _KEPT_SECONDS:
            if not self._may_ask(now):
                return {'examined': 'no: too many requests'}
            found = examine(
                self._placement(),
                question,
                functools.cache(functools.partial(_origin, trace)),
                functools.partial(closing, decision)
                if decision
                else lambda own: [],
            )
            kept = now, found
        self._kept[key] = kept
        while len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return dict(kept[1])

    def _may_ask(self, now: float) -> bool:
        self._tokens = min(
            _BURST, self._tokens + _RATE * (now - self._filled_at)
        )
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def _question(cause: str, trace: Trace) -> Question:
    from isolate_aggregates.examination import MOST_HOSTS, Question

    decision = trace.decision
    return Question(
        cause,
        tuple(resources.to_querystring() for resources, _ in trace.asked),
        decision.forbidden - trace.others if decision else frozenset(),
        tuple(
            choice
            for choice in (decision.required if decision else ())
            if choice not in trace.others_required
        ),
        trace.offered | _ignored(trace),
        tuple(uuid for uuid, _ in trace.given[:MOST_HOSTS]),
    )


def _ignored(trace: Trace) -> frozenset[str]:
    """Return the uuids of the nodes of hosts that Nova ignores."""
    spec = trace.spec
    hosts = spec.ignore_hosts if 'ignore_hosts' in spec else None
    if not hosts:
        return frozenset()
    return frozenset().union(
        *recheck.nodes_by_host(trace.context, hosts).values()
    )


def _origin(trace: Trace, choice: frozenset[str]) -> str:
    """Return which of Nova's request filters requires some aggregates."""
    spec, context = trace.spec, trace.context.elevated()
    read = objects.AggregateList.get_by_metadata
    zone = spec.availability_zone if 'availability_zone' in spec else None
    if zone:
        of_zone = read(context, key='availability_zone', value=zone)
        if choice == {aggregate.uuid for aggregate in of_zone}:
            return 'zone'
    if choice <= {
        aggregate.uuid
        for aggregate in read(context, value=spec.project_id)
        if any(
            key.startswith('filter_tenant_id') for key in aggregate.metadata
        )
    }:
        return 'project'
    return 'aggregates'
