# SPDX-License-Identifier: Apache-2.0
"""What a reservation was from when on, as part of its record.

Each record is written in one place, which compares it with the last change
here. So no command can forget to add one, and a repeated write adds none.
"""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import datetime
import itertools
import json
from typing import Any

from isolate_aggregates import text
from isolate_aggregates.reservations.reservation import (
    Change,
    Reservation,
)

# A description has at most 65,535 characters, and has more than the changes.
_MOST_TEXT = 30_000
_MOST_RESIZINGS = 29_000


def recorded(reservation: Reservation, now: datetime.datetime) -> Reservation:
    """Return a reservation with its changes up to now.

    Nothing is added while its slots are still pending, or if it is the same as
    after its last change.
    """
    settled = reservation
    if reservation.pending is None:
        settled = dataclasses.replace(reservation, asked_by='')
    if not reservation.amount:
        return settled
    before = reservation.changes
    last = before[-1] if before else None
    change = Change(
        at=now.astimezone(datetime.UTC),
        by='' if reservation.pending else reservation.asked_by,
        end=reservation.end,
        amount=reservation.amount,
        leaving=reservation.leaving,
        has_started=reservation.has_access
        or (last is not None and last.has_started),
    )
    if last == dataclasses.replace(
        change, at=last.at if last else change.at, by=last.by if last else ''
    ):
        return settled
    return dataclasses.replace(settled, changes=_shortened((*before, change)))


def _shortened(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Drop the oldest changes if there are too many for a description.

    Those that do not change the number of slots go first, so that the hours of
    slots stay exact.
    """
    while len(json.dumps(documents(changes))) > _MOST_TEXT:
        number = next(
            (
                number
                for number in range(1, len(changes) - 1)
                if changes[number].amount == changes[number - 1].amount
            ),
            1,
        )
        changes = (*changes[:number], *changes[number + 1 :])
    return changes


def is_full(reservation: Reservation) -> bool:
    """Return whether its record has no room for one more resizing.

    Slot hours would be wrong if one had to be dropped.
    """
    first = reservation.changes[:1]
    resizings = [
        after
        for before, after in itertools.pairwise(reservation.changes)
        if before.amount != after.amount
    ]
    return len(json.dumps(documents((*first, *resizings)))) > _MOST_RESIZINGS


def slot_hours(
    reservation: Reservation,
    since: datetime.datetime,
    until: datetime.datetime,
) -> float:
    """Return the hours for which its slots were reserved, added up.

    Only those within a period count. Slots that it is leaving do not count.
    """
    start = max(reservation.start, since)
    end = until if reservation.end is None else min(reservation.end, until)
    amounts = [
        (change.at, change.amount) for change in reservation.changes
    ] or [(start, reservation.amount)]
    # The first amount counts from the start, even if it was recorded later.
    begins = [start, *(max(start, at) for at, _ in amounts[1:])]
    ends = [*begins[1:], end]
    return sum(
        amount
        * max(min(finish, end) - begin, datetime.timedelta())
        / datetime.timedelta(hours=1)
        for (_, amount), begin, finish in zip(
            amounts, begins, ends, strict=True
        )
    )


def sentences(changes: Iterable[Change]) -> Iterator[tuple[Change, str]]:
    """Yield each change with what it changed, in words."""
    before = None
    for change in changes:
        yield change, ', '.join(_differences(before, change))
        before = change


def _differences(before: Change | None, after: Change) -> Iterator[str]:
    if before is None:
        yield f'created with {text.counted(after.amount, "slot")}'
    else:
        if before.amount != after.amount:
            yield f'resized from {before.amount} to {after.amount} slots'
        if before.end != after.end:
            yield _new_end(before.end, after)
        if added := {*after.leaving} - {*before.leaving}:
            yield f'moved from {text.named("host", added)}'
        if gone := {*before.leaving} - {*after.leaving}:
            yield f'no longer leaving {text.named("host", gone)}'
    if after.has_started and not (before and before.has_started):
        yield 'started'


def _new_end(before: datetime.datetime | None, after: Change) -> str:
    end = after.end
    if end is None:
        return 'extended without an end'
    if end <= after.at:
        return 'ended'
    is_later = before is not None and end > before
    return f'{"extended" if is_later else "shortened"} to {_shown(end)}'


def _shown(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).isoformat(timespec='seconds')


# In the description of a flavor, a change has only what differs from the one
# before.


def documents(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """Return changes as JSON documents."""
    entries = []
    before: dict[str, Any] = {}
    for change in changes:
        values = {
            'end': change.end and _text(change.end),
            'amount': change.amount,
            'leaving': list(change.leaving),
            'started': change.has_started,
        }
        entry: dict[str, Any] = {'at': _text(change.at)}
        if change.by:
            entry['by'] = change.by
        entry |= {
            key: value
            for key, value in values.items()
            if key not in before or before[key] != value
        }
        entries.append(entry)
        before = values
    return entries


def parse(entries: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
    """Parse the documents of changes."""
    changes = []
    values: dict[str, Any] = {}
    for entry in entries:
        values |= entry
        changes.append(
            Change(
                at=_time(entry['at']),
                by=str(entry.get('by', '')),
                end=values['end'] and _time(values['end']),
                amount=int(values['amount']),
                leaving=tuple(map(str, values['leaving'])),
                has_started=values['started'] is True,
            )
        )
    return tuple(changes)


def _text(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).isoformat()


def _time(value: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(value).astimezone(datetime.UTC)
