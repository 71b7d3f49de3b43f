# SPDX-License-Identifier: Apache-2.0
"""An election by a lock of tooz: whoever has it works, until it ends."""

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
    """One of the processes with the same name is elected.

    :param url: What tooz takes as ``backend_url``.
    :param name: What they do.
    """

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name.encode()
        self._member = f'{socket.gethostname()}-{os.getpid()}'.encode()
        # Wrong here is what is configured; it does not connect yet.
        self._coordinator = self._new_coordinator()
        self._is_started = False
        self._is_over = threading.Event()
        self._lock: locking.Lock | None = None
        self._told = ''

    def is_won(self) -> bool:
        """Tell whether this process is to work now.

        It is where the others cannot be asked, as not to work at all would be
        worse than to work twice.
        """
        try:
            is_won = self._has_lock()
        except Exception as exc:
            # Some drivers raise errors of the libraries that they use.
            self._tell(
                logging.WARNING,
                'No process can be elected, so this one goes on with the '
                'work: %s.',
                _said(exc),
            )
            return True
        if is_won:
            self._tell(logging.INFO, 'This process was elected to work.')
        else:
            self._tell(logging.INFO, 'Another process works; this one waits.')
        return is_won

    def close(self) -> None:
        """Let another one be elected."""
        self._is_over.set()
        try:
            if self._lock:
                self._lock.release()
            if self._is_started:
                self._coordinator.stop()
        except Exception as exc:
            LOG.warning('The election could not be left: %s.', _said(exc))

    def _has_lock(self) -> bool:
        if not self._is_started:
            # Where the last attempt has failed half-way.
            self._coordinator = self._new_coordinator()
            self._coordinator.start()
            self._is_started = True
            if self._coordinator.requires_beating:
                threading.Thread(target=self._refresh, daemon=True).start()
        if self._lock and self._is_kept(self._lock):
            return True
        lock = self._coordinator.get_lock(self._name)
        self._lock = lock if lock.acquire(blocking=False) else None
        return bool(self._lock)

    @staticmethod
    def _is_kept(lock: locking.Lock) -> bool:
        try:
            return lock.is_still_owner()
        except tooz.NotImplemented:
            # The driver of etcd does not know whether the lock has expired.
            # Release it if not; the caller acquires it again.
            lock.release()
            return False

    def _refresh(self) -> None:
        """Keep locks from expiring until the election is over.

        The thread that tooz has for this logs a failure each second, and does
        not end while the lock service is away.
        """
        pause = 0.0
        while not self._is_over.wait(pause):
            try:
                pause = (self._coordinator.heartbeat() or _PAUSE) / 2
            except Exception:
                # The next round asks for the lock and logs the error.
                pause = _PAUSE

    def _new_coordinator(self) -> coordination.CoordinationDriver:
        return coordination.get_coordinator(self._url, self._member)

    def _tell(self, level: int, text: str, *values: str) -> None:
        """Log what has not been logged last."""
        if text != self._told:
            LOG.log(level, text, *values)
        self._told = text


def _said(exc: Exception) -> str:
    return short(exc) or type(exc).__name__
