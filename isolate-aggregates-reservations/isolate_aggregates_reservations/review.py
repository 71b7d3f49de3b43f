# SPDX-License-Identifier: Apache-2.0
"""Summarizes all reservations for audits and metrics of the tools.

The tools do not import reservations: they get a ``Review`` from the command
``reservation list``.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
import datetime

from isolate_aggregates_reservations import errors, names
from isolate_aggregates_reservations.status import Kind, Phase, Problem, Status
from isolate_aggregates_reservations.store import ReservationStore, Unreadable
from isolate_aggregates_reservations.views import list_reservations
from isolate_aggregates_tools.reservation_review import ClosedSlots, Review


def review(
    store: ReservationStore, now: datetime.datetime, is_thorough: bool = False
) -> Review:
    """Read all reservations and summarize them.

    :param is_thorough: See ``list_reservations``.
    """
    unreadable: list[Unreadable] = []
    statuses = list_reservations(store, now, unreadable.append, is_thorough)
    return summary(statuses, unreadable)


def summary(
    statuses: Sequence[Status] = (), unreadable: Iterable[Unreadable] = ()
) -> Review:
    """Summarize reservations.

    :param unreadable: What is wrong with reservations that cannot be read, and
        with hosts.
    """
    unreadable = list(unreadable)
    states = Counter(status.state for status in statuses)
    by_kind: dict[Kind, list[tuple[Status, Problem]]] = {
        kind: [
            (status, problem)
            for status in statuses
            for problem in status.found
            if problem.kind is kind
        ]
        for kind in Kind
    }

    def slots(kind: Kind) -> int:
        return sum(problem.slots for _, problem in by_kind[kind])

    def words(kind: Kind, say: Callable[[Problem], str]) -> dict[str, str]:
        sentences: dict[str, list[str]] = {}
        for status, problem in by_kind[kind]:
            ours = sentences.setdefault(status.reservation.id, [])
            ours.append(say(problem))
        return {name: '; '.join(each) for name, each in sentences.items()}

    return Review(
        states={
            phase.value: states[phase]
            for phase in Phase
            if phase is not Phase.ENDED
        },
        missed={
            'start': {
                status.reservation.id: status.reservation.start
                for status, _ in by_kind[Kind.START]
            },
            'end': {
                status.reservation.id: status.reservation.end
                for status, _ in by_kind[Kind.END]
                if status.reservation.end
            },
        },
        unusable_slots={
            kind.value: slots(kind)
            for kind in (Kind.MISSING, Kind.HOST, Kind.CLOSED)
        },
        closed=_closed(by_kind[Kind.CLOSED]),
        oversold=words(
            Kind.OVERSOLD, lambda found: f'{found.what} on host {found.host}'
        ),
        oversold_slots=slots(Kind.OVERSOLD),
        remaining={
            name: f'has ended, but {what}'
            for name, what in words(Kind.REMAINING, str).items()
        },
        stale=words(Kind.STALE, lambda found: found.what),
        unreadable={
            error.reservation: error.problem
            for error in unreadable
            if isinstance(error, errors.ReservationError)
        },
        hosts={
            error.host: error.problem
            for error in unreadable
            if isinstance(error, errors.ReservationHostError)
        },
        nowhere={
            status.reservation.id: status.missing
            for status in statuses
            if status.missing
            and not status.hosts
            and status.state is not Phase.ASKED
        },
        resource_classes=_resource_classes(statuses, unreadable),
    )


def _resource_classes(
    statuses: Iterable[Status], unreadable: Iterable[Unreadable]
) -> frozenset[str]:
    """Return those of all reservations, and that of their hosts."""
    living = [status.reservation.id for status in statuses] + [
        error.reservation
        for error in unreadable
        if isinstance(error, errors.ReservationError)
    ]
    classes = frozenset(map(names.resource_class, living))
    return classes | {names.MARKER} if classes else classes


def _closed(found: Iterable[tuple[Status, Problem]]) -> list[ClosedSlots]:
    by_reason: dict[tuple[str, str], list[Problem]] = {}
    for status, problem in found:
        key = status.reservation.id, problem.what
        by_reason.setdefault(key, []).append(problem)
    return [
        ClosedSlots(
            name,
            tuple(problem.host for problem in problems),
            sum(problem.slots for problem in problems),
            reason,
        )
        for (name, reason), problems in by_reason.items()
    ]
