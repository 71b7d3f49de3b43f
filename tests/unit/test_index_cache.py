# SPDX-License-Identifier: Apache-2.0
"""How fresh the aggregates are, and what happens when they can not be read."""

import logging
import threading

import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.cache import IndexCache

PATIENCE = 120  # seconds until a thread that hangs fails a test


class Source:
    """Aggregates that can be changed, and that can fail to be read."""

    def __init__(self):
        self.aggregates = (Aggregate('uuid-1', 'one'),)
        self.error = None
        self.reads = 0

    def change(self):
        number = len(self.aggregates) + 1
        self.aggregates = (
            *self.aggregates,
            Aggregate(f'uuid-{number}', f'name-{number}'),
        )

    def __call__(self):
        self.reads += 1
        if self.error:
            raise self.error
        return self.aggregates


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def clock():
    return Clock()


DOWN = exception.ServiceUnreachable('Nova', 'http://nova', 'is down.')


def test_without_a_ttl_every_call_sees_what_is_there(source, clock):
    cache = IndexCache(source, clock=clock)
    assert len(cache.get()) == 1
    source.change()
    assert len(cache.get()) == 2


def test_the_same_aggregates_give_the_same_index(source, clock):
    seen = []
    cache = IndexCache(source, on_new=seen.append, clock=clock)
    first = cache.get()
    assert cache.get() is first
    source.change()
    second = cache.get()
    assert second is not first
    assert seen == [first, second]


def test_within_the_ttl_nothing_is_read_and_after_it_once(source, clock):
    cache = IndexCache(source, ttl=30, clock=clock)
    cache.get()
    source.change()
    clock.now += 29.9
    assert len(cache.get()) == 1
    clock.now += 0.1
    assert len(cache.get()) == 2
    assert len(cache.get()) == 2
    assert source.reads == 2


def test_age_counts_from_before_the_reading_began(source, clock):
    """What changes while it is being read may not be seen."""

    def slow():
        clock.now += 20
        return source()

    cache = IndexCache(slow, ttl=30, clock=clock)
    cache.get()
    clock.now += 11
    source.change()
    assert len(cache.get()) == 2


def test_without_a_ttl_no_call_waits_for_another(source):
    together = threading.Barrier(2)

    def read():
        together.wait(PATIENCE)
        return source()

    cache = IndexCache(read)
    thread = threading.Thread(target=cache.get)
    thread.start()
    assert len(cache.get()) == 1
    thread.join(PATIENCE)
    assert source.reads == 2


def test_the_last_reading_serves_when_the_next_one_fails(source, clock):
    cache = IndexCache(source, max_stale=1000, clock=clock)
    cache.get()
    # The clock may be too coarse to tell two readings apart.
    source.change()
    cache.get()
    source.error = DOWN
    assert len(cache.get()) == 2


def test_a_slow_reading_does_not_replace_one_that_began_later(source, clock):
    def slow():
        found = source()
        if source.reads == 1:
            clock.now += 1
            source.change()
            assert len(cache.get()) == 2
        return found

    cache = IndexCache(slow, max_stale=1000, clock=clock)
    assert len(cache.get()) == 1
    source.error = DOWN
    assert len(cache.get()) == 2


def refreshing(source, clock, ttl=30, age=30):
    """A cache one of whose threads is reading, and how to let it go on."""
    entered, leave = threading.Event(), threading.Event()

    def read():
        if source.reads:
            entered.set()
            assert leave.wait(PATIENCE)
        return source()

    cache = IndexCache(read, ttl=ttl, clock=clock)
    cache.get()
    source.change()
    clock.now += age
    results = []
    thread = threading.Thread(target=lambda: results.append(cache.get()))
    thread.start()
    assert entered.wait(PATIENCE)
    return cache, thread, leave, results


def test_one_thread_reads_while_others_go_on_with_the_snapshot(source, clock):
    cache, thread, leave, results = refreshing(source, clock)
    assert [len(cache.get()) for _ in range(5)] == [1] * 5
    leave.set()
    thread.join(PATIENCE)
    assert [len(index) for index in results] == [2]
    assert len(cache.get()) == 2
    assert source.reads == 2


def test_others_wait_when_the_snapshot_is_twice_as_old_as_it_may_be(
    source, clock
):
    cache, thread, leave, _ = refreshing(source, clock, age=60)
    threading.Timer(0.05, leave.set).start()
    assert len(cache.get()) == 2
    thread.join(PATIENCE)
    # What the other thread read is fresh enough for both.
    assert source.reads == 2


def test_the_first_calls_wait_for_the_first_reading(source, clock):
    entered, leave = threading.Event(), threading.Event()

    def read():
        entered.set()
        assert leave.wait(PATIENCE)
        return source()

    cache = IndexCache(read, ttl=30, clock=clock)
    thread = threading.Thread(target=cache.get)
    thread.start()
    assert entered.wait(PATIENCE)
    threading.Timer(0.05, leave.set).start()
    assert len(cache.get()) == 1
    thread.join(PATIENCE)
    assert source.reads == 1


def test_a_source_that_was_never_read_refuses(source, clock):
    source.error = DOWN
    cache = IndexCache(source, max_stale=1000, clock=clock)
    with pytest.raises(exception.AggregatesUnreadable) as caught:
        cache.get()
    assert str(caught.value) == (
        'The host aggregates can not be read (Nova at http://nova is down); '
        'they were never read.'
    )


@pytest.mark.parametrize('ttl', [0, 30])
def test_a_failing_source_refuses_and_tells_the_age(source, clock, ttl):
    cache = IndexCache(source, ttl=ttl, clock=clock)
    cache.get()
    source.error = DOWN
    clock.now += 42
    with pytest.raises(exception.AggregatesUnreadable) as caught:
        cache.get()
    assert str(caught.value) == (
        'The host aggregates can not be read (Nova at http://nova is down); '
        'they were last read 42 s ago.'
    )
    source.error = None
    assert len(cache.get()) == 1


@pytest.mark.parametrize('ttl', [0, 30])
def test_stale_aggregates_serve_for_a_while_and_then_refuse(
    source, clock, ttl, caplog
):
    cache = IndexCache(source, ttl=ttl, max_stale=300, clock=clock)
    cache.get()
    source.error = DOWN
    with caplog.at_level(logging.WARNING):
        warned = []
        for pause in (59, 59, 1, 59, 1, 59, 61):
            clock.now += pause
            assert len(cache.get()) == 1
            warned.append(len(caplog.records))
        # Once a minute.
        assert warned == [1, 1, 2, 2, 3, 3, 4]
        clock.now += 1
        with pytest.raises(exception.AggregatesUnreadable, match='300 s ago'):
            cache.get()
    assert caplog.messages[0] == (
        'The host aggregates can not be read (Nova at http://nova is down.); '
        'using those read 59 s ago, for 241 s more.'
    )


def test_an_empty_cloud_is_not_a_failure(source, clock):
    source.aggregates = ()
    assert len(IndexCache(source, clock=clock).get()) == 0
