# SPDX-License-Identifier: Apache-2.0
"""Adds up stays by host and day, and finds peaks. Does no input or output.

The results are as in the JSON document of a ledger.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
from typing import Annotated

from isolate_aggregates_tools.ledger.stays import Span, Stay
from isolate_aggregates_tools.ledger.times import as_day, as_text

Number = Annotated[int | None, 'Null if unknown.']

DAY = 86_400


@dataclasses.dataclass(frozen=True, slots=True)
class HostSize:
    """The physical size of a host."""

    sockets: Number = None
    cores: Number = None


@dataclasses.dataclass(frozen=True, slots=True)
class HostDay:
    """A day in UTC on which servers ran on a host, or could.

    VCPUs of unknown flavors are not counted.
    """

    host: str
    day: Annotated[str, {'format': 'date'}]
    could: Annotated[
        bool | None,
        'Whether the servers could run there at some time of the day; null if '
        'there is no record, and in the ledger of a project.',
    ]
    servers: Annotated[
        int, 'How many servers ran there at some time of the day.'
    ]
    vcpus: Annotated[int, 'The most VCPUs that they had at one time.']


@dataclasses.dataclass(frozen=True)
class Peak:
    """The most at one time."""

    number: int = 0
    at: Annotated[
        str | None,
        'The first time with this number; null if there was none.',
    ] = None
    unknown: Annotated[
        int,
        'How many at that time have no known size, and are not in the number.',
    ] = 0


@dataclasses.dataclass(frozen=True)
class Peaks:
    """The peaks of a period, of hosts with at least one of the servers."""

    servers: Peak
    vcpus: Peak
    hosts: Peak
    sockets: Peak
    cores: Peak


def host_days(
    stays: Iterable[Stay],
    could: Mapping[str, Sequence[Span]],
    unknown: Sequence[Span],
    since: int,
    until: int,
) -> Iterator[HostDay]:
    """Yield the days on which servers ran on a host, or could.

    :param could: When servers could run on each host.
    :param unknown: The time without a record of this.
    """
    by_host: dict[str, list[Stay]] = {host: [] for host in could}
    for stay in stays:
        by_host.setdefault(stay.host, []).append(stay)
    for host in sorted(by_host):
        yield from _days_of(
            host, by_host[host], could.get(host, ()), unknown, since, until
        )


def _days_of(
    host: str,
    stays: Sequence[Stay],
    could: Sequence[Span],
    unknown: Sequence[Span],
    since: int,
    until: int,
) -> Iterator[HostDay]:
    events = collections.deque(_events(stays, since, until))
    active: dict[str, int] = {}
    cores = 0

    def apply() -> Stay:
        nonlocal cores
        _, step, stay = events.popleft()
        _count(active, stay.server, step)
        cores += (stay.cores or 0) * step
        return stay

    for day in range(since - since % DAY, until, DAY):
        start, end = max(day, since), min(day + DAY, until)
        # What ended as the day began did not run on it.
        while events and events[0][:2] <= (start, -1):
            apply()
        servers, most = set(active), cores
        while events and events[0][0] < end:
            servers.add(apply().server)
            most = max(most, cores)
        open_that_day = any(span.overlaps(start, end) for span in could)
        possible: bool | None = open_that_day
        if not possible and any(s.overlaps(start, end) for s in unknown):
            possible = None
        if servers or open_that_day:
            yield HostDay(host, as_day(day), possible, len(servers), most)


def peaks(
    stays: Iterable[Stay],
    sizes: Mapping[str, HostSize],
    since: int,
    until: int,
) -> Peaks:
    """Return the peaks of a period."""
    events = _events(stays, since, until)
    hosts: collections.Counter[str] = collections.Counter()
    # The amounts of each server and host that are counted.
    amounts: dict[str, dict[str, int | None]] = {
        what: {} for what in ('vcpus', 'sockets', 'cores')
    }
    sums = dict.fromkeys(amounts, 0)
    unknown = dict.fromkeys(amounts, 0)
    servers: collections.Counter[str] = collections.Counter()
    best: dict[str, Peak] = {}

    def count(what: str, name: str, amount: int | None) -> None:
        amounts[what][name] = amount
        sums[what] += amount or 0
        unknown[what] += amount is None

    def discount(what: str, name: str) -> None:
        amount = amounts[what].pop(name)
        sums[what] -= amount or 0
        unknown[what] -= amount is None

    for number, (time, step, stay) in enumerate(events):
        starts = step == 1
        if _count(servers, stay.server, step):
            if starts:
                count('vcpus', stay.server, stay.cores)
            else:
                discount('vcpus', stay.server)
        elif (
            starts
            and stay.cores is not None
            and stay.cores > (amounts['vcpus'][stay.server] or 0)
        ):
            # It may be on two hosts at once, as only one of them is known.
            discount('vcpus', stay.server)
            count('vcpus', stay.server, stay.cores)
        if _count(hosts, stay.host, step):
            size = sizes.get(stay.host, HostSize())
            for what in ('sockets', 'cores'):
                if starts:
                    count(what, stay.host, getattr(size, what))
                else:
                    discount(what, stay.host)
        last = number + 1 == len(events)
        if not last and events[number + 1][0] == time:
            # What ends and what starts at one second is not counted twice.
            continue
        for what, amount in (
            ('servers', len(servers)),
            ('hosts', len(hosts)),
            *sums.items(),
        ):
            before = best.get(what, Peak())
            lacking = unknown.get(what, 0)
            if (amount, lacking) > (before.number, before.unknown):
                best[what] = Peak(amount, as_text(time), lacking)
    return Peaks(
        **{
            field.name: best.get(field.name, Peak())
            for field in dataclasses.fields(Peaks)
        }
    )


def _count(numbers: dict[str, int], what: str, step: int) -> bool:
    """Count something; return whether it is the first, or was the last."""
    number = numbers.get(what, 0) + step
    if number:
        numbers[what] = number
    else:
        del numbers[what]
    return number == max(step, 0)


def _events(
    stays: Iterable[Stay], since: int, until: int
) -> list[tuple[int, int, Stay]]:
    """Return starts and ends in a period; at one second, ends come first.

    A start counts 1, and an end -1.
    """
    events: list[tuple[int, int, Stay]] = []
    for stay in stays:
        start = max(stay.start, since)
        end = until if stay.end is None else min(stay.end, until)
        if start < end:
            events += [(start, 1, stay), (end, -1, stay)]
    events.sort(key=lambda event: event[:2])
    return events
