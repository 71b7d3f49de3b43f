# SPDX-License-Identifier: Apache-2.0
"""Rollups are verified in the background; failures do not delay requests."""

import logging
import os
import re
import threading

import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.rollups import Rollup, uuid_of
from isolate_aggregates.filters.destination import ExplainedDestination
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.placement import group
from isolate_aggregates.query_limit import (
    Shortener,
    VerifiedMembers,
    verification,
)
from isolate_aggregates.query_limit.verification import (
    FIRST_PAUSE,
    KEEP,
    MAX_AGE,
    MOST_QUESTIONS,
    PATIENCE,
    PERIOD,
    SOON,
)

LOCK = 'trait:CUSTOM_A'
REST = 100
LIMIT = REST + group.forbidden_length(4)
THREADS = 32
# Long enough to fail the test; no test waits for it.
FOREVER = 30


def uuid(number):
    return f'{number:08d}-0000-4000-8000-000000000000'


def rollup(*numbers, name=LOCK):
    return Rollup(name, uuid_of(name), frozenset(map(uuid, numbers)))


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Waits(threading.Condition):
    """A condition whose wait() only advances the clock."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.until = []

    def wait(self, timeout=None):
        self.until.append(self.clock.now + timeout)
        self.clock.now = self.until[-1]
        return False


class NoThread:
    """Is started, and does nothing."""

    started = 0

    def __init__(self, **kwargs):
        assert kwargs['daemon']

    def start(self):
        type(self).started += 1

    def is_alive(self):
        return True

    def join(self, timeout):
        pass


class Placement:
    """Answers, or does not."""

    def __init__(self):
        self.members = {}
        self.asked = []
        self.error = None
        self.meanwhile = lambda: None

    def resource_providers(self, member_of, not_member_of):
        self.asked.append(sorted(member_of))
        self.meanwhile()
        if self.error:
            raise self.error
        return [
            {'uuid': name}
            for name, held in self.members.items()
            if held & set(member_of) and not held & set(not_member_of)
        ]

    def read(self, path, parser):
        self.asked.append(path)
        name = path.split('/')[2]
        return parser(
            {
                'aggregates': self.members[name],
                'resource_provider_generation': 0,
            }
        )


class Worker:
    """Requests of one worker, and the steps of its thread."""

    def __init__(self, number=12, limit=LIMIT):
        self.clock = Clock()
        self.placement = Placement()
        self.waits = Waits(self.clock)
        self.results = []
        self.members = VerifiedMembers(
            lambda: self.placement,
            limit,
            self.clock,
            self.waits,
            NoThread,
            self.results.append,
        )
        self.shortener = Shortener(
            limit, IsolateAggregates().locks, self.members, self.clock
        )
        self.lock(number)

    def lock(self, number):
        """Let that many aggregates have the same lock."""
        self.index = AggregateIndex(
            Aggregate(uuid(n), f'a{n}', {LOCK: 'required'})
            for n in range(number)
        )

    def ask(self):
        """Return what a request forbids; None if it is refused."""
        destination = ExplainedDestination()
        destination.forbid_aggregates(a.uuid for a in self.index)
        try:
            return self.shortener.shorten(
                destination, self.index, REST
            ).forbidden
        except exception.QueryNotShortened:
            return None

    def refusal(self):
        """Return why a request is refused."""
        destination = ExplainedDestination()
        destination.forbid_aggregates(a.uuid for a in self.index)
        with pytest.raises(exception.QueryNotShortened) as caught:
            self.shortener.shorten(destination, self.index, REST)
        return str(caught.value)

    def work(self):
        """Run the thread's steps until nothing is due."""
        while not (pause := self.members.step()):
            pass
        return pause


@pytest.fixture
def worker():
    return Worker()


DOWN = exception.ServiceError('Placement', None, 'answered with 503.')


def test_a_request_itself_sends_nothing_to_placement(worker):
    assert worker.ask() is None
    assert worker.placement.asked == []
    worker.work()
    asked = len(worker.placement.asked)
    assert worker.ask() == {uuid_of(LOCK)}
    assert len(worker.placement.asked) == asked


