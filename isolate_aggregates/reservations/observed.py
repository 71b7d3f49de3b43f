# SPDX-License-Identifier: Apache-2.0
"""What Nova and Placement say of hosts and reservations.

The generations of the reservation providers are read first, and everything
else after them. So a command that writes a provider at such a generation
knows every slot on it, and has read the record of every reservation that has
slots on it.
"""

from collections.abc import Mapping
import dataclasses
import enum
import functools
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.placement.client import ProviderSummary
from isolate_aggregates.reservations import names
from isolate_aggregates.reservations.compute import Node
from isolate_aggregates.reservations.record import Records
from isolate_aggregates.reservations.reservation import Reservation


@dataclasses.dataclass(frozen=True)
class Slots:
    """The slots of one reservation on one host.

    :param total: How many there are.
    :param open: How many of them servers may take.
    :param used: How many have a server.
    """

    total: int
    open: int
    used: int


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
    :param root_generation: The generation of that.
    :param service: The name of its compute service; None if Nova knows none.
    :param state: Whether it can take servers.
    :param in_pool: Whether it is in the pool, so that ordinary servers keep
        out.
    :param has_failed: Whether its compute service is gone or does not answer,
        disabled or not.
    :param below: The generations of the other providers of its resources,
        such as its GPUs, by uuid.
    :param provider: The uuid of its reservation provider; None if it has
        none.
    :param generation: The generation of that.
    :param is_ready: Whether its reservation provider has the trait, so that
        it takes slots.
    :param slots: The slots on it, by id of the reservation.
    """

    name: str
    root: str
    root_generation: int
    service: str | None
    state: HostState
    in_pool: bool
    has_failed: bool = False
    below: Mapping[str, int] = dataclasses.field(default_factory=dict)
    provider: str | None = None
    generation: int = 0
    is_ready: bool = False
    slots: Mapping[str, Slots] = dataclasses.field(default_factory=dict)

    @property
    def is_enabled(self) -> bool:
        """Whether it was made a host for reservations."""
        return self.is_ready and self.in_pool

    @property
    def obstacle(self) -> str | None:
        """Why it takes no new slots, for a sentence; None if it does."""
        if self.state is HostState.GONE:
            return 'is gone'
        if not self.is_enabled:
            return 'is not enabled for reservations'
        if self.state is not HostState.UP:
            return f'is {self.state.value}'
        return None


@dataclasses.dataclass(frozen=True)
class ObservedState:
    """Nova and Placement as reservations see them.

    :param pool: The aggregate that keeps ordinary servers out; None if there
        is none yet.
    :param nodes: The compute nodes.
    :param providers: The uuids of all root providers, by name.
    :param hosts: The hosts for reservations, by name.
    :param records: What the records say.
    :param extra_specs: The extra specs the flavors of reservations have, by
        id.
    :param summaries: What one answer said of providers, by uuid.
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

        :raises InvalidRequest: if that is no id of one.
        :raises NotFound: if there is none.
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
        """All reservations, in the order of their starts."""
        return sorted(
            self.records.reservations.values(), key=lambda r: (r.start, r.id)
        )

    def slots(self, reservation: str) -> dict[str, Slots]:
        """Return the slots of a reservation by name of the host."""
        return dict(self._by_reservation.get(reservation, {}))

    @functools.cached_property
    def _by_reservation(self) -> Mapping[str, Mapping[str, Slots]]:
        found: dict[str, dict[str, Slots]] = {}
        for host in self.hosts.values():
            for reservation, slots in host.slots.items():
                found.setdefault(reservation, {})[host.name] = slots
        return found


def slots_from(
    inventories: Mapping[str, Mapping[str, Any]], used: Mapping[str, int]
) -> dict[str, Slots]:
    """Return the slots that inventories stand for, by id of the reservation.

    Both are by resource class.
    """
    found = {}
    for name, inventory in inventories.items():
        reservation = names.reservation_of(name)
        if reservation is not None:
            total = inventory['total']
            reserved = inventory.get('reserved', 0)
            found[reservation] = Slots(
                total, max(0, total - reserved), used.get(name, 0)
            )
    return found
