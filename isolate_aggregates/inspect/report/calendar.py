# SPDX-License-Identifier: Apache-2.0
"""The room that hosts have for reservations, as the page's script reads it."""

from collections.abc import Mapping, Sequence
import dataclasses
import datetime
from typing import Any, Protocol


class Period(Protocol):
    """A time in which the room on a host stays the same."""

    @property
    def start(self) -> datetime.datetime:
        """From when on."""

    @property
    def end(self) -> datetime.datetime:
        """Until when."""

    @property
    def slots(self) -> int:
        """How many slots of reservations count then."""

    @property
    def free(self) -> Mapping[str, int]:
        """What is left for others, by resource class."""


class HostRoom(Protocol):
    """The room on a host over some time."""

    @property
    def host(self) -> str:
        """The name of the host."""

    @property
    def obstacle(self) -> str | None:
        """Why it takes no slots, for a sentence; None if it does."""

    @property
    def capacity(self) -> Mapping[str, int]:
        """What it has for reservations in all, by resource class."""

    @property
    def periods(self) -> Sequence[Period]:
        """Its room, in order."""


@dataclasses.dataclass(frozen=True)
class Calendar:
    """The room on all hosts for reservations over some time.

    :param start: From when on, in UTC.
    :param end: Until when, in UTC.
    """

    start: datetime.datetime
    end: datetime.datetime
    hosts: Sequence[HostRoom]


def picture(calendar: Calendar) -> dict[str, Any]:
    """Return the calendar as a document, every time and every name once.

    A period is the numbers of the times at which it begins and ends, its
    slots, how much is taken of the resource that has the least left, and what
    is free of each class; None where the host has none of it. Each time comes
    with the share of the whole time that is over by then.
    """
    length = calendar.end - calendar.start
    periods = [period for host in calendar.hosts for period in host.periods]
    times = sorted({time for p in periods for time in (p.start, p.end)})
    numbers = {time: number for number, time in enumerate(times)}
    classes = sorted({name for period in periods for name in period.free})
    return {
        'times': [
            [round((time - calendar.start) / length, 5), shown(time)]
            for time in times
        ],
        'classes': classes,
        'hosts': [
            {
                'name': host.host,
                'obstacle': host.obstacle,
                'periods': [
                    [
                        numbers[period.start],
                        numbers[period.end],
                        period.slots,
                        _taken(host.capacity, period.free),
                        [period.free.get(name) for name in classes],
                    ]
                    for period in host.periods
                ],
            }
            for host in calendar.hosts
        ],
    }


def marks(calendar: Calendar) -> list[datetime.datetime]:
    """Return the times to write below the picture: both ends, and between."""
    length = calendar.end - calendar.start
    return [calendar.start + length * part / 4 for part in range(5)]


def shown(time: datetime.datetime) -> str:
    """Return a time as the page shows it."""
    return time.astimezone(datetime.UTC).strftime('%d %b %Y, %H:%M')


def _taken(capacity: Mapping[str, int], free: Mapping[str, int]) -> float:
    shares = [
        free.get(name, 0) / amount
        for name, amount in capacity.items()
        if amount > 0
    ]
    return round(1 - min(shares), 3) if shares else 1
