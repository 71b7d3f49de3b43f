# SPDX-License-Identifier: Apache-2.0
"""Computes the capacity that hosts have for a reservation.

These are pure functions. Some of what they need is read only for the few hosts
that matter; ``Unread`` names these, and what is computed without it may be too
much.
"""

from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import contextlib
import dataclasses
import datetime
from typing import Any

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
from isolate_aggregates.tools import errors
from isolate_aggregates.tools.placement import inventories
from isolate_aggregates.tools.placement.client import ProviderSummary
from isolate_aggregates.tools.request import Request, resources

_ALWAYS = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_NO_TIME = datetime.timedelta()
_INSTANT = datetime.timedelta(microseconds=1)


@dataclasses.dataclass(frozen=True)
class Unread:
    """The hosts of which more must be read; see ``HostReading``.

    :param servers: Those whose servers without a slot are not known.
    :param limits: Those whose inventories are not known.
    """

    servers: frozenset[str] = frozenset()
    limits: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.servers or self.limits)


# For a default.
NOTHING = Unread()


class HostClaims:
    """The capacity of hosts, and what the slots on them need."""

    def __init__(self, state: ObservedState, now: datetime.datetime) -> None:
        self.state = state
        self.now = now
        # Flavors with invalid extra specs are left out; see unknown_slots().
        self.needs, self.foreign = _needs_in(state)

    def unknown_slots(self, host: ReservationHost) -> str | None:
        for name in sorted(host.slots):
            if name not in self.needs and name not in self.foreign:
                return f'has slots of reservation {name}, which is unknown'
        return None

    def capacity(
        self, host: ReservationHost, tree: Sequence[ProviderSummary]
    ) -> plan.HostCapacity:
        return _host_capacity(host, tree, self.claims(host), {})

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
            yield plan.Claim(other.start, end, self.needs[name], number)

    def with_usage(
        self, host: ReservationHost, but: str | None = None
    ) -> plan.HostCapacity:
        """Return the capacity of a host, with all claims except one.

        If its servers without a slot must be read, they are left out.
        """
        tree = self.state.tree(host)
        if not tree:
            return plan.HostCapacity(host.name, obstacle='is gone')
        claims = self.claims(host, but, self.state.cleaning_time)
        return _host_capacity(host, tree, claims, self._ordinary(host, tree))

    def others_use(self, host: ReservationHost) -> list[int]:
        """Return what is used beyond what the servers in slots need.

        The difference need not be servers without a slot: one in a slot may
        use less than the slot has, for example if it boots from a volume.

        :returns: The amounts that are not 0; of any resource classes.
        """
        rest: Counter[str] = Counter()
        for summary in self.state.tree(host):
            rest.update(summary.used)
        for name, slots in host.slots.items():
            amounts = self.needs.get(name) or self.foreign[name]
            rest.subtract(
                {n: slots.used * most for n, most in amounts.items()}
            )
        return [amount for amount in rest.values() if amount]

    def is_unread(self, host: ReservationHost) -> bool:
        reading = self.state.readings.get(host.name)
        return (
            any(slots.used for slots in host.slots.values())
            and (reading is None or reading.ordinary is None)
            and bool(self.others_use(host))
        )

    def _ordinary(
        self, host: ReservationHost, tree: Sequence[ProviderSummary]
    ) -> Mapping[str, Mapping[str, int]]:
        if not any(slots.used for slots in host.slots.values()):
            return {summary.uuid: summary.used for summary in tree}
        reading = self.state.readings.get(host.name)
        return (reading and reading.ordinary) or {}


def _host_capacity(
    host: ReservationHost,
    tree: Iterable[ProviderSummary],
    claims: Iterable[plan.Claim],
    ordinary: Mapping[str, Mapping[str, int]],
) -> plan.HostCapacity:
    root, *below = (
        {
            name: has - ordinary.get(provider.uuid, {}).get(name, 0)
            for name, has in provider.capacity.items()
        }
        for provider in tree
    )
    return plan.HostCapacity(host.name, root, tuple(below), tuple(claims))


def _needs_in(
    state: ObservedState,
) -> tuple[Mapping[str, dict[str, int]], Mapping[str, dict[str, int]]]:
    """Return what a slot of each reservation needs, computed once per state.

    :returns: Those of our reservations, and those of others, by their ids.
    """
    known = vars(state)
    if '_needs' not in known:
        known['_needs'] = (
            dict(
                _countable(
                    reservation.flavor
                    for reservation in state.records.reservations.values()
                )
            ),
            dict(_countable(state.records.foreign.values())),
        )
    needs_in: tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]
    needs_in = known['_needs']
    return needs_in


def _countable(
    flavors: Iterable[Flavor],
) -> Iterator[tuple[str, dict[str, int]]]:
    # There are many flavors but few sizes, so each size is computed once.
    by_size: dict[tuple[object, ...], dict[str, int] | None] = {}
    for flavor in flavors:
        size = _size(flavor)
        if size not in by_size:
            by_size[size] = None
            with contextlib.suppress(errors.InvalidRequest):
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
    return plan.Demand(
        start=max(reservation.start, now),
        end=reservation.end,
        needs=needs(reservation.flavor),
        amount=reservation.amount,
        affinity=reservation.affinity,
        cleaning_time=cleaning_time,
    )


