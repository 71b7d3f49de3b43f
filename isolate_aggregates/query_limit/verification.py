# SPDX-License-Identifier: Apache-2.0
"""Verifies rollups in a thread, so that requests do not wait for Placement.

The thread periodically verifies the rollups that requests have used recently.
A result is valid for :data:`MAX_AGE`.
"""

import atexit
import collections
from collections.abc import Callable, Iterable
import math
import os
import threading
import time

from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.aggregates.rollups import Rollup
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.query_limit import members
from isolate_aggregates.query_limit.members import Coverage
from isolate_aggregates.rest.deadline import Deadline
from isolate_aggregates.text import short

LOG = logging.getLogger(__name__)

# All in seconds.
PERIOD = 60.0
# A rollup with missing hosts is verified again sooner, as it may be repaired
# soon.
SOON = 10.0
MAX_AGE = 120.0
# A rollup is dropped if no request has used it for this time.
KEEP = 600.0
# How long all requests together wait for rollups that were never verified.
PATIENCE = 5.0
# How long the thread waits for the result of a step, which may take several
# queries.
LONGEST_STEP = 30.0
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0

# Queries per minute.
MOST_QUESTIONS = 600

# The results of a verification: the rollup covers all aggregates in the query,
# it misses hosts, or there was no answer.
COVERS, MISSES, FAILED = RESULTS = ('covers', 'misses', 'failed')


class _Watched:
    """A rollup in use, with the results of its verification.

    ``covered`` and ``uncovered`` map the uuids of aggregates to the times of
    the queries.
    """

    def __init__(self, rollup: Rollup) -> None:
        self.rollup = rollup
        self.used_at = -math.inf
        self.next_at = -math.inf
        self.covered: dict[str, float] = {}
        self.uncovered: dict[str, float] = {}

    def due_at(self, aggregate: str) -> float:
        """Return when to verify an aggregate next."""
        if aggregate in self.covered:
            return self.covered[aggregate] + PERIOD
        if aggregate in self.uncovered:
            return self.uncovered[aggregate] + SOON
        return -math.inf

    def learn(
        self, aggregates: Iterable[str], gaps: frozenset[str], at: float
    ) -> None:
        """Store the result of a query."""
        for aggregate in aggregates:
            self.covered.pop(aggregate, None)
            self.uncovered.pop(aggregate, None)
            times = self.uncovered if aggregate in gaps else self.covered
            times[aggregate] = at

    def changed(self, rollup: Rollup) -> None:
        """Update the aggregates that the rollup stands for."""
        self.rollup = rollup
        for times in (self.covered, self.uncovered):
            for aggregate in times.keys() - rollup.aggregates:
                del times[aggregate]
        self.schedule()

    def schedule(self) -> None:
        """Compute the time of the next query."""
        self.next_at = min(map(self.due_at, self.rollup.aggregates))


