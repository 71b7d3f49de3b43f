# SPDX-License-Identifier: Apache-2.0
"""Conditions under which a reservation needs to be reconciled."""

from collections.abc import Callable, Collection, Container, Iterable
import datetime
import time

from isolate_aggregates.reservations.reservation import Reservation
from isolate_aggregates.reservations.state import (
    ObservedState,
    ReservationHost,
)
from isolate_aggregates.reservations.store import MOST_SKEW

# Seconds after which a host that is not found any more is forgotten.
_FORGET = 24 * 3600.0

# Returns whether slots without a server may be moved off a host. Called for
# each host with slots whenever the state has been read.
Move = Callable[[ReservationHost], bool]


# The largest difference between the clocks of two runs: each may differ from
# Placement's clock by MOST_SKEW. See ReservationStore.now.
CLOCKS_DIFFER = 2 * MOST_SKEW

# The error when a change comes after the start.
BEGUN = (
    'has started; its start, project and affinity can be changed only before '
    'the start'
)


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
        """Return whether slots may be moved off a host."""
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


def is_settled(
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
    has_lost_access: bool,
    leave: Collection[str] = (),
) -> bool:
    """Return whether there is nothing to do for a reservation.

    :param has_lost_access: Whether its project lacks access although it was
        granted.
    :param leave: The hosts whose slots without a server are to be moved.
    """
    return not (
        reservation.pending
        or reservation.has_ended(now)
        or reservation.id in state.records.old_flavors
        or lacks_extra_specs(state, reservation)
        or is_misplaced(state, reservation, leave)
        or has_left(state, reservation)
        or hosts_to_switch(state, reservation, now)
        or has_wrong_access(reservation, now)
        or (has_lost_access and is_open(reservation, now))
    )


def lacks_extra_specs(state: ObservedState, reservation: Reservation) -> bool:
    """Return whether the flavor lacks extra specs."""
    has = state.extra_specs.get(reservation.id, {})
    return any(
        has.get(key) != value
        for key, value in reservation.flavor.extra_specs.items()
    )


def is_misplaced(
    state: ObservedState,
    reservation: Reservation,
    leave: Collection[str] = (),
) -> bool:
    """Return whether slots must be added, removed or moved."""
    present = state.slots(reservation.id)
    stays = {
        n: on for n, on in present.items() if n not in reservation.leaving
    }
    return (
        sum(slots.total for slots in stays.values()) != reservation.amount
        or any(
            slots.used < slots.total
            for name, slots in stays.items()
            if name in leave
        )
        or any(
            slots.used != slots.total
            for name, slots in present.items()
            if name not in stays
        )
    )


def has_begun(
    state: ObservedState, reservation: Reservation, now: datetime.datetime
) -> bool:
    """Return whether the reservation has started, by the clock of any run.

    Another run whose clock is ahead may have opened slots already.
    """
    return (
        reservation.has_started(now)
        or reservation.has_access
        or any(
            slots.open or slots.used
            for slots in state.slots(reservation.id).values()
        )
    )


def has_wrong_access(reservation: Reservation, now: datetime.datetime) -> bool:
    """Return whether access is to be granted, or withdrawn, by the record."""
    return is_open(reservation, now) not in (None, reservation.has_access)


def has_left(state: ObservedState, reservation: Reservation) -> bool:
    """Return whether a host in ``leaving`` has no slots of it any more."""
    return not state.slots(reservation.id).keys() >= {*reservation.leaving}


def hosts_to_leave(
    hosts: Iterable[ReservationHost], move: Move, short: Container[str]
) -> set[str]:
    """Return the hosts whose slots without a server are to be moved."""
    return {
        host.name
        for host in hosts
        if move(host) and (host.obstacle or host.name in short)
    }


def closed_to_leave(
    state: ObservedState, reservation: Reservation, move: Move
) -> set[str]:
    """Return the hosts to leave because a lock closes them to its servers."""
    closed = state.closed(reservation, state.slots(reservation.id))
    return {name for name in closed if move(state.hosts[name])}


def is_ending(reservation: Reservation, now: datetime.datetime) -> bool:
    """Return whether it has ended, by the clock of any run.

    Another run whose clock is ahead may be deleting its servers.
    """
    end = reservation.end
    return end is not None and end - now <= CLOCKS_DIFFER


def hosts_to_switch(
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
) -> list[str]:
    """Return the hosts whose slots have to be opened or closed."""
    hosts = []
    for name, slots in sorted(state.slots(reservation.id).items()):
        is_to_open = is_host_open(reservation, name, now)
        if is_to_open is not None and (
            slots.open != is_to_open * slots.total
            # Closed in a way that the candidates do not show.
            or not (is_to_open or slots.used or slots.is_planned)
        ):
            hosts.append(name)
    return hosts


def is_host_open(
    reservation: Reservation, host: str, now: datetime.datetime
) -> bool | None:
    """Return whether the slots on a host are to be open; see ``is_open``."""
    if host in reservation.leaving:
        return False
    return is_open(reservation, now)


def is_open(reservation: Reservation, now: datetime.datetime) -> bool | None:
    """Return whether a reservation that has not ended is to be open.

    :returns: None so close to the start or end that a run with another clock
        may decide differently; slots and access then stay as they are.
    """
    if not reservation.has_started(now):
        return None if reservation.start - now <= CLOCKS_DIFFER else False
    return None if is_ending(reservation, now) else True


def others_pending(state: ObservedState, reservation: Reservation) -> bool:
    """Return whether changes of other reservations are pending."""
    return any(
        other.pending and other.id != reservation.id
        for other in state.records.reservations.values()
    )
