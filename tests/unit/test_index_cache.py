# SPDX-License-Identifier: Apache-2.0
"""How fresh the aggregates are, and what happens when they cannot be read."""

from concurrent import futures
import gc
import logging
import threading
import types
import weakref

import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, waiting
from isolate_aggregates.aggregates import cache as cache_module
from isolate_aggregates.aggregates.cache import IndexCache
from isolate_aggregates.aggregates.waiting import WaitingCache
from isolate_aggregates.rest import deadline

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
def clock(monkeypatch):
    """What the caches take for the time."""
    clock = Clock()
    for module in (cache_module, waiting):
        monkeypatch.setattr(
            module, 'time', types.SimpleNamespace(monotonic=clock)
        )
    return clock


@pytest.fixture(autouse=True)
def _settled():
    yield
    settle()


def settle():
    """Wait until no cache reads in the background."""
    for thread in threading.enumerate():
        if thread.name == 'isolate-aggregates-call':
            thread.join(PATIENCE)


DOWN = exception.ServiceUnreachable('Nova', 'http://nova', 'is down.')


def test_without_a_ttl_every_call_sees_the_current_aggregates(source, clock):
    cache = IndexCache(source)
    assert len(cache.get()) == 1
    source.change()
    assert len(cache.get()) == 2


def test_the_same_aggregates_give_the_same_index(source, clock):
    cache = IndexCache(source)
    first = cache.get()
    assert cache.get() is first
    source.change()
    assert cache.get() is not first


def test_within_the_ttl_nothing_is_read_and_after_it_once(source, clock):
    cache = WaitingCache(source, ttl=30, deadline=PATIENCE)
    cache.get()
    source.change()
    clock.now += 29.9
    assert len(cache.get()) == 1
    clock.now += 0.1
    # One call begins to read and does not wait for it.
    assert len(cache.get()) == 1
    settle()
    assert len(cache.get()) == 2
    assert source.reads == 2


def test_without_a_deadline_nothing_older_than_the_ttl_is_used(source, clock):
    """A fast source is read by the call that finds the index too old."""
    readers = []

    def read():
        readers.append(threading.current_thread())
        return source()

    cache = IndexCache(read, ttl=30)
    cache.get()
    source.change()
    clock.now += 29.9
    assert len(cache.get()) == 1
    clock.now += 0.1
    assert len(cache.get()) == 2
    assert readers == [threading.current_thread()] * 2


def test_aggregates_older_than_twice_the_ttl_are_not_used(source, clock):
    cache = WaitingCache(source, ttl=30, deadline=PATIENCE)
    cache.get()
    source.change()
    clock.now += 60
    assert len(cache.get()) == 2


def test_age_counts_from_before_the_reading_began(source, clock):
    """A change during the reading may be missed."""

    def slow():
        clock.now += 20
        return source()

    cache = WaitingCache(slow, ttl=30, deadline=PATIENCE)
    cache.get()
    clock.now += 11
    source.change()
    cache.get()
    settle()
    assert source.reads == 2


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
    cache = IndexCache(source, max_stale=1000)
    cache.get()
    # The clock may be too coarse to distinguish two readings.
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

    cache = IndexCache(slow, max_stale=1000)
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

    cache = WaitingCache(read, ttl=ttl, deadline=PATIENCE)
    cache.get()
    source.change()
    clock.now += age
    thread = threading.Thread(target=cache.get)
    thread.start()
    assert entered.wait(PATIENCE)
    return cache, thread, leave


def test_one_thread_reads_while_others_use_the_old_aggregates(source, clock):
    cache, thread, leave = refreshing(source, clock)
    assert [len(cache.get()) for _ in range(5)] == [1] * 5
    thread.join(PATIENCE)
    leave.set()
    settle()
    assert len(cache.get()) == 2
    assert source.reads == 2


def test_calls_wait_if_aggregates_are_older_than_twice_the_ttl(source, clock):
    cache, thread, leave = refreshing(source, clock, age=60)
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

    cache = WaitingCache(read, ttl=30, deadline=PATIENCE)
    thread = threading.Thread(target=cache.get)
    thread.start()
    assert entered.wait(PATIENCE)
    threading.Timer(0.05, leave.set).start()
    assert len(cache.get()) == 1
    thread.join(PATIENCE)
    assert source.reads == 1


def test_without_any_successful_read_requests_are_refused(source, clock):
    source.error = DOWN
    cache = IndexCache(source, max_stale=1000)
    with pytest.raises(exception.AggregatesUnreadable) as caught:
        cache.get()
    assert str(caught.value) == (
        'The host aggregates cannot be read (Nova at http://nova is down); '
        'they were never read.'
    )


@pytest.mark.parametrize('ttl', [0, 30])
def test_a_failing_source_refuses_and_names_the_age(source, clock, ttl):
    cache = IndexCache(source, ttl=ttl)
    cache.get()
    source.error = DOWN
    clock.now += 142
    with pytest.raises(exception.AggregatesUnreadable) as caught:
        cache.get()
    assert str(caught.value) == (
        'The host aggregates cannot be read (Nova at http://nova is down); '
        'they were last read 142 s ago.'
    )
    source.error = None
    assert len(cache.get()) == 1


