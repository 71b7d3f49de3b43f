# SPDX-License-Identifier: Apache-2.0
"""Chooses the hosts for the slots of a reservation.

Nothing is read or changed here: a demand and what hosts have come in, and
numbers of slots by host go out, always the same for the same question. At no
moment do the slots on a host need more than it has, where each slot of each
reservation at that moment counts, used or not, and what ordinary servers use
there.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime
import math

from isolate_aggregates import text

_HOSTS_IN_A_SENTENCE = 5

_AFFINITY = {True: ' on one host', False: ' on different hosts', None: ''}


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
class Assignment:
    """Where the slots of a demand go.

    :param demand: The demand.
    :param slots: The number of slots by host, none of them 0.
    :param missing: How many slots of the demand have no place.
    :param used: How many slots have servers.
    :param free: How many slots each host could take, by host.
    """

    demand: Demand
    slots: Mapping[str, int]
    missing: int
    used: int
    free: Mapping[str, int]

    @property
    def refusal(self) -> str:
        """Why the demand is not met, for a sentence about it."""
        demand = self.demand
        slots = text.counted(demand.amount, 'slot')
        if self.used > demand.amount:
            return f'cannot have {slots}, as {self.used} have servers'
        needs = ', '.join(
            f'{amount} {name}' for name, amount in sorted(demand.needs.items())
        )
        start = demand.start.isoformat(timespec='seconds')
        end = (
            f'until {demand.end.isoformat(timespec="seconds")}'
            if demand.end
            else 'for ever'
        )
        return (
            f'needs {slots} of {needs}{_AFFINITY[demand.affinity]} from '
            f'{start} {end}, and there is room for {self._room}'
        )

    @property
    def _room(self) -> str:
        """Which hosts have room, the largest first."""
        hosts = sorted(
            ((name, free) for name, free in self.free.items() if free),
            key=lambda found: (-found[1], found[0]),
        )
        if not hosts:
            number = len(self.free)
            return f'none on {"any of " if number else ""}the {number} hosts'
        shown = [f'{free} on {name}' for name, free in hosts]
        more = len(shown) - _HOSTS_IN_A_SENTENCE
        named = ', '.join(shown[:_HOSTS_IN_A_SENTENCE])
        return f'{named} and some on {more} more' if more > 0 else named


def later(
    time: datetime.datetime, by: datetime.timedelta
) -> datetime.datetime:
    """Return a later time, or the last one there is."""
    try:
        return time + by
    except OverflowError:
        return datetime.datetime.max.replace(tzinfo=time.tzinfo)


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
        # What others have to take for that, rounded up to what they can take.
        sum(
            -((size - 1 - share) // step) * step
            for share in shares
            if share >= size
        )
        + size
        - step
        for size in sizes
    )


def assign(
    demand: Demand,
    capacities: Iterable[HostCapacity],
    leave: Collection[str] = (),
) -> Assignment:
    """Choose hosts for as many slots of a demand as possible.

    Slots that have a server stay where they are. Others stay if they can; if
    there is a choice, as many as possible do. Those that fit nowhere stay as
    well, and are missing.

    :param leave: The hosts with an obstacle that slots without a server
        leave.
    """
    hosts = sorted(
        (
            _Candidate.of(host, demand, host.host in leave)
            for host in capacities
        ),
        key=lambda host: host.name,
    )
    choose = _on_one_host if demand.affinity else _anywhere
    slots = choose(demand, hosts)
    # A slot that has a server cannot be taken away, but if it does not fit
    # it is no more than one that is missing.
    fitting = [min(slots[host.name], host.fits) for host in hosts]
    # Nor are those that have servers elsewhere of use where all belong on one
    # host.
    sound = max(fitting, default=0) if demand.affinity else sum(fitting)
    return Assignment(
        demand=demand,
        slots={name: number for name, number in slots.items() if number},
        missing=demand.amount
        - min(sound, demand.amount)
        + _surplus(slots.values(), demand),
        used=sum(host.used for host in hosts),
        free={host.name: host.most for host in hosts},
    )


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A host, in numbers of slots.

    ``most`` is how many it may have, ``keep`` how many of its own it may keep,
    ``stay`` how many if they have no other place, ``used`` how many it has to.
    ``fits`` is how many there is room for.
    """

    name: str
    used: int
    keep: int
    stay: int
    most: int
    fits: int

    @classmethod
    def of(
        cls, host: HostCapacity, demand: Demand, leaves: bool
    ) -> '_Candidate':
        most = free_slots(host, demand)
        if demand.affinity is False:
            most = min(most, 1)
        fits = most
        stay = host.held
        if demand.affinity is False:
            stay = min(stay, 1)
        if host.obstacle is not None:
            most = min(most, host.used if leaves else stay)
        return cls(
            name=host.host,
            used=host.used,
            keep=max(host.used, min(host.held, most)),
            stay=max(host.used, stay),
            most=most,
            fits=fits,
        )


def _anywhere(demand: Demand, hosts: list[_Candidate]) -> dict[str, int]:
    slots = {host.name: host.used for host in hosts}
    left = demand.amount - sum(slots.values())
    # Those that keep the most come first, so that the fewest hosts are left.
    for host in sorted(hosts, key=lambda host: -host.keep):
        take = max(0, min(left, host.keep - slots[host.name]))
        slots[host.name] += take
        left -= take
    # A host that has slots already need not be one more that may fail.
    for host in sorted(
        hosts, key=lambda host: (not slots[host.name], -host.most)
    ):
        take = max(0, min(left, host.most - slots[host.name]))
        slots[host.name] += take
        left -= take
    # What has no place elsewhere stays where it is.
    for host in hosts:
        take = max(0, min(left, host.stay - slots[host.name]))
        slots[host.name] += take
        left -= take
    return slots


def _on_one_host(demand: Demand, hosts: list[_Candidate]) -> dict[str, int]:
    slots = dict.fromkeys((host.name for host in hosts), 0)
    slots |= {host.name: host.used for host in hosts if host.used}
    tied = [host for host in hosts if host.used]
    if len(tied) > 1:
        return slots
    candidates = tied or hosts
    whole = [host for host in candidates if host.most >= demand.amount]
    if whole:
        # The tightest, so that a large reservation finds a large host later.
        best = min(whole, key=lambda host: (-host.keep, host.most))
        slots[best.name] = max(best.used, demand.amount)
    elif candidates:
        best = max(candidates, key=lambda host: host.stay)
        slots[best.name] = max(best.used, min(best.stay, demand.amount))
    return slots


def _surplus(numbers: Collection[int], demand: Demand) -> int:
    """Return how many slots too many have servers."""
    return max(0, sum(numbers) - demand.amount)


def _overlap(claim: Claim, demand: Demand) -> bool:
    until = demand.counted_until
    return (until is None or claim.start < until) and (
        claim.end is None or claim.end > demand.start
    )


def _includes(claim: Claim, moment: datetime.datetime) -> bool:
    return claim.start <= moment and (claim.end is None or moment < claim.end)
