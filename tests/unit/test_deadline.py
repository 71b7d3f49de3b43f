# SPDX-License-Identifier: Apache-2.0
"""A deadline limits the wait for the whole answer of a service."""

import gc
import threading
import time
import weakref

import pytest

from isolate_aggregates import exception
from isolate_aggregates.rest.deadline import MOST_LATE, Deadline

# Long enough to fail the test; no test waits for it.
FOREVER = 30


def test_a_result_in_time_is_returned():
    assert Deadline('Placement', FOREVER).run(lambda: 'result') == 'result'


@pytest.mark.parametrize('error', [TimeoutError(), SystemExit(), KeyError(1)])
def test_an_error_in_time_is_raised(error):
    def call():
        raise error

    with pytest.raises(type(error)) as caught:
        Deadline('Placement', FOREVER).run(call)
    assert caught.value is error


def test_an_error_keeps_nothing_without_a_garbage_collection():
    class Data:
        pass

    data = Data()
    reference = weakref.ref(data)

    def call(data=data):
        raise KeyError

    del data
    gc.disable()
    try:
        with pytest.raises(KeyError):
            Deadline('Placement', FOREVER).run(call)
        del call
        # The thread may still be about to end.
        until = time.monotonic() + FOREVER
        while reference() is not None and time.monotonic() < until:
            time.sleep(0.001)
        assert reference() is None
    finally:
        gc.enable()


def test_late_calls_are_limited():
    may_end = threading.Event()
    ended = []

    def call():
        assert may_end.wait(FOREVER)
        ended.append(True)

    deadline = Deadline('Placement', 0.01)
    for _ in range(MOST_LATE):
        with pytest.raises(exception.ServiceUnreachable, match='within'):
            deadline.run(call)
    threads = threading.active_count()
    for _ in range(20):
        with pytest.raises(
            exception.ServiceUnreachable,
            match=f'has not answered {MOST_LATE} earlier calls yet',
        ):
            deadline.run(call)
    assert threading.active_count() == threads
    may_end.set()
    until = time.monotonic() + FOREVER
    while len(ended) < MOST_LATE and time.monotonic() < until:
        time.sleep(0.001)
    # The late calls have ended, so others may begin.
    while True:
        try:
            assert Deadline.run(deadline, lambda: 'result') == 'result'
        except exception.ServiceUnreachable:
            assert time.monotonic() < until
        else:
            break


def test_a_thread_that_cannot_be_started_is_an_error(monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, 'start', start)
    with pytest.raises(
        exception.ServiceUnreachable, match="can't start new thread"
    ):
        Deadline('Placement', FOREVER).run(lambda: 'result')
