# SPDX-License-Identifier: Apache-2.0
"""Says why a reservation does not fit."""

import datetime

from isolate_aggregates import exception
from isolate_aggregates.reservations import rooms
from isolate_aggregates.reservations.planner import Placing
from isolate_aggregates.reservations.record import Reservation
from isolate_aggregates.reservations.world import World

_HOSTS_IN_A_SENTENCE = 5

_AFFINITY = {True: ' on one host', False: ' on different hosts', None: ''}


def refusal(
    world: World,
    reservation: Reservation,
    placing: Placing,
    now: datetime.datetime,
) -> exception.ReservationError:
    """Return the error for a reservation that does not fit.

    :param world: How things are.
    :param reservation: The reservation as it was to be.
    :param placing: As much of it as fits.
    :param now: The time.
    """
    used = sum(slots.used for slots in world.slots(reservation.id).values())
    if used > reservation.amount:
        return exception.ReservationError(
            reservation.id,
            f'can not have {reservation.amount} slots, as {used} have servers',
        )
    needs = ', '.join(
        f'{amount} {name}'
        for name, amount in sorted(rooms.needs(reservation.flavor).items())
    )
    slots = (
        '1 slot'
        if reservation.amount == 1
        else (f'{reservation.amount} slots')
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
        f'{start} {end}, and there is room for {_room(placing)}',
    )


def _room(placing: Placing) -> str:
    """Say which hosts have room, the largest first."""
    hosts = sorted(
        ((name, room) for name, room in placing.room.items() if room),
        key=lambda found: (-found[1], found[0]),
    )
    if not hosts:
        number = len(placing.room)
        return f'none on {"any of " if number else ""}the {number} hosts'
    shown = [f'{room} on {name}' for name, room in hosts]
    more = len(shown) - _HOSTS_IN_A_SENTENCE
    text = ', '.join(shown[:_HOSTS_IN_A_SENTENCE])
    return f'{text} and some on {more} more' if more > 0 else text
