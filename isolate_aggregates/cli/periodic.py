# SPDX-License-Identifier: Apache-2.0
"""Does something again and again, until the process is asked to end."""

from collections.abc import Callable, Iterator
import contextlib
import select
import signal
import socket

from oslo_log import log as logging

from isolate_aggregates import exception

LOG = logging.getLogger(__name__)

Round = Callable[[Callable[[], bool]], None]


def watch(
    round_: Round, pause: int, is_wanted: Callable[[], bool] = lambda: True
) -> None:
    """Do something again and again, until SIGTERM or SIGINT.

    What fails is told, and the next round tries again.

    :param round_: What to do; it is given a function that tells whether it
        should come to an end.
    :param pause: How many seconds to wait between two rounds.
    :param is_wanted: Tells, before each round, whether it is to be done.
    """
    with end_signals() as signals:
        while True:
            try:
                if is_wanted():
                    round_(lambda: signals.wait(0))
            except exception.IsolateAggregatesError as exc:
                LOG.error('%s', exc)
            if signals.wait(pause):
                return


class EndSignals:
    """The signals that ask for an end: SIGTERM and SIGINT.

    :param reader: What can be read from once there was one.
    """

    def __init__(self, reader: socket.socket) -> None:
        self._reader = reader

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for one of them; tell whether there was one.

        :param seconds: At most so long; None for ever.
        """
        # Nothing is taken from it: once there was one, there was one.
        return bool(select.select([self._reader], [], [], seconds)[0])


@contextlib.contextmanager
def end_signals() -> Iterator[EndSignals]:
    """Let the signals that ask for an end do no more than be waited for.

    Python runs a handler of its own only when the main thread does not wait,
    and a signal that comes just before does not wake it. So what wakes it is
    written where the operating system hands the signal over.

    :returns: A context with the signals.
    """
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
