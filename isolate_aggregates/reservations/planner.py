# SPDX-License-Identifier: Apache-2.0
"""Chooses the hosts for the slots of a reservation.

Nothing is read or changed here: a demand and what hosts have come in, and
numbers of slots by host go out, always the same for the same question. At no
moment do the slots on a host need more than it has, where each slot of each
reservation at that moment counts, used or not, and what ordinary servers use
there.
"""

from collections.abc import Collection, Iterable, Mapping
import dataclasses
import datetime
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
    """

    start: datetime.datetime
    end: datetime.datetime | None
    needs: Mapping[str, int]
    amount: int
    affinity: bool | None = None


@dataclasses.dataclass(frozen=True)
class HostCapacity:
    """A host as far as it matters to one reservation.

    :param host: Its name.
    :param capacity: What it can give out in all, by resource class.
    :param ordinary: What servers without a reservation use, by resource
        class.
    :param claims: The slots of all other reservations.
    :param held: How many slots of this reservation it has.
    :param used: How many of them have a server.
    :param obstacle: Why it takes no slots; None if it does. It then keeps
        those it has, unless they are moved.
    """

    host: str
    capacity: Mapping[str, int] = dataclasses.field(default_factory=dict)
    ordinary: Mapping[str, int] = dataclasses.field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    held: int = 0
    used: int = 0
    obstacle: str | None = None


@dataclasses.dataclass(frozen=True)
class Assignment:
    """Where the slots of a demand go.

    :param slots: The number of slots by host, none of them 0.
    :param missing: How many slots of the demand have no place.
    :param free: How many slots each host could take, by host.
    """

    slots: Mapping[str, int]
    missing: int
    free: Mapping[str, int]


def free_slots(host: HostCapacity, demand: Demand) -> int:
    """Return how many slots of a demand fit on a host, all of its time long.

    Slots of the demand that the host already has do not count.
    """
    claims = [claim for claim in host.claims if _overlap(claim, demand)]
    # What is in use only grows when something starts.
    moments = {max(claim.start, demand.start) for claim in claims}
    moments.add(demand.start)
    most = math.inf
    for resource_class, need in demand.needs.items():
        if need <= 0:
            continue
        peak = max(
            sum(
                claim.slots * claim.needs.get(resource_class, 0)
                for claim in claims
                if _includes(claim, moment)
            )
            for moment in moments
        )
        free = (
            host.capacity.get(resource_class, 0)
            - host.ordinary.get(resource_class, 0)
            - peak
        )
        most = min(most, max(0, free // need))
    return 0 if most == math.inf else int(most)


def assign(
    demand: Demand, capacities: Iterable[HostCapacity], move: bool = False
) -> Assignment:
    """Choose hosts for as many slots of a demand as possible.

    Slots that have a server stay where they are. Others stay if they can; if
    there is a choice, as many as possible do.

    :param move: Whether slots that have no server leave the hosts that have
        an obstacle.
    """
    hosts = sorted(
        (_Candidate.of(host, demand, move) for host in capacities),
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
        slots={name: number for name, number in slots.items() if number},
        missing=demand.amount
        - min(sound, demand.amount)
        + _surplus(slots.values(), demand),
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
        cls, host: HostCapacity, demand: Demand, move: bool
    ) -> '_Candidate':
        most = free_slots(host, demand)
        if demand.affinity is False:
            most = min(most, 1)
        fits = most
        stay = min(most, host.held)
        if host.obstacle is not None:
            most = min(stay, host.used) if move else stay
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
    return (demand.end is None or claim.start < demand.end) and (
        claim.end is None or claim.end > demand.start
    )


def _includes(claim: Claim, moment: datetime.datetime) -> bool:
    return claim.start <= moment and (claim.end is None or moment < claim.end)
