# SPDX-License-Identifier: Apache-2.0
"""Validates the values of a new reservation."""

import datetime
import uuid

from isolate_aggregates import exception
from isolate_aggregates.reservations import counting, names
from isolate_aggregates.reservations.reservation import (
    PendingChange,
    Reservation,
    Shape,
)
from isolate_aggregates.reservations.uncounted import uncounted


def new(
    project: str,
    amount: int,
    shape: Shape,
    start: datetime.datetime,
    end: datetime.datetime | None = None,
    affinity: bool | None = None,
    reservation_id: str | None = None,
    allow_uncounted: bool = False,
) -> Reservation:
    """Return a reservation to pass to ``create`` or ``find``.

    :param project: The id of the project that may use it; may be empty for
        ``find``.
    :param start: The start, with a time zone.
    :param end: The end, with a time zone; None for no end.
    :param affinity: True for all slots on one host, False for no two slots on
        one host, None for no restriction.
    :param reservation_id: The id, a uuid; None to generate one.
    :param allow_uncounted: Whether slots may need resources that cannot be
        counted, for example PCI devices. These are then not guaranteed.
    """
    canonical_id = names.reservation_id(
        reservation_id or names.new_reservation_id()
    )
    check_amount(amount)
    # Times of one time zone are compared by the clock on the wall, which shows
    # an hour twice when summer time ends.
    start = utc('start', start)
    end = None if end is None else utc('end', end)
    if end is not None and end <= start:
        raise exception.InvalidRequest(
            f'A reservation cannot end at {end.isoformat()}, because it '
            f'starts at {start.isoformat()}.'
        )
    reservation = Reservation(
        id=canonical_id,
        project=project,
        start=start,
        end=end,
        amount=0,
        shape=shape,
        affinity=affinity,
        pending=PendingChange(amount, end),
        incarnation=uuid.uuid4().hex[:8],
    )
    if any(
        names.reservation_of(key.partition(':')[2])
        for key in shape.extra_specs
    ):
        raise exception.InvalidRequest(
            'The slots of a reservation cannot be taken from another '
            'reservation.'
        )
    unknown = [] if allow_uncounted else uncounted(shape.extra_specs)
    if unknown:
        raise exception.InvalidRequest(
            f'A slot cannot be planned with {", ".join(unknown)}, because '
            'Placement does not count it. Leave it out, or use '
            '--allow-uncounted: a server may then get no host although its '
            'reservation has a free slot.'
        )
    if not any(counting.needs(reservation.flavor).values()):
        raise exception.InvalidRequest(
            'A slot of a reservation must request at least one resource.'
        )
    return reservation


def check_amount(amount: int) -> None:
    if amount < 1:
        raise exception.InvalidRequest(
            f'A reservation must have at least 1 slot, not {amount}.'
        )


def utc(what: str, time: datetime.datetime) -> datetime.datetime:
    """Return a time in UTC.

    :raises InvalidRequest: if it has no time zone, or is out of range in UTC.
    """
    if time.tzinfo is None:
        raise exception.InvalidRequest(
            f'The {what} {time.isoformat()} has no time zone.'
        )
    try:
        return time.astimezone(datetime.UTC)
    except OverflowError:
        raise exception.InvalidRequest(
            f'The {what} {time.isoformat()} is not between the years 1 and '
            '9999 in UTC.'
        ) from None
