# SPDX-License-Identifier: Apache-2.0
"""How things are: what Nova and Placement say of hosts and reservations.

The generations of the reservation providers are read first, and everything
else after them: whoever writes a provider at such a generation can be sure
that no slot on it, and no reservation it has slots of, was missed.
"""

from collections.abc import Mapping
import dataclasses
import enum
import functools
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.placement.client import ProviderSummary
from isolate_aggregates.request import Flavor
from isolate_aggregates.reservations import names, record
from isolate_aggregates.reservations.compute import Node


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
class Host:
    """A compute node that is in the pool or has a reservation provider.

    :param name: Its hypervisor hostname.
    :param root: The uuid of its resource provider.
    :param root_generation: The generation of that.
    :param service: The name of its compute service; None if Nova knows none.
    :param state: Whether it can take servers.
    :param in_pool: Whether it is in the pool, so that ordinary servers keep
        out.
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
class World:
    """Nova and Placement as reservations see them.

    :param pool: The aggregate that keeps ordinary servers out; None if there
        is none yet.
    :param nodes: The compute nodes.
    :param providers: The uuids of all root providers, by name.
    :param hosts: The hosts for reservations, by name.
    :param records: The reservations, by id.
    :param extra_specs: The extra specs their flavors have, by id.
    :param foreign: The flavors of reservations that were not made here, by
        id.
    :param problems: What is wrong with what was made here, by id.
    :param summaries: What one answer said of providers, by uuid.
    """

    pool: Aggregate | None
    nodes: tuple[Node, ...]
    providers: Mapping[str, str]
    hosts: Mapping[str, Host]
    records: Mapping[str, record.Reservation]
    extra_specs: Mapping[str, Mapping[str, str]]
    foreign: Mapping[str, Flavor]
    problems: Mapping[str, exception.ReservationError]
    summaries: Mapping[str, ProviderSummary]

    def reservation(self, reservation: str) -> record.Reservation:
        """Return a reservation.

        :param reservation: Its id.
        :raises NotFound: if there is none.
        :raises ReservationError: if its record can not be read.
        """
        if reservation in self.problems:
            raise self.problems[reservation]
        if reservation not in self.records:
            raise exception.NotFound('reservation', reservation, 'Nova')
        return self.records[reservation]

    def slots(self, reservation: str) -> dict[str, Slots]:
        """Return the slots of a reservation by name of the host.

        :param reservation: Its id.
        """
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

    :param inventories: The inventories of a reservation provider, by resource
        class.
    :param used: What of them is in use, by resource class.
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
