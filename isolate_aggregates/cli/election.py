# SPDX-License-Identifier: Apache-2.0
"""An election by a lock of tooz: the process that holds the lock works."""

import os
import socket
import threading

from oslo_log import log as logging
import tooz
from tooz import coordination, locking

from isolate_aggregates.text import short

LOG = logging.getLogger(__name__)

# Seconds between two attempts to refresh locks after a failure.
_PAUSE = 1.0


class Election:
    """Elects one of the processes that use the same name.

    :param url: The ``backend_url`` for tooz.
    :param name: The name of the election, and of the lock.
    """

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name.encode()
        self._member = f'{socket.gethostname()}-{os.getpid()}'.encode()
        # Raises only configuration errors, as it does not connect yet.
        self._coordinator = self._new_coordinator()
        self._is_started = False
        self._is_over = threading.Event()
        self._lock: locking.Lock | None = None
        self._told = ''

    def is_won(self) -> bool:
        """Return whether this process should work now.

        It should if the lock service cannot be reached: doing the work twice
        is better than not doing it at all.
        """
        try:
            is_won = self._has_lock()
        except Exception as exc:
            # Some drivers raise the exceptions of their libraries.
            self._tell(
                logging.WARNING,
                'No process can be elected, so this one continues to work: '
                '%s.',
                _said(exc),
            )
            return True
        if is_won:
            self._tell(logging.INFO, 'This process was elected to work.')
        else:
            self._tell(logging.INFO, 'Another process works; this one waits.')
        return is_won

    def close(self) -> None:
        """Release the lock, so that another process is elected."""
        self._is_over.set()
        try:
            if self._lock:
                self._lock.release()
            if self._is_started:
                self._coordinator.stop()
        except Exception as exc:
            LOG.warning('Leaving the election failed: %s.', _said(exc))

    def _has_lock(self) -> bool:
        if not self._is_started:
            # The last attempt to start may have failed half-way.
            self._coordinator = self._new_coordinator()
            self._coordinator.start()
            self._is_started = True
            if self._coordinator.requires_beating:
                threading.Thread(target=self._refresh, daemon=True).start()
        if self._lock:
            if self._is_kept(self._lock):
                return True
            # Or tooz would keep refreshing it. With memcached, that could be
            # the lock of another process, and keep it after that has ended.
            self._lock.release()
            self._lock = None
        lock = self._coordinator.get_lock(self._name)
        self._lock = lock if lock.acquire(blocking=False) else None
        return bool(self._lock)

    @staticmethod
    def _is_kept(lock: locking.Lock) -> bool:
        try:
            return lock.is_still_owner()
        except tooz.NotImplemented:
            # The etcd driver cannot tell whether the lock has expired. The
            # caller releases it in case it has not, and acquires it again.
            return False

    def _refresh(self) -> None:
        """Keep locks from expiring until the election is over.

        The thread of tooz itself logs a failure every second, and does not end
        while the lock service cannot be reached.
        """
        pause = 0.0
        while not self._is_over.wait(pause):
            try:
                pause = (self._coordinator.heartbeat() or _PAUSE) / 2
            except Exception:
                # The next call of is_won() logs the error.
                pause = _PAUSE

    def _new_coordinator(self) -> coordination.CoordinationDriver:
        return coordination.get_coordinator(self._url, self._member)

    def _tell(self, level: int, text: str, *values: str) -> None:
        """Log a message, unless it is the same as the last one."""
        if text != self._told:
            LOG.log(level, text, *values)
        self._told = text


def _said(exc: Exception) -> str:
    return short(exc) or type(exc).__name__
