# SPDX-License-Identifier: Apache-2.0
"""Does something again and again, until the process is asked to end."""

from collections.abc import Callable, Iterator
import contextlib
import queue
import signal

from oslo_log import log as logging

from isolate_aggregates import exception

LOG = logging.getLogger(__name__)

Round = Callable[[Callable[[], bool]], None]


def watch(round_: Round, pause: int) -> None:
    """Do something again and again, until SIGTERM or SIGINT.

    What fails is told, and the next round tries again.

    :param round_: What to do; it is given a function that tells whether it
        should come to an end.
    :param pause: How many seconds to wait between two rounds.
    """
    with _signals() as received:
        while received.empty():
            try:
                round_(lambda: not received.empty())
            except exception.IsolateAggregatesError as exc:
                LOG.error('%s', exc)
            with contextlib.suppress(queue.Empty):
                received.put(received.get(timeout=pause))


@contextlib.contextmanager
def _signals() -> Iterator['queue.SimpleQueue[int]']:
    """Give a queue that gets the signals which ask for an end."""
    # Of all queues this one may be put into from within a signal handler.
    received: queue.SimpleQueue[int] = queue.SimpleQueue()
    before = {
        number: signal.signal(number, lambda got, _: received.put(got))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
