# SPDX-License-Identifier: Apache-2.0
"""Exports reservations as an iCalendar file.

See `RFC 5545 <https://www.rfc-editor.org/rfc/rfc5545>`_.
"""

from collections.abc import Iterable
import datetime

import icalendar

from isolate_aggregates import text
from isolate_aggregates.reservations.state import Phase, Status

_PRODUCT = '-//isolate-aggregates//reservations//EN'
# In each file.
MARK = f'PRODID:{_PRODUCT}'


def calendar(
    statuses: Iterable[Status],
    now: datetime.datetime,
    until: datetime.datetime,
) -> str:
    """Return a calendar with an event for each reservation.

    :param until: The end of events for reservations without an end, as an
        event must have one.
    """
    document = icalendar.Calendar()
    document.add('prodid', _PRODUCT)
    document.add('version', '2.0')
    document.add('method', 'PUBLISH')
    for status in statuses:
        document.add_component(_event(status, now, until))
    content: bytes = document.to_ical()
    return content.decode()


def _event(
    status: Status, now: datetime.datetime, until: datetime.datetime
) -> icalendar.Event:
    reservation = status.reservation
    project = text.escaped(reservation.project)
    slots = text.counted(reservation.settled.amount, 'slot')
    event = icalendar.Event()
    # UID stays the same, so that a calendar program updates the event when it
    # reads the file again; SEQUENCE tells it which version is newer.
    event.add('uid', reservation.id)
    event.add('sequence', reservation.revision)
    event.add('dtstamp', now)
    event.add('dtstart', reservation.start)
    event.add('dtend', reservation.end or max(until, reservation.start))
    name = text.escaped(reservation.labels.name)
    event.add(
        'summary', f'{name and name + ": "}{slots} for project {project}'
    )
    event.add('description', '\n'.join(_lines(status, project)))
    event.add('categories', [project])
    event.add('status', _STATUS.get(status.state, 'CONFIRMED'))
    if status.hosts:
        event.add('location', ', '.join(map(text.escaped, status.hosts)))
    return event


_STATUS = {Phase.ASKED: 'TENTATIVE'}


def _lines(status: Status, project: str) -> Iterable[str]:
    reservation = status.reservation
    yield f'Project: {project}'
    if reservation.labels.note:
        yield f'Note: {text.escaped(reservation.labels.note)}'
    yield f'Flavor: {reservation.flavor.name}'
    yield f'State: {status.state.value}'
    for name, slots in sorted(status.hosts.items()):
        yield f'{text.escaped(name)}: {text.counted(slots.total, "slot")}'
    if reservation.end is None:
        yield 'It never ends.'
    for problem in status.problems:
        yield f'Problem: {text.escaped(problem)}'
