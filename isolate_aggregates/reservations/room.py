# SPDX-License-Identifier: Apache-2.0
"""Computes the capacity of hosts for slots over time.

At any time, the slots of all reservations on a host, used or not, and the
usage of its ordinary servers must fit into its capacity together.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime
import itertools
import math


@dataclasses.dataclass(frozen=True)
class Claim:
    """The slots of a reservation on a host.

    :param end: The end of the claim; None for no end.
    :param needs: The resources of one slot, by resource class.
    """

    start: datetime.datetime
    end: datetime.datetime | None
    needs: Mapping[str, int]
    slots: int


@dataclasses.dataclass(frozen=True)
class Demand:
    """The slots that a reservation needs.

    :param end: The end of the demand; None for no end.
    :param needs: The resources of one slot, by resource class.
    :param affinity: True for all slots on one host, False for no two slots on
        one host, None for no restriction.
    :param cleaning_time: How long the host must remain free after the end.
    """

    start: datetime.datetime
    end: datetime.datetime | None
    needs: Mapping[str, int]
    amount: int
    affinity: bool | None = None
    cleaning_time: datetime.timedelta = datetime.timedelta()

    @property
    def counted_until(self) -> datetime.datetime | None:
        """The end including the cleaning time; None for no end."""
        return self.end and later(self.end, self.cleaning_time)


@dataclasses.dataclass(frozen=True)
class HostCapacity:
    """The capacity of a host for one reservation.

    :param capacity: The capacity of its root provider, by resource class.
    :param ordinary: The usage of the root provider by servers without a
        reservation, by resource class.
    :param below: For each child provider, its capacity for reservations by
        resource class.
    :param claims: The slots of all other reservations.
    :param own: The number of slots of this reservation on the host.
    :param used: The number of these slots with a server.
    :param obstacle: Why the host cannot take slots; None if it can. Existing
        slots remain unless they are moved.
    """

    host: str
    capacity: Mapping[str, int] = dataclasses.field(default_factory=dict)
    ordinary: Mapping[str, int] = dataclasses.field(default_factory=dict)
    below: tuple[Mapping[str, int], ...] = ()
    claims: tuple[Claim, ...] = ()
    own: int = 0
    used: int = 0
    obstacle: str | None = None


@dataclasses.dataclass(frozen=True)
class FreePeriod:
    """A period in which the free capacity of a host does not change.

    :param slots: The number of reserved slots.
    :param free: The free capacity, by resource class.
    """

    start: datetime.datetime
    end: datetime.datetime
    slots: int
    free: Mapping[str, int]


def later(
    time: datetime.datetime, by: datetime.timedelta
) -> datetime.datetime:
    """Add a duration to a time; the latest representable time on overflow."""
    try:
        return time + by
    except OverflowError:
        return datetime.datetime.max.replace(tzinfo=time.tzinfo)


def capacity(host: HostCapacity) -> dict[str, int]:
    """Return a host's capacity for reservations, by resource class."""
    return {
        name: max(0, sum(_shares(host, name)))
        for name in sorted({*host.capacity}.union(*host.below))
    }


def free_slots(host: HostCapacity, demand: Demand) -> int:
    """Return how many slots of a demand fit on a host for its whole duration.

    Slots of the same reservation that the host already has are ignored.
    """
    claims = [claim for claim in host.claims if _overlap(claim, demand)]
    moments = _moments(claims, demand.start)
    numbers = []
    for resource_class, need in demand.needs.items():
        if need > 0:
            shares = _shares(host, resource_class)
            numbers += [
                max(0, _remaining(shares, taken, need)) // need
                for taken in _slot_sizes(claims, moments, resource_class)
            ]
    return min(numbers, default=0)


def periods(
    host: HostCapacity, start: datetime.datetime, end: datetime.datetime
) -> list[FreePeriod]:
    """Return the free capacity of a host as successive periods."""
    changes = {
        time
        for claim in host.claims
        for time in (claim.start, claim.end)
        if time is not None and start < time < end
    }
    times = [start, *sorted(changes), end]
    whole = capacity(host)
    result: list[FreePeriod] = []
    for since, until in itertools.pairwise(times):
        claims = [claim for claim in host.claims if _includes(claim, since)]
        slots = sum(claim.slots for claim in claims)
        free = {}
        for name, amount in whole.items():
            taken = sum(c.slots * c.needs.get(name, 0) for c in claims)
            free[name] = max(0, amount - taken)
        if result and (result[-1].slots, result[-1].free) == (slots, free):
            since = result.pop().start
        result.append(FreePeriod(since, until, slots, free))
    return result


def shortage(host: HostCapacity, now: datetime.datetime) -> str | None:
    """Return how the capacity of a host falls short of its slots.

    :returns: The problem, as the predicate of a sentence about the host; None
        if the capacity suffices.
    """
    moments = _moments(host.claims, now)
    classes = sorted({name for claim in host.claims for name in claim.needs})
    for resource_class in classes:
        shares = _shares(host, resource_class)
        for taken in _slot_sizes(host.claims, moments, resource_class):
            remaining = _remaining(shares, taken)
            if remaining < 0:
                need = sum(size * number for size, number in taken)
                return (
                    f'has room for {need + remaining} of the {need} '
                    f'{resource_class} that the slots there need'
                )
    return None


def _moments(
    claims: Iterable[Claim], first: datetime.datetime
) -> set[datetime.datetime]:
    """Return the times to check: usage increases only when a claim starts."""
    return {first, *(max(claim.start, first) for claim in claims)}


def _slot_sizes(
    claims: Sequence[Claim],
    moments: Iterable[datetime.datetime],
    resource_class: str,
) -> Iterator[list[tuple[int, int]]]:
    """Yield for each moment the claims as pairs of slot size and number."""
    for moment in moments:
        yield [
            (claim.needs[resource_class], claim.slots)
            for claim in claims
            if claim.needs.get(resource_class) and _includes(claim, moment)
        ]


def _shares(host: HostCapacity, resource_class: str) -> list[int]:
    """Return the capacity of each provider of a host for reservations."""
    own = host.capacity.get(resource_class, 0)
    return [
        own - host.ordinary.get(resource_class, 0),
        *(has[resource_class] for has in host.below if resource_class in has),
    ]


def _remaining(
    shares: Sequence[int], taken: Iterable[tuple[int, int]], *sizes: int
) -> int:
    """Return the capacity left for slots of some sizes besides the others.

    It is negative if the others exceed the capacity.
    """
    every = {*sizes, *(size for size, _ in taken)}
    used = sum(size * number for size, number in taken)
    return (_safe_total(shares, every) if every else 0) - used


def _safe_total(shares: Sequence[int], sizes: Collection[int]) -> int:
    """Return the total that slots may need so that each is sure to fit.

    A slot takes all it needs from one provider, and Placement chooses which.
    So a slot of a given size is sure to fit only if the other slots, however
    they are distributed, leave that much free on at least one provider.
    """
    step = math.gcd(*sizes)
    return min(
        # To leave less than ``size`` on every provider, the others must take
        # at least this sum; it is rounded up to multiples of ``step``.
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
