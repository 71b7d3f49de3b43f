# SPDX-License-Identifier: Apache-2.0
"""Policies for moving slots without a server off unusable hosts."""

from collections.abc import Callable
import datetime
import time

from isolate_aggregates.reservations.observed import ReservationHost

# Returns whether slots without a server may be moved off a host. Called for
# each host with slots whenever the state has been read.
Move = Callable[[ReservationHost], bool]


def no_host(host: ReservationHost) -> bool:
    """Move no slots: the host may come back."""
    return False


def every_host(host: ReservationHost) -> bool:
    """Move slots off every host that is down, disabled, gone or too small."""
    return True


class FailedHosts:
    """Moves slots off hosts that have failed for some time.

    A host has failed if its compute service is down or gone. A host that is
    only disabled has not.

    :param after: How long a host must have failed, counted from the first
        call that found it so.
    :param clock: Returns seconds; the default is a monotonic clock.
    """

    def __init__(
        self,
        after: datetime.timedelta,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._after = after.total_seconds()
        self._clock = clock or time.monotonic
        self._since: dict[str, float] = {}

    def __call__(self, host: ReservationHost) -> bool:
        """Return whether slots may be moved off a host."""
        if not host.has_failed:
            self._since.pop(host.name, None)
            return False
        now = self._clock()
        return now - self._since.setdefault(host.name, now) >= self._after
