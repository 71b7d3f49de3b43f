# SPDX-License-Identifier: Apache-2.0
"""Decides from which hosts slots without a server move away."""

from collections.abc import Callable
import datetime
import time

from isolate_aggregates.reservations.observed import ReservationHost

# Asked for each host whenever it has been read how hosts are.
Move = Callable[[ReservationHost], bool]


def no_host(host: ReservationHost) -> bool:
    """Let no slots leave: hosts come back."""
    return False


def every_host(host: ReservationHost) -> bool:
    """Let slots leave each host that is down, disabled, gone or too small."""
    return True


class FailedHosts:
    """Lets slots leave hosts that have failed for some time.

    A host has failed if its compute service is down or gone. One that is only
    disabled has not.

    :param after: For how long, since it was first asked here.
    :param clock: Returns seconds; None for a clock that is never set.
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
        """Tell whether slots leave a host."""
        if not host.has_failed:
            self._since.pop(host.name, None)
            return False
        now = self._clock()
        return now - self._since.setdefault(host.name, now) >= self._after