@pytest.mark.parametrize('ttl', [0, 30])
def test_stale_aggregates_serve_for_a_while_and_then_refuse(
    source, clock, ttl, caplog
):
    cache = IndexCache(source, ttl=ttl, max_stale=300)
    cache.get()
    source.error = DOWN
    with caplog.at_level(logging.WARNING):
        warned = []
        for pause in (59, 59, 1, 59, 1, 59, 61):
            clock.now += pause
            assert len(cache.get()) == 1
            settle()
            assert len(cache.get()) == 1
            warned.append(len(caplog.records))
        # Once a minute.
        assert warned == [1, 1, 2, 2, 3, 3, 4]
        clock.now += 1
        with pytest.raises(exception.AggregatesUnreadable, match='300 s ago'):
            cache.get()
    assert caplog.messages[0] == (
        'The host aggregates cannot be read (Nova at http://nova is down); '
        'using those read 59 s ago, for 241 s more.'
    )


def test_an_empty_cloud_is_not_a_failure(source, clock):
    source.aggregates = ()
    assert len(IndexCache(source).get()) == 0


def test_a_failed_read_ends_the_use_of_old_aggregates(source, clock):
    """Unless the operator wants old aggregates, none are used then."""
    cache = WaitingCache(source, ttl=30, deadline=PATIENCE)
    cache.get()
    source.error = DOWN
    clock.now += 30
    assert len(cache.get()) == 1
    settle()
    with pytest.raises(exception.AggregatesUnreadable):
        cache.get()


class Hanging(Source):
    """Aggregates whose server takes the question and does not answer.

    Who waits for them waits by the clock of the test.
    """

    def __init__(self, clock):
        super().__init__()
        self._clock = clock
        self.answers = threading.Event()
        self.answers.set()
        self.waited = []

    def __call__(self):
        assert self.answers.wait(PATIENCE)
        return super().__call__()

    def wait(self, readings, timeout):
        if self.answers.is_set():
            assert futures.wait(readings, PATIENCE).done
        else:
            self.waited.append(timeout)
            self._clock.now += timeout


@pytest.fixture
def waits_by(monkeypatch):
    """Return a function that replaces how deadlines wait for a call."""

    def replace(wait):
        monkeypatch.setattr(
            deadline,
            'futures',
            types.SimpleNamespace(wait=wait, Future=futures.Future),
        )

    return replace


@pytest.fixture
def hanging(clock, waits_by):
    source = Hanging(clock)
    waits_by(source.wait)
    yield source
    source.answers.set()


def cache_of(source, **settings):
    return WaitingCache(source, deadline=5, **settings)


@pytest.mark.parametrize('ttl', [0, 30])
def test_no_call_waits_longer_than_the_deadline(hanging, clock, ttl):
    failures = []
    cache = cache_of(hanging, ttl=ttl, on_failure=lambda: failures.append(1))
    hanging.answers.clear()
    for _ in range(3):
        began = clock.now
        with pytest.raises(exception.AggregatesUnreadable) as caught:
            cache.get()
        assert clock.now - began == 5
    assert str(caught.value) == (
        'The host aggregates cannot be read (Nova has not answered completely '
        'within 5 s; check whether it is overloaded); they were never read.'
    )
    assert len(failures) == 3


def test_later_calls_wait_for_the_reading_under_way(hanging, clock):
    cache = cache_of(hanging, ttl=30)
    hanging.answers.clear()
    cache._join()
    clock.now += 3
    with pytest.raises(exception.AggregatesUnreadable):
        cache.get()
    assert hanging.waited == [5]
    hanging.answers.set()
    settle()
    assert hanging.reads == 1


