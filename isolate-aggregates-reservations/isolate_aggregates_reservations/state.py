# SPDX-License-Identifier: Apache-2.0
"""The state of hosts and reservations, as read from Nova and Placement.

The generations of the reservation providers are read before everything else.
So if a write with such a generation succeeds, the command knew every slot on
the provider and the record of every reservation with slots there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
import datetime
import enum
from typing import Any, Protocol, TypeVar

from isolate_aggregates import text
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_reservations import errors, names
from isolate_aggregates_reservations.compute import Node
from isolate_aggregates_reservations.locks import Locks
from isolate_aggregates_reservations.record import Records
from isolate_aggregates_reservations.reservation import Reservation
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.placement.client import ProviderSummary

_T = TypeVar('_T')

# The longest cleaning time, in seconds: a week.
_MOST_CLEANING = 604_800

# The largest difference allowed between the local clock and Placement's.
MOST_SKEW = datetime.timedelta(seconds=10)


def pool_number(
    pool: Aggregate | None, key: str, unit: str, most: int, example: int
) -> int | None:
    """Return a number in the metadata of the pool; None if it has none.

    :param unit: What is counted, in the plural.
    :param example: A value for the advice in the error.
    :raises PoolError: if the metadata is invalid.
    """
    if pool is None or key not in pool.metadata:
        return None
    value = pool.metadata[key].strip()
    if not (value.isdecimal() and int(value) <= most):
        correct = shell.command(
            shell.Kind.AGGREGATE_SET,
            *shell.option('--property', f'{key}={example}'),
            names=[pool.name],
        )
        raise errors.PoolError(
            pool.name,
            f'has {key}="{text.escaped(value)}", which must be a number of '
            f'{unit} from 0 to {most}; run {correct}',
        )
    return int(value)


@dataclasses.dataclass(frozen=True)
class HostSlots:
    """The slots of one reservation on one host.

    :param open: The number of slots that servers may use.
    :param used: The number of slots with a server.
    :param is_planned: Whether the slots are closed as those of a reservation
        that has not started; see ``slots``.
    """

    total: int
    open: int
    used: int
    is_planned: bool = False

    @property
    def oversold(self) -> int:
        return max(0, self.used - self.total)


class HostState(enum.Enum):
    """Whether a host can take servers."""

    UP = 'up'
    DOWN = 'down'
    DISABLED = 'disabled'
    GONE = 'gone'


@dataclasses.dataclass(frozen=True)
class ReservationHost:
    """A compute node that is in the pool or has a reservation provider.

    :param name: Its hypervisor hostname.
    :param root: The uuid of its resource provider.
    :param service: The name of its compute service; None if it is gone.
    :param in_pool: Whether it is in the pool, which excludes ordinary servers.
    :param has_failed: Whether its compute service is gone or down, disabled
        or not.
    :param provider: The uuid of its reservation provider; None if it has
        none.
    :param former_name: The name of the host that its reservation provider
        has: its own, or one that it had before.
    :param is_ready: Whether the reservation provider has the trait that
        allows slots on it.
    :param is_marked: Whether the reservation provider has a unit of the
        marker class.
    :param slots: The slots on it, by reservation id.
    """

    name: str
    root: str
    service: str | None
    state: HostState
    in_pool: bool
    has_failed: bool = False
    provider: str | None = None
    generation: int = 0
    former_name: str = ''
    is_ready: bool = False
    is_marked: bool = False
    slots: Mapping[str, HostSlots] = dataclasses.field(default_factory=dict)

    @property
    def is_enabled(self) -> bool:
        return self.is_ready and self.in_pool

    @property
    def obstacle(self) -> str | None:
        """Why it cannot take new slots, as a predicate; None if it can."""
        if self.state is HostState.GONE:
            return 'is gone'
        if not self.is_enabled:
            return 'is not enabled for reservations'
        if self.state is not HostState.UP:
            return f'is {self.state.value}'
        return None


Tree = Sequence[ProviderSummary]

# What consumers use, by uuid of the provider and resource class.
Usage = Mapping[str, Mapping[str, int]]

# The inventories of the providers of a host, each by resource class.
Limits = Sequence[Mapping[str, Mapping[str, Any]]]


class HostReader(Protocol):
    """Reads of hosts what only some plans depend on, once of each.

    Each method takes hosts with their trees, and returns what it reads by name
    of the host; None for a host that was deleted meanwhile.
    """

    def ordinary(
        self, hosts: Iterable[tuple[ReservationHost, Tree]]
    ) -> Mapping[str, Usage | None]:
        """Return what consumers without a slot use."""

    def limits(
        self, hosts: Iterable[tuple[ReservationHost, Tree]]
    ) -> Mapping[str, Limits | None]:
        """Return the inventories of their resources."""


@dataclasses.dataclass(frozen=True)
class ObservedState:
    """The state of a cloud, as far as reservations need it.

    :param pool: The aggregate of the hosts for reservations; None if it does
        not exist yet.
    :param providers: The uuids of all root providers, by name.
    :param hosts: The hosts for reservations, by name.
    :param extra_specs: The extra specs of the reservations' flavors, by
        flavor id.
    :param trees: The providers of the resources of hosts with a reservation
        provider, the root first, by uuid of the root.
    :param by_reservation: The slots of each reservation, by name of the host:
        those of ``hosts`` the other way round.
    :param leases: The aggregates of Blazar's leases.
    :param locks: What the request filters decide; None if not known.
    :param reader: Reads more of hosts.
    :param access: The ids of the projects that have access to the flavor, by
        reservation id, as far as that was read.
    """

    pool: Aggregate | None
    nodes: tuple[Node, ...]
    providers: Mapping[str, str]
    hosts: Mapping[str, ReservationHost]
    records: Records
    extra_specs: Mapping[str, Mapping[str, str]]
    trees: Mapping[str, Tree]
    by_reservation: Mapping[str, Mapping[str, HostSlots]]
    reader: HostReader
    leases: tuple[Aggregate, ...] = ()
    locks: Locks | None = None
    access: Mapping[str, frozenset[str]] = dataclasses.field(
        default_factory=dict
    )

    def closed(
        self, reservation: Reservation, hosts: Iterable[str]
    ) -> Mapping[str, str]:
        """Return why locks close hosts to the servers of a reservation.

        :param hosts: The names of the hosts to check.
        :returns: The predicate of a sentence, by name of the host; empty if
            the filters of nova-scheduler are not known.
        """
        if self.locks is None:
            return {}
        return self.locks.closed(
            reservation, {name: self.hosts[name].service for name in hosts}
        )

    @lazy_property
    def cleaning_time(self) -> datetime.timedelta:
        """The minimum time between two reservations of the same capacity.

        :raises PoolError: if the pool has no valid number of seconds.
        """
        seconds = pool_number(
            self.pool, names.CLEANING_KEY, 'seconds', _MOST_CLEANING, 600
        )
        return datetime.timedelta(seconds=seconds or 0)

    def reservation(self, reservation: str) -> Reservation:
        """Return a reservation.

        :raises NotFound: if there is no such reservation.
        :raises ReservationError: if its record cannot be read.
        """
        reservation = names.reservation_id(reservation)
        if reservation in self.records.problems:
            raise self.records.problems[reservation]
        if reservation not in self.records.reservations:
            raise errors.unknown(reservation)
        return self.records.reservations[reservation]

    @property
    def reservations(self) -> list[Reservation]:
        return sorted(
            self.records.reservations.values(), key=lambda r: (r.start, r.id)
        )

    def tree(self, host: ReservationHost) -> Tree:
        """Return the providers of a host's resources, the root first.

        :returns: An empty list if the host is gone.
        """
        return self.trees.get(host.root, [])

    def ordinary(self, hosts: Iterable[str]) -> Mapping[str, Usage | None]:
        """Read what consumers without a slot use of hosts."""
        return self.reader.ordinary(self._with_trees(hosts))

    def limits(self, hosts: Iterable[str]) -> Mapping[str, Limits | None]:
        """Read the inventories of the resources of hosts."""
        return self.reader.limits(self._with_trees(hosts))

    def _with_trees(
        self, names: Iterable[str]
    ) -> list[tuple[ReservationHost, Tree]]:
        hosts = (self.hosts[name] for name in names)
        return [(host, self.tree(host)) for host in hosts]

    def find_host(self, name: str) -> ReservationHost | None:
        """Return a host by its name, or that of its only compute service."""
        if name in self.hosts:
            # It may be gone from Nova.
            return self.hosts[name]
        nodes = [node for node in self.nodes if node.service == name]
        return self.hosts.get(nodes[0].name) if len(nodes) == 1 else None

    def may_have_slots(
        self, host: ReservationHost, reservation: Reservation
    ) -> bool:
        """Return whether a reservation was created for a host, or for all.

        A host that was renamed, or that has slots of it already, is still the
        one for which it was created.
        """
        only_on = reservation.only_on
        return (
            not only_on
            or host.name in only_on
            or reservation.id in host.slots
            # Unless another host has that name now.
            or (
                host.former_name in only_on
                and host.former_name not in self.hosts
            )
        )

    def slot_providers(self, reservation: str) -> list[str]:
        providers = (
            self.hosts[name].provider for name in self.slots(reservation)
        )
        return [provider for provider in providers if provider]

    def slots(self, reservation: str) -> dict[str, HostSlots]:
        return dict(self.by_reservation.get(reservation, {}))

    # The state after a change.

    def with_reservation(self, reservation: Reservation) -> 'ObservedState':
        return self.with_records(
            reservations={
                **self.records.reservations,
                reservation.id: reservation,
            }
        )

    def with_records(self, **changes: Any) -> 'ObservedState':
        """Return the state with other values of attributes of its records."""
        return dataclasses.replace(
            self, records=dataclasses.replace(self.records, **changes)
        )

    def with_access(
        self, access: Mapping[str, frozenset[str]]
    ) -> 'ObservedState':
        return dataclasses.replace(self, access={**self.access, **access})

    def with_slots(
        self,
        name: str,
        reservation: str,
        slots: HostSlots,
        generation: int | None = None,
    ) -> 'ObservedState':
        """Return the state with other slots of a reservation on a host.

        :param generation: The new generation of its reservation provider.
        """
        host = self.hosts[name]
        on_host = without(host.slots, reservation)
        by_host = without(self.slots(reservation), name)
        if slots.total:
            on_host[reservation] = by_host[name] = slots
        host = dataclasses.replace(
            host,
            slots=on_host,
            generation=host.generation if generation is None else generation,
        )
        return dataclasses.replace(
            self,
            hosts={**self.hosts, name: host},
            by_reservation={**self.by_reservation, reservation: by_host},
        )


def trees_of(
    summaries: Collection[ProviderSummary], hosts: Iterable[ReservationHost]
) -> dict[str, list[ProviderSummary]]:
    """Return the trees of providers, without the reservation providers."""
    own = {host.provider for host in hosts}
    trees = {
        summary.root: [summary]
        for summary in summaries
        if summary.parent is None
    }
    for summary in summaries:
        if summary.parent is not None and summary.uuid not in own:
            trees.get(summary.root, []).append(summary)
    return trees


def slots_by_reservation(
    hosts: Iterable[ReservationHost],
) -> dict[str, dict[str, HostSlots]]:
    by_reservation: dict[str, dict[str, HostSlots]] = {}
    for host in hosts:
        for reservation, slots in host.slots.items():
            by_reservation.setdefault(reservation, {})[host.name] = slots
    return by_reservation


def without(values: Mapping[str, _T], key: str) -> dict[str, _T]:
    return {name: value for name, value in values.items() if name != key}
