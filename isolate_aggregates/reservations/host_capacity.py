# SPDX-License-Identifier: Apache-2.0
"""What hosts have for a reservation, and what the planner makes of it."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent import futures
import dataclasses
import datetime

from isolate_aggregates import exception
from isolate_aggregates.placement import inventories, providers, resources
from isolate_aggregates.request import Flavor, Request
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.reservations import names, planner
from isolate_aggregates.reservations.observed import (
    ObservedState,
    ReservationHost,
)
from isolate_aggregates.reservations.record import Reservation
from isolate_aggregates.reservations.store import ReservationStore

_ALWAYS = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_INSTANT = datetime.timedelta(microseconds=1)

_PARALLEL = 8


def needs(flavor: Flavor) -> dict[str, int]:
    """Return what one server of a flavor takes from its compute node.

    :raises InvalidRequest: if its extra specs contradict each other.
    """
    found = resources.resource_request(Request(flavor)).merged_resources()
    return {
        name: amount
        for name, amount in found.items()
        if names.reservation_of(name) is None
    }


def demand(reservation: Reservation, now: datetime.datetime) -> planner.Demand:
    """Return what a reservation needs from now on."""
    return planner.Demand(
        start=max(reservation.start, now),
        end=reservation.end,
        needs=needs(reservation.flavor),
        amount=reservation.amount,
        affinity=reservation.affinity,
    )


def capacities(
    store: ReservationStore,
    observed: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
) -> dict[str, planner.HostCapacity]:
    """Return the hosts as they are for a reservation, by name."""
    return _Capacities(store, observed, reservation, now).all()


def assign(
    store: ReservationStore,
    observed: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
    move: bool = False,
) -> planner.Assignment:
    """Choose hosts for the slots of a reservation.

    :param reservation: The reservation as it is to be.
    :param move: Whether slots leave hosts that can take no servers.
    """
    wanted = demand(reservation, now)
    found = capacities(store, observed, reservation, now)
    while True:
        assignment = planner.assign(wanted, found.values(), move)
        chosen = [
            observed.hosts[name]
            for name, slots in assignment.slots.items()
            if slots > found[name].held
        ]
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            too_small = [
                host.name
                for host, reason in zip(
                    chosen,
                    pool.map(
                        lambda host: _takes(store, host, wanted.needs), chosen
                    ),
                    strict=True,
                )
                if not reason
            ]
        if not too_small:
            return assignment
        for name in too_small:
            found[name] = dataclasses.replace(
                found[name], obstacle='takes no server of that size'
            )


def _takes(
    store: ReservationStore, host: ReservationHost, amounts: Mapping[str, int]
) -> bool:
    """Tell whether a host takes a single server of some size."""
    found = inventories.read(store.placement, host.root).by_class
    for name, amount in amounts.items():
        limits = found.get(name, {})
        step = limits.get('step_size', 1)
        least = limits.get('min_unit', 1)
        if amount % step or not least <= amount <= limits.get('max_unit', 0):
            return False
    return True


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
        self._now = now
        # Servers of flavors that make no sense cannot be counted.
        self._needs = dict(
            _countable(
                found.flavor
                for found in observed.records.reservations.values()
            )
        )
        self._foreign = dict(_countable(observed.records.foreign.values()))

    def all(self) -> dict[str, planner.HostCapacity]:
        hosts = list(self._observed.hosts.values())
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            found = pool.map(self._capacity, hosts)
            return {capacity.host: capacity for capacity in found}

    def _capacity(self, host: ReservationHost) -> planner.HostCapacity:
        own = host.slots.get(self._reservation.id)
        unknown = self._unknown(host)
        found = planner.HostCapacity(
            host=host.name,
            held=own.total if own else 0,
            used=own.used if own else 0,
            obstacle=host.obstacle or unknown,
        )
        if unknown or (found.obstacle and not own):
            return found
        try:
            capacity, used = self._amounts(host)
            return dataclasses.replace(
                found,
                capacity=capacity,
                ordinary=self._ordinary(host, used),
                claims=tuple(self._claims(host)),
                obstacle=found.obstacle or self._lack(host),
            )
        except exception.ServiceNotFound:
            return dataclasses.replace(found, obstacle='is gone')

    def _unknown(self, host: ReservationHost) -> str | None:
        for name in sorted(host.slots):
            if name not in self._needs and name not in self._foreign:
                return f'has slots of reservation {name}, which is unknown'
        return None

    def _claims(self, host: ReservationHost) -> Iterator[planner.Claim]:
        for name, slots in host.slots.items():
            if name == self._reservation.id:
                continue
            number = max(slots.total, slots.used)
            other = self._observed.records.reservations.get(name)
            if other is None:
                # It is not known here when it starts or ends.
                yield planner.Claim(_ALWAYS, None, self._foreign[name], number)
                continue
            end = other.counted_until
            if end is not None:
                # What is there after the end takes its place still.
                end = max(end, self._now + _INSTANT)
            yield planner.Claim(other.start, end, self._needs[name], number)

    def _amounts(
        self, host: ReservationHost
    ) -> tuple[Mapping[str, int], Mapping[str, int]]:
        summary = self._observed.summaries.get(host.root)
        if summary is not None:
            return summary.capacity, summary.used
        # It is full, and so was no candidate.
        found = inventories.read(self._store.placement, host.root)
        _, used = inventories.usages(self._store.placement, host.root)
        return {
            name: int(
                (amounts['total'] - amounts.get('reserved', 0))
                * amounts.get('allocation_ratio', 1.0)
            )
            for name, amounts in found.by_class.items()
        }, used

    def _lack(self, host: ReservationHost) -> str | None:
        """Return what is wrong with the traits of a host, if anything."""
        wanted: set[str] = set()
        unwanted: set[str] = set()
        for spec in xs.parse(self._reservation.shape.extra_specs):
            if spec.kind == 'trait' and spec.name != names.TRAIT:
                group = wanted if spec.value == xs.REQUIRED else unwanted
                group.add(spec.name)
        if not wanted and not unwanted:
            return None
        summary = self._observed.summaries.get(host.root)
        has = (
            summary.traits
            if summary is not None
            else providers.traits(self._store.placement, host.root)
        )
        wrong = (wanted - has) | (unwanted & has)
        return f'lacks or has {", ".join(sorted(wrong))}' if wrong else None

    def _ordinary(
        self, host: ReservationHost, used: Mapping[str, int]
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
        found = ordinary_consumers(self._store, host.root, host.provider)
        total: dict[str, int] = {}
        for taken in found.values():
            for name, amount in taken.items():
                total[name] = total.get(name, 0) + amount
        return total


def ordinary_consumers(
    store: ReservationStore, root: str, provider: str | None
) -> Mapping[str, Mapping[str, int]]:
    """Return the consumers of a host that take no slot, and what they use.

    :param root: The uuid of its resource provider.
    :param provider: The uuid of its reservation provider, if it has one.
    :raises ServiceNotFound: if its provider is gone.
    """
    consumers = inventories.consumers(store.placement, root)
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
    for flavor in flavors:
        try:
            yield flavor.id, needs(flavor)
        except exception.InvalidRequest:
            continue
