# SPDX-License-Identifier: Apache-2.0
"""What was reserved and changed, also after the end.

While a reservation exists, its record has its events. When there are many,
they become a page, and the record begins again with the last one. At its end,
before the record is deleted, it is copied into its archive. If somebody
deleted its flavor by hand, the newest revision remains, and is copied as soon
as its slots are freed, too. Pages and archives are the descriptions of more
private flavors, to which no project has access. The ids of these flavors
follow from the record, and Nova creates each id only once. So a run that was
interrupted in between writes nothing twice, and nobody can rewrite what
happened.

Archives and their pages are deleted after a number of days, which the pool has
in its metadata like everything else that all machines must agree on.
"""

from collections.abc import Collection, Iterator, Mapping
import contextlib
import dataclasses
import datetime
import itertools
import json
import logging
from typing import Any

from oslo_utils import uuidutils

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_reservations import errors, events, names, record
from isolate_aggregates_reservations.parts import tried
from isolate_aggregates_reservations.record import (
    HISTORY_MARK,
    HISTORY_VERSION,
    Records,
)
from isolate_aggregates_reservations.reservation import Event, Reservation
from isolate_aggregates_reservations.state import ObservedState, pool_number
from isolate_aggregates_reservations.status import Phase, phase_of
from isolate_aggregates_reservations.store import (
    OnUnreadable,
    ReservationStore,
    Unreadable,
    log_unreadable,
)
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.compute.records import FlavorRecord

LOG = logging.getLogger(__name__)

# More than a year, so that last year's bill can be checked.
DEFAULT_DAYS = 400
_MOST_DAYS = 36_500

# So many archives at most are deleted in one round.
_DELETED = 100


@dataclasses.dataclass(frozen=True)
class PastReservation:
    """A reservation with all its events.

    :param time: The time of its slots in the period.
    """

    reservation: Reservation
    state: Phase
    time: events.SlotTime


# The end.


def archive(
    store: ReservationStore, reservation: Reservation, now: datetime.datetime
) -> None:
    """Keep the record of a reservation that has ended and is to be deleted.

    One that was refused was never reserved, and is not kept.
    """
    if not reservation.amount:
        return
    closed = _closed(reservation, now)
    document = {
        HISTORY_MARK: HISTORY_VERSION,
        'record': json.loads(record.describe(closed)),
    }
    store.compute.create_history(
        _archive_id(closed), closed, json.dumps(document)
    )


def _closed(reservation: Reservation, at: datetime.datetime) -> Reservation:
    return events.recorded(
        dataclasses.replace(reservation, open={}, down=()), at
    )


class Remains:
    """What is left of reservations whose flavor is gone.

    :param now: The time at which those without slots are over.
    """

    def __init__(
        self, store: ReservationStore, records: Records, now: datetime.datetime
    ) -> None:
        self._store = store
        self._records = records
        self._now = now

    def archive(self, revision: names.Revision) -> None:
        """Keep a reservation from its last revision.

        One that ended as it should was kept before its flavor was deleted, so
        an archive of it stays the only one.

        :raises ReservationError: if the revision cannot be read.
        """
        if revision in _newest(self._records) and not any(
            names.is_archive_of(
                flavor_id, revision.reservation, revision.incarnation
            )
            for flavor_id in self._archives
        ):
            left = _over(_remaining(self._records, revision), self._now)
            archive(self._store, left, self._now)

    @lazy_property
    def _archives(self) -> list[str]:
        entries = self._store.compute.records(with_archives=True)
        return [entry.flavor.id for entry in entries]


def _newest(records: Records) -> list[names.Revision]:
    """Return the newest revision of each reservation whose flavor is gone."""
    by_incarnation: dict[tuple[str, str], names.Revision] = {}
    for revision in sorted(records.strays, key=lambda one: one.number):
        key = revision.reservation, revision.incarnation
        by_incarnation[key] = revision
    return list(by_incarnation.values())


def _remaining(records: Records, revision: names.Revision) -> Reservation:
    """Return a reservation whose flavor is gone.

    It ended when a later one with its id took over its slots.

    :raises ReservationError: if the revision cannot be read.
    """
    entry = records.strays[revision]
    left = dataclasses.replace(
        record.parse(
            dataclasses.replace(entry.flavor, id=revision.reservation),
            entry.description,
            revision.number,
        ),
        pending=None,
        asked_by='',
    )
    successor = records.reservations.get(revision.reservation)
    if successor and successor.events:
        return _over(left, successor.events[0].at)
    return left


def _over(reservation: Reservation, at: datetime.datetime) -> Reservation:
    """Return a reservation that was over at a time, or before."""
    end = min(at, reservation.end or at)
    return _closed(dataclasses.replace(reservation, end=end), end)


def _archive_id(reservation: Reservation) -> str:
    assert reservation.end
    return names.archive(
        reservation.id, reservation.incarnation, reservation.end
    )


