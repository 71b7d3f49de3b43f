# SPDX-License-Identifier: Apache-2.0
"""What hosts have for a reservation, and what the planner makes of it."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent import futures
import contextlib
import dataclasses
import datetime
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.placement import inventories, resources
from isolate_aggregates.placement.client import ProviderSummary
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.request import Flavor, Request
from isolate_aggregates.reservations import names, planner, room
from isolate_aggregates.reservations.observed import (
    ObservedState,
    ReservationHost,
)
from isolate_aggregates.reservations.record import Reservation
from isolate_aggregates.reservations.store import ReservationStore

_ALWAYS = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_NO_TIME = datetime.timedelta()
_INSTANT = datetime.timedelta(microseconds=1)

_PARALLEL = 8


def needs(flavor: Flavor) -> dict[str, int]:
    """Return what one server of a flavor takes from its compute node.

    :raises InvalidRequest: if its extra specs contradict each other.
    """
    return _without_slots(resources.resource_request(Request(flavor)))


def _without_slots(request: ResourceRequest) -> dict[str, int]:
    return {
        name: amount
        for name, amount in request.merged_resources().items()
        if names.reservation_of(name) is None
    }


def demand(
    reservation: Reservation,
    now: datetime.datetime,
    cleaning_time: datetime.timedelta = _NO_TIME,
) -> room.Demand:
    """Return what a reservation needs from now on."""
    return room.Demand(
        start=max(reservation.start, now),
        end=reservation.end,
        needs=needs(reservation.flavor),
        amount=reservation.amount,
        affinity=reservation.affinity,
        cleaning_time=cleaning_time,
    )


def capacities(
    store: ReservationStore,
    observed: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
) -> dict[str, room.HostCapacity]:
    """Return the hosts as they are for a reservation, by name."""
    return _Capacities(store, observed, reservation, now).all()


def assign(
    store: ReservationStore,
    observed: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
    leave: Collection[str] = (),
) -> planner.Assignment:
    """Choose hosts for the slots of a reservation.

    :param reservation: The reservation as it is to be.
    :param leave: The names of hosts that slots without a server leave.
    """
    wanted = demand(reservation, now, store.cleaning_time)
    return _on_takers(
        observed,
        _Capacities(store, observed, reservation, now),
        lambda found: planner.assign(wanted, found, leave),
    )


def first_fit(
    store: ReservationStore,
    observed: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
) -> planner.Assignment:
    """Choose hosts for a new reservation when it first fits.

    :param reservation: The reservation as it is to be, at the earliest.
    """
    wanted = demand(reservation, now, store.cleaning_time)
    if reservation.end is not None:
        length = reservation.end - reservation.start
        wanted = dataclasses.replace(wanted, end=wanted.start + length)
    return _on_takers(
        observed,
        _Capacities(store, observed, reservation, now),
        lambda found: planner.first_fit(wanted, found),
    )


def _on_takers(
    observed: ObservedState,
    hosts: '_Capacities',
    choose: Callable[[list[room.HostCapacity]], planner.Assignment],
) -> planner.Assignment:
    """Choose among the hosts that take a single server."""
    found = hosts.all()
    while True:
        assignment = choose(list(found.values()))
        chosen = [
            observed.hosts[name]
            for name, slots in assignment.slots.items()
            if slots > found[name].held
        ]
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            too_small = [
                host.name
                for host, takes in zip(
                    chosen, pool.map(hosts.takes, chosen), strict=True
                )
                if not takes
            ]
        if not too_small:
            return assignment
        for name in too_small:
            found[name] = dataclasses.replace(
                found[name], obstacle='takes no server of that size'
            )


def whole(
    store: ReservationStore, observed: ObservedState, now: datetime.datetime
) -> list[room.HostCapacity]:
    """Return the hosts with all that counts, in the order of their names."""
    counted = _Counted(store, observed, now)

    def one(host: ReservationHost) -> room.HostCapacity:
        obstacle = host.obstacle or counted.unknown(host)
        if obstacle is None:
            try:
                return counted.whole(host, store.tree(observed, host))
            except exception.ServiceNotFound:
                obstacle = 'is gone'
        return room.HostCapacity(host.name, obstacle=obstacle)

    hosts = [observed.hosts[name] for name in sorted(observed.hosts)]
    with futures.ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(one, hosts))


def shortages(
    store: ReservationStore,
    observed: ObservedState,
    now: datetime.datetime,
    only: Iterable[str] | None = None,
) -> dict[str, str]:
    """Return what hosts have too little of for the slots they have.

    What ordinary servers use does not count: they keep out.

    :param only: The names of the hosts to look at; None for all.
    :returns: For each such host what is wrong, for a sentence about it.
    """
    counted = _Counted(store, observed, now)
    found = {}
    for name in observed.hosts if only is None else only:
        host = observed.hosts[name]
        if host.slots and counted.unknown(host) is None:
            with contextlib.suppress(exception.ServiceNotFound):
                short = room.shortage(counted.capacity(host), now)
                if short:
                    found[name] = short
    return found


class _Counted:
    """What hosts have, and what the slots on them need."""

    def __init__(
        self,
        store: ReservationStore,
        observed: ObservedState,
        now: datetime.datetime,
    ) -> None:
        self.store = store
        self.observed = observed
        self.now = now
        # Servers of flavors that make no sense cannot be counted.
        self.needs = dict(
            _countable(
                found.flavor
                for found in observed.records.reservations.values()
            )
        )
        self.foreign = dict(_countable(observed.records.foreign.values()))

    def unknown(self, host: ReservationHost) -> str | None:
        for name in sorted(host.slots):
            if name not in self.needs and name not in self.foreign:
                return f'has slots of reservation {name}, which is unknown'
        return None

    def capacity(self, host: ReservationHost) -> room.HostCapacity:
        root, *below = self.store.tree(self.observed, host)
        return room.HostCapacity(
            host=host.name,
            capacity=root.capacity,
            below=tuple(one.capacity for one in below),
            claims=tuple(self.claims(host)),
        )

    def claims(
        self,
        host: ReservationHost,
        but: str | None = None,
        cleaning_time: datetime.timedelta = _NO_TIME,
    ) -> Iterator[room.Claim]:
        """Yield what the slots of all reservations but one need.

        :param cleaning_time: For how long after their end they count as well.
        """
        for name, slots in host.slots.items():
            if name == but:
                continue
            number = max(slots.total, slots.used)
            other = self.observed.records.reservations.get(name)
            if other is None:
                # It is not known here when it starts or ends.
                yield room.Claim(_ALWAYS, None, self.foreign[name], number)
                continue
            end = other.counted_until
            if end is not None:
                # What is there after the end takes its place still.
                end = max(room.later(end, cleaning_time), self.now + _INSTANT)
            yield room.Claim(other.counted_from, end, self.needs[name], number)

    def whole(
        self,
        host: ReservationHost,
        tree: list[ProviderSummary],
        but: str | None = None,
    ) -> room.HostCapacity:
        """Return a host with all that counts, but one reservation.

        :raises ServiceNotFound: if it is gone.
        """
        ordinary = self._ordinary(host, tree)
        return room.HostCapacity(
            host=host.name,
            capacity=tree[0].capacity,
            ordinary=ordinary.get(host.root, {}),
            below=tuple(
                {
                    name: has - ordinary.get(one.uuid, {}).get(name, 0)
                    for name, has in one.capacity.items()
                }
                for one in tree[1:]
            ),
            claims=tuple(self.claims(host, but, self.store.cleaning_time)),
        )

    def _ordinary(
        self, host: ReservationHost, tree: list[ProviderSummary]
    ) -> Mapping[str, Mapping[str, int]]:
        """Return what servers without a reservation use of each provider."""
        reserved = [
            (
                slots.used,
                self.needs.get(name) or self.foreign[name],
            )
            for name, slots in host.slots.items()
            if slots.used
        ]
        if not reserved:
            return {one.uuid: one.used for one in tree}
        rest: Counter[str] = Counter()
        for one in tree:
            rest.update(one.used)
        for number, amounts in reserved:
            rest.subtract({n: number * most for n, most in amounts.items()})
        if not any(rest.values()):
            return {}
        # A server that boots from a volume takes less than its slot has.
        total: dict[str, Counter[str]] = {}
        for one in tree:
            if any(one.used.values()):
                total[one.uuid] = Counter()
                for taken in ordinary_consumers(
                    self.store, one.uuid, host.provider
                ).values():
                    total[one.uuid].update(taken)
        return total


class _Capacities:
    """The hosts as they are for one reservation."""

    def __init__(
        self,
        store: ReservationStore,
        observed: ObservedState,
        reservation: Reservation,
        now: datetime.datetime,
    ) -> None:
        self._store = store
        self._observed = observed
        self._reservation = reservation
        self._counted = _Counted(store, observed, now)
        self._request = resources.resource_request(Request(reservation.flavor))
        # The slots' own trait is on the reservation providers.
        self._wanted = self._request.all_required_traits - {names.TRAIT}
        self._unwanted = frozenset().union(
            *(g.forbidden_traits for g in self._request.groups.values())
        )

    def all(self) -> dict[str, room.HostCapacity]:
        hosts = [
            host
            for host in self._observed.hosts.values()
            if host.name not in self._reservation.leaving
        ]
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            found = pool.map(self._capacity, hosts)
            return {capacity.host: capacity for capacity in found}

    def _capacity(self, host: ReservationHost) -> room.HostCapacity:
        own = host.slots.get(self._reservation.id)
        unknown = self._counted.unknown(host)
        found = room.HostCapacity(
            host=host.name,
            held=own.total if own else 0,
            used=own.used if own else 0,
            obstacle=host.obstacle or unknown,
        )
        if unknown or (found.obstacle and not own):
            return found
        try:
            tree = self._store.tree(self._observed, host)
            whole = self._counted.whole(host, tree, self._reservation.id)
        except exception.ServiceNotFound:
            return dataclasses.replace(found, obstacle='is gone')
        return dataclasses.replace(
            whole,
            held=found.held,
            used=found.used,
            obstacle=found.obstacle or self._lack(tree),
        )

    def takes(self, host: ReservationHost) -> bool:
        """Tell whether a host takes a single server of the reservation."""
        offers = [
            inventories.read(self._store.placement, provider.uuid).by_class
            for provider in self._store.tree(self._observed, host)
        ]
        for name, amount in _without_slots(self._request).items():
            given = [found[name] for found in offers if name in found]
            takers = [limits for limits in given if _allows(limits, amount)]
            if not takers or any(
                limits not in takers and inventories.capacity(limits) >= amount
                for limits in given
            ):
                return False
        return True

    def _lack(self, tree: list[ProviderSummary]) -> str | None:
        """Return what is wrong with the traits of a host, if anything.

        It is Placement that chooses where a server takes something from, so
        that a trait is sure only where all that may be chosen for something
        have it.
        """
        if not self._wanted and not self._unwanted:
            return None
        suppliers = [
            [one.traits for one in tree if one.capacity.get(name)]
            for name in _without_slots(self._request)
        ]
        sure: set[str] = set()
        seen: set[str] = set()
        for found in filter(None, suppliers):
            sure |= frozenset.intersection(*found)
            seen |= frozenset.union(*found)
        wrong = (self._wanted - sure) | (self._unwanted & seen)
        return f'lacks or has {", ".join(sorted(wrong))}' if wrong else None


def _allows(limits: Mapping[str, Any], amount: int) -> bool:
    """Tell whether an inventory takes some amount at once."""
    least = limits.get('min_unit', 1)
    step = limits.get('step_size', 1)
    return not amount % step and least <= amount <= limits.get('max_unit', 0)


def ordinary_consumers(
    store: ReservationStore, source: str, provider: str | None
) -> Mapping[str, Mapping[str, int]]:
    """Return the consumers of a host that take no slot, and what they use.

    :param source: The uuid of the resource provider that they use.
    :param provider: The uuid of its reservation provider, if it has one.
    :raises ServiceNotFound: if that provider is gone.
    """
    consumers = inventories.consumers(store.placement, source)
    reserved = (
        inventories.consumers(store.placement, provider) if provider else {}
    )
    return {
        consumer: amounts
        for consumer, amounts in consumers.items()
        if consumer not in reserved
    }


def _countable(
    flavors: Iterable[Flavor],
) -> Iterator[tuple[str, dict[str, int]]]:
    # There are many flavors of few sizes.
    known: dict[tuple[object, ...], dict[str, int] | None] = {}
    for flavor in flavors:
        size = _size(flavor)
        if size not in known:
            known[size] = None
            with contextlib.suppress(exception.InvalidRequest):
                known[size] = needs(flavor)
        found = known[size]
        if found is not None:
            yield flavor.id, found


def _size(flavor: Flavor) -> tuple[object, ...]:
    """Return all that its needs depend on, but for the slot."""
    return (
        flavor.vcpus,
        flavor.ram,
        flavor.disk,
        flavor.ephemeral,
        flavor.swap,
        *sorted(
            (key, value)
            for key, value in flavor.extra_specs.items()
            if names.reservation_of(key.partition(':')[2]) is None
        ),
    )
