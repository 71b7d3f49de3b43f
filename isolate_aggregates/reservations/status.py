# SPDX-License-Identifier: Apache-2.0
"""The status of a reservation, and what is wrong with it, in words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime
import enum

from isolate_aggregates import text
from isolate_aggregates.reservations.reservation import Reservation
from isolate_aggregates.reservations.state import (
    HostSlots,
    HostState,
    ObservedState,
    ReservationHost,
)

# How long after its time a start or an end counts as missed. The pages let
# reconcile run twice a minute.
LATE = datetime.timedelta(minutes=10)


class Phase(enum.Enum):
    """The state of a reservation."""

    ASKED = 'asked'
    PLANNED = 'planned'
    ACTIVE = 'active'
    ENDING = 'ending'
    ENDED = 'ended'


class Event(enum.Enum):
    """What the reconciler does at a certain time."""

    START = 'start'
    END = 'end'


@dataclasses.dataclass(frozen=True)
class Missed:
    """A start or an end that the reconciler has missed."""

    event: Event
    due: datetime.datetime


@dataclasses.dataclass(frozen=True)
class Remaining:
    """What keeps an end from completing on a host: consumers of slots there.

    :param servers: The servers that Nova still has.
    :param others: The others: migrations, or allocations that were left when
        Nova deleted a server.
    """

    servers: Sequence[str]
    others: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Details:
    """What is read of a single reservation, as no list has it.

    :param newest: The servers that were created last, as many as have no
        slot, by name of the host.
    :param remaining: What keeps its end from completing, likewise.
    :param stale: What is wrong if its record is older than its slots, as a
        predicate.
    """

    newest: Mapping[str, Sequence[str]] = dataclasses.field(
        default_factory=dict
    )
    remaining: Mapping[str, Remaining] = dataclasses.field(
        default_factory=dict
    )
    stale: str = ''


_NO_DETAILS = Details()


@dataclasses.dataclass(frozen=True)
class Status:
    """A reservation with its slots and problems.

    :param state: ``asked`` until it is known whether it fits, ``planned``
        before its start, ``active``, ``ending`` while its servers are deleted,
        ``ended`` once it is removed.
    :param hosts: Its slots, by name of the host.
    :param problems: One sentence for each problem, without a full stop.
    :param missed: The start or end that should have been reconciled long ago.
    :param obstacles: Why hosts with its slots cannot take servers, as
        predicates, by name of the host; without hosts that it is leaving.
    :param closed: Why locks close hosts that could take servers, likewise.
    :param oversold: What is wrong on hosts with more servers than slots,
        likewise.
    :param remaining: What keeps an end from completing, likewise.
    :param stale: What is wrong if its record is older than its slots, as a
        predicate.
    :param planned: What would be done to get there, in words, if this is a
        preview.
    """

    reservation: Reservation
    state: Phase
    hosts: Mapping[str, HostSlots] = dataclasses.field(default_factory=dict)
    problems: tuple[str, ...] = ()
    missed: Missed | None = None
    obstacles: Mapping[str, str] = dataclasses.field(default_factory=dict)
    closed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    oversold: Mapping[str, str] = dataclasses.field(default_factory=dict)
    remaining: Mapping[str, str] = dataclasses.field(default_factory=dict)
    stale: str = ''
    planned: tuple[str, ...] = ()

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
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
    short: Mapping[str, str],
    notes: Iterable[str] = (),
    details: Details = _NO_DETAILS,
) -> Status:
    """Return the status of a reservation.

    :param short: The capacity problems of hosts, by name of the host.
    """
    status = Status(
        reservation,
        _state(reservation, now),
        state.slots(reservation.id),
    )
    status = dataclasses.replace(
        status,
        oversold={
            name: _oversold(slots, details.newest.get(name, ()))
            for name, slots in sorted(status.hosts.items())
            if slots.oversold
        },
        remaining={
            name: _remaining(state.hosts[name], left)
            for name, left in sorted(details.remaining.items())
        },
        stale=details.stale,
    )
    missed = _missed(status, now)
    if status.state not in (Phase.ASKED, Phase.ENDING):
        status = _with_unusable_hosts(state, status)
    problems = [
        *notes,
        *([_sentence(missed)] if missed else []),
        *_problems(state, status, short),
        *(
            f'host {name} {what}; run openstack server delete with one of '
            f'them, or reservation set {reservation.id} --amount '
            f'{reservation.amount + status.hosts[name].oversold}'
            for name, what in status.oversold.items()
        ),
        *(f'host {name} {what}' for name, what in status.remaining.items()),
        *([f'it {status.stale}'] if status.stale else []),
    ]
    return dataclasses.replace(status, problems=tuple(problems), missed=missed)


def _oversold(slots: HostSlots, newest: Sequence[str]) -> str:
    have = f'has {text.counted(slots.total, "slot")} for {slots.used} servers'
    if not newest:
        return have
    return f'{have}; created last: {text.named("server", newest)}'


def _remaining(host: ReservationHost, left: Remaining) -> str:
    clauses = []
    if left.servers:
        servers = text.named('server', left.servers)
        them = text.plural(len(left.servers), 'it', 'them')
        works = host.service is None or host.has_failed
        clauses.append(
            f'still has {servers}; run reservation reconcile to delete {them}'
            if works
            else f'still has {servers}, which Nova does not delete; if the '
            'host has failed, run openstack compute service set --down '
            f'{host.service} nova-compute, and the next reservation '
            f'reconcile deletes {them}'
        )
    if left.others:
        deletions = ' and '.join(
            f'openstack resource provider allocation delete {consumer}'
            for consumer in left.others
        )
        clauses.append(
            f'has slots of {text.named("consumer", left.others)}, which Nova '
            'does not know as a server; unless openstack server migration '
            f'list has it as a migration, run {deletions}, and the next '
            'reservation reconcile completes the end'
        )
    return '; it '.join(clauses)


def _with_unusable_hosts(state: ObservedState, status: Status) -> Status:
    hosts = status.hosts.keys() - {*status.reservation.leaving}
    obstacles = {
        name: obstacle
        for name in hosts
        if (obstacle := state.hosts[name].obstacle)
    }
    closed = state.closed(status.reservation, hosts - obstacles.keys())
    return dataclasses.replace(status, obstacles=obstacles, closed=closed)


def _state(reservation: Reservation, now: datetime.datetime) -> Phase:
    if reservation.has_ended(now):
        return Phase.ENDING
    if reservation.pending is not None and not reservation.amount:
        return Phase.ASKED
    return Phase.ACTIVE if reservation.has_started(now) else Phase.PLANNED


def _missed(status: Status, now: datetime.datetime) -> Missed | None:
    """Return what has been due for so long that nobody seems to do it."""
    reservation = status.reservation
    is_open = any(slots.open for slots in status.hosts.values())
    if is_open and reservation.end and now - reservation.end >= LATE:
        return Missed(Event.END, reservation.end)
    if (
        status.state is Phase.ACTIVE
        and status.hosts
        and not (is_open or reservation.has_access)
        and now - reservation.start >= LATE
    ):
        return Missed(Event.START, reservation.start)
    return None


_MISSED = {
    Event.START: 'started, and its slots are still closed',
    Event.END: 'ended, and its slots are still open',
}


def _sentence(missed: Missed) -> str:
    return (
        f'at {missed.due.isoformat(timespec="seconds")} it '
        f'{_MISSED[missed.event]}; let reservation reconcile run regularly'
    )


def _problems(
    state: ObservedState, status: Status, short: Mapping[str, str]
) -> Iterator[str]:
    """Yield what is wrong, each with the commands that mend it."""
    if status.state in (Phase.ASKED, Phase.ENDING):
        return
    own = status.reservation.id
    yield from _tampering(state, status.reservation)
    if status.missing:
        missing = text.counted(status.missing, 'slot')
        have = text.plural(status.missing, 'has', 'have')
        less = (
            f'update {own} --amount {status.slots}'
            if status.slots
            else f'end {own}'
        )
        yield (
            f'{missing} of {status.reservation.amount} {have} no host; run '
            'reservation reconcile once there is room, for example after '
            f'reservation host set --enable with another host, or reservation '
            f'{less}'
        )
    for name, slots in sorted(status.hosts.items()):
        if name in short:
            yield (
                f'host {name} {short[name]}; run reservation repair {own}'
                + (f' --from {name}' if slots.used == slots.total else '')
            )
        if name in status.reservation.leaving:
            there = text.counted(slots.used, 'server')
            yield (
                f'host {name} is being left and still has {there}; migrate or '
                f'delete {text.plural(slots.used, "it", "them")}, or run '
                f'reservation repair {own} --call-off'
            )
            continue
        obstacle = status.obstacles.get(name) or status.closed.get(name)
        if obstacle is None:
            continue
        used = (
            f', {slots.used} with '
            + text.plural(slots.used, 'a server', 'servers')
            if slots.used
            else ''
        )
        host = state.hosts[name]
        word = 'left the cloud' if host.state is HostState.GONE else obstacle
        there = text.counted(slots.total, 'slot')
        yield f'host {name} {word}: {there} there{used}; {_advice(own, host)}'


def _tampering(
    state: ObservedState, reservation: Reservation
) -> Iterator[str]:
    """Yield what was added to its flavor by others."""
    flavor = reservation.flavor
    others = state.access.get(reservation.id, frozenset())
    for project in sorted(others - reservation.projects):
        yield (
            f'project {project} has access to its flavor without being one of '
            f'its projects; run openstack flavor unset --project {project} '
            f'{flavor.name}, or reservation set {reservation.id} --share '
            f'{project}'
        )
    extra_specs = state.extra_specs.get(reservation.id, {})
    for key in sorted(extra_specs.keys() - flavor.extra_specs.keys()):
        yield (
            f'its flavor has an extra spec that it was not created with: '
            f'{key}={extra_specs[key]}; run openstack flavor unset --property '
            f'{key} {flavor.name}'
        )


def _advice(reservation: str, host: ReservationHost) -> str:
    """Return what to do about a host that cannot serve slots."""
    repair = f'reservation repair {reservation}'
    if host.slots[reservation].used:
        repair += f' --from {host.name}'
        if host.has_failed and host.service:
            repair += ' --evacuate'
    if host.state is HostState.GONE:
        return f'run {repair}'
    if not host.is_enabled:
        return f'run reservation host set --enable {host.name}'
    if host.state is HostState.DISABLED:
        return (
            f'run openstack compute service set --enable {host.service} '
            f'nova-compute, or {repair}'
        )
    if host.state is HostState.DOWN:
        return f'start its nova-compute, or run {repair}'
    return f'unlock it, or run {repair}'
