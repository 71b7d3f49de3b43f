# SPDX-License-Identifier: Apache-2.0
"""The data model of a reservation."""

from collections.abc import Mapping
import dataclasses
import datetime

from isolate_aggregates.request import Flavor
from isolate_aggregates.reservations import names


@dataclasses.dataclass(frozen=True)
class Shape:
    """The size of one slot, as a flavor has it.

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
        """Return the shape of servers of a flavor."""
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
    """The attributes that can be changed only before the start.

    :param project: The id of the project that may use the reservation.
    :param affinity: See :class:`Reservation`.
    """

    project: str
    start: datetime.datetime
    affinity: bool | None


@dataclasses.dataclass(frozen=True)
class PendingChange:
    """A change that was requested and is neither granted nor refused yet.

    When other reservations are planned, a pending change counts as granted.

    :param end: The new end; None for no end.
    :param leaving: The names of hosts to leave; see :class:`Reservation`.
    :param terms: New terms; None if they do not change.
    """

    amount: int
    end: datetime.datetime | None
    leaving: tuple[str, ...] = ()
    terms: Terms | None = None


@dataclasses.dataclass(frozen=True)
class Reservation:
    """Slots for the servers of one project during a period of time.

    :param id: The id of the reservation, a uuid.
    :param start: The start, with a time zone.
    :param end: The end, with a time zone; None for no end.
    :param amount: The number of slots; 0 while the reservation is new and its
        slots are still pending.
    :param affinity: True for all slots on one host, False for no two slots on
        one host, None for no restriction.
    :param leaving: The names of hosts that the reservation is leaving. Slots
        with a server remain there and do not count towards the amount.
    :param former: The ids of earlier projects, which may still have access.
    :param has_access: Whether the project was given access to the flavor.
        It is recorded after the access was granted, and withdrawn before the
        access is revoked.
    :param incarnation: Distinguishes the reservation from an earlier one with
        the same id.
    :param revision: The number of the record's revision that it was read from.
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
    has_access: bool = False
    pending: PendingChange | None = None
    incarnation: str = ''
    revision: int = 0

    @property
    def resource_class(self) -> str:
        """The resource class of its slots."""
        return names.resource_class(self.id)

    @property
    def flavor(self) -> Flavor:
        """The flavor for its servers, with the extra specs of a slot."""
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
        """The attributes that can be changed only before the start."""
        return Terms(self.project, self.start, self.affinity)

    @property
    def counted_from(self) -> datetime.datetime:
        """The start for planning; the earlier one if a change is pending."""
        if self.pending is None or self.pending.terms is None:
            return self.start
        return min(self.start, self.pending.terms.start)

    @property
    def counted_until(self) -> datetime.datetime | None:
        """The end for planning; the later one if a change is pending.

        None for no end.
        """
        if self.end is None or self.pending is None:
            return self.end
        return self.pending.end and max(self.end, self.pending.end)

    @property
    def settled(self) -> 'Reservation':
        """The reservation with its pending change applied."""
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
        """Return whether the start has passed; it may have ended too."""
        return self.start <= now

    @property
    def was_refused(self) -> bool:
        """Whether it did not fit, or was ended before that was known."""
        return not self.amount and self.pending is None

    def has_ended(self, now: datetime.datetime) -> bool:
        """Return whether the end has passed, or there never was a start.

        A refused reservation has ended even if the clock of the run that
        refused it is ahead of this one.
        """
        return self.was_refused or (self.end is not None and self.end <= now)
