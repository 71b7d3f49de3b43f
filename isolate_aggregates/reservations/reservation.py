# SPDX-License-Identifier: Apache-2.0
"""What a reservation is."""

from collections.abc import Mapping
import dataclasses
import datetime

from isolate_aggregates.request import Flavor
from isolate_aggregates.reservations import names


@dataclasses.dataclass(frozen=True)
class Shape:
    """The size of one slot, as a flavor has it.

    :param vcpus: Number of virtual CPUs.
    :param ram: Memory in MiB.
    :param disk: Root disk in GiB.
    :param ephemeral: Ephemeral disk in GiB.
    :param swap: Swap disk in MiB.
    :param extra_specs: Extra specs, required traits among them as
        ``trait:<NAME>=required``.
    """

    vcpus: int
    ram: int
    disk: int = 0
    ephemeral: int = 0
    swap: int = 0
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def like(cls, flavor: Flavor) -> 'Shape':
        """Return the shape of the servers of a flavor."""
        return cls(
            vcpus=flavor.vcpus,
            ram=flavor.ram,
            disk=flavor.disk,
            ephemeral=flavor.ephemeral,
            swap=flavor.swap,
            extra_specs=dict(flavor.extra_specs),
        )


@dataclasses.dataclass(frozen=True)
class Terms:
    """What of a reservation can change only before its start.

    :param project: The id of the project that may use it.
    :param start: When it starts.
    :param affinity: As that of a :class:`Reservation`.
    """

    project: str
    start: datetime.datetime
    affinity: bool | None


@dataclasses.dataclass(frozen=True)
class PendingChange:
    """What a reservation becomes, once it is known that it fits.

    Until it is granted or refused it counts with others as if it were granted.

    :param amount: The number of slots.
    :param end: When the reservation ends; None for never.
    :param leaving: The hosts that it leaves together with its servers.
    :param terms: What changes only before the start; None if nothing of that
        does.
    """

    amount: int
    end: datetime.datetime | None
    leaving: tuple[str, ...] = ()
    terms: Terms | None = None


@dataclasses.dataclass(frozen=True)
class Reservation:
    """Slots for the servers of one project for some time.

    :param id: Its id, a uuid.
    :param project: The id of the project that may use it.
    :param start: When it starts.
    :param end: When it ends; None for never.
    :param amount: The number of slots; 0 until it is known that those asked
        for fit.
    :param shape: The size of a slot.
    :param affinity: True if all slots must be on one host, False if no two
        may be, None if it does not matter.
    :param leaving: The hosts that it leaves together with its servers. Slots
        there do not count for the amount, and are there as long as servers
        have them.
    :param former: The projects that it was for before, which may have been
        given access meanwhile.
    :param pending: A change that is neither granted nor refused yet.
    :param incarnation: Tells it from an earlier reservation of the same id.
    :param revision: The number of the revision of its record that this was
        read from.
    """

    id: str
    project: str
    start: datetime.datetime
    end: datetime.datetime | None
    amount: int
    shape: Shape
    affinity: bool | None = None
    leaving: tuple[str, ...] = ()
    former: tuple[str, ...] = ()
    pending: PendingChange | None = None
    incarnation: str = ''
    revision: int = 0

    @property
    def resource_class(self) -> str:
        """The resource class of its slots."""
        return names.resource_class(self.id)

    @property
    def flavor(self) -> Flavor:
        """The flavor that its servers are booted with."""
        shape = self.shape
        return Flavor(
            name=names.flavor(self.id),
            id=self.id,
            vcpus=shape.vcpus,
            ram=shape.ram,
            disk=shape.disk,
            ephemeral=shape.ephemeral,
            swap=shape.swap,
            extra_specs={
                **shape.extra_specs,
                **names.flavor_extra_specs(self.id),
            },
        )

    @property
    def terms(self) -> Terms:
        """What of it can change only before its start."""
        return Terms(self.project, self.start, self.affinity)

    @property
    def counted_from(self) -> datetime.datetime:
        """From when on its slots count with others."""
        if self.pending is None or self.pending.terms is None:
            return self.start
        return min(self.start, self.pending.terms.start)

    @property
    def counted_until(self) -> datetime.datetime | None:
        """Until when its slots count with others; None for ever."""
        if self.end is None or self.pending is None:
            return self.end
        return self.pending.end and max(self.end, self.pending.end)

    @property
    def settled(self) -> 'Reservation':
        """What it is once its pending change is granted."""
        if self.pending is None:
            return self
        terms = self.pending.terms or self.terms
        return dataclasses.replace(
            self,
            project=terms.project,
            start=terms.start,
            affinity=terms.affinity,
            former=tuple(
                sorted({*self.former, self.project} - {terms.project})
            ),
            amount=self.pending.amount,
            end=self.pending.end,
            leaving=self.pending.leaving,
            pending=None,
        )

    def has_started(self, now: datetime.datetime) -> bool:
        """Tell whether it has started, and may have ended since."""
        return self.start <= now

    def has_ended(self, now: datetime.datetime) -> bool:
        """Tell whether it has ended."""
        return self.end is not None and self.end <= now
