# SPDX-License-Identifier: Apache-2.0
"""Tells what a reservation needs to be as it should be; changes nothing."""

import datetime

from isolate_aggregates.reservations.record import Reservation
from isolate_aggregates.reservations.world import World


def is_settled(
    world: World,
    reservation: Reservation,
    now: datetime.datetime,
    move: bool = False,
) -> bool:
    """Tell whether there is nothing to do for a reservation.

    :param world: How things are.
    :param reservation: The reservation.
    :param now: The time.
    :param move: Whether slots leave hosts that are down, disabled or gone.
    """
    return not (
        reservation.asked
        or reservation.has_ended(now)
        or lacks_extra_specs(world, reservation)
        or is_misplaced(world, reservation, move)
        or to_open(world, reservation, now)
        or (reservation.has_started(now) and not reservation.granted)
    )


def lacks_extra_specs(world: World, reservation: Reservation) -> bool:
    """Tell whether the flavor lacks extra specs.

    :param world: How things are.
    :param reservation: The reservation.
    """
    has = world.extra_specs.get(reservation.id, {})
    return any(
        has.get(key) != value
        for key, value in reservation.flavor.extra_specs.items()
    )


def is_misplaced(world: World, reservation: Reservation, move: bool) -> bool:
    """Tell whether there are too few or too many slots, or some to move.

    :param world: How things are.
    :param reservation: The reservation.
    :param move: Whether slots leave hosts that are down, disabled or gone.
    """
    found = world.slots(reservation.id)
    if sum(slots.total for slots in found.values()) != reservation.amount:
        return True
    return move and any(
        world.hosts[name].obstacle and slots.used < slots.total
        for name, slots in found.items()
    )


def to_open(
    world: World, reservation: Reservation, now: datetime.datetime
) -> list[str]:
    """Return the hosts whose slots are not open or closed as they should.

    :param world: How things are.
    :param reservation: The reservation.
    :param now: The time.
    """
    has_started = reservation.has_started(now)
    return [
        name
        for name, found in sorted(world.slots(reservation.id).items())
        if found.open != (found.total if has_started else 0)
    ]


def others_ask(world: World, reservation: Reservation) -> bool:
    """Tell whether other reservations ask for something at the moment.

    :param world: How things are.
    :param reservation: The reservation.
    """
    return any(
        other.asked and other.id != reservation.id
        for other in world.records.values()
    )


def ends_later(reservation: Reservation) -> bool:
    """Tell whether a later end is asked for.

    :param reservation: The reservation.
    """
    if reservation.asked is None or reservation.end is None:
        return False
    end = reservation.asked.end
    return end is None or end > reservation.end
