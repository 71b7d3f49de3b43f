# SPDX-License-Identifier: Apache-2.0
"""What can be done about a reservation: one change of Nova or Placement each.

An action is plain data. It says in words what it does, and returns the state
as it will be after it. ``execution`` carries it out.
"""

import abc
import dataclasses
from typing import ClassVar

from isolate_aggregates import text
from isolate_aggregates.request import Flavor
from isolate_aggregates_reservations.reservation import Reservation
from isolate_aggregates_reservations.state import (
    HostSlots,
    ObservedState,
    without,
)


class Action(abc.ABC):
    """One change; it can be repeated."""

    what: ClassVar[str] = ''

    @property
    def words(self) -> str:
        """What it does, in the imperative; empty if nobody need know."""
        return self.what

    @abc.abstractmethod
    def after(self, state: ObservedState) -> ObservedState:
        """Return the state after it."""


@dataclasses.dataclass(frozen=True)
class DeleteRevisions(Action):
    reservation: str
    flavors: tuple[str, ...]
    what: ClassVar[str] = 'delete old revisions of its record'

    def after(self, state: ObservedState) -> ObservedState:
        old = without(state.records.old_flavors, self.reservation)
        return state.with_records(old_flavors=old)


@dataclasses.dataclass(frozen=True)
class WriteExtraSpecs(Action):
    """Create the resource class, and set the extra specs of the flavor."""

    flavor: Flavor
    what: ClassVar[str] = 'set the extra specs of its flavor'

    def after(self, state: ObservedState) -> ObservedState:
        extra_specs = {
            **state.extra_specs.get(self.flavor.id, {}),
            **self.flavor.extra_specs,
        }
        return dataclasses.replace(
            state,
            extra_specs={**state.extra_specs, self.flavor.id: extra_specs},
        )


@dataclasses.dataclass(frozen=True)
class WriteRecord(Action):
    """Write the next revision of a record.

    :param reservation: The new values, with the number of the revision that
        they are based on.
    """

    reservation: Reservation
    why: str = ''

    @property
    def words(self) -> str:
        return self.why

    def after(self, state: ObservedState) -> ObservedState:
        return state.with_reservation(self.reservation)


@dataclasses.dataclass(frozen=True)
class WriteSlots(Action):
    """Write the number of slots on a host, with the generation of the state.

    :param total: The number of slots after it; 0 to delete them.
    :param open: The number of open ones after it.
    """

    reservation: str
    host: str
    before: HostSlots
    total: int
    open: int

    @property
    def words(self) -> str:
        number = self.total - self.before.total
        if not number:
            return ''
        verb = 'add' if number > 0 else 'remove'
        return f'{verb} {text.counted(abs(number), "slot")} on {self.host}'

    @property
    def slots(self) -> HostSlots:
        return HostSlots(
            self.total,
            self.open,
            self.before.used,
            is_planned=not (self.open or self.before.used),
        )

    def after(self, state: ObservedState) -> ObservedState:
        return state.with_slots(self.host, self.reservation, self.slots)


@dataclasses.dataclass(frozen=True)
class SwitchSlots(Action):
    """Open or close all slots on a host, unless their number has changed."""

    reservation: str
    host: str
    before: HostSlots
    is_open: bool

    @property
    def words(self) -> str:
        verb = 'open' if self.is_open else 'close'
        number = text.counted(self.before.total, 'slot')
        return f'{verb} {number} on {self.host}'

    @property
    def written(self) -> WriteSlots:
        """The same, for slots without a server."""
        total = self.before.total
        return WriteSlots(
            self.reservation,
            self.host,
            self.before,
            total,
            total if self.is_open else 0,
        )

    def after(self, state: ObservedState) -> ObservedState:
        return self.written.after(state)


@dataclasses.dataclass(frozen=True)
class Grant(Action):
    """Give projects access to the flavor, unless its record has changed."""

    reservation: str
    projects: frozenset[str]

    @property
    def words(self) -> str:
        return (
            f'give {text.named("project", self.projects)} access to its flavor'
        )

    def after(self, state: ObservedState) -> ObservedState:
        before = state.access.get(self.reservation, frozenset())
        return state.with_access({self.reservation: before | self.projects})


@dataclasses.dataclass(frozen=True)
class Revoke(Action):
    reservation: str
    what: ClassVar[str] = 'revoke access to its flavor'

    def after(self, state: ObservedState) -> ObservedState:
        return state.with_access({self.reservation: frozenset()})


@dataclasses.dataclass(frozen=True)
class Wait(Action):
    """Wait for changes of other reservations, which may free their slots."""

    def after(self, state: ObservedState) -> ObservedState:
        return state


@dataclasses.dataclass(frozen=True)
class Refuse(Action):
    """Refuse a pending change; a new reservation is removed.

    :param why: The predicate of a sentence.
    """

    reservation: Reservation
    why: str

    @property
    def words(self) -> str:
        return f'refuse the change, because it {self.why}'

    def after(self, state: ObservedState) -> ObservedState:
        return state


@dataclasses.dataclass(frozen=True)
class End(Action):
    """End a reservation as far as possible now."""

    reservation: Reservation
    what: ClassVar[str] = 'delete its servers, slots and flavor'

    def after(self, state: ObservedState) -> ObservedState:
        own = self.reservation.id
        for name in state.slots(own):
            state = state.with_slots(name, own, HostSlots(0, 0, 0))
        rest = without(state.records.reservations, own)
        return state.with_records(reservations=rest)