def assign(
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
    leave: Collection[str] = (),
) -> tuple[plan.Assignment, Unread]:
    need = demand(reservation, now, state.cleaning_time)
    return _choose(
        Capacities(state, reservation, now),
        lambda hosts: plan.assign(need, hosts, leave),
    )


def first_fit(
    state: ObservedState, reservation: Reservation, now: datetime.datetime
) -> tuple[plan.Assignment, Unread]:
    """Find the earliest time and the hosts at which a reservation fits.

    :param reservation: The reservation with its earliest possible start.
    """
    need = demand(reservation, now, state.cleaning_time)
    if reservation.end is not None:
        length = reservation.end - reservation.start
        need = dataclasses.replace(need, end=need.start + length)
    return _choose(
        Capacities(state, reservation, now),
        lambda hosts: plan.first_fit(need, hosts),
    )


def _choose(
    capacities: 'Capacities',
    choose: Callable[[list[plan.HostCapacity]], plan.Assignment],
) -> tuple[plan.Assignment, Unread]:
    """Choose hosts, and reject those that do not accept a single server."""
    hosts = capacities.all_hosts()
    while True:
        assignment = choose(list(hosts.values()))
        growing = [
            name
            for name, slots in assignment.slots.items()
            if slots > hosts[name].own
        ]
        unread = capacities.unread(assignment, growing)
        if unread:
            return assignment, unread
        obstacles = {
            name: obstacle
            for name in growing
            if (obstacle := capacities.size_obstacle(name))
        }
        if not obstacles:
            return assignment, unread
        for name, obstacle in obstacles.items():
            hosts[name] = dataclasses.replace(hosts[name], obstacle=obstacle)


def all_hosts(
    state: ObservedState, now: datetime.datetime
) -> tuple[list[plan.HostCapacity], Unread]:
    claims = HostClaims(state, now)
    capacities = []
    unread = set()
    for _, host in sorted(state.hosts.items()):
        obstacle = host.obstacle or claims.unknown_slots(host)
        if obstacle is None:
            capacities.append(claims.with_usage(host))
            if claims.is_unread(host):
                unread.add(host.name)
        else:
            capacities.append(plan.HostCapacity(host.name, obstacle=obstacle))
    return capacities, Unread(servers=frozenset(unread))


def shortages(
    state: ObservedState,
    now: datetime.datetime,
    only: Iterable[str] | None = None,
) -> dict[str, str]:
    """Find hosts with too little capacity for the slots they have.

    The usage of ordinary servers is ignored, as the pool excludes them.

    :param only: The names of the hosts to check; None for all.
    :returns: The problem by name of the host, as the predicate of a sentence.
    """
    claims = HostClaims(state, now)
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
    def __init__(
        self,
        state: ObservedState,
        reservation: Reservation,
        now: datetime.datetime,
    ) -> None:
        self._observed = state
        self._reservation = reservation
        self._claims = HostClaims(state, now)
        self._closed = state.closed(reservation, state.hosts)
        # The hosts whose usage counts.
        self._computed: set[str] = set()
        self._request = resources.resource_request(Request(reservation.flavor))
        # The slots' own trait is on the reservation providers.
        self._required = self._request.all_required_traits - {names.TRAIT}
        self._forbidden = frozenset().union(
            *(g.forbidden_traits for g in self._request.groups.values())
        )

    def all_hosts(self) -> dict[str, plan.HostCapacity]:
        only_on = self._reservation.only_on
        return {
            host.name: self._capacity(host)
            for host in self._observed.hosts.values()
            if host.name not in self._reservation.leaving
            and (not only_on or host.name in only_on)
        }

    def unread(
        self, assignment: plan.Assignment, growing: Iterable[str]
    ) -> Unread:
        """Return what must be read before an assignment is certain.

        :param growing: The hosts that get more slots than they have.
        """
        reading = self._observed.readings
        return Unread(
            servers=frozenset(
                host.name
                for host in self._observed.hosts.values()
                if host.name in self._computed
                and self._claims.is_unread(host)
                and (
                    host.name in assignment.slots
                    or max(self._claims.others_use(host)) > 0
                )
            ),
            limits=frozenset(
                name
                for name in growing
                if name not in reading or reading[name].limits is None
            ),
        )

    def _capacity(self, host: ReservationHost) -> plan.HostCapacity:
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
        self._computed.add(host.name)
        reading = self._observed.readings.get(host.name)
        whole = self._claims.with_usage(host, self._reservation.id)
        if whole.obstacle or (reading and reading.is_gone):
            return dataclasses.replace(basis, obstacle='is gone')
        return dataclasses.replace(
            whole,
            own=basis.own,
            used=basis.used,
            obstacle=basis.obstacle or self._trait_obstacle(host),
        )

    def size_obstacle(self, name: str) -> str | None:
        """Return why a host does not accept one server of the reservation.

        Every provider with enough capacity must also accept the amount in one
        allocation, as Placement may choose any of them.
        """
        offers = self._observed.readings[name].limits or ()
        for needed, amount in without_slots(self._request).items():
            limits_by_provider = [
                by_class[needed] for by_class in offers if needed in by_class
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
                    f'does not accept {amount} {needed} for one server, see '
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
    least = limits.get('min_unit', 1)
    step = limits.get('step_size', 1)
    return not amount % step and least <= amount <= limits.get('max_unit', 0)
