# SPDX-License-Identifier: Apache-2.0
"""The state of hosts and reservations, as read from Nova and Placement.

The generations of the reservation providers are read before everything else.
So if a write with such a generation succeeds, the command knew every slot on
the provider and the record of every reservation with slots there.
"""

from collections.abc import Mapping
import dataclasses
import enum

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.placement.client import ProviderSummary
from isolate_aggregates.reservations import names
from isolate_aggregates.reservations.compute import Node
from isolate_aggregates.reservations.record import Records
from isolate_aggregates.reservations.reservation import Reservation


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
    is_ready: bool = False
    is_marked: bool = False
    slots: Mapping[str, HostSlots] = dataclasses.field(default_factory=dict)

    @property
    def is_enabled(self) -> bool:
        """Whether it has been enabled for reservations."""
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


@dataclasses.dataclass(frozen=True)
class ObservedState:
    """The state of a cloud, as far as reservations need it.

    :param pool: The aggregate of the hosts for reservations; None if it does
        not exist yet.
    :param providers: The uuids of all root providers, by name.
    :param hosts: The hosts for reservations, by name.
    :param extra_specs: The extra specs of the reservations' flavors, by
        flavor id.
    :param summaries: Capacity, usage and traits of the providers of hosts with
        a reservation provider, by uuid.
    """

    pool: Aggregate | None
    nodes: tuple[Node, ...]
    providers: Mapping[str, str]
    hosts: Mapping[str, ReservationHost]
    records: Records
    extra_specs: Mapping[str, Mapping[str, str]]
    summaries: Mapping[str, ProviderSummary]

    def reservation(self, reservation: str) -> Reservation:
        """Return a reservation.

        :raises NotFound: if there is no such reservation.
        :raises ReservationError: if its record cannot be read.
        """
        reservation = names.reservation_id(reservation)
        if reservation in self.records.problems:
            raise self.records.problems[reservation]
        if reservation not in self.records.reservations:
            raise exception.NotFound('reservation', reservation, 'Nova')
        return self.records.reservations[reservation]

    @property
    def reservations(self) -> list[Reservation]:
        """All reservations, sorted by start."""
        return sorted(
            self.records.reservations.values(), key=lambda r: (r.start, r.id)
        )

    def tree(self, host: ReservationHost) -> list[ProviderSummary]:
        """Return the providers of a host's resources, the root first.

        :returns: An empty list if the host is gone.
        """
        return self._trees.get(host.root, [])

    @lazy_property
    def _trees(self) -> Mapping[str, list[ProviderSummary]]:
        own = {host.provider for host in self.hosts.values()}
        trees = {
            summary.root: [summary]
            for summary in self.summaries.values()
            if summary.parent is None
        }
        for summary in self.summaries.values():
            if summary.parent is not None and summary.uuid not in own:
                trees.get(summary.root, []).append(summary)
        return trees

    def slots(self, reservation: str) -> dict[str, HostSlots]:
        """Return the slots of a reservation by name of the host."""
        return dict(self._by_reservation.get(reservation, {}))

    @lazy_property
    def _by_reservation(self) -> Mapping[str, Mapping[str, HostSlots]]:
        by_reservation: dict[str, dict[str, HostSlots]] = {}
        for host in self.hosts.values():
            for reservation, slots in host.slots.items():
                by_reservation.setdefault(reservation, {})[host.name] = slots
        return by_reservation
