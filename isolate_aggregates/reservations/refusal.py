# SPDX-License-Identifier: Apache-2.0
"""Says why a reservation does not fit."""

import datetime

from isolate_aggregates import exception, text
from isolate_aggregates.reservations import host_capacity
from isolate_aggregates.reservations.observed import ObservedState
from isolate_aggregates.reservations.planner import Assignment
from isolate_aggregates.reservations.record import Reservation

_HOSTS_IN_A_SENTENCE = 5

_AFFINITY = {True: ' on one host', False: ' on different hosts', None: ''}


def refusal(
    observed: ObservedState,
    reservation: Reservation,
    assignment: Assignment,
    now: datetime.datetime,
) -> exception.ReservationError:
    """Return the error for a reservation that does not fit.

    :param reservation: The reservation as it was to be.
    :param assignment: As much of it as fits.
    """
    slots = text.counted(reservation.amount, 'slot')
    used = sum(found.used for found in observed.slots(reservation.id).values())
    if used > reservation.amount:
        return exception.ReservationError(
            reservation.id,
            f'cannot have {slots}, as {used} have servers',
        )
    needs = ', '.join(
        f'{amount} {name}'
        for name, amount in sorted(
            host_capacity.needs(reservation.flavor).items()
        )
    )
    start = max(reservation.start, now).isoformat(timespec='seconds')
    end = (
        f'until {reservation.end.isoformat(timespec="seconds")}'
        if reservation.end
        else 'for ever'
    )
    return exception.ReservationError(
        reservation.id,
        f'needs {slots} of {needs}{_AFFINITY[reservation.affinity]} from '
        f'{start} {end}, and there is room for {_free(assignment)}',
    )


def _free(assignment: Assignment) -> str:
    """Say which hosts have room, the largest first."""
    hosts = sorted(
        ((name, free) for name, free in assignment.free.items() if free),
        key=lambda found: (-found[1], found[0]),
    )
    if not hosts:
        number = len(assignment.free)
        return f'none on {"any of " if number else ""}the {number} hosts'
    shown = [f'{free} on {name}' for name, free in hosts]
    more = len(shown) - _HOSTS_IN_A_SENTENCE
    text = ', '.join(shown[:_HOSTS_IN_A_SENTENCE])
    return f'{text} and some on {more} more' if more > 0 else text
