# SPDX-License-Identifier: Apache-2.0
"""How much of a reservation was used: the hours of its servers.

The hours are added up for days, so that those of a month can still be told
when Nova has forgotten the servers.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import datetime
import itertools
import math
from typing import Any

from isolate_aggregates.reservations.compute import ServerTime

_DAY = datetime.timedelta(days=1)
_HOUR = datetime.timedelta(hours=1)

# So many sums fit into a description.
_MOST_SUMS = 500


@dataclasses.dataclass(frozen=True)
class Usage:
    """The servers of a reservation.

    :param servers: How many there were.
    :param most: The most at the same time.
    :param start: The first time that counts.
    :param end: The last time that counts.
    :param days: The number of days, in UTC, of each sum.
    :param hours: The hours of all servers, in each of these periods.
    """

    servers: int
    most: int
    start: datetime.datetime
    end: datetime.datetime
    days: int
    hours: tuple[float, ...]

    @property
    def document(self) -> dict[str, Any]:
        """The usage as a JSON document."""
        return {
            'servers': self.servers,
            'most': self.most,
            'start': self.start.isoformat(),
            'end': self.end.isoformat(),
            'days': self.days,
            'hours': [round(hours, 4) for hours in self.hours],
        }

    def within(
        self, since: datetime.datetime, until: datetime.datetime
    ) -> float:
        """Return the hours of servers in a period.

        Where it has only a part of a sum, it gets that part.
        """
        first = _midnight(self.start)
        total = 0.0
        for number, hours in enumerate(self.hours):
            begin = first + number * self.days * _DAY
            finish = min(begin + self.days * _DAY, self.end)
            begin = max(begin, self.start)
            shared = min(finish, until) - max(begin, since)
            if shared > datetime.timedelta():
                total += hours * (shared / (finish - begin))
        return total


def usage_of(
    times: Iterable[ServerTime],
    start: datetime.datetime,
    end: datetime.datetime,
) -> Usage:
    """Add up the hours of servers between two times."""
    first = _midnight(start)
    days = max(1, math.ceil((end - first) / _DAY / _MOST_SUMS))
    step = days * _DAY
    hours = [0.0] * max(1, math.ceil((end - first) / step))
    steps: list[tuple[datetime.datetime, int]] = []
    for time in times:
        begin = max(time.start, start)
        finish = min(time.end or end, end)
        if begin >= finish:
            continue
        # At the same time, ends come before starts.
        steps += [(begin, 1), (finish, -1)]
        while begin < finish:
            number = (begin - first) // step
            until = min(finish, first + (number + 1) * step)
            hours[number] += (until - begin) / _HOUR
            begin = until
    at_once = itertools.accumulate(change for _, change in sorted(steps))
    return Usage(
        len(steps) // 2,
        max(at_once, default=0),
        start,
        end,
        days,
        tuple(hours),
    )


def parse(document: Mapping[str, Any]) -> Usage:
    """Parse a JSON document."""
    return Usage(
        int(document['servers']),
        int(document['most']),
        datetime.datetime.fromisoformat(document['start']),
        datetime.datetime.fromisoformat(document['end']),
        int(document['days']),
        tuple(map(float, document['hours'])),
    )


def _midnight(time: datetime.datetime) -> datetime.datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0)
