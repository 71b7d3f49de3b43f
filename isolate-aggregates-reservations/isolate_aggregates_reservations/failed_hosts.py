# SPDX-License-Identifier: Apache-2.0
"""Which hosts slots without a server may be moved off."""

from collections.abc import Callable
import datetime
import time

from isolate_aggregates_reservations.state import ReservationHost

# Seconds after which a host that is not found any more is forgotten.
_FORGET = 24 * 3600.0

# Returns whether slots without a server may be moved off a host. Called for
# each host with slots of a reservation that is planned.
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
        # The times of the first and the last call that found a host failed.
        self._failed: dict[str, tuple[float, float]] = {}

    def __call__(self, host: ReservationHost) -> bool:
        since, _ = self._failed.pop(host.name, (None, None))
        if not host.has_failed:
            return False
        now = self._clock()
        since = now if since is None else since
        # The one that was found longest ago comes first. It is gone.
        while self._failed:
            name, (_, at) = next(iter(self._failed.items()))
            if now - at < max(self._after, _FORGET):
                break
            del self._failed[name]
        self._failed[host.name] = since, now
        return now - since >= self._after
