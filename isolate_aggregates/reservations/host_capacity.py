# SPDX-License-Identifier: Apache-2.0
"""Computes the capacity that hosts have for a reservation, and plans it."""

from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent import futures
import contextlib
import dataclasses
import datetime
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.placement.client import ProviderSummary
from isolate_aggregates.request import Flavor
from isolate_aggregates.reservations import names, plan
from isolate_aggregates.reservations.reservation import (
    Reservation,
    needs,
    without_slots,
)
from isolate_aggregates.reservations.state import (
    ObservedState,
    ReservationHost,
)
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.tools.placement import inventories
from isolate_aggregates.tools.request import Request, resources

_ALWAYS = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_NO_TIME = datetime.timedelta()
_INSTANT = datetime.timedelta(microseconds=1)


_PARALLEL = 8


class HostClaims:
    """The capacity of hosts, and what the slots on them need."""

    def __init__(
        self,
        store: ReservationStore,
        state: ObservedState,
        now: datetime.datetime,
    ) -> None:
        self.store = store
        self.state = state
        self.now = now
        # Flavors with invalid extra specs are left out; see unknown_slots().
        self.needs = dict(
            _countable(
                reservation.flavor
                for reservation in state.records.reservations.values()
            )
        )
        self.foreign = dict(_countable(state.records.foreign.values()))

    def unknown_slots(self, host: ReservationHost) -> str | None:
        for name in sorted(host.slots):
            if name not in self.needs and name not in self.foreign:
                return f'has slots of reservation {name}, which is unknown'
        return None

    def capacity(
        self, host: ReservationHost, tree: Sequence[ProviderSummary]
    ) -> plan.HostCapacity:
        root, *below = tree
        return plan.HostCapacity(
            host=host.name,
            capacity=root.capacity,
            below=tuple(provider.capacity for provider in below),
            claims=tuple(self.claims(host)),
        )

    def claims(
        self,
        host: ReservationHost,
        but: str | None = None,
        cleaning_time: datetime.timedelta = _NO_TIME,
    ) -> Iterator[plan.Claim]:
        """Yield what the slots of all reservations but one need."""
        for name, slots in host.slots.items():
            if name == but:
                continue
            number = max(slots.total, slots.used)
            other = self.state.records.reservations.get(name)
            if other is None:
                # Its start and end are unknown, so it always counts.
                yield plan.Claim(_ALWAYS, None, self.foreign[name], number)
                continue
            end = other.counted_until
            if end is not None:
                # Slots that still exist after the end count until removed.
                end = max(plan.later(end, cleaning_time), self.now + _INSTANT)
            yield plan.Claim(other.counted_from, end, self.needs[name], number)

    def with_usage(
        self,
        host: ReservationHost,
        but: str | None = None,
        is_estimate: bool = False,
    ) -> plan.HostCapacity:
        """Return the capacity of a host, with all claims except one.

        :param is_estimate: Whether servers without a reservation may be missed
            where servers in slots use less than their slots have. This saves
            reading the servers of the host.
        :raises ServiceNotFound: if one of its providers is gone.
        """
        tree = self.state.tree(host)
        if not tree:
            raise exception.ServiceNotFound(
                'Placement', None, f'has no resource provider {host.root}'
            )
        ordinary = self._ordinary(host, tree, is_estimate)
        return plan.HostCapacity(
            host=host.name,
            capacity=tree[0].capacity,
            ordinary=ordinary.get(host.root, {}),
            below=tuple(
                {
                    name: has - ordinary.get(provider.uuid, {}).get(name, 0)
                    for name, has in provider.capacity.items()
                }
                for provider in tree[1:]
            ),
            claims=tuple(self.claims(host, but, self.state.cleaning_time)),
        )

    def _ordinary(
        self,
        host: ReservationHost,
        tree: list[ProviderSummary],
        is_estimate: bool,
    ) -> Mapping[str, Mapping[str, int]]:
        """Return what servers outside reservations use, by provider."""
        reserved = [
            (
                slots.used,
                self.needs.get(name) or self.foreign[name],
            )
            for name, slots in host.slots.items()
            if slots.used
        ]
        if not reserved:
            return {summary.uuid: summary.used for summary in tree}
        rest: Counter[str] = Counter()
        for summary in tree:
            rest.update(summary.used)
        for number, amounts in reserved:
            rest.subtract({n: number * most for n, most in amounts.items()})
        if not any(rest.values()) or (is_estimate and max(rest.values()) <= 0):
            return {}
        # The difference need not be ordinary servers: a server in a slot may
        # use less than the slot has, for example if it boots from a volume.
        # So the consumers are read one by one.
        total: dict[str, Counter[str]] = {}
        for summary in tree:
            if any(summary.used.values()):
                total[summary.uuid] = Counter()
                for usage in ordinary_consumers(
                    self.store, summary.uuid, host.provider
                ).values():
                    total[summary.uuid].update(usage)
        return total


