# SPDX-License-Identifier: Apache-2.0
"""Plans slots: computes the capacity of hosts over time, and chooses hosts.

At any time, the slots of all reservations on a host, used or not, and the
usage of its ordinary servers must fit into its capacity together. These are
pure functions: equal input gives equal output.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime
import itertools
import math

from isolate_aggregates import text
from isolate_aggregates_tools import ranges, shell

_HOSTS_IN_A_SENTENCE = 5

_AFFINITY = {True: ' on one host', False: ' on different hosts', None: ''}


@dataclasses.dataclass(frozen=True)
class Claim:
    """The slots of a reservation on a host.

    :param needs: The resources of one slot, by resource class.
    """

    start: datetime.datetime
    end: datetime.datetime | None
    needs: Mapping[str, int]
    slots: int


@dataclasses.dataclass(frozen=True)
class Demand:
    """The slots that a reservation needs.

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

    :param capacity: The capacity of its root provider for reservations, by
        resource class: without what servers without a reservation use.
    :param below: That of each child provider.
    :param claims: The slots of all other reservations.
    :param own: The number of slots of this reservation on the host.
    :param used: The number of these slots with a server.
    :param obstacle: Why the host cannot take slots; None if it can. Existing
        slots remain unless they are moved.
    :param rank: Of hosts without its slots, those with a lower one come first.
    """

    host: str
    capacity: Mapping[str, int] = dataclasses.field(default_factory=dict)
    below: tuple[Mapping[str, int], ...] = ()
    claims: tuple[Claim, ...] = ()
    own: int = 0
    used: int = 0
    obstacle: str | None = None
    rank: int = 0


@dataclasses.dataclass(frozen=True)
class FreePeriod:
    """A period in which the free capacity of a host does not change.

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
                max(0, _remaining(shares, sizes, need)) // need
                for sizes in _slot_sizes(claims, moments, resource_class)
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
            used = sum(c.slots * c.needs.get(name, 0) for c in claims)
            free[name] = max(0, amount - used)
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
        for sizes in _slot_sizes(host.claims, moments, resource_class):
            remaining = _remaining(shares, sizes)
            if remaining < 0:
                need = sum(size * number for size, number in sizes)
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
    return [
        has[resource_class]
        for has in (host.capacity, *host.below)
        if resource_class in has
    ]


def _remaining(
    shares: Sequence[int], others: Iterable[tuple[int, int]], *sizes: int
) -> int:
    """Return the capacity left for slots of some sizes besides the others.

    It is negative if the others exceed the capacity.
    """
    every = {*sizes, *(size for size, _ in others)}
    used = sum(size * number for size, number in others)
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


@dataclasses.dataclass(frozen=True)
class Assignment:
    """The hosts for the slots of a demand.

    :param slots: The number of slots by host, none of them 0.
    :param missing: The number of slots that do not fit on any host.
    :param free: The number of slots that each host could take, by host.
    :param obstacles: Why hosts cannot take new slots, by host.
    """

    demand: Demand
    slots: Mapping[str, int]
    missing: int
    used: int
    free: Mapping[str, int]
    obstacles: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def refusal(self) -> str:
        """Why the demand cannot be met, as the predicate of a sentence."""
        demand = self.demand
        slots = text.counted(demand.amount, 'slot')
        if self.used > demand.amount:
            # At least two, as a demand has at least one slot.
            return f'cannot have {slots}, because {self.used} have servers'
        needs = ', '.join(
            f'{amount} {name}' for name, amount in sorted(demand.needs.items())
        )
        start = demand.start.isoformat(timespec='seconds')
        end = (
            f'until {demand.end.isoformat(timespec="seconds")}'
            if demand.end
            else 'without an end'
        )
        return (
            f'needs {slots} of {needs}{_AFFINITY[demand.affinity]} from '
            f'{start} {end}, but there is room for {self._free_text}'
            f'{self._offer_text}{self._obstacles_text}'
        )

    @property
    def advice(self) -> str:
        """What to do if the demand cannot be met."""
        if self.used > self.demand.amount:
            return f'run {shell.Kind.SERVER_DELETE} with those not needed'
        return (
            'ask for less, or run reservation host set --enable with another '
            'host'
        )

    @property
    def offer(self) -> int:
        """The most slots that fit at the time of the demand."""
        if self.demand.affinity is None:
            return sum(self.free.values())
        if self.demand.affinity:
            return max(self.free.values(), default=0)
        return sum(1 for free in self.free.values() if free)

    @property
    def _offer_text(self) -> str:
        several = sum(1 for free in self.free.values() if free) > 1
        if several and self.offer < self.demand.amount:
            return f'; {text.counted(self.offer, "slot")} would fit'
        return ''

    @property
    def _obstacles_text(self) -> str:
        by_cause: dict[str, list[str]] = {}
        for host, obstacle in self.obstacles.items():
            by_cause.setdefault(obstacle.removeprefix('is '), []).append(host)
        if not by_cause:
            return ''
        causes = [
            f'{ranges.folded(hosts)} ({cause})'
            for cause, hosts in sorted(by_cause.items())
        ]
        return f'; no slots can be added on {", ".join(causes)}'

    @property
    def _free_text(self) -> str:
        hosts = sorted(
            ((name, free) for name, free in self.free.items() if free),
            key=lambda entry: (-entry[1], entry[0]),
        )
        if not hosts:
            number = len(self.free)
            any_of = 'any of ' if number > 1 else ''
            return f'none on {any_of}the {text.counted(number, "host")}'
        rooms = [f'{free} on {name}' for name, free in hosts]
        more = len(rooms) - _HOSTS_IN_A_SENTENCE
        names = ', '.join(rooms[:_HOSTS_IN_A_SENTENCE])
        return f'{names} and some on {more} more' if more > 0 else names


