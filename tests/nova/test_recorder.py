# SPDX-License-Identifier: Apache-2.0
"""The thread that completes records, in workers and under load."""

import collections
import logging
import multiprocessing
import threading

from nova import objects
import pytest

from isolate_aggregates.nova import recorder, records
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.record import LOGGER


@pytest.fixture(autouse=True)
def _nova():
    objects.register_all()


class Counting(Observer):
    """Counts effects."""

    def __init__(self):
        self.effects = collections.Counter()

    def shadowed(self, effect):
        self.effects[effect] += 1


class Waiting:
    """Filters in shadow that have something to say when they may."""

    def __init__(self, may):
        self.may = may

    def compare(self, trace):
        self.may.wait()
        return {'effect': 'no_host'}


@pytest.fixture
def lines():
    """What is logged."""
    found = []

    class Keeping(logging.Handler):
        def emit(self, record):
            found.append(record.getMessage())

    log = logging.getLogger(LOGGER)
    handler, level = Keeping(), log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield found
    log.removeHandler(handler)
    log.setLevel(level)


@pytest.fixture
def recorder_of():
    """Return a function that makes recorders; their threads end."""
    made = []

    def make(observer, may):
        made.append(
            recorder.Recorder(
                'none', frozenset(), {}, object, observer, Waiting(may)
            )
        )
        return made[-1]

    yield make
    for one in made:
        one.close()
        if (thread := one._thread) is not None:
            thread.join(60)
            assert not thread.is_alive()


def written(made, number):
    for _ in range(number):
        made.write(dict, records.Trace(None, None, ()), is_wanted=False)


def test_each_worker_has_a_thread_of_its_own(recorder_of, lines):
    """Workers are forked, and threads are not."""
    may = threading.Event()
    may.set()
    observer = Counting()
    made = recorder_of(observer, may)
    written(made, 1)

    def in_worker(pipe):
        lines.clear()
        observer.effects.clear()
        written(made, 3)
        while observer.effects.total() < 3 or len(lines) < 3:
            threading.Event().wait(0.01)
        pipe.send((len(lines), threading.active_count()))

    context = multiprocessing.get_context('fork')
    ours, theirs = context.Pipe()
    worker = context.Process(target=in_worker, args=(theirs,))
    worker.start()
    assert ours.poll(60)
    assert ours.recv() == (3, 2)
    worker.join()


def test_what_shadow_has_no_time_for_is_said(recorder_of, lines):
    may = threading.Event()
    observer = Counting()
    made = recorder_of(observer, may)
    lines.clear()
    written(made, recorder._QUEUE + 10)
    late = observer.effects['failed']
    assert late in (9, 10)
    assert len(lines) == late
    assert all('too many requests at once' in line for line in lines)
    may.set()


def test_the_thread_ends_where_another_recorder_takes_over(
    recorder_of, lines, monkeypatch
):
    """As for the next worker of the same process."""
    monkeypatch.setattr(records, '_recorder', None)
    may = threading.Event()
    observer = Counting()
    first, second = recorder_of(observer, may), recorder_of(observer, may)
    monkeypatch.setattr(records, '_wrap', lambda *_: None)
    records.install(first)
    lines.clear()
    written(first, 2)
    thread = first._thread
    records.install(second)
    may.set()
    thread.join(60)
    assert not thread.is_alive()
    # Nothing is lost, not even of a request that had begun before.
    assert len(lines) == 2
    written(first, 1)
    if (last := first._thread) is not None:
        last.join(60)
    assert (len(lines), first._thread) == (3, None)