def test_all_members_of_an_aggregate_must_be_in_the_rollup(worker):
    worker.placement.members = {
        'both': {uuid(1), uuid_of(LOCK)},
        'straggler': {uuid(2), uuid(7)},
    }
    worker.ask()
    worker.work()
    assert worker.ask() == {uuid_of(LOCK), uuid(2), uuid(7)}


# Trouble.


@pytest.mark.parametrize('threads', [1, THREADS])
def test_requests_wait_for_a_hanging_placement_once(worker, threads):
    """By all requests until the same moment, however many they are."""

    def together():
        ready = threading.Barrier(threads)

        def ask():
            ready.wait()
            answers.append(worker.ask())

        running = [threading.Thread(target=ask) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    answers = []
    started_at = worker.clock.now
    together()
    assert set(worker.waits.until) == {started_at + PATIENCE}
    waits = len(worker.waits.until)
    assert 1 <= waits <= threads
    # None of those that come later waits at all.
    for _ in range(3):
        worker.clock.now += 60
        together()
    assert len(worker.waits.until) == waits
    assert answers == [None] * 4 * threads
    assert worker.placement.asked == []


def test_requests_do_not_wait_for_a_failing_placement(worker):
    worker.placement.error = DOWN
    worker.members.use([rollup(*range(12))])
    assert worker.members.step() == 1
    for _ in range(THREADS):
        assert worker.ask() is None
    assert worker.waits.until == []
    assert len(worker.placement.asked) == 1


def test_a_failure_ends_the_wait_of_a_request(worker):
    worker.placement.error = DOWN
    worker.waits.wait = lambda timeout: worker.members.step()
    assert worker.ask() is None
    assert len(worker.placement.asked) == 1


def test_a_failing_placement_is_queried_less_often(worker, caplog):
    worker.placement.error = DOWN
    worker.ask()
    pauses = []
    with caplog.at_level(logging.INFO):
        for _ in range(8):
            pauses.append(worker.members.step())
            # Not before: what requests want does not matter.
            worker.ask()
            assert worker.members.step() == pauses[-1]
            worker.clock.now += pauses[-1]
        worker.placement.error = None
        worker.work()
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert [re.sub(r'cannot be verified: .*', 'X', m) for m in caplog.messages
            if 'Rollup' in m] == [
        'Rollup aggregates X', 'Rollup aggregates can be verified again.'
    ]  # fmt: skip
    assert worker.ask() == {uuid_of(LOCK)}


def test_the_result_of_each_comparison_is_reported(worker):
    worker.ask()
    worker.work()
    assert set(worker.results) == {verification.COVERS}
    worker.results.clear()

    # A member of one aggregate that the rollup lacks.
    worker.placement.members = {'host': {uuid(0)}}
    worker.clock.now += verification.PERIOD
    worker.ask()
    worker.work()
    assert worker.results.count(verification.MISSES) == 1
    worker.results.clear()

    worker.placement.error = DOWN
    worker.clock.now += verification.PERIOD
    worker.members.step()
    assert worker.results == [verification.FAILED]


def test_the_thread_survives_an_unexpected_error(worker, caplog):
    worker.placement.error = RuntimeError('a defect')
    worker.ask()
    assert worker.members.step() == 1
    assert 'a defect' in caplog.text
    worker.placement.error = None
    worker.clock.now += 1
    worker.work()
    assert worker.ask() == {uuid_of(LOCK)}


def test_requests_can_wait_again_after_a_verification(worker):
    worker.ask()
    worker.work()
    worker.members.step()
    worker.placement.members = {'p': {uuid(n) for n in range(12, 30)}}
    worker.clock.now += 1
    worker.lock(30)
    assert worker.ask() is None
    assert len(worker.waits.until) == 2


def test_requests_can_wait_for_an_expired_verification(worker):
    """The deadline of requests ends when it is verified again."""
    worker.ask()
    worker.work()
    worker.clock.now += MAX_AGE + 1
    worker.placement.error = DOWN
    worker.waits.wait = lambda timeout: worker.members.step()
    assert worker.ask() is None


def test_a_verification_expires(worker):
    worker.ask()
    verified_at = worker.clock.now
    worker.work()
    worker.placement.error = DOWN
    worker.clock.now = verified_at + MAX_AGE - 1
    assert worker.ask() == {uuid_of(LOCK)}
    worker.members.step()
    worker.clock.now = verified_at + MAX_AGE
    assert worker.ask() is None
    assert len(worker.waits.until) == 1


# Questions.


def test_no_mutex_is_held_during_requests_to_placement(worker):
    worker.ask()
    answers = []

    def meanwhile():
        # In another thread, because the lock is reentrant.
        other = threading.Thread(target=lambda: answers.append(worker.ask()))
        other.start()
        other.join()

    worker.placement.meanwhile = meanwhile
    worker.work()
    assert len(answers) == len(worker.placement.asked)


def test_a_new_aggregate_costs_one_request(worker):
    worker.ask()
    worker.work()
    worker.placement.asked.clear()
    worker.lock(13)
    # It is named itself until it is verified.
    assert worker.ask() == {uuid_of(LOCK), uuid(12)}
    worker.work()
    assert worker.placement.asked == [[uuid(12)]]
    worker.clock.now += 1
    assert worker.ask() == {uuid_of(LOCK)}


def test_removed_aggregates_are_not_verified(worker):
    worker.ask()
    worker.work()
    worker.lock(11)
    worker.ask()
    worker.placement.asked.clear()
    worker.clock.now += PERIOD
    worker.work()
    asked = {
        aggregate for some in worker.placement.asked for aggregate in some
    }
    assert asked == {uuid(n) for n in range(11)}


@pytest.mark.parametrize(
    ('members', 'pause'),
    [
        pytest.param({}, PERIOD, id='whole'),
        pytest.param({'p': {uuid(1)}}, SOON, id='may be being mended'),
    ],
)
def test_rollups_in_use_are_verified_again(members, pause):
    worker = Worker(5)
    worker.placement.members = members
    worker.ask()
    assert worker.work() == pause
    asked = len(worker.placement.asked)
    worker.clock.now += pause - 1
    assert worker.members.step() == 1
    assert len(worker.placement.asked) == asked
    worker.clock.now += 1
    worker.work()
    assert len(worker.placement.asked) > asked


def test_unused_rollups_are_forgotten(worker):
    assert worker.members.step() == KEEP
    worker.ask()
    worker.work()
    worker.placement.asked.clear()
    worker.clock.now += KEEP
    assert worker.members.step() == KEEP
    assert worker.placement.asked == []
    assert worker.ask() is None


def test_rollups_in_use_are_not_forgotten(worker):
    worker.ask()
    for _ in range(100):
        worker.clock.now += PERIOD
        worker.work()
        assert worker.ask() == {uuid_of(LOCK)}
    assert len(worker.waits.until) == 1


def test_requests_per_minute_are_limited(worker):
    # More stragglers than a question each is worth, and rollups without end.
    worker.placement.members = {f'p{n}': {uuid(1)} for n in range(20)}
    worker.members.use([rollup(1, 2, name=f'lock{n}') for n in range(1_000)])
    asked = []
    until = worker.clock.now + 300
    while worker.clock.now < until:
        before = len(worker.placement.asked)
        pause = worker.members.step()
        new = len(worker.placement.asked) - before
        asked += [worker.clock.now] * new
        worker.clock.now += pause
    most = max(
        sum(start <= at < start + 60 for at in asked) for start in set(asked)
    )
    assert MOST_QUESTIONS - 21 <= most <= MOST_QUESTIONS


# The thread.


def test_a_thread_is_started_by_the_first_request_of_each_process(
    worker, monkeypatch
):
    monkeypatch.setattr(NoThread, 'started', 0)
    for _ in range(3):
        worker.ask()
    assert NoThread.started == 1
    pid = os.getpid()
    monkeypatch.setattr(os, 'getpid', lambda: pid + 1)
    worker.ask()
    assert NoThread.started == 2
    worker.members.stop()
    monkeypatch.setattr(os, 'getpid', lambda: pid + 2)
    worker.ask()
    assert NoThread.started == 2


def no_more_threads(self):
    raise RuntimeError("can't start new thread")


def test_a_thread_that_cannot_be_started_is_started_later(
    worker, monkeypatch, caplog
):
    monkeypatch.setattr(NoThread, 'started', 0)
    with monkeypatch.context() as patch:
        patch.setattr(NoThread, 'start', no_more_threads)
        for _ in range(3):
            assert "can't start new thread" in worker.refusal()
            worker.clock.now += FIRST_PAUSE
    assert caplog.text.count('cannot be started') == 1
    # No request has waited for a thread that does not exist.
    assert worker.waits.until == []
    worker.ask()
    assert NoThread.started == 1
    worker.work()
    assert worker.ask() == {uuid_of(LOCK)}
    assert worker.members.trouble() == ''


def test_a_thread_that_has_ended_is_started_again(caplog):
    placement, threads, results = Placement(), [], []

    def thread(**kwargs):
        threads.append(threading.Thread(**kwargs))
        return threads[-1]

    def verified(result):
        results.append(result)
        if len(results) == 1:
            raise OSError('No space left on device')

    clock = Clock()
    members = VerifiedMembers(
        lambda: placement, LIMIT, clock, thread=thread, report=verified
    )
    members.use([rollup(*range(12))])
    threads[0].join(FOREVER)
    assert 'No space left on device' in caplog.text
    assert members.trouble() == 'the verifying thread has ended: OSError'
    # Not for each request.
    members.use([rollup(*range(12))])
    assert len(threads) == 1
    clock.now += FIRST_PAUSE
    members.use([rollup(*range(12))])
    assert len(threads) == 2
    assert threads[1].is_alive()
    assert members.trouble() == ''
    members.stop()


def test_a_refusal_says_why_nothing_is_verified(worker):
    worker.placement.error = DOWN
    worker.members.use([rollup(*range(12))])
    worker.members.step()
    assert '(Placement answered with 503)' in worker.refusal()


def test_a_query_that_fits_starts_no_thread(monkeypatch):
    monkeypatch.setattr(NoThread, 'started', 0)
    worker = Worker(4)
    destination = ExplainedDestination()
    destination.forbid_aggregates(a.uuid for a in worker.index)
    assert worker.shortener.shorten(destination, worker.index, REST) is None
    assert NoThread.started == 0


def test_the_thread_verifies_while_a_request_waits_and_ends_when_stopped():
    placement, threads = Placement(), []

    def thread(**kwargs):
        threads.append(threading.Thread(**kwargs))
        return threads[-1]

    members = VerifiedMembers(lambda: placement, LIMIT, thread=thread)
    wide_rollup = rollup(*range(12))
    while members.coverage(wide_rollup).verified != wide_rollup.aggregates:
        assert members.wait(members.use([wide_rollup]))
    members.stop()
    [made] = threads
    made.join()
    # No request waits after it has been stopped.
    other = rollup(1, 2, name='other')
    assert not members.wait(members.use([other]))


class Waking(threading.Event):
    """An event whose wait() records how long, and ends the thread's work."""

    def __init__(self, members):
        super().__init__()
        self.members = members
        self.pauses = []

    def wait(self, timeout=None):
        self.pauses.append(timeout)
        self.members.stop()
        return True


def test_the_thread_pauses_only_when_nothing_is_due(worker, monkeypatch):
    step = worker.members.step
    steps = iter([step] * 50)
    # Without a pause it would never end.
    monkeypatch.setattr(worker.members, 'step', lambda: next(steps)())
    worker.ask()
    worker.members._wake = waking = Waking(worker.members)
    worker.members._run()
    # All aggregates were verified before.
    assert worker.ask() == {uuid_of(LOCK)}
    assert waking.pauses == [pytest.approx(PERIOD)]


def test_stopping_waits_for_the_thread(worker, monkeypatch):
    waits = []
    monkeypatch.setattr(
        NoThread, 'join', lambda self, timeout: waits.append(timeout)
    )
    VerifiedMembers(lambda: worker.placement, LIMIT, thread=NoThread).stop()
    assert waits == []
    worker.ask()
    worker.members.stop()
    assert waits == [1.0]
    # The thread of a parent process does not exist in this one.
    worker.members._pid = -1
    worker.members.stop()
    assert waits == [1.0]
