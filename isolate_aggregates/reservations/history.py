# SPDX-License-Identifier: Apache-2.0
"""What was reserved and changed, also after the end.

While a reservation exists, its record has its changes. At its end, before the
record is deleted, it is copied into its archive: the description of one more
private flavor, to which no project has access. The id of that flavor follows
from the record, and Nova creates each id only once. So a run that was
interrupted between the two archives nothing twice.

Archives are deleted after a number of days, which the pool has in its metadata
like everything else that all machines must agree on.
"""

from collections.abc import Iterator
import dataclasses
import datetime
import json
import logging

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.reservations import (
    changes,
    errors,
    names,
    record,
    settings,
)
from isolate_aggregates.reservations.record import FlavorRecord
from isolate_aggregates.reservations.reservation import Reservation
from isolate_aggregates.reservations.state import ObservedState
from isolate_aggregates.reservations.status import Phase
from isolate_aggregates.reservations.store import (
    OnUnreadable,
    Problem,
    ReservationStore,
    log_unreadable,
)

LOG = logging.getLogger(__name__)

# The key that marks our archives, and the version of their format.
_MARK = 'isolate-aggregates-history'
_VERSION = 1

# More than a year, so that last year's bill can be checked.
DEFAULT_DAYS = 400
_MOST_DAYS = 36_500

# So many archives at most are deleted in one round.
_DELETED = 100


@dataclasses.dataclass(frozen=True)
class PastReservation:
    """A reservation with its history.

    :param slot_hours: The hours of its slots in the period.
    """

    reservation: Reservation
    state: Phase
    slot_hours: float


# The end.


def archive(store: ReservationStore, reservation: Reservation) -> None:
    """Keep the record of a reservation that has ended and is to be deleted.

    One that was refused was never reserved, and is not kept.
    """
    if not reservation.amount:
        return
    document = {
        _MARK: _VERSION,
        'record': json.loads(record.describe(reservation)),
    }
    store.compute.create_archive(
        _archive_id(reservation), reservation.shape, json.dumps(document)
    )


def _archive_id(reservation: Reservation) -> names.Archive:
    assert reservation.end
    return names.Archive(
        reservation.end, reservation.id, reservation.incarnation
    )


def days_kept(pool: Aggregate | None) -> int:
    """Return for how many days an archive is kept.

    :raises InvalidRequest: if the pool has no valid number of days.
    """
    days = settings.number(
        pool, names.HISTORY_KEY, 'days', _MOST_DAYS, DEFAULT_DAYS
    )
    return DEFAULT_DAYS if days is None else days


def remove_expired(
    store: ReservationStore, state: ObservedState, now: datetime.datetime
) -> None:
    """Delete the archives that have been kept long enough.

    Those with the earliest end were read with the records.
    """
    try:
        kept = datetime.timedelta(days_kept(state.pool))
        archives = _readable(state.records.archives, _ignore)
        expired = [
            archived
            for archived in archives
            if archived.end and now - archived.end > kept
        ]
        for archived in expired[:_DELETED]:
            store.compute.delete_flavor(_archive_id(archived).flavor_id)
    except exception.IsolateAggregatesError as exc:
        # Reservations start and end all the same.
        LOG.error('Old history was not deleted: %s', exc)


# Reading.


def read_history(
    store: ReservationStore,
    now: datetime.datetime,
    since: datetime.datetime | None = None,
    until: datetime.datetime | None = None,
    project: str | None = None,
    reservation_id: str | None = None,
    on_unreadable: OnUnreadable = log_unreadable,
) -> list[PastReservation]:
    """Return the reservations of a period, sorted by start.

    :param since: The start of the period; None for no limit.
    :param until: The end of the period; None for no limit. Hours count until
        now at most.
    """
    if since and until and since >= until:
        raise exception.InvalidRequest(
            f'The period from {since.isoformat()} until {until.isoformat()} '
            'is empty.'
        )
    wanted_id = reservation_id and names.reservation_id(reservation_id)

    def is_asked_for(reservation: Reservation) -> bool:
        end = reservation.end
        return (
            wanted_id in (None, reservation.id)
            and project in (None, reservation.project)
            and reservation.amount > 0
            and (until is None or _first(reservation) < until)
            and (since is None or end is None or end > since)
        )

    records = record.read(store.compute.records(with_archives=True))
    for problem in records.problems.values():
        on_unreadable(problem)
    live = filter(is_asked_for, records.reservations.values())
    incarnations = {
        (reservation.id, reservation.incarnation)
        for reservation in records.reservations.values()
    }
    since = since or datetime.datetime.min.replace(tzinfo=datetime.UTC)
    until = min(until or now, now)
    entries = [(one, _phase(one, now)) for one in live]
    for archived in _readable(records.archives, on_unreadable):
        # Not one whose record is about to be deleted.
        key = archived.id, archived.incarnation
        if is_asked_for(archived) and key not in incarnations:
            entries.append((archived, Phase.ENDED))
    past = [
        PastReservation(one, state, changes.slot_hours(one, since, until))
        for one, state in entries
    ]
    return sorted(past, key=lambda p: (p.reservation.start, p.reservation.id))


def _first(reservation: Reservation) -> datetime.datetime:
    """Return its start, or its end if it was ended before."""
    return min(reservation.start, reservation.end or reservation.start)


def _phase(reservation: Reservation, now: datetime.datetime) -> Phase:
    if reservation.has_ended(now):
        return Phase.ENDING
    return Phase.ACTIVE if reservation.has_started(now) else Phase.PLANNED


def _ignore(problem: Problem) -> None:
    """Leave alone what may be no archive; ``read_history`` names it."""


def _readable(
    archives: tuple[FlavorRecord, ...], on_unreadable: OnUnreadable
) -> Iterator[Reservation]:
    for entry in archives:
        try:
            yield _read(entry)
        except errors.ReservationError as exc:
            on_unreadable(exc)


def _read(entry: FlavorRecord) -> Reservation:
    """Parse an archive."""
    archive_id = names.archive_of(entry.flavor.id)
    assert archive_id
    try:
        document = json.loads(entry.description)
        if document[_MARK] != _VERSION:
            raise errors.ReservationError(
                archive_id.reservation,
                f'has an archive {entry.flavor.name} of format '
                f'{document[_MARK]}, but this release only knows format '
                f'{_VERSION}; use the newer release for it',
            )
        reservation = record.parse(
            dataclasses.replace(entry.flavor, id=archive_id.reservation),
            json.dumps(document['record']),
        )
    except (LookupError, TypeError, ValueError) as exc:
        raise errors.ReservationError(
            archive_id.reservation,
            f'has an archive {entry.flavor.name} whose description is broken '
            f'({exc!r}); delete the flavor',
        ) from exc
    return reservation