def assign(
    demand: Demand,
    capacities: Iterable[HostCapacity],
    leave: Collection[str] = (),
) -> Assignment:
    """Choose hosts for as many slots of a demand as possible.

    Slots with a server stay on their host. As many of the other slots as
    possible stay too. Slots that fit on no host also stay, but count as
    missing.

    :param leave: Hosts with an obstacle whose slots without a server are to be
        moved.
    """
    sources = sorted(capacities, key=lambda host: host.host)
    hosts = [
        _Candidate.of(host, demand, host.host in leave) for host in sources
    ]
    choose = _on_one_host if demand.affinity else _on_any_hosts
    slots = choose(demand, hosts)
    # A slot with a server cannot be removed, but counts as missing if it does
    # not fit on its host.
    fitting = [min(slots[host.name], host.fits) for host in hosts]
    # With affinity, only the slots on a single host count.
    sound = max(fitting, default=0) if demand.affinity else sum(fitting)
    return Assignment(
        demand=demand,
        slots={name: number for name, number in slots.items() if number},
        missing=demand.amount
        - min(sound, demand.amount)
        + _surplus(slots.values(), demand),
        used=sum(host.used for host in hosts),
        free={host.name: host.most for host in hosts},
        obstacles={
            host.host: host.obstacle for host in sources if host.obstacle
        },
    )


def first_fit(
    demand: Demand, capacities: Sequence[HostCapacity]
) -> Assignment:
    """Choose hosts for a demand at the earliest time at which it fits.

    :param demand: The demand with its earliest possible start.
    :param capacities: Hosts without slots of this reservation.
    :returns: The assignment, with the demand moved to that time. If it never
        fits, the assignment has missing slots.
    """
    hosts = [host for host in capacities if host.obstacle is None]
    room = _FreeSlots(demand, hosts)
    earliest = demand
    for moment in _times_of_more(demand, hosts):
        later = _starting_at(demand, moment)
        if later is None:
            break
        earliest = later
        room.move_to(earliest)
        if room.is_enough:
            break
    return assign(earliest, capacities)


def _times_of_more(
    demand: Demand, hosts: Iterable[HostCapacity]
) -> list[datetime.datetime]:
    """Return the times at which capacity may become free, sorted."""
    return sorted(
        {
            demand.start,
            *(
                claim.end
                for host in hosts
                for claim in host.claims
                if claim.end is not None and claim.end > demand.start
            ),
        }
    )


def _starting_at(demand: Demand, start: datetime.datetime) -> Demand | None:
    """Return a demand moved to a later start; None if its end overflows."""
    end = None
    if demand.end is not None:
        try:
            end = start + (demand.end - demand.start)
            # The cleaning time after the end must not overflow either.
            _ = end + demand.cleaning_time
        except OverflowError:
            return None
    return dataclasses.replace(demand, start=start, end=end)


