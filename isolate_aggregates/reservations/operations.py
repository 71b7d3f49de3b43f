# SPDX-License-Identifier: Apache-2.0
"""What can be done with reservations.

Each operation writes down what is asked for and then reconciles, so that
:func:`~isolate_aggregates.reservations.reconciler.tick` completes what is
interrupted.
"""

import dataclasses
import datetime
import logging
import uuid

from isolate_aggregates import exception
from isolate_aggregates.reservations import names, reconciler, rooms
from isolate_aggregates.reservations.record import Ask, Reservation, Shape
from isolate_aggregates.reservations.refusal import refusal
from isolate_aggregates.reservations.site import Site
from isolate_aggregates.reservations.status import State, Status, status_of
from isolate_aggregates.reservations.world import Slots, World

LOG = logging.getLogger(__name__)


class Keep:
    """Stands for an end that stays as it is."""


KEEP = Keep()


def new(
    project: str,
    amount: int,
    shape: Shape,
    start: datetime.datetime,
    end: datetime.datetime | None = None,
    affinity: bool | None = None,
    reservation_id: str | None = None,
) -> Reservation:
    """Return a reservation to create.

    :param project: The id of the project that may use it.
    :param amount: How many slots.
    :param shape: The size of a slot.
    :param start: When it starts.
    :param end: When it ends; None for never.
    :param affinity: True for all slots on one host, False for no two on one
        host, None if it does not matter.
    :param reservation_id: The id it shall have, a uuid; None for a new one.
    :raises InvalidRequest: if it makes no sense.
    """
    made = names.reservation_id(reservation_id or str(uuid.uuid4()))
    _check_amount(amount)
    _check_time('start', start)
    if end is not None:
        _check_time('end', end)
        if end <= start:
            raise exception.InvalidRequest(
                f'A reservation can not end at {end.isoformat()}, as it '
                f'starts at {start.isoformat()}.'
            )
    if not project:
        raise exception.InvalidRequest('A reservation needs a project.')
    found = Reservation(
        id=made,
        project=project,
        start=start.astimezone(datetime.UTC),
        end=end and end.astimezone(datetime.UTC),
        amount=0,
        shape=shape,
        affinity=affinity,
        asked=Ask(amount, end and end.astimezone(datetime.UTC)),
    )
    if any(
        names.reservation_of(key.partition(':')[2])
        for key in shape.extra_specs
    ):
        raise exception.InvalidRequest(
            'The slots of a reservation can not be taken from another one.'
        )
    if not any(rooms.needs(found.flavor).values()):
        raise exception.InvalidRequest(
            'A slot of a reservation has to need something.'
        )
    return found


def create(
    site: Site, reservation: Reservation, now: datetime.datetime
) -> Status:
    """Create a reservation; again, if it was begun before.

    :param site: The cloud.
    :param reservation: What :func:`new` returned.
    :param now: The time.
    :raises ReservationError: if it does not fit, or there is another of that
        id; nothing is then left of it.
    :raises ServiceError: if it can not be done; done again, or by a tick, it
        completes.
    """
    if reservation.has_ended(now):
        raise exception.InvalidRequest(
            f'A reservation can not end at {reservation.end}, as that is over.'
        )
    if not site.compute.create_record(reservation):
        known = site.read().records.get(reservation.id)
        if known is None or not _is_same(known, reservation):
            raise exception.ReservationError(
                reservation.id,
                'can not be made, as there is another one, or a flavor, of '
                'that id',
            )
    return reconciler.reconcile(site, reservation.id, now)


def preview(
    site: Site, reservation: Reservation, now: datetime.datetime
) -> Status:
    """Return how a reservation would be, and change nothing.

    :param site: The cloud.
    :param reservation: What :func:`new` returned.
    :param now: The time.
    :raises ReservationError: if it does not fit.
    :raises ServiceError: if anything can not be read.
    """
    world = site.read()
    wanted = reservation.settled
    placing = rooms.plan(site, world, wanted, now)
    if placing.missing:
        raise refusal(world, wanted, placing, now)
    slots = {name: Slots(n, 0, 0) for name, n in placing.slots.items()}
    return Status(wanted, State.PLANNED, slots)


def show(site: Site, reservation_id: str, now: datetime.datetime) -> Status:
    """Return how a reservation is.

    :param site: The cloud.
    :param reservation_id: Its id.
    :param now: The time.
    :raises NotFound: if there is none.
    :raises ReservationError: if its record can not be read.
    :raises ServiceError: if it can not be read.
    """
    world = site.read()
    return status_of(world, _get(world, reservation_id), now)


