# SPDX-License-Identifier: Apache-2.0
"""Periodic commands end when the process is terminated."""

import gc
import signal
import threading

import pytest

from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cli import periodic

# Far longer than a test may take.
PAUSE = 86400


def ask(thread):
    signal.pthread_kill(thread.ident, signal.SIGTERM)


def test_a_signal_in_another_thread_ends_the_pause():
    """The operating system hands it to any thread, and wakes no other one."""
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    rounds = []
    timers = []

    def once(is_asked):
        rounds.append(is_asked())
        other.start()
        timers.append(threading.Timer(0.1, ask, [other]))
        timers[0].start()

    periodic.watch(once, PAUSE)
    timers[0].join()
    over.set()
    other.join()
    assert rounds == [False]


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_a_round_sees_a_signal_and_is_the_last(number):
    told = []

    def once(is_asked):
        told.append(is_asked())
        signal.raise_signal(number)
        told.extend([is_asked(), is_asked()])

    before = signal.getsignal(number)
    periodic.watch(once, PAUSE)
    assert told == [False, True, True]
    assert signal.getsignal(number) is before


def test_a_service_looks_for_garbage_sooner_than_a_command():
    before = gc.get_threshold()
    gc.set_threshold(1_000_000, 7, 8)
    seen = []

    def once(is_asked):
        seen.append(gc.get_threshold()[0])
        signal.raise_signal(signal.SIGTERM)

    try:
        periodic.watch(once, PAUSE)
        assert seen == [100_000]
        assert gc.get_threshold() == (1_000_000, 7, 8)
    finally:
        gc.set_threshold(*before)


def test_a_failed_round_is_reported_and_followed_by_the_next(caplog):
    rounds = []

    def once(is_asked):
        rounds.append(None)
        if len(rounds) == 1:
            raise errors.NotFound('flavor', 'x', 'Nova')
        signal.raise_signal(signal.SIGTERM)

    periodic.watch(once, 0)
    assert len(rounds) == 2
    assert 'There is no flavor' in caplog.text
