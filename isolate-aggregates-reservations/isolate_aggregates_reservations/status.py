# SPDX-License-Identifier: Apache-2.0
"""The status of a reservation: its state, its slots and its problems."""

from collections.abc import Mapping
import dataclasses
import datetime
import enum

from isolate_aggregates_reservations.reservation import Reservation
from isolate_aggregates_reservations.state import HostSlots


class Phase(enum.Enum):
    ASKED = 'asked'
    PLANNED = 'planned'
    ACTIVE = 'active'
    ENDING = 'ending'
    ENDED = 'ended'


def phase_of(reservation: Reservation, now: datetime.datetime) -> Phase:
    if reservation.has_ended(now):
        return Phase.ENDING
    if reservation.pending is not None and not reservation.amount:
        return Phase.ASKED
    return Phase.ACTIVE if reservation.has_started(now) else Phase.PLANNED


class Kind(enum.Enum):
    """The kinds of problems; what audits and metrics count has its own."""

    # The reconciler has missed a start or an end.
    START = 'start'
    END = 'end'
    # Slots that are on no host.
    MISSING = 'missing'
    # Slots on a host that is down, disabled, gone or not enabled.
    HOST = 'host'
    # Slots on a host that locks close.
    CLOSED = 'closed'
    OVERSOLD = 'oversold'
    # Something keeps an end from completing.
    REMAINING = 'remaining'
    # The record is older than the slots.
    STALE = 'stale'
    OTHER = 'other'


@dataclasses.dataclass(frozen=True)
class Problem:
    """A problem of a reservation.

    :param what: What is wrong: a predicate about the host, or a clause.
    :param rest: The rest of the sentence, with the commands that mend it.
    :param host: The name of the host; empty if it is about none.
    :param slots: The number of slots, or of servers without one.
    """

    kind: Kind
    what: str
    rest: str = ''
    host: str = ''
    slots: int = 0

    def __str__(self) -> str:
        subject = f'host {self.host} ' if self.host else ''
        if self.kind is Kind.STALE:
            subject = 'it '
        return f'{subject}{self.what}{self.rest}'


@dataclasses.dataclass(frozen=True)
class Status:
    """A reservation with its slots and problems.

    :param state: ``asked`` until it is known whether it fits, ``planned``
        before its start, ``active``, ``ending`` while its servers are deleted,
        ``ended`` once it is removed.
    :param hosts: Its slots, by name of the host.
    :param planned: What a dry run would do to get there, in words.
    """

    reservation: Reservation
    state: Phase
    hosts: Mapping[str, HostSlots] = dataclasses.field(default_factory=dict)
    found: tuple[Problem, ...] = ()
    planned: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each problem, without a full stop."""
        return tuple(map(str, self.found))

    @property
    def is_over(self) -> bool:
        """Whether the reservation has ended, or its end has begun."""
        return self.state in (Phase.ENDING, Phase.ENDED)

    @property
    def slots(self) -> int:
        """The number of slots, without those on hosts that it is leaving."""
        return sum(
            slots.total
            for name, slots in self.hosts.items()
            if name not in self.reservation.leaving
        )

    @property
    def used(self) -> int:
        return sum(slots.used for slots in self.hosts.values())

    @property
    def unused_since(self) -> datetime.datetime | None:
        """Since when it has had no server; None if it has one."""
        return None if self.used else self.reservation.unused_since

    @property
    def missing(self) -> int:
        if self.is_over:
            return 0
        return max(0, self.reservation.amount - self.slots)


def slots_by_host(slots: Mapping[str, HostSlots]) -> str:
    return ', '.join(
        f'{name} ({on.total})' for name, on in sorted(slots.items())
    )