def list_reservations(site: Site, now: datetime.datetime) -> list[Status]:
    """Return how all reservations are, in the order of their starts.

    Those whose record can not be read are logged.

    :param site: The cloud.
    :param now: The time.
    :raises ServiceError: if it can not be read.
    """
    world = site.read()
    for problem in world.problems.values():
        LOG.error('%s', problem)
    return [
        status_of(world, found, now)
        for found in sorted(
            world.records.values(), key=lambda r: (r.start, r.id)
        )
    ]


def update(
    site: Site,
    reservation_id: str,
    now: datetime.datetime,
    amount: int | None = None,
    end: datetime.datetime | Keep | None = KEEP,
) -> Status:
    """Change a reservation, before or after its start.

    :param site: The cloud.
    :param reservation_id: Its id.
    :param now: The time.
    :param amount: How many slots it shall have; None for as many as it has.
    :param end: When it shall end, no sooner than now; None for never, KEEP to
        leave it.
    :raises NotFound: if there is none.
    :raises InvalidRequest: if it makes no sense.
    :raises ReservationError: if it does not fit, or more slots have servers;
        it then stays as it was.
    :raises ServiceError: if it can not be done; done again, or by a tick, it
        completes.
    """
    world = site.read()
    found = _get(world, reservation_id)
    if found.asked:
        # Somebody else's, and it may have been interrupted.
        reconciler.reconcile(site, found.id, now)
        found = _get(site.read(), reservation_id)
    if found.has_ended(now):
        raise exception.ReservationError(
            found.id, 'can not be changed, as it has ended'
        )
    wanted = Ask(
        found.amount if amount is None else amount,
        found.end if isinstance(end, Keep) else _utc(end),
    )
    _check_amount(wanted.amount)
    if wanted != Ask(found.amount, found.end):
        _check_end(found, wanted, now)
        site.compute.write_record(dataclasses.replace(found, asked=wanted))
    return reconciler.reconcile(site, found.id, now)


def end(site: Site, reservation_id: str, now: datetime.datetime) -> Status:
    """End a reservation now, whether it has started or not.

    Its servers are deleted. As long as some are there it is ``ending``: do it
    again, or let a tick do it.

    :param site: The cloud.
    :param reservation_id: Its id.
    :param now: The time.
    :raises NotFound: if there is none.
    :raises ReservationError: if its record can not be read.
    :raises ServiceError: if it can not be done; done again, or by a tick, it
        completes.
    """
    found = _get(site.read(), reservation_id)
    if not found.has_ended(now) or found.asked:
        site.compute.write_record(
            dataclasses.replace(found, end=now, asked=None)
        )
    return reconciler.reconcile(site, found.id, now)


def repair(
    site: Site,
    now: datetime.datetime,
    reservation_id: str | None = None,
) -> list[Status]:
    """Move slots without a server off hosts that are down, disabled or gone.

    :param site: The cloud.
    :param now: The time.
    :param reservation_id: The id of a reservation; None for all.
    :returns: How they are then; what could not be done is among their
        problems.
    :raises NotFound: if there is none.
    :raises ServiceError: if it can not be done; done again, it completes.
    """
    if reservation_id is None:
        return reconciler.tick(site, now, move=True)
    found = _get(site.read(), reservation_id)
    return [reconciler.reconcile(site, found.id, now, move=True)]


def _get(world: World, reservation_id: str) -> Reservation:
    return world.reservation(names.reservation_id(reservation_id))


def _is_same(known: Reservation, wanted: Reservation) -> bool:
    """Tell whether a reservation is one that was begun to be created."""

    def fixed(reservation: Reservation) -> tuple[object, ...]:
        settled = reservation.settled
        return (
            settled.project,
            settled.amount,
            settled.shape,
            settled.affinity,
        )

    return fixed(known) == fixed(wanted)


def _check_end(
    found: Reservation, wanted: Ask, now: datetime.datetime
) -> None:
    if wanted.end is not None and wanted.end <= max(now, found.start):
        raise exception.InvalidRequest(
            f'Reservation {found.id} can not be changed to end at '
            f'{wanted.end.isoformat()}, which is over or before its start.'
        )


def _check_amount(amount: int) -> None:
    if amount < 1:
        raise exception.InvalidRequest(
            f'A reservation has at least 1 slot, not {amount}.'
        )


def _check_time(what: str, time: datetime.datetime) -> None:
    if time.tzinfo is None:
        raise exception.InvalidRequest(
            f'The {what} {time.isoformat()} has no time zone.'
        )


def _utc(time: datetime.datetime | None) -> datetime.datetime | None:
    if time is None:
        return None
    _check_time('end', time)
    return time.astimezone(datetime.UTC)