def days_kept(pool: Aggregate | None) -> int:
    """Return for how many days an archive is kept.

    :raises PoolError: if the pool has no valid number of days.
    """
    days = pool_number(
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
        by_id = {_archive_id(one): one for one in expired[:_DELETED]}

        def delete(archive_id: str) -> None:
            # The archive knows how many pages there are, so it goes last.
            for page in _pages(by_id[archive_id]):
                store.compute.delete_flavor(page)
            store.compute.delete_flavor(archive_id)

        for archive_id, error in tried(by_id, delete).items():
            LOG.error('Old history %s was not deleted: %s', archive_id, error)
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
    reservation: str | None = None,
    on_unreadable: OnUnreadable = log_unreadable,
) -> list[PastReservation]:
    """Return the reservations of a period, sorted by start.

    :param since: The start of the period; None for no limit.
    :param until: The end of the period; None for no limit. Hours count until
        now at most.
    :param reservation: The id of one, or the name, which several may have had.
    """
    if since and until and since >= until:
        raise tools_errors.InvalidRequest(
            f'The period from {since.isoformat()} until {until.isoformat()} '
            'is empty.'
        )
    is_id = uuidutils.is_uuid_like(reservation)
    wanted = reservation
    if reservation and is_id:
        wanted = names.reservation_id(reservation)

    def is_asked_for(one: Reservation) -> bool:
        last = _last(one)
        return (
            wanted in (None, one.id if is_id else one.name)
            and project in (None, one.project)
            and one.amount > 0
            and (until is None or _first(one) < until)
            and (since is None or last is None or last > since)
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
    entries = [(one, phase_of(one, now)) for one in live]
    for archived in _readable(records.archives, on_unreadable):
        # Not one whose record is about to be deleted, and each once.
        key = archived.id, archived.incarnation
        if is_asked_for(archived) and key not in incarnations:
            entries.append((archived, Phase.ENDED))
        incarnations.add(key)
    for left in _without_record(records, incarnations, now, on_unreadable):
        if is_asked_for(left):
            state = phase_of(left, now)
            entries.append(
                (left, Phase.ENDED if state is Phase.ENDING else state)
            )
    flavors = {entry.flavor.id: entry for entry in records.archives}
    past = []
    for one, state in entries:
        try:
            whole = _with_pages(one, flavors)
        except errors.ReservationError as exc:
            on_unreadable(exc)
            continue
        time = events.slot_time(whole, since, until)
        past.append(PastReservation(whole, state, time))
    return sorted(past, key=lambda p: (p.reservation.start, p.reservation.id))


def _without_record(
    records: Records,
    told: Collection[tuple[str, str]],
    now: datetime.datetime,
    on_unreadable: OnUnreadable,
) -> Iterator[Reservation]:
    """Yield the reservations of which only a revision is left.

    :param told: The ids and incarnations of those to leave out.
    """
    for revision in _newest(records):
        if (revision.reservation, revision.incarnation) in told:
            continue
        try:
            left = _remaining(records, revision)
        except errors.ReservationError as exc:
            on_unreadable(exc)
            continue
        # When its flavor was deleted is not known, but its slots are there.
        yield _over(left, now) if left.has_ended(now) else left


def _first(reservation: Reservation) -> datetime.datetime:
    """Return its start, or its end if it was ended before."""
    return min(reservation.start, reservation.end or reservation.start)


def _last(reservation: Reservation) -> datetime.datetime | None:
    """Return its end, or when its last slot was closed if that was later.

    :returns: None if neither is over.
    """
    events = reservation.events
    if reservation.end is None or (events and events[-1].open):
        return None
    closed = (
        after.at for before, after in itertools.pairwise(events) if before.open
    )
    return max((reservation.end, *closed))


def _ignore(problem: Unreadable) -> None:
    """Leave alone what may be no archive; ``read_history`` names it."""


def _readable(
    archives: tuple[FlavorRecord, ...], on_unreadable: OnUnreadable
) -> Iterator[Reservation]:
    for entry in archives:
        if names.page_of(entry.flavor.id):
            continue
        try:
            yield _read(entry)
        except errors.ReservationError as exc:
            on_unreadable(exc)


def _read(entry: FlavorRecord) -> Reservation:
    reservation = names.archive_of(entry.flavor.id)
    assert reservation
    with _reading(reservation, entry) as document:
        return record.parse(
            dataclasses.replace(entry.flavor, id=reservation),
            json.dumps(document['record']),
        )


def _pages(reservation: Reservation) -> list[str]:
    return [
        names.page(reservation.id, reservation.incarnation, number)
        for number in range(reservation.pages)
    ]


def _with_pages(
    reservation: Reservation, flavors: Mapping[str, FlavorRecord]
) -> Reservation:
    """Return a reservation with the events of all its pages.

    :raises ReservationError: if a page is gone or cannot be read.
    """
    past: list[Event] = []
    for page in _pages(reservation):
        if page not in flavors:
            raise errors.ReservationError(
                reservation.id,
                'has lost a part of its history: flavor '
                f'{names.flavor(page)} is gone; restore it from a '
                'backup of the database of Nova',
            )
        with _reading(reservation.id, flavors[page]) as document:
            past += record.parse_events(document['events'])
    return dataclasses.replace(
        reservation, events=(*past, *reservation.events)
    )


@contextlib.contextmanager
def _reading(reservation: str, entry: FlavorRecord) -> Iterator[Any]:
    """Provide the document in a flavor.

    :raises ReservationError: if it cannot be read.
    """
    try:
        document = record.unpacked(entry.description)
        if document[HISTORY_MARK] != HISTORY_VERSION:
            raise errors.ReservationError(
                reservation,
                f'has an archive {entry.flavor.name} of format '
                f'{document[HISTORY_MARK]}, but this release only knows '
                f'format {HISTORY_VERSION}; use the newer release for it',
            )
        yield document
    except (LookupError, TypeError, ValueError, AttributeError) as exc:
        name = entry.flavor.name
        delete = shell.command(shell.Kind.FLAVOR_DELETE, names=[name])
        raise errors.ReservationError(
            reservation,
            f'has an archive {name} whose description is broken ({exc!r}); '
            f'run {delete}',
        ) from exc
