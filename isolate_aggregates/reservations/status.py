# SPDX-License-Identifier: Apache-2.0
"""The status of a reservation, for output."""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import datetime
import enum

from isolate_aggregates import text
from isolate_aggregates.reservations.observed import (
    HostSlots,
    HostState,
    ObservedState,
)
from isolate_aggregates.reservations.reservation import Reservation


class Phase(enum.Enum):
    """The state of a reservation."""

    ASKED = 'asked'
    PLANNED = 'planned'
    ACTIVE = 'active'
    ENDING = 'ending'
    ENDED = 'ended'


@dataclasses.dataclass(frozen=True)
class Status:
    """A reservation with its slots and problems.

    :param state: ``asked`` until it is known whether it fits, ``planned``
        before its start, ``active``, ``ending`` while its servers are deleted,
        ``ended`` once it is removed.
    :param hosts: Its slots, by name of the host.
    :param problems: One sentence for each problem, without a full stop.
    """

    reservation: Reservation
    state: Phase
    hosts: Mapping[str, HostSlots] = dataclasses.field(default_factory=dict)
    problems: tuple[str, ...] = ()

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
        """The number of these slots with a server."""
        return sum(slots.used for slots in self.hosts.values())

    @property
    def missing(self) -> int:
        """The number of slots that are missing."""
        if self.is_over:
            return 0
        return max(0, self.reservation.amount - self.slots)


def status_of(
    observed: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
    short: Mapping[str, str],
    notes: Iterable[str] = (),
) -> Status:
    """Return the status of a reservation.

    :param short: The capacity problems of hosts, by name of the host.
    """
    status = Status(
        reservation,
        _state(reservation, now),
        observed.slots(reservation.id),
    )
    problems = [*notes, *_problems(observed, status, short)]
    return dataclasses.replace(status, problems=tuple(problems))


def _state(reservation: Reservation, now: datetime.datetime) -> Phase:
    if reservation.has_ended(now):
        return Phase.ENDING
    if reservation.pending is not None and not reservation.amount:
        return Phase.ASKED
    return Phase.ACTIVE if reservation.has_started(now) else Phase.PLANNED


def _problems(
    observed: ObservedState, status: Status, short: Mapping[str, str]
) -> Iterator[str]:
    if status.state in (Phase.ASKED, Phase.ENDING):
        return
    if status.missing:
        missing = text.counted(status.missing, 'slot')
        have = text.plural(status.missing, 'has', 'have')
        yield f'{missing} of {status.reservation.amount} {have} no host'
    for name, slots in sorted(status.hosts.items()):
        host = observed.hosts[name]
        if name in short:
            yield f'host {name} {short[name]}'
        if name in status.reservation.leaving:
            there = text.counted(slots.used, 'server')
            yield f'host {name} is being left and still has {there}'
            continue
        if host.obstacle is None:
            continue
        used = (
            f', {slots.used} with '
            + text.plural(slots.used, 'a server', 'servers')
            if slots.used
            else ''
        )
        word = (
            'left the cloud' if host.state is HostState.GONE else host.obstacle
        )
        there = text.counted(slots.total, 'slot')
        yield f'host {name} {word}: {there} there{used}'
