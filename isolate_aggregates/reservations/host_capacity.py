# SPDX-License-Identifier: Apache-2.0
"""Computes the capacity that hosts have for a reservation, and plans it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent import futures
import dataclasses
import datetime
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.placement import inventories, resources
from isolate_aggregates.request import Request
from isolate_aggregates.reservations import counting, names, planner, room
from isolate_aggregates.reservations.observed import (
    ObservedState,
    ReservationHost,
)
from isolate_aggregates.reservations.reservation import Reservation
from isolate_aggregates.reservations.store import ReservationStore

_NO_TIME = datetime.timedelta()

_PARALLEL = 8


def demand(
    reservation: Reservation,
    now: datetime.datetime,
    cleaning_time: datetime.timedelta = _NO_TIME,
) -> room.Demand:
    """Return what a reservation needs, from its start or from now."""
    return room.Demand(
        start=max(reservation.start, now),
        end=reservation.end,
        needs=counting.needs(reservation.flavor),
        amount=reservation.amount,
        affinity=reservation.affinity,
        cleaning_time=cleaning_time,
    )


def assign(
    store: ReservationStore,
    observed: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
    leave: Collection[str] = (),
) -> planner.Assignment:
    """Choose hosts for the slots of a reservation.

    :param leave: The hosts whose slots without a server are to be moved.
    """
    need = demand(reservation, now, store.cleaning_time)
    return _choose(
        observed,
        Capacities(store, observed, reservation, now),
        lambda hosts: planner.assign(need, hosts, leave),
    )


def first_fit(
    store: ReservationStore,
    observed: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
) -> planner.Assignment:
    """Find the earliest time and the hosts at which a reservation fits.

    :param reservation: The reservation with its earliest possible start.
    """
    need = demand(reservation, now, store.cleaning_time)
    if reservation.end is not None:
        length = reservation.end - reservation.start
        need = dataclasses.replace(need, end=need.start + length)
    return _choose(
        observed,
        Capacities(store, observed, reservation, now),
        lambda hosts: planner.first_fit(need, hosts),
    )


def _choose(
    observed: ObservedState,
    capacities: 'Capacities',
    choose: Callable[[list[room.HostCapacity]], planner.Assignment],
) -> planner.Assignment:
    """Choose hosts, and reject those that do not accept a single server.

    Only chosen hosts are checked, as that reads their inventories.
    """
    hosts = capacities.all()
    while True:
        assignment = choose(list(hosts.values()))
        chosen = [
            observed.hosts[name]
            for name, slots in assignment.slots.items()
            if slots > hosts[name].own
        ]
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            too_small = [
                host.name
                for host, accepts in zip(
                    chosen,
                    pool.map(capacities.accepts_server, chosen),
                    strict=True,
                )
                if not accepts
            ]
        if not too_small:
            return assignment
        for name in too_small:
            hosts[name] = dataclasses.replace(
                hosts[name], obstacle='cannot take a server of that size'
            )


def all_hosts(
    store: ReservationStore, observed: ObservedState, now: datetime.datetime
) -> list[room.HostCapacity]:
    """Return the capacity of all hosts with all claims, sorted by name."""
    claims = counting.HostClaims(store, observed, now)

    def one(host: ReservationHost) -> room.HostCapacity:
        obstacle = host.obstacle or claims.unknown_slots(host)
        if obstacle is None:
            try:
                return claims.with_usage(host)
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
    """Find hosts with too little capacity for the slots they have.

    The usage of ordinary servers is ignored, as the pool excludes them.

    :param only: The names of the hosts to check; None for all.
    :returns: The problem by name of the host, as the predicate of a sentence.
    """
    claims = counting.HostClaims(store, observed, now)
    problems = {}
    for name in observed.hosts if only is None else only:
        host = observed.hosts[name]
        if host.slots and claims.unknown_slots(host) is None:
            tree = observed.tree(host)
            short = tree and room.shortage(claims.capacity(host, tree), now)
            if short:
                problems[name] = short
    return problems


class Capacities:
    """The capacity that each host has for one reservation."""

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
        self._claims = counting.HostClaims(store, observed, now)
        self._request = resources.resource_request(Request(reservation.flavor))
        # The slots' own trait is on the reservation providers.
        self._required = self._request.all_required_traits - {names.TRAIT}
        self._forbidden = frozenset().union(
            *(g.forbidden_traits for g in self._request.groups.values())
        )

    def all(self) -> dict[str, room.HostCapacity]:
        hosts = [
            host
            for host in self._observed.hosts.values()
            if host.name not in self._reservation.leaving
        ]
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            capacities = pool.map(self._capacity, hosts)
            return {capacity.host: capacity for capacity in capacities}

    def _capacity(self, host: ReservationHost) -> room.HostCapacity:
        own = host.slots.get(self._reservation.id)
        unknown = self._claims.unknown_slots(host)
        basis = room.HostCapacity(
            host=host.name,
            own=own.total if own else 0,
            used=own.used if own else 0,
            obstacle=host.obstacle or unknown,
        )
        if unknown or (basis.obstacle and not own):
            return basis
        try:
            whole = self._claims.with_usage(host, self._reservation.id)
        except exception.ServiceNotFound:
            return dataclasses.replace(basis, obstacle='is gone')
        return dataclasses.replace(
            whole,
            own=basis.own,
            used=basis.used,
            obstacle=basis.obstacle or self._trait_obstacle(host),
        )

    def accepts_server(self, host: ReservationHost) -> bool:
        """Return whether a host accepts one server of the reservation.

        Every provider with enough capacity must also accept the amount in one
        allocation, as Placement may choose any of them.
        """
        offers = [
            inventories.read(self._store.placement, provider.uuid).by_class
            for provider in self._observed.tree(host)
        ]
        for name, amount in counting.without_slots(self._request).items():
            limits_by_provider = [
                by_class[name] for by_class in offers if name in by_class
            ]
            takers = [
                limits
                for limits in limits_by_provider
                if _allows(limits, amount)
            ]
            if not takers or any(
                limits not in takers and inventories.capacity(limits) >= amount
                for limits in limits_by_provider
            ):
                return False
        return True

    def _trait_obstacle(self, host: ReservationHost) -> str | None:
        """Return which required or forbidden traits rule a host out.

        If several providers of the tree have an inventory of a resource class,
        Placement chooses one. So a required trait must be on all of them, and
        a forbidden trait on none.
        """
        if not self._required and not self._forbidden:
            return None
        tree = self._observed.tree(host)
        suppliers = [
            [
                provider.traits
                for provider in tree
                if provider.capacity.get(name)
            ]
            for name in counting.without_slots(self._request)
        ]
        certain: set[str] = set()
        possible: set[str] = set()
        for traits in filter(None, suppliers):
            certain |= frozenset.intersection(*traits)
            possible |= frozenset.union(*traits)
        lacking, forbidden = (
            self._required - certain,
            self._forbidden & possible,
        )
        wrong = [
            *(f'lacks {trait}' for trait in sorted(lacking)),
            *(
                f'has {trait}, which is forbidden'
                for trait in sorted(forbidden)
            ),
        ]
        return ' and '.join(wrong) or None


def _allows(limits: Mapping[str, Any], amount: int) -> bool:
    """Return whether an inventory accepts the amount in one allocation."""
    least = limits.get('min_unit', 1)
    step = limits.get('step_size', 1)
    return not amount % step and least <= amount <= limits.get('max_unit', 0)