def ordinary_servers(
    store: ReservationStore, state: ObservedState, now: datetime.datetime
) -> dict[str, list[str]]:
    """Return the consumers without a slot on hosts that have slots or may.

    Only hosts are read where more is used than the servers in slots need.

    :returns: The uuids of the consumers, by name of the host.
    """
    claims = HostClaims(store, state, now)
    servers: dict[str, list[str]] = {}
    for host in state.hosts.values():
        if not host.is_ready or claims.unknown_slots(host):
            continue
        tree = state.tree(host)
        rest: Counter[str] = Counter()
        for summary in tree:
            rest.update(summary.used)
        for name, slots in host.slots.items():
            need = claims.needs.get(name) or claims.foreign[name]
            rest.subtract({n: slots.used * most for n, most in need.items()})
        if max(rest.values(), default=0) <= 0:
            continue
        found: set[str] = set()
        for summary in tree:
            if any(summary.used.values()):
                with contextlib.suppress(exception.ServiceNotFound):
                    found.update(
                        ordinary_consumers(store, summary.uuid, host.provider)
                    )
        if found:
            servers[host.name] = sorted(found)
    return servers


def ordinary_consumers(
    store: ReservationStore, source: str, provider: str | None
) -> Mapping[str, Mapping[str, int]]:
    """Return what the consumers without a slot use of a provider.

    :param source: The uuid of the provider that they use.
    :param provider: The uuid of the host's reservation provider, if any.
    :raises ServiceNotFound: if one of the providers is gone.
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
    # There are many flavors but few sizes, so each size is computed once.
    by_size: dict[tuple[object, ...], dict[str, int] | None] = {}
    for flavor in flavors:
        size = _size(flavor)
        if size not in by_size:
            by_size[size] = None
            with contextlib.suppress(exception.InvalidRequest):
                by_size[size] = needs(flavor)
        amounts = by_size[size]
        if amounts is not None:
            yield flavor.id, amounts


def _size(flavor: Flavor) -> tuple[object, ...]:
    """Return everything that determines the flavor's needs."""
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


def demand(
    reservation: Reservation,
    now: datetime.datetime,
    cleaning_time: datetime.timedelta = _NO_TIME,
) -> plan.Demand:
    """Return what a reservation needs, from its start or from now."""
    return plan.Demand(
        start=max(reservation.start, now),
        end=reservation.end,
        needs=needs(reservation.flavor),
        amount=reservation.amount,
        affinity=reservation.affinity,
        cleaning_time=cleaning_time,
    )


def assign(
    store: ReservationStore,
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
    leave: Collection[str] = (),
) -> plan.Assignment:
    """Choose hosts for the slots of a reservation."""
    need = demand(reservation, now, state.cleaning_time)
    return _choose(
        state,
        Capacities(store, state, reservation, now),
        lambda hosts: plan.assign(need, hosts, leave),
    )


def first_fit(
    store: ReservationStore,
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
) -> plan.Assignment:
    """Find the earliest time and the hosts at which a reservation fits.

    :param reservation: The reservation with its earliest possible start.
    """
    need = demand(reservation, now, state.cleaning_time)
    if reservation.end is not None:
        length = reservation.end - reservation.start
        need = dataclasses.replace(need, end=need.start + length)
    return _choose(
        state,
        Capacities(store, state, reservation, now),
        lambda hosts: plan.first_fit(need, hosts),
    )


def refusal(
    store: ReservationStore,
    state: ObservedState,
    reservation: Reservation,
    assignment: plan.Assignment,
    now: datetime.datetime,
) -> str:
    """Return why a change does not fit, and when a new reservation would.

    :param reservation: The reservation with the pending change.
    """
    if reservation.amount:
        return assignment.refusal
    later = first_fit(store, state, reservation.settled, now)
    start = later.demand.start.isoformat(timespec='seconds')
    when = (
        'it does not fit later either'
        if later.missing
        else f'all of it fits from {start} on'
    )
    return f'{assignment.refusal}; {when}'


def _choose(
    state: ObservedState,
    capacities: 'Capacities',
    choose: Callable[[list[plan.HostCapacity]], plan.Assignment],
) -> plan.Assignment:
    """Choose hosts, and reject those that do not accept a single server.

    Only chosen hosts are checked, as that reads their servers and inventories.
    """
    hosts = capacities.estimate()
    exact: set[str] = set()
    while True:
        assignment = choose(list(hosts.values()))
        due = assignment.slots.keys() - exact
        exact |= due
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            updates = list(
                pool.map(
                    capacities.exact,
                    (state.hosts[name] for name in sorted(due)),
                )
            )
        if any(hosts[one.host] != one for one in updates):
            hosts |= {one.host: one for one in updates}
            continue
        chosen_hosts = [
            state.hosts[name]
            for name, slots in assignment.slots.items()
            if slots > hosts[name].own
        ]
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            obstacles = dict(
                zip(
                    (host.name for host in chosen_hosts),
                    pool.map(capacities.size_obstacle, chosen_hosts),
                    strict=True,
                )
            )
        if not any(obstacles.values()):
            return assignment
        for name, obstacle in obstacles.items():
            hosts[name] = dataclasses.replace(
                hosts[name], obstacle=obstacle or hosts[name].obstacle
            )


