# SPDX-License-Identifier: Apache-2.0
"""Repeats work until SIGTERM or SIGINT."""

from collections.abc import Callable, Iterator
import contextlib
import gc
import logging
import select
import signal
import socket

from isolate_aggregates import exception

LOG = logging.getLogger(__name__)

Round = Callable[[Callable[[], bool]], None]


def watch(round_: Round, pause: int) -> None:
    """Run rounds of work until SIGTERM or SIGINT.

    Failures are logged, and the next round tries again.

    :param round_: Does one round. Its argument is a function that returns
        whether it should stop early.
    :param pause: The number of seconds between two rounds.
    """
    with end_signals() as signals:
        while True:
            try:
                round_(lambda: signals.wait(0))
            except exception.IsolateAggregatesError as exc:
                LOG.error('%s', exc)
            if signals.wait(pause):
                return


class EndSignals:
    """Waits for SIGTERM or SIGINT."""

    def __init__(self, reader: socket.socket) -> None:
        self._reader = reader

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a signal; return whether there was one."""
        # Nothing is read from it, so that later calls return True as well.
        return bool(select.select([self._reader], [], [], seconds)[0])


@contextlib.contextmanager
def end_signals() -> Iterator[EndSignals]:
    """Within this context, SIGTERM and SIGINT do nothing but end waits.

    Python runs signal handlers only between instructions of the main thread,
    so a signal just before ``select`` would not end it. Instead, it waits
    for the wakeup descriptor, to which the C handler writes at once.
    """
    # A service has little memory and much time: it looks for garbage sooner
    # than a command.
    threshold = gc.get_threshold()
    gc.set_threshold(100_000)
    reader, writer = socket.socketpair()
    with reader, writer:
        writer.setblocking(False)
        descriptor = signal.set_wakeup_fd(
            writer.fileno(), warn_on_full_buffer=False
        )
        before = {
            number: signal.signal(number, lambda *_: None)
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield EndSignals(reader)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(descriptor)
            gc.set_threshold(*threshold)
