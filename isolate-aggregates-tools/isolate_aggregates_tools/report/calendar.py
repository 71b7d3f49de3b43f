# SPDX-License-Identifier: Apache-2.0
"""Encodes the capacity for reservations for the script of the page."""

from collections.abc import Mapping, Sequence
import datetime
from typing import Any, Protocol


class Period(Protocol):
    """A period in which the free capacity of a host does not change."""

    @property
    def start(self) -> datetime.datetime:
        """The start of the period."""

    @property
    def end(self) -> datetime.datetime:
        """The end of the period."""

    @property
    def slots(self) -> int:
        """The number of reserved slots."""

    @property
    def free(self) -> Mapping[str, int]:
        """The free capacity, by resource class."""


class HostRoom(Protocol):
    """The free capacity of a host over time."""

    @property
    def host(self) -> str:
        """The name of the host."""

    @property
    def obstacle(self) -> str | None:
        """Why the host cannot take slots, as a predicate; None if it can."""

    @property
    def capacity(self) -> Mapping[str, int]:
        """The total capacity for reservations, by resource class."""

    @property
    def periods(self) -> Sequence[Period]:
        """The periods, in order."""


class Calendar(Protocol):
    """The capacity of all hosts for reservations over time."""

    @property
    def start(self) -> datetime.datetime:
        """The start, in UTC."""

    @property
    def end(self) -> datetime.datetime:
        """The end, in UTC."""

    @property
    def hosts(self) -> Sequence[HostRoom]:
        """The hosts, each with its periods."""


def encode(calendar: Calendar) -> dict[str, Any]:
    """Encode the calendar, with every time and name only once.

    A time is a pair of its position in the calendar, from 0 to 1, and its
    text. A period is a list of the indexes of start and end, the number of
    slots, the relative usage of the scarcest resource, and the free amount of
    each resource class, or None if the host has no such class.
    """
    length = calendar.end - calendar.start
    periods = [period for host in calendar.hosts for period in host.periods]
    times = sorted({time for p in periods for time in (p.start, p.end)})
    numbers = {time: number for number, time in enumerate(times)}
    classes = sorted({name for period in periods for name in period.free})
    return {
        'times': [
            [round((time - calendar.start) / length, 5), time_text(time)]
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


def axis_times(calendar: Calendar) -> list[datetime.datetime]:
    """Return the times for the labels of the time axis."""
    length = calendar.end - calendar.start
    return [calendar.start + length * part / 4 for part in range(5)]


def time_text(time: datetime.datetime) -> str:
    """Format a time for the page."""
    return time.astimezone(datetime.UTC).strftime('%d %b %Y, %H:%M')


def _taken(capacity: Mapping[str, int], free: Mapping[str, int]) -> float:
    shares = [
        free.get(name, 0) / amount
        for name, amount in capacity.items()
        if amount > 0
    ]
    return round(1 - min(shares), 3) if shares else 1
