# SPDX-License-Identifier: Apache-2.0
"""Chooses the hosts for the slots of a reservation.

These are pure functions: from a demand and the capacity of hosts they compute
the number of slots per host. Equal input gives equal output.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime

from isolate_aggregates import text
from isolate_aggregates.reservations.room import (
    Demand,
    HostCapacity,
    free_slots,
)

_HOSTS_IN_A_SENTENCE = 5

_AFFINITY = {True: ' on one host', False: ' on different hosts', None: ''}


@dataclasses.dataclass(frozen=True)
class Assignment:
    """The hosts for the slots of a demand.

    :param slots: The number of slots by host, none of them 0.
    :param missing: The number of slots that do not fit on any host.
    :param free: The number of slots that each host could take, by host.
    """

    demand: Demand
    slots: Mapping[str, int]
    missing: int
    used: int
    free: Mapping[str, int]

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
        )

    @property
    def _free_text(self) -> str:
        """The hosts with free capacity, the largest first, as text."""
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
        named = ', '.join(rooms[:_HOSTS_IN_A_SENTENCE])
        return f'{named} and some on {more} more' if more > 0 else named


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
    hosts = sorted(
        (
            _Candidate.of(host, demand, host.host in leave)
            for host in capacities
        ),
        key=lambda host: host.name,
    )
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
        moved = _starting_at(demand, moment)
        if moved is None:
            break
        earliest = moved
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
    """Return a demand moved to a moved start; None if its end overflows."""
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
    """Counts the slots of a demand that fit as it moves to moved times.

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
        """Update the counts for a moved time."""
        due = {*self._due}
        self._due = []
        while self._changes and self._changes[-1][:2] <= (demand.start, False):
            due.add(self._changes.pop()[2])
        for index in due:
            slots = self._slots_on(self._hosts[index], demand)
            self._total += slots - self._slots[index]
            self._slots[index] = slots

    def _slots_on(self, host: HostCapacity, demand: Demand) -> int:
        """Return how many slots a host can contribute."""
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
        hosts, key=lambda host: (not slots[host.name], -host.most)
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
    tied = [host for host in hosts if host.used]
    if len(tied) > 1:
        return slots
    candidates = tied or hosts
    whole = [host for host in candidates if host.most >= demand.amount]
    if whole:
        # Best fit, which leaves large hosts to large reservations.
        best = min(whole, key=lambda host: (-host.keep, host.most))
        slots[best.name] = max(best.used, demand.amount)
    elif candidates:
        best = max(candidates, key=lambda host: host.stay)
        slots[best.name] = max(best.used, min(best.stay, demand.amount))
    return slots


def _surplus(numbers: Collection[int], demand: Demand) -> int:
    """Return by how much the slots exceed the demand."""
    return max(0, sum(numbers) - demand.amount)