def all_hosts(
    store: ReservationStore, state: ObservedState, now: datetime.datetime
) -> list[plan.HostCapacity]:
    """Return the capacity of all hosts with all claims, sorted by name."""
    claims = HostClaims(store, state, now)

    def one(host: ReservationHost) -> plan.HostCapacity:
        obstacle = host.obstacle or claims.unknown_slots(host)
        if obstacle is None:
            try:
                return claims.with_usage(host)
            except exception.ServiceNotFound:
                obstacle = 'is gone'
        return plan.HostCapacity(host.name, obstacle=obstacle)

    hosts = [state.hosts[name] for name in sorted(state.hosts)]
    with futures.ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(one, hosts))


def shortages(
    store: ReservationStore,
    state: ObservedState,
    now: datetime.datetime,
    only: Iterable[str] | None = None,
) -> dict[str, str]:
    """Find hosts with too little capacity for the slots they have.

    The usage of ordinary servers is ignored, as the pool excludes them.

    :param only: The names of the hosts to check; None for all.
    :returns: The problem by name of the host, as the predicate of a sentence.
    """
    claims = HostClaims(store, state, now)
    problems = {}
    for name in state.hosts if only is None else only:
        host = state.hosts[name]
        if host.slots and claims.unknown_slots(host) is None:
            tree = state.tree(host)
            short = tree and plan.shortage(claims.capacity(host, tree), now)
            if short:
                problems[name] = short
    return problems


class Capacities:
    """The capacity that each host has for one reservation."""

    def __init__(
        self,
        store: ReservationStore,
        state: ObservedState,
        reservation: Reservation,
        now: datetime.datetime,
    ) -> None:
        self._store = store
        self._observed = state
        self._reservation = reservation
        self._claims = HostClaims(store, state, now)
        self._closed = state.closed(reservation, state.hosts)
        self._request = resources.resource_request(Request(reservation.flavor))
        # The slots' own trait is on the reservation providers.
        self._required = self._request.all_required_traits - {names.TRAIT}
        self._forbidden = frozenset().union(
            *(g.forbidden_traits for g in self._request.groups.values())
        )

    def estimate(self) -> dict[str, plan.HostCapacity]:
        """Return the capacity of all hosts that it is not leaving.

        It may be too large; see ``HostClaims.with_usage``.
        """
        hosts = [
            host
            for host in self._observed.hosts.values()
            if host.name not in self._reservation.leaving
        ]
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            capacities = pool.map(
                lambda host: self._capacity(host, is_estimate=True), hosts
            )
            return {capacity.host: capacity for capacity in capacities}

    def exact(self, host: ReservationHost) -> plan.HostCapacity:
        """Return the capacity of a host."""
        return self._capacity(host, is_estimate=False)

    def _capacity(
        self, host: ReservationHost, is_estimate: bool
    ) -> plan.HostCapacity:
        own = host.slots.get(self._reservation.id)
        unknown = self._claims.unknown_slots(host)
        basis = plan.HostCapacity(
            host=host.name,
            own=own.total if own else 0,
            used=own.used if own else 0,
            obstacle=host.obstacle or unknown or self._closed.get(host.name),
        )
        if unknown or (basis.obstacle and not own):
            return basis
        try:
            whole = self._claims.with_usage(
                host, self._reservation.id, is_estimate
            )
        except exception.ServiceNotFound:
            return dataclasses.replace(basis, obstacle='is gone')
        return dataclasses.replace(
            whole,
            own=basis.own,
            used=basis.used,
            obstacle=basis.obstacle or self._trait_obstacle(host),
        )

    def size_obstacle(self, host: ReservationHost) -> str | None:
        """Return why a host does not accept one server of the reservation.

        Every provider with enough capacity must also accept the amount in one
        allocation, as Placement may choose any of them.
        """
        offers = [
            inventories.read(self._store.placement, provider.uuid).by_class
            for provider in self._observed.tree(host)
        ]
        for name, amount in without_slots(self._request).items():
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
                return (
                    f'does not accept {amount} {name} for one server, see '
                    'min_unit, max_unit and step_size of its inventory'
                )
        return None

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
            for name in without_slots(self._request)
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
