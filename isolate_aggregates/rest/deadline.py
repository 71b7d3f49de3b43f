# SPDX-License-Identifier: Apache-2.0
"""Limits how long a caller waits for a service."""

from collections.abc import Callable
from concurrent import futures
import threading
import time
from typing import Any, TypeVar

from isolate_aggregates import exception
from isolate_aggregates.text import short

_T = TypeVar('_T')

# The most calls that go on after their deadline.
MOST_LATE = 4


class Deadline:
    """Calls a service, and waits for the whole result no longer than allowed.

    The timeout of an HTTP client applies to each part of an answer. A service
    that sends one byte per second, or a proxy in front of it, does not exceed
    it. So each call has a thread of its own. Threads cannot be stopped: a late
    call goes on, and its result is dropped. While too many calls are late, no
    other one begins.
    """

    def __init__(
        self,
        service: str,
        seconds: float,
        on_late: Callable[[exception.ServiceUnreachable], None] = lambda _: (
            None
        ),
    ) -> None:
        self._service = service
        self._seconds = seconds
        self._on_late = on_late
        # Guards the late calls; never held during a call.
        self._lock = threading.Lock()
        self._late: set[futures.Future[Any]] = set()

    def run(self, call: Callable[[], _T], seconds: float | None = None) -> _T:
        """Return the result of a call.

        :param seconds: How long it may take, if earlier calls count as well.
        :raises ServiceUnreachable: if it takes longer than allowed, or if too
            many earlier calls have not ended.
        """
        future = self.start(call)
        try:
            self.wait(future, self._seconds if seconds is None else seconds)
            return future.result()
        finally:
            # An error refers to this frame; do not refer back to it.
            del future

    def start(self, call: Callable[[], _T]) -> 'futures.Future[_T]':
        """Start a call in a thread of its own.

        :raises ServiceUnreachable: if too many earlier calls have not ended.
        """
        if len(self._late) >= MOST_LATE:
            raise self._unreachable(
                f'has not answered {len(self._late)} earlier calls yet; it is '
                'called again after one of them has ended.'
            )
        future: futures.Future[_T] = futures.Future()
        try:
            threading.Thread(
                target=_carry_out,
                args=(call, future),
                name='isolate-aggregates-call',
                daemon=True,
            ).start()
        except RuntimeError as exc:
            raise self._unreachable(
                f'cannot be called: {short(exc)}; check the limits on threads '
                'and memory of this process.'
            ) from exc
        return future

    def wait(self, future: 'futures.Future[Any]', seconds: float) -> None:
        """Wait for the end of a call.

        :raises ServiceUnreachable: if it takes longer.
        """
        futures.wait([future], max(seconds, 0))
        if self.give_up(future):
            raise self._too_late()

    def give_up(self, future: 'futures.Future[Any]') -> bool:
        """Return whether a call goes on; it counts as late until it ends."""
        with self._lock:
            if future.done():
                return False
            is_known = future in self._late
            self._late.add(future)
        if not is_known:
            future.add_done_callback(self._ended)
            self._on_late(self._too_late())
        return True

    def in_time(
        self, get: Callable[[], _T], what: str, seconds: float | None = None
    ) -> Callable[[], _T]:
        """Return a function that raises when nobody waits for a call any more.

        :param get: Returns what the call uses for each of its requests.
        :param what: What the call returns.
        :param seconds: As for :meth:`run`.
        """
        until = time.monotonic() + (
            self._seconds if seconds is None else seconds
        )

        def get_in_time() -> _T:
            if time.monotonic() > until:
                raise self._unreachable(f'takes too long to return {what}.')
            return get()

        return get_in_time

    def _ended(self, future: 'futures.Future[Any]') -> None:
        with self._lock:
            self._late.discard(future)

    def _too_late(self) -> exception.ServiceUnreachable:
        return self._unreachable(
            f'has not answered completely within {self._seconds:g} s; check '
            'whether it is overloaded.'
        )

    def _unreachable(self, problem: str) -> exception.ServiceUnreachable:
        return exception.ServiceUnreachable(self._service, None, problem)


def _carry_out(
    call: Callable[[], _T], future: 'futures.Future[_T] | None'
) -> None:
    assert future is not None
    try:
        future.set_result(call())
    except BaseException as exc:
        future.set_exception(exc)
        # An error refers to this frame; do not refer back to it.
        future = None