class VerifiedMembers:
    """Returns recent results of a verifying thread.

    The first request that needs it starts the thread, because threads do not
    survive the fork into worker processes. A later request starts it again if
    it could not be started, or has ended. No lock is held while Placement is
    queried.

    :param placement: Returns the client, which must not retry.
    :param max_length: The maximum length of a query in bytes.
    :param report: Called with the result of each verification, one of
        RESULTS.
    :param longest: Seconds that the thread waits for Placement at most.
    """

    def __init__(
        self,
        placement: Callable[[], PlacementClient],
        max_length: int,
        clock: Callable[[], float] = time.monotonic,
        condition: threading.Condition | None = None,
        thread: Callable[..., threading.Thread] = threading.Thread,
        report: Callable[[str], None] = lambda result: None,
        longest: float = LONGEST_STEP,
    ) -> None:
        self._placement = placement
        self._at_once = members.at_once(max_length)
        self._clock = clock
        # Guards all attributes below.
        self._condition = condition or threading.Condition()
        self._watched: dict[str, _Watched] = {}
        self._answers = 0
        self._asked_at: collections.deque[float] = collections.deque()
        self._pause = 0.0
        self._not_before = -math.inf
        self._patient_until: float | None = None
        self._wake = threading.Event()
        self._stopped = False
        self._make_thread = thread
        self._report = report
        self._longest = longest
        self._deadline = Deadline('Placement', longest)
        self._thread: threading.Thread | None = None
        # The process of the thread, and when it may be started again.
        self._pid: int | None = None
        self._start_at = -math.inf
        self._trouble = ''

    def coverage(self, rollup: Rollup) -> Coverage:
        """Return the known coverage of a rollup, without any query."""
        oldest = self._clock() - MAX_AGE
        with self._condition:
            entry = self._watched.get(rollup.uuid)
            if entry is None:
                return Coverage(frozenset(), rollup.aggregates)
            return Coverage(
                rollup.aggregates.intersection(
                    a for a, at in entry.covered.items() if at > oldest
                ),
                rollup.aggregates.difference(
                    a for a, at in entry.uncovered.items() if at > oldest
                ),
            )

    def use(self, rollups: Iterable[Rollup]) -> int:
        """Verify rollups from now on, until they are no longer used."""
        now = self._clock()
        with self._condition:
            for rollup in rollups:
                entry = self._watched.get(rollup.uuid)
                if entry is None:
                    entry = _Watched(rollup)
                    self._watched[rollup.uuid] = entry
                    self._wake.set()
                elif entry.rollup is not rollup:
                    entry.changed(rollup)
                    if entry.next_at <= now:
                        self._wake.set()
                entry.used_at = now
            self._start()
            return self._answers

    def wait(self, since: int) -> bool:
        """Wait for new results, but not if Placement does not answer.

        All requests share one deadline. After it, no request waits any more
        until everything has been verified. Otherwise each request would wait
        for a Placement that does not answer.
        """
        with self._condition:
            now = self._clock()
            if self._patient_until is None:
                self._patient_until = now + PATIENCE
            # The thread may reset the attribute meanwhile.
            until = self._patient_until
            while self._answers == since:
                seconds_left = until - self._clock()
                if (
                    seconds_left <= 0
                    or self._pause
                    or self._stopped
                    or not self._is_running()
                ):
                    return False
                self._condition.wait(seconds_left)
            return True

    def trouble(self) -> str:
        """Return why nothing can be verified at present; may be empty."""
        with self._condition:
            return self._trouble

    def step(self) -> float:
        """Send one query, if one is due.

        :returns: The seconds until there is something to do.
        """
        now = self._clock()
        with self._condition:
            self._forget(now)
            entry = min(
                self._watched.values(),
                key=lambda one: one.next_at,
                default=None,
            )
            if entry is None or entry.next_at > -math.inf:
                # Everything is verified, so requests may wait again.
                self._patient_until = None
            if entry is None:
                return KEEP
            at = max(entry.next_at, self._not_before, self._next_question())
            if at > now:
                return at - now
            rollup = entry.rollup
            due = sorted(
                (at, aggregate)
                for aggregate in rollup.aggregates
                if (at := entry.due_at(aggregate)) <= now
            )
            some = [aggregate for _, aggregate in due[: self._at_once]]
        until = now + self._longest
        try:
            gaps = self._deadline.run(
                lambda: members.uncovered(
                    self._placement(),
                    rollup.uuid,
                    some,
                    lambda: self._count(until),
                )
            )
        except Exception as exc:
            return self._failed(exc)
        with self._condition:
            if self._pause:
                LOG.info('Rollup aggregates can be verified again.')
            self._pause = 0.0
            self._trouble = ''
            entry.learn(some, gaps, now)
            # Its aggregates may have changed meanwhile.
            entry.changed(entry.rollup)
            self._answers += 1
            self._condition.notify_all()
        self._report(MISSES if gaps else COVERS)
        return 0.0

    def stop(self) -> None:
        """Stop the thread permanently."""
        atexit.unregister(self.stop)
        with self._condition:
            self._stopped = True
            self._wake.set()
            self._condition.notify_all()
            thread = self._thread
        if thread is not None and self._pid == os.getpid():
            # Wait only briefly: the thread may be waiting for Placement.
            thread.join(1.0)

    def _is_running(self) -> bool:
        """Return whether this process has a running thread."""
        return (
            self._thread is not None
            and self._pid == os.getpid()
            and self._thread.is_alive()
        )

    def _start(self) -> None:
        """Start the thread unless this process has a running one."""
        if self._stopped or self._is_running():
            return
        now, pid = self._clock(), os.getpid()
        if self._pid == pid and now < self._start_at:
            return
        self._pid, self._start_at = pid, now + FIRST_PAUSE
        thread = self._make_thread(
            target=self._run, name='isolate-aggregates-rollups', daemon=True
        )
        try:
            thread.start()
        except RuntimeError as exc:
            # The process or the machine has too many threads.
            trouble = f'the verifying thread cannot be started: {short(exc)}'
            if trouble != self._trouble:
                LOG.error(
                    'Rollup aggregates cannot be verified: %s. The next '
                    'request that needs them tries again.',
                    trouble,
                )
            self._thread, self._trouble = None, trouble
            return
        self._thread, self._trouble = thread, ''
        # Once, also if the thread is started again.
        atexit.unregister(self.stop)
        atexit.register(self.stop)

    def _run(self) -> None:
        try:
            while not self._stopped:
                self._wake.clear()
                pause = self.step()
                if pause:
                    self._wake.wait(pause)
        except Exception as exc:
            LOG.exception(
                'The thread that verifies rollup aggregates has ended. The '
                'next request that needs it starts it again.'
            )
            with self._condition:
                self._trouble = (
                    f'the verifying thread has ended: {type(exc).__name__}'
                )
                self._condition.notify_all()

    def _forget(self, now: float) -> None:
        self._watched = {
            uuid: entry
            for uuid, entry in self._watched.items()
            if entry.used_at > now - KEEP
        }

    def _next_question(self) -> float:
        """Return when the next query is allowed."""
        now = self._clock()
        while self._asked_at and self._asked_at[0] <= now - 60:
            self._asked_at.popleft()
        # One result can lead to up to FEW further queries.
        most = MOST_QUESTIONS - members.FEW
        if len(self._asked_at) < most:
            return -math.inf
        return self._asked_at[-most] + 60

    def _count(self, until: float) -> None:
        """Count a query, unless the thread no longer waits for the result."""
        now = self._clock()
        if now > until:
            raise exception.ServiceUnreachable(
                'Placement', None, 'takes too long to verify a rollup.'
            )
        self._asked_at.append(now)

    def _failed(self, exc: Exception) -> float:
        with self._condition:
            first = not self._pause
            self._pause = min(max(2 * self._pause, FIRST_PAUSE), LONGEST_PAUSE)
            self._not_before = self._clock() + self._pause
            self._trouble = (
                short(exc)
                if isinstance(exc, exception.IsolateAggregatesError)
                else type(exc).__name__
            )
            self._condition.notify_all()
        self._report(FAILED)
        if not isinstance(exc, exception.IsolateAggregatesError):
            LOG.error('Rollup aggregates cannot be verified.', exc_info=exc)
        elif first:
            LOG.warning(
                'Rollup aggregates cannot be verified: %(cause)s Earlier '
                'results are used for %(age).0f s; after that, requests whose '
                'query does not fit without rollups are refused.',
                {'cause': exc, 'age': MAX_AGE},
            )
        return self._pause
