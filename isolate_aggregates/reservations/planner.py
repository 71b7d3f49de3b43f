# SPDX-License-Identifier: Apache-2.0
"""Chooses the hosts for the slots of a reservation.

Nothing is asked or changed here: rooms and a wish come in, and numbers of
slots by host go out, always the same for the same question. At no moment do
the slots on a host need more than it has, where each slot of each reservation
at that moment counts, used or not, and what ordinary servers use there.
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
class Wish:
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
class Room:
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
class Placing:
    """The answer.

    :param slots: The number of slots by host, none of them 0.
    :param missing: How many slots of the wish have no place.
    :param room: How many slots each host could take, by host.
    """

    slots: Mapping[str, int]
    missing: int
    room: Mapping[str, int]


def free_slots(room: Room, wish: Wish) -> int:
    """Return how many slots of a wish fit on a host, all of its time long.

    :param room: The host; slots of the wish it already has do not count.
    :param wish: The wish.
    """
    claims = [claim for claim in room.claims if _overlap(claim, wish)]
    # What is in use only grows when something starts.
    moments = {max(claim.start, wish.start) for claim in claims}
    moments.add(wish.start)
    most = math.inf
    for resource_class, need in wish.needs.items():
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
            room.capacity.get(resource_class, 0)
            - room.ordinary.get(resource_class, 0)
            - peak
        )
        most = min(most, max(0, free // need))
    return 0 if most == math.inf else int(most)


def place(wish: Wish, rooms: Iterable[Room], move: bool = False) -> Placing:
    """Choose hosts for as many slots of a wish as possible.

    Slots that have a server stay where they are. Others stay if they can; if
    there is a choice, as many as possible do.

    :param wish: The wish.
    :param rooms: The hosts.
    :param move: Whether slots that have no server leave the hosts that have
        an obstacle.
    """
    hosts = sorted(
        (_Host.of(room, wish, move) for room in rooms),
        key=lambda host: host.name,
    )
    choose = _on_one_host if wish.affinity else _anywhere
    slots = choose(wish, hosts)
    # A slot that has a server can not be taken away, but if it does not fit
    # it is no more than one that is missing.
    fitting = [min(slots[host.name], host.fits) for host in hosts]
    # Nor are those that have servers elsewhere of use where all belong on one
    # host.
    sound = max(fitting, default=0) if wish.affinity else sum(fitting)
    return Placing(
        slots={name: number for name, number in slots.items() if number},
        missing=wish.amount
        - min(sound, wish.amount)
        + _surplus(slots.values(), wish),
        room={host.name: host.most for host in hosts},
    )


@dataclasses.dataclass(frozen=True)
class _Host:
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
    def of(cls, room: Room, wish: Wish, move: bool) -> '_Host':
        most = free_slots(room, wish)
        if wish.affinity is False:
            most = min(most, 1)
        fits = most
        stay = min(most, room.held)
        if room.obstacle is not None:
            most = min(stay, room.used) if move else stay
        return cls(
            name=room.host,
            used=room.used,
            keep=max(room.used, min(room.held, most)),
            stay=max(room.used, stay),
            most=most,
            fits=fits,
        )


def _anywhere(wish: Wish, hosts: list[_Host]) -> dict[str, int]:
    slots = {host.name: host.used for host in hosts}
    left = wish.amount - sum(slots.values())
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


def _on_one_host(wish: Wish, hosts: list[_Host]) -> dict[str, int]:
    slots = dict.fromkeys((host.name for host in hosts), 0)
    slots |= {host.name: host.used for host in hosts if host.used}
    tied = [host for host in hosts if host.used]
    if len(tied) > 1:
        return slots
    candidates = tied or hosts
    whole = [host for host in candidates if host.most >= wish.amount]
    if whole:
        # The tightest, so that a large reservation finds a large host later.
        best = min(whole, key=lambda host: (-host.keep, host.most))
        slots[best.name] = max(best.used, wish.amount)
    elif candidates:
        best = max(candidates, key=lambda host: host.stay)
        slots[best.name] = max(best.used, min(best.stay, wish.amount))
    return slots


def _surplus(numbers: Collection[int], wish: Wish) -> int:
    """Return how many slots too many have servers."""
    return max(0, sum(numbers) - wish.amount)


def _overlap(claim: Claim, wish: Wish) -> bool:
    return (wish.end is None or claim.start < wish.end) and (
        claim.end is None or claim.end > wish.start
    )


def _includes(claim: Claim, moment: datetime.datetime) -> bool:
    return claim.start <= moment and (claim.end is None or moment < claim.end)
