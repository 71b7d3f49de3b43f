# SPDX-License-Identifier: Apache-2.0
"""From how things are to what the planner is asked."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent import futures
import dataclasses
import datetime

from isolate_aggregates import exception
from isolate_aggregates.placement import inventories, providers, resources
from isolate_aggregates.request import Flavor, Request
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.reservations import names, planner
from isolate_aggregates.reservations.record import Reservation
from isolate_aggregates.reservations.site import Site
from isolate_aggregates.reservations.world import Host, World

_ALWAYS = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_INSTANT = datetime.timedelta(microseconds=1)

_PARALLEL = 8


def needs(flavor: Flavor) -> dict[str, int]:
    """Return what one server of a flavor takes from its compute node.

    :param flavor: The flavor.
    :raises InvalidRequest: if its extra specs contradict each other.
    """
    found = resources.resource_request(Request(flavor)).merged_resources()
    return {
        name: amount
        for name, amount in found.items()
        if names.reservation_of(name) is None
    }


def wish(reservation: Reservation, now: datetime.datetime) -> planner.Wish:
    """Return what a reservation needs from now on.

    :param reservation: The reservation.
    :param now: The time.
    """
    return planner.Wish(
        start=max(reservation.start, now),
        end=reservation.end,
        needs=needs(reservation.flavor),
        amount=reservation.amount,
        affinity=reservation.affinity,
    )


def rooms(
    site: Site,
    world: World,
    reservation: Reservation,
    now: datetime.datetime,
) -> dict[str, planner.Room]:
    """Return the hosts as a reservation finds them, by name.

    :param site: The cloud.
    :param world: How things are there.
    :param reservation: The reservation.
    :param now: The time.
    :raises ServiceError: if anything can not be read.
    """
    return _Rooms(site, world, reservation, now).all()


def plan(
    site: Site,
    world: World,
    reservation: Reservation,
    now: datetime.datetime,
    move: bool = False,
) -> planner.Placing:
    """Choose hosts for the slots of a reservation.

    :param site: The cloud.
    :param world: How things are there.
    :param reservation: The reservation as it shall be.
    :param now: The time.
    :param move: Whether slots leave hosts that can take no servers.
    :raises IsolateAggregatesError: if anything can not be read.
    """
    asked = wish(reservation, now)
    found = rooms(site, world, reservation, now)
    while True:
        placing = planner.place(asked, found.values(), move)
        chosen = [
            world.hosts[name]
            for name, slots in placing.slots.items()
            if slots > found[name].held
        ]
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            too_small = [
                host.name
                for host, reason in zip(
                    chosen,
                    pool.map(
                        lambda host: _takes(site, host, asked.needs), chosen
                    ),
                    strict=True,
                )
                if not reason
            ]
        if not too_small:
            return placing
        for name in too_small:
            found[name] = dataclasses.replace(
                found[name], obstacle='takes no server of that size'
            )


def _takes(site: Site, host: Host, amounts: Mapping[str, int]) -> bool:
    """Tell whether a host takes a single server of some size."""
    found = inventories.read(site.placement, host.root).by_class
    for name, amount in amounts.items():
        limits = found.get(name, {})
        step = limits.get('step_size', 1)
        least = limits.get('min_unit', 1)
        if amount % step or not least <= amount <= limits.get('max_unit', 0):
            return False
    return True


class _Rooms:
    """The hosts as one reservation finds them."""

    def __init__(
        self,
        site: Site,
        world: World,
        reservation: Reservation,
        now: datetime.datetime,
    ) -> None:
        self._site = site
        self._world = world
        self._reservation = reservation
        self._now = now
        # Servers of flavors that make no sense can not be counted.
        self._needs = dict(
            _countable(found.flavor for found in world.records.values())
        )
        self._foreign = dict(_countable(world.foreign.values()))

    def all(self) -> dict[str, planner.Room]:
        hosts = list(self._world.hosts.values())
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            rooms = pool.map(self._room, hosts)
            return {room.host: room for room in rooms}

    def _room(self, host: Host) -> planner.Room:
        own = host.slots.get(self._reservation.id)
        unknown = self._unknown(host)
        room = planner.Room(
            host=host.name,
            held=own.total if own else 0,
            used=own.used if own else 0,
            obstacle=host.obstacle or unknown,
        )
        if unknown or (room.obstacle and not own):
            return room
        try:
            capacity, used = self._amounts(host)
            return dataclasses.replace(
                room,
                capacity=capacity,
                ordinary=self._ordinary(host, used),
                claims=tuple(self._claims(host)),
                obstacle=room.obstacle or self._lack(host),
            )
        except exception.ServiceNotFound:
            return dataclasses.replace(room, obstacle='is gone')

    def _unknown(self, host: Host) -> str | None:
        for name in sorted(host.slots):
            if name not in self._needs and name not in self._foreign:
                return f'has slots of reservation {name}, which is unknown'
        return None

    def _claims(self, host: Host) -> Iterator[planner.Claim]:
        for name, slots in host.slots.items():
            if name == self._reservation.id:
                continue
            number = max(slots.total, slots.used)
            other = self._world.records.get(name)
            if other is None:
                # Nobody here knows when it starts or ends.
                yield planner.Claim(_ALWAYS, None, self._foreign[name], number)
                continue
            end = other.counted_until
            if end is not None:
                # What is there after the end takes its place still.
                end = max(end, self._now + _INSTANT)
            yield planner.Claim(other.start, end, self._needs[name], number)

    def _amounts(
        self, host: Host
    ) -> tuple[Mapping[str, int], Mapping[str, int]]:
        summary = self._world.summaries.get(host.root)
        if summary is not None:
            return summary.capacity, summary.used
        # It is full, and so was no candidate.
        found = inventories.read(self._site.placement, host.root)
        _, used = inventories.usages(self._site.placement, host.root)
        return {
            name: int(
                (amounts['total'] - amounts.get('reserved', 0))
                * amounts.get('allocation_ratio', 1.0)
            )
            for name, amounts in found.by_class.items()
        }, used

    def _lack(self, host: Host) -> str | None:
        """Return what is wrong with the traits of a host, if anything."""
        wanted: set[str] = set()
        unwanted: set[str] = set()
        for spec in xs.parse(self._reservation.shape.extra_specs):
            if spec.kind == 'trait' and spec.name != names.TRAIT:
                group = wanted if spec.value == xs.REQUIRED else unwanted
                group.add(spec.name)
        if not wanted and not unwanted:
            return None
        summary = self._world.summaries.get(host.root)
        has = (
            summary.traits
            if summary is not None
            else providers.traits(self._site.placement, host.root)
        )
        wrong = (wanted - has) | (unwanted & has)
        return f'lacks or has {", ".join(sorted(wrong))}' if wrong else None

    def _ordinary(
        self, host: Host, used: Mapping[str, int]
    ) -> Mapping[str, int]:
        """Return what servers without a reservation use of a host."""
        reserved = [
            (slots.used, self._needs.get(name) or self._foreign[name])
            for name, slots in host.slots.items()
            if slots.used
        ]
        rest = dict(used)
        for number, amounts in reserved:
            for name, amount in amounts.items():
                rest[name] = rest.get(name, 0) - number * amount
        if not reserved or not any(rest.values()):
            return rest
        # A server that boots from a volume takes less than its slot has.
        found = ordinary_consumers(self._site, host.root, host.provider)
        total: dict[str, int] = {}
        for taken in found.values():
            for name, amount in taken.items():
                total[name] = total.get(name, 0) + amount
        return total


def ordinary_consumers(
    site: Site, root: str, provider: str | None
) -> Mapping[str, Mapping[str, int]]:
    """Return the consumers of a host that take no slot, and what they use.

    :param site: The cloud.
    :param root: The uuid of its resource provider.
    :param provider: The uuid of its reservation provider, if it has one.
    :raises ServiceNotFound: if its provider is gone.
    :raises ServiceError: if it can not be read.
    """
    everybody = inventories.consumers(site.placement, root)
    reserved = (
        inventories.consumers(site.placement, provider) if provider else {}
    )
    return {
        consumer: amounts
        for consumer, amounts in everybody.items()
        if consumer not in reserved
    }


def _countable(
    flavors: Iterable[Flavor],
) -> Iterator[tuple[str, dict[str, int]]]:
    for flavor in flavors:
        try:
            yield flavor.id, needs(flavor)
        except exception.InvalidRequest:
            continue