class _FreeSlots:
    """Counts the slots of a demand that fit as it moves to later times.

    At each step only the hosts whose claims have changed are computed again.
    """

    def __init__(self, demand: Demand, hosts: Sequence[HostCapacity]) -> None:
        self._hosts = hosts
        self._slots = [0] * len(hosts)
        self._total = 0
        self._demand = demand
        self._due = list(range(len(hosts)))
        self._changes = sorted(self._changes_by_time(), reverse=True)

    @property
    def is_enough(self) -> bool:
        return self._total >= self._demand.amount

    def move_to(self, demand: Demand) -> None:
        """Update the counts for a later time."""
        due = {*self._due}
        self._due = []
        while self._changes and self._changes[-1][:2] <= (demand.start, False):
            due.add(self._changes.pop()[2])
        for index in due:
            slots = self._slots_on(self._hosts[index], demand)
            self._total += slots - self._slots[index]
            self._slots[index] = slots

    def _slots_on(self, host: HostCapacity, demand: Demand) -> int:
        free = free_slots(host, demand)
        if demand.affinity is None:
            return free
        if demand.affinity:
            return demand.amount if free >= demand.amount else 0
        return min(free, 1)

    def _changes_by_time(
        self,
    ) -> Iterator[tuple[datetime.datetime, bool, int]]:
        """Yield the starts at which a host's free capacity may change.

        A claim stops to overlap the demand when it ends (False), and starts to
        overlap right after the demand's end reaches its start (True).
        """
        demand = self._demand
        until = demand.counted_until
        for index, host in enumerate(self._hosts):
            for claim in host.claims:
                if claim.end is not None and claim.end > demand.start:
                    yield claim.end, False, index
                if until is not None and claim.start >= until:
                    yield claim.start - (until - demand.start), True, index


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A host, in numbers of slots.

    :param used: Slots with a server, which must stay.
    :param keep: Existing slots that may stay.
    :param stay: Existing slots that stay if they fit on no other host.
    :param most: The most slots that it may get.
    :param fits: Slots for which it has capacity.
    :param rank: See ``HostCapacity``.
    """

    name: str
    used: int
    keep: int
    stay: int
    most: int
    fits: int
    rank: int

    @classmethod
    def of(
        cls, host: HostCapacity, demand: Demand, leaves: bool
    ) -> '_Candidate':
        most = free_slots(host, demand)
        if demand.affinity is False:
            most = min(most, 1)
        fits = most
        stay = host.own
        if demand.affinity is False:
            stay = min(stay, 1)
        if host.obstacle is not None:
            most = min(most, host.used if leaves else stay)
        return cls(
            name=host.host,
            used=host.used,
            keep=max(host.used, min(host.own, most)),
            stay=max(host.used, stay),
            most=most,
            fits=fits,
            rank=host.rank,
        )


def _on_any_hosts(demand: Demand, hosts: list[_Candidate]) -> dict[str, int]:
    slots = {host.name: host.used for host in hosts}
    missing = demand.amount - sum(slots.values())
    # Hosts that keep the most slots come first, so that the slots stay on few
    # hosts.
    for host in sorted(hosts, key=lambda host: -host.keep):
        take = max(0, min(missing, host.keep - slots[host.name]))
        slots[host.name] += take
        missing -= take
    # Prefer hosts that have slots already: with fewer hosts, fewer can fail.
    for host in sorted(
        hosts, key=lambda host: (not slots[host.name], host.rank, -host.most)
    ):
        take = max(0, min(missing, host.most - slots[host.name]))
        slots[host.name] += take
        missing -= take
    # Slots that fit nowhere else stay.
    for host in hosts:
        take = max(0, min(missing, host.stay - slots[host.name]))
        slots[host.name] += take
        missing -= take
    return slots


def _on_one_host(demand: Demand, hosts: list[_Candidate]) -> dict[str, int]:
    slots = dict.fromkeys((host.name for host in hosts), 0)
    slots |= {host.name: host.used for host in hosts if host.used}
    hosts_in_use = [host for host in hosts if host.used]
    if len(hosts_in_use) > 1:
        return slots
    candidates = hosts_in_use or hosts
    whole = [host for host in candidates if host.most >= demand.amount]
    if whole:
        # Best fit, which leaves large hosts to large reservations.
        best = min(whole, key=lambda host: (-host.keep, host.rank, host.most))
        slots[best.name] = max(best.used, demand.amount)
    elif candidates:
        best = max(candidates, key=lambda host: host.stay)
        slots[best.name] = max(best.used, min(best.stay, demand.amount))
    return slots


def _surplus(numbers: Collection[int], demand: Demand) -> int:
    return max(0, sum(numbers) - demand.amount)
