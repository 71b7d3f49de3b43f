# SPDX-License-Identifier: Apache-2.0
"""Computes the capacity of hosts for slots over time.

At every moment, all slots of all reservations on a host, used or not, and what
ordinary servers use must fit on it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime
import itertools
import math


@dataclasses.dataclass(frozen=True)
class Claim:
    """Slots that a reservation has on a host.

    :param start: From when on.
    :param end: Until when; None for ever.
    :param needs: What one slot needs, by resource class.
    :param slots: How many slots.
    """

    start: datetime.datetime
    end: datetime.datetime | None
    needs: Mapping[str, int]
    slots: int


@dataclasses.dataclass(frozen=True)
class Demand:
    """What a reservation needs.

    :param start: From when on.
    :param end: Until when; None for ever.
    :param needs: What one slot needs, by resource class.
    :param amount: How many slots.
    :param affinity: True for all on one host, False for no two on one host,
        None if it does not matter.
    :param cleaning_time: For how long after the end it counts as well.
    """

    start: datetime.datetime
    end: datetime.datetime | None
    needs: Mapping[str, int]
    amount: int
    affinity: bool | None = None
    cleaning_time: datetime.timedelta = datetime.timedelta()

    @property
    def counted_until(self) -> datetime.datetime | None:
        """Until when its slots count; None for ever."""
        return self.end and later(self.end, self.cleaning_time)


@dataclasses.dataclass(frozen=True)
class HostCapacity:
    """A host as far as it matters to one reservation.

    :param host: Its name.
    :param capacity: What its resource provider can give out in all, by
        resource class.
    :param ordinary: What servers without a reservation use of that, by
        resource class.
    :param below: What each provider below that has for reservations, by
        resource class.
    :param claims: The slots of all other reservations.
    :param held: How many slots of this reservation it has.
    :param used: How many of them have a server.
    :param obstacle: Why it takes no slots; None if it does. It then keeps
        those it has, unless they are moved.
    """

    host: str
    capacity: Mapping[str, int] = dataclasses.field(default_factory=dict)
    ordinary: Mapping[str, int] = dataclasses.field(default_factory=dict)
    below: tuple[Mapping[str, int], ...] = ()
    claims: tuple[Claim, ...] = ()
    held: int = 0
    used: int = 0
    obstacle: str | None = None


@dataclasses.dataclass(frozen=True)
class Period:
    """A time in which the room on a host stays the same.

    :param start: From when on.
    :param end: Until when.
    :param slots: How many slots of reservations count then.
    :param free: What is left for others, by resource class.
    """

    start: datetime.datetime
    end: datetime.datetime
    slots: int
    free: Mapping[str, int]


def later(
    time: datetime.datetime, by: datetime.timedelta
) -> datetime.datetime:
    """Return a later time, or the last one there is."""
    try:
        return time + by
    except OverflowError:
        return datetime.datetime.max.replace(tzinfo=time.tzinfo)


def capacity(host: HostCapacity) -> dict[str, int]:
    """Return what a host has for reservations in all, by resource class."""
    return {
        name: max(0, sum(_shares(host, name)))
        for name in sorted({*host.capacity}.union(*host.below))
    }


def free_slots(host: HostCapacity, demand: Demand) -> int:
    """Return how many slots of a demand fit on a host, all of its time long.

    Slots of the demand that the host already has do not count.
    """
    claims = [claim for claim in host.claims if _overlap(claim, demand)]
    moments = _moments(claims, demand.start)
    found = []
    for resource_class, need in demand.needs.items():
        if need > 0:
            shares = _shares(host, resource_class)
            found += [
                max(0, _left(shares, taken, need)) // need
                for taken in _taken(claims, moments, resource_class)
            ]
    return min(found, default=0)


def periods(
    host: HostCapacity, start: datetime.datetime, end: datetime.datetime
) -> list[Period]:
    """Return the room on a host over some time, in order."""
    changes = {
        time
        for claim in host.claims
        for time in (claim.start, claim.end)
        if time is not None and start < time < end
    }
    times = [start, *sorted(changes), end]
    whole = capacity(host)
    found: list[Period] = []
    for since, until in itertools.pairwise(times):
        claims = [claim for claim in host.claims if _includes(claim, since)]
        slots = sum(claim.slots for claim in claims)
        free = {}
        for name, amount in whole.items():
            taken = sum(c.slots * c.needs.get(name, 0) for c in claims)
            free[name] = max(0, amount - taken)
        if found and (found[-1].slots, found[-1].free) == (slots, free):
            since = found.pop().start
        found.append(Period(since, until, slots, free))
    return found


def shortage(host: HostCapacity, now: datetime.datetime) -> str | None:
    """Return what a host has too little of for the slots it has.

    :returns: What is wrong, for a sentence about the host; None if nothing is.
    """
    moments = _moments(host.claims, now)
    classes = sorted({name for claim in host.claims for name in claim.needs})
    for resource_class in classes:
        shares = _shares(host, resource_class)
        for taken in _taken(host.claims, moments, resource_class):
            left = _left(shares, taken)
            if left < 0:
                need = sum(size * number for size, number in taken)
                return (
                    f'has room for {need + left} of the {need} '
                    f'{resource_class} that the slots there need'
                )
    return None


def _moments(
    claims: Iterable[Claim], first: datetime.datetime
) -> set[datetime.datetime]:
    """Return when most is in use, which only grows when something starts."""
    return {first, *(max(claim.start, first) for claim in claims)}


def _taken(
    claims: Sequence[Claim],
    moments: Iterable[datetime.datetime],
    resource_class: str,
) -> Iterator[list[tuple[int, int]]]:
    """Yield for each moment what slots need, and how many such there are."""
    for moment in moments:
        yield [
            (claim.needs[resource_class], claim.slots)
            for claim in claims
            if claim.needs.get(resource_class) and _includes(claim, moment)
        ]


def _shares(host: HostCapacity, resource_class: str) -> list[int]:
    """Return what each provider of a host has for reservations."""
    own = host.capacity.get(resource_class, 0)
    return [
        own - host.ordinary.get(resource_class, 0),
        *(has[resource_class] for has in host.below if resource_class in has),
    ]


def _left(
    shares: Sequence[int], taken: Iterable[tuple[int, int]], *sizes: int
) -> int:
    """Return how much is left for slots of some sizes, besides others."""
    every = {*sizes, *(size for size, _ in taken)}
    used = sum(size * number for size, number in taken)
    return (_limit(shares, every) if every else 0) - used


def _limit(shares: Sequence[int], sizes: Collection[int]) -> int:
    """Return how much slots may need together so that each finds a place.

    A slot takes what it needs from one provider, and Placement chooses which.
    So one of some size is sure of a place as long as the others cannot leave
    less than that on each provider.
    """
    step = math.gcd(*sizes)
    return min(
        # What others must take for that, rounded up to what they can take.
        sum(
            -((size - 1 - share) // step) * step
            for share in shares
            if share >= size
        )
        + size
        - step
        for size in sizes
    )


def _overlap(claim: Claim, demand: Demand) -> bool:
    until = demand.counted_until
    return (until is None or claim.start < until) and (
        claim.end is None or claim.end > demand.start
    )


def _includes(claim: Claim, moment: datetime.datetime) -> bool:
    return claim.start <= moment and (claim.end is None or moment < claim.end)
