# SPDX-License-Identifier: Apache-2.0
"""Limits what a program sends to a service that may be overloaded.

keystoneauth enters the ``rate_semaphore`` of a request for each attempt, so it
also counts retries.
"""

import threading
import time
from types import TracebackType

from keystoneauth1 import session as ks_session
import requests

from isolate_aggregates.rest import client

# The pause in seconds if a response does not say how long.
_PAUSE = 0.5


class RequestLimit:
    """Limits the requests at the same time, with a pause after a 503.

    A context manager for the ``rate_semaphore`` of keystoneauth, and a hook
    for responses.

    :param most: How many requests may be sent at the same time.
    """

    def __init__(self, most: int) -> None:
        self._free = threading.Semaphore(most)
        # When the pause ends.
        self._end = 0.0

    @classmethod
    def of(cls, session: ks_session.Session, most: int) -> 'RequestLimit':
        """Return the limit of a session; the number of the first call counts.

        It must be called after :func:`retry_after.limit`, which limits how
        long a response makes others wait.
        """
        hooks = session.session.hooks['response']
        found = next((hook for hook in hooks if isinstance(hook, cls)), None)
        if found is None:
            found = cls(most)
            hooks.append(found)
        return found

    def __call__(self, response: requests.Response, **_: object) -> None:
        """Begin a pause if the service is overloaded."""
        if response.status_code not in client.RETRIABLE:
            return
        try:
            seconds = float(int(response.headers.get('Retry-After', '')))
        except ValueError:
            seconds = _PAUSE
        self._end = max(self._end, time.monotonic() + seconds)

    def __enter__(self) -> None:
        """Wait until a request may be sent."""
        self._free.acquire()
        while (left := self._end - time.monotonic()) > 0:
            time.sleep(left)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let another request be sent."""
        self._free.release()
