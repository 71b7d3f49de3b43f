# SPDX-License-Identifier: Apache-2.0
"""Summarizes all reservations for audits and metrics.

The tools do not import reservations: they get a ``Review`` from the command
``reservation list``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime

from isolate_aggregates.reservations import errors
from isolate_aggregates.reservations.status import Event, Phase, Status
from isolate_aggregates.reservations.store import Problem, ReservationStore
from isolate_aggregates.reservations.views import list_reservations


@dataclasses.dataclass(frozen=True)
class ClosedSlots:
    """Slots of a reservation on hosts that are closed for the same reason.

    :param reason: Why locks close the hosts, as a predicate.
    """

    reservation: str
    hosts: tuple[str, ...]
    slots: int
    reason: str


@dataclasses.dataclass(frozen=True)
class Review:
    """All reservations, and what is wrong with them.

    :param states: The number of reservations in each state, by its name.
    :param missed: The due times of starts and ends that were not reconciled,
        by ``start`` or ``end``, then by reservation id.
    :param unusable_slots: The number of slots that no server can use, by
        cause: ``missing`` (they are on no host), ``host`` (the host is down,
        disabled, gone or not enabled) or ``closed`` (by locks).
    :param closed: The slots that locks close.
    :param oversold_slots: The number of servers for which there is no slot.
    :param oversold: What is wrong with reservations that have more servers
        than slots on a host, as predicates, by reservation id.
    :param remaining: What keeps the end of reservations from completing,
        likewise.
    :param stale: What is wrong with reservations whose record is older than
        their slots, likewise; empty if that was not checked.
    :param unreadable: What is wrong with reservations that cannot be read, as
        predicates, by reservation id.
    :param hosts: What is wrong with hosts for reservations, as predicates, by
        name.
    """

    states: Mapping[str, int]
    missed: Mapping[str, Mapping[str, datetime.datetime]]
    unusable_slots: Mapping[str, int]
    closed: Sequence[ClosedSlots]
    oversold: Mapping[str, str]
    oversold_slots: int
    remaining: Mapping[str, str]
    stale: Mapping[str, str]
    unreadable: Mapping[str, str]
    hosts: Mapping[str, str]


def review(
    store: ReservationStore, now: datetime.datetime, is_thorough: bool = False
) -> Review:
    """Read all reservations and summarize them.

    :param is_thorough: See ``list_reservations``.
    """
    problems: list[Problem] = []
    statuses = list_reservations(store, now, problems.append, is_thorough)
    return summary(statuses, problems)


def summary(
    statuses: Sequence[Status] = (),
    problems: Iterable[Problem] = (),
) -> Review:
    """Summarize reservations.

    :param problems: What is wrong with reservations that cannot be read, and
        with hosts.
    """
    problems = list(problems)
    states = Counter(status.state for status in statuses)
    closed = [slots for status in statuses for slots in _closed(status)]
    return Review(
        states={
            phase.value: states[phase]
            for phase in Phase
            if phase is not Phase.ENDED
        },
        missed={
            event.value: {
                status.reservation.id: status.missed.due
                for status in statuses
                if status.missed and status.missed.event is event
            }
            for event in Event
        },
        unusable_slots={
            'missing': sum(
                status.missing
                for status in statuses
                if status.state is not Phase.ASKED
            ),
            'host': sum(
                _slots(status, status.obstacles) for status in statuses
            ),
            'closed': sum(entry.slots for entry in closed),
        },
        closed=closed,
        oversold={
            status.reservation.id: '; '.join(
                f'{what} on host {name}'
                for name, what in status.oversold.items()
            )
            for status in statuses
            if status.oversold
        },
        remaining={
            status.reservation.id: 'has ended, but '
            + '; '.join(
                f'host {name} {what}'
                for name, what in status.remaining.items()
            )
            for status in statuses
            if status.remaining
        },
        stale={
            status.reservation.id: status.stale
            for status in statuses
            if status.stale
        },
        oversold_slots=sum(
            slots.oversold
            for status in statuses
            for slots in status.hosts.values()
        ),
        unreadable={
            error.reservation: error.problem
            for error in problems
            if isinstance(error, errors.ReservationError)
        },
        hosts={
            error.host: error.problem
            for error in problems
            if isinstance(error, errors.ReservationHostError)
        },
    )


def _closed(status: Status) -> Iterator[ClosedSlots]:
    hosts_by_reason: dict[str, list[str]] = {}
    for host, reason in sorted(status.closed.items()):
        hosts_by_reason.setdefault(reason, []).append(host)
    for reason, hosts in hosts_by_reason.items():
        yield ClosedSlots(
            status.reservation.id,
            tuple(hosts),
            _slots(status, hosts),
            reason,
        )


def _slots(status: Status, hosts: Iterable[str]) -> int:
    return sum(status.hosts[host].total for host in hosts)