def test_32_threads_share_one_reading(source, clock, waits_by):
    leave = threading.Event()
    everybody = threading.Semaphore(0)

    def read():
        assert leave.wait(PATIENCE)
        return source()

    def wait(readings, timeout):
        everybody.release()
        assert futures.wait(readings, PATIENCE).done

    waits_by(wait)
    cache = WaitingCache(read, ttl=30, deadline=5)
    threads = [threading.Thread(target=cache.get) for _ in range(32)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert everybody.acquire(timeout=PATIENCE)
    leave.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert source.reads == 1


def test_without_a_ttl_a_reading_that_began_earlier_is_ignored(
    hanging, clock, waits_by
):
    cache = cache_of(hanging)
    hanging.answers.clear()
    old, _ = cache._join()
    clock.now += 1

    def wait(readings, timeout):
        # The result of the first reading is ignored.
        hanging.answers.set()
        assert futures.wait(readings, PATIENCE).done
        if readings == [old]:
            hanging.change()

    waits_by(wait)
    assert len(cache.get()) == 2


def test_allowed_old_aggregates_are_used_without_waiting(hanging, clock):
    """One call has waited; the others do not while the trouble lasts."""
    cache = cache_of(hanging, ttl=30, max_stale=300)
    cache.get()
    hanging.answers.clear()
    clock.now += 60
    assert len(cache.get()) == 1
    assert hanging.waited == [5]
    for _ in range(20):
        clock.now += 10
        assert len(cache.get()) == 1
    assert hanging.waited == [5]
    # 265 s old by now, and not for longer than they may be.
    clock.now += 40
    with pytest.raises(exception.AggregatesUnreadable):
        cache.get()
    # Four readings go on, so none begins that it could wait for.
    assert hanging.waited == [5]


def test_old_aggregates_are_not_used_long_after_the_trouble(hanging, clock):
    """They may be outdated, and reading works again."""
    cache = cache_of(hanging, ttl=30, max_stale=300)
    cache.get()
    hanging.error = DOWN
    clock.now += 60
    assert len(cache.get()) == 1
    hanging.error = None
    hanging.change()
    clock.now += 30
    assert len(cache.get()) == 2


def test_a_late_answer_is_used_with_its_age(hanging, clock):
    cache = cache_of(hanging, ttl=30)
    hanging.answers.clear()
    with pytest.raises(exception.AggregatesUnreadable):
        cache.get()
    hanging.answers.set()
    settle()
    clock.now += 24
    cache.get()
    assert hanging.reads == 1
    clock.now += 1
    cache.get()
    settle()
    assert hanging.reads == 2


def test_an_outage_is_an_error_once_a_minute(source, clock, caplog):
    cache = IndexCache(source)
    source.error = DOWN
    errors = []
    with caplog.at_level(logging.INFO):
        for pause in (0, 1, 58, 1):
            clock.now += pause
            with pytest.raises(exception.AggregatesUnreadable):
                cache.get()
            errors.append(len(caplog.records))
        source.error = None
        cache.get()
    assert errors == [1, 1, 1, 2]
    assert caplog.record_tuples[0][1:] == (
        logging.ERROR,
        'The host aggregates cannot be read (Nova at http://nova is down); '
        'they were never read. Requests are refused until they can be read. '
        'To try again, run "isolate-aggregates-status upgrade check" on this '
        'machine.',
    )
    assert caplog.record_tuples[-1][1:] == (
        logging.INFO,
        'The host aggregates can be read again.',
    )


def test_errors_of_libraries_appear_only_in_the_log(source, clock, caplog):
    source.error = exception.ServiceError('Nova', None, 'is broken.')
    source.error.__cause__ = OSError('http://me:pw@db is away\n[SQL: ...]')
    with (
        caplog.at_level(logging.ERROR),
        pytest.raises(exception.AggregatesUnreadable) as caught,
    ):
        IndexCache(source).get()
    assert 'away' not in str(caught.value)
    assert caplog.text.endswith(' Reported: http://db is away\n')


class OfLibrary(BaseException):
    """Like those of eventlet and asyncio, which are no subclass either."""


@pytest.mark.parametrize('error', [SystemExit(1), OfLibrary()])
@pytest.mark.parametrize('waits', [False, True])
def test_a_source_cannot_end_the_thread_of_a_request(source, error, waits):
    """Nova would get no answer, and the server would wait forever."""
    source.error = error
    cache = (
        WaitingCache(source, deadline=PATIENCE)
        if waits
        else IndexCache(source)
    )
    with pytest.raises(RuntimeError, match='the aggregate source raised'):
        cache.get()


def test_a_source_does_not_keep_a_process_from_stopping(source):
    source.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        IndexCache(source).get()


def test_an_unexpected_error_reaches_the_waiting_call(source, clock, caplog):
    source.error = RuntimeError('no such luck')
    cache = WaitingCache(source, ttl=30, deadline=PATIENCE)
    with pytest.raises(RuntimeError, match='no such luck'):
        cache.get()
    assert 'no such luck' in caplog.text


def test_a_source_that_hangs_does_not_use_up_the_threads(hanging, clock):
    """Its time-out may be per read, so a reading may take forever."""
    cache = cache_of(hanging)
    hanging.answers.clear()
    for _ in range(20):
        with pytest.raises(exception.AggregatesUnreadable):
            cache.get()
    assert hanging.waited == [5] * deadline.MOST_LATE
    readers = [
        thread
        for thread in threading.enumerate()
        if thread.name == 'isolate-aggregates-call'
    ]
    assert len(readers) == 4
    hanging.answers.set()
    settle()
    assert len(cache.get()) == 1


@pytest.fixture
def unlogged():
    """Log nothing, as pytest keeps what is logged."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(before)


@pytest.mark.parametrize('unexpected', [False, True])
def test_a_failure_that_is_kept_keeps_no_variables(
    clock, unexpected, unlogged
):
    class Variable:
        pass

    variables = weakref.WeakSet()

    def read():
        variable = Variable()
        variables.add(variable)
        try:
            raise OSError('broken')
        except OSError as exc:
            if unexpected:
                raise
            raise exception.ServiceError('Nova', None, 'is down.') from exc

    cache = WaitingCache(read, ttl=30, deadline=PATIENCE)
    for _ in range(3):
        with pytest.raises(
            OSError if unexpected else exception.AggregatesUnreadable
        ):
            cache.get()
    gc.collect()
    assert len(variables) == 0
