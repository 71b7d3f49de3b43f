# SPDX-License-Identifier: Apache-2.0
"""What happened to a reservation: what was sold, open and usable from when on.

Events are appended to its record and never rewritten. Each record is written
in one place, which compares it with the last event here. So no command can
forget to add one, and a repeated write adds none. When a record has many
events, they become a page of its history; see ``history``.
"""

from collections.abc import Iterable, Iterator
import dataclasses
import datetime
import itertools

from isolate_aggregates import text
from isolate_aggregates_reservations.reservation import Event, Reservation

_NO_TIME = datetime.timedelta()


def recorded(reservation: Reservation, now: datetime.datetime) -> Reservation:
    """Return a reservation with its events up to now.

    Nothing is added while its slots are still pending, or if it is the same as
    after its last event.
    """
    settled = reservation
    if reservation.pending is None:
        settled = dataclasses.replace(reservation, asked_by='')
    if not reservation.amount:
        return settled
    before = reservation.events
    now = now.astimezone(datetime.UTC)
    event = Event(
        # Clocks differ, and time must not run backwards.
        at=max(now, before[-1].at) if before else now,
        by='' if reservation.pending else reservation.asked_by,
        end=reservation.end,
        amount=reservation.amount,
        leaving=reservation.leaving,
        open=reservation.open,
        down=reservation.down,
        boot_until=reservation.boot_until if reservation.warn_before else None,
    )
    if before and before[-1] == dataclasses.replace(
        event, at=before[-1].at, by=before[-1].by
    ):
        return settled
    return dataclasses.replace(settled, events=(*before, event))


@dataclasses.dataclass(frozen=True)
class SlotTime:
    """The time of slots, added up over all of them.

    :param sold: That for which they were reserved.
    :param open: That in which servers could be booted, after a late end too;
        not after its warning has begun.
    :param usable: The part of what was sold that was open on hosts that were
        up.
    """

    sold: datetime.timedelta = _NO_TIME
    open: datetime.timedelta = _NO_TIME
    usable: datetime.timedelta = _NO_TIME


def slot_time(
    reservation: Reservation,
    since: datetime.datetime,
    until: datetime.datetime,
) -> SlotTime:
    """Return the time of its slots within a period.

    Slots of hosts that it is leaving do not count.
    """
    start, end = reservation.start, reservation.end or until
    events = list(reversed(reservation.events))
    if events:
        # Nothing was sold before it was asked for, whatever its start is.
        start = max(start, events[-1].at)
    edges = {since, until, start, end, *(event.at for event in events)}
    edges |= {event.boot_until for event in events if event.boot_until}
    times = [time for time in sorted(edges) if since <= time <= until]
    sold = is_open = usable = _NO_TIME
    for begin, finish in itertools.pairwise(times):
        while len(events) > 1 and events[-2].at <= begin:
            events.pop()
        amount = events[-1].amount if events else reservation.amount
        of_sale = amount if start <= begin < end else 0
        by_host = events[-1].open if events and events[-1].at <= begin else {}
        last_call = events[-1].boot_until if events else None
        up = sum(n for h, n in by_host.items() if h not in events[-1].down)
        sold += of_sale * (finish - begin)
        if last_call is None or begin < last_call:
            is_open += sum(by_host.values()) * (finish - begin)
        usable += min(of_sale, up) * (finish - begin)
    return SlotTime(sold, is_open, usable)


def sentences(events: Iterable[Event]) -> Iterator[tuple[Event, str]]:
    before = None
    for event in events:
        yield event, ', '.join(_differences(before, event))
        before = event


def _differences(before: Event | None, after: Event) -> Iterator[str]:
    if before is None:
        yield f'created with {text.counted(after.amount, "slot")}'
        before = dataclasses.replace(
            after, leaving=(), open={}, down=(), by=''
        )
    if before.amount != after.amount:
        yield f'resized from {before.amount} to {after.amount} slots'
    if before.end != after.end:
        yield _new_end(before.end, after)
    elif before.boot_until != after.boot_until:
        until = after.boot_until
        yield f'bootable until {_shown(until) if until else "the end"}'
    if added := {*after.leaving} - {*before.leaving}:
        yield f'moved from {text.named("host", added)}'
    if gone := {*before.leaving} - {*after.leaving}:
        yield f'no longer leaving {text.named("host", gone)}'
    for verb, less, more in (
        ('closed', after.open, before.open),
        ('opened', before.open, after.open),
    ):
        numbers = [
            f'{number} on {host}'
            for host, most in sorted(more.items())
            if (number := most - less.get(host, 0)) > 0
        ]
        if numbers:
            yield f'{verb} slots: {text.listed(numbers)}'
    if down := {*after.down} - {*before.down}:
        yield f'{text.named("host", down)} down'
    if up := ({*before.down} - {*after.down}) & after.open.keys():
        yield f'{text.named("host", up)} up'


def _new_end(before: datetime.datetime | None, after: Event) -> str:
    end = after.end
    if end is None:
        return 'extended without an end'
    if end <= after.at:
        return 'ended'
    is_later = before is not None and end > before
    return f'{"extended" if is_later else "shortened"} to {_shown(end)}'


def _shown(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).isoformat(timespec='seconds')
