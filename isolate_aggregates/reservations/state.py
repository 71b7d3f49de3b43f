# SPDX-License-Identifier: Apache-2.0
"""The state of hosts and reservations, as read from Nova and Placement.

The generations of the reservation providers are read before everything else.
So if a write with such a generation succeeds, the command knew every slot on
the provider and the record of every reservation with slots there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime
import enum
from typing import Any, TypeVar

from isolate_aggregates import exception, text
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.placement.client import ProviderSummary
from isolate_aggregates.request import Flavor
from isolate_aggregates.reservations import names, settings
from isolate_aggregates.reservations.compute import Node
from isolate_aggregates.reservations.locks import Locks
from isolate_aggregates.reservations.record import Records
from isolate_aggregates.reservations.reservation import Reservation

_T = TypeVar('_T')

# The longest cleaning time, in seconds: a week.
_MOST_CLEANING = 604_800

# The largest difference allowed between the local clock and Placement's.
MOST_SKEW = datetime.timedelta(seconds=10)

# How long after its time a start or an end counts as missed. The pages let
# reconcile run twice a minute.
LATE = datetime.timedelta(minutes=10)


@dataclasses.dataclass(frozen=True)
class HostSlots:
    """The slots of one reservation on one host.

    :param open: The number of slots that servers may use.
    :param used: The number of slots with a server.
    :param is_planned: Whether the slots are closed as those of a reservation
        that has not started; see ``slots``.
    """

    total: int
    open: int
    used: int
    is_planned: bool = False

    @property
    def oversold(self) -> int:
        """The number of servers for which there is no slot."""
        return max(0, self.used - self.total)


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
    :param service: The name of its compute service; None if it is gone.
    :param in_pool: Whether it is in the pool, which excludes ordinary servers.
    :param has_failed: Whether its compute service is gone or down, disabled
        or not.
    :param provider: The uuid of its reservation provider; None if it has
        none.
    :param is_ready: Whether the reservation provider has the trait that
        allows slots on it.
    :param is_marked: Whether the reservation provider has a unit of the
        marker class.
    :param slots: The slots on it, by reservation id.
    """

    name: str
    root: str
    service: str | None
    state: HostState
    in_pool: bool
    has_failed: bool = False
    provider: str | None = None
    generation: int = 0
    is_ready: bool = False
    is_marked: bool = False
    slots: Mapping[str, HostSlots] = dataclasses.field(default_factory=dict)

    @property
    def is_enabled(self) -> bool:
        """Whether it has been enabled for reservations."""
        return self.is_ready and self.in_pool

    @property
    def obstacle(self) -> str | None:
        """Why it cannot take new slots, as a predicate; None if it can."""
        if self.state is HostState.GONE:
            return 'is gone'
        if not self.is_enabled:
            return 'is not enabled for reservations'
        if self.state is not HostState.UP:
            return f'is {self.state.value}'
        return None


@dataclasses.dataclass(frozen=True)
class HostReading:
    """What is read of a host only if a plan depends on it.

    :param ordinary: What consumers without a slot use, by uuid of the
        provider; None if it was not read.
    :param limits: The inventories of each provider of its resources, by
        resource class; None if they were not read.
    :param is_gone: Whether it was deleted meanwhile.
    """

    ordinary: Mapping[str, Mapping[str, int]] | None = None
    limits: tuple[Mapping[str, Mapping[str, Any]], ...] | None = None
    is_gone: bool = False


@dataclasses.dataclass(frozen=True)
class ObservedState:
    """The state of a cloud, as far as reservations need it.

    :param pool: The aggregate of the hosts for reservations; None if it does
        not exist yet.
    :param providers: The uuids of all root providers, by name.
    :param hosts: The hosts for reservations, by name.
    :param extra_specs: The extra specs of the reservations' flavors, by
        flavor id.
    :param summaries: Capacity, usage and traits of the providers of hosts with
        a reservation provider, by uuid.
    :param leases: The aggregates of Blazar's leases.
    :param locks: What the request filters decide; None if not known.
    :param readings: What else was read of hosts, by name.
    :param access: Whether its project has access to the flavor, by
        reservation id, as far as that was read.
    """

    pool: Aggregate | None
    nodes: tuple[Node, ...]
    providers: Mapping[str, str]
    hosts: Mapping[str, ReservationHost]
    records: Records
    extra_specs: Mapping[str, Mapping[str, str]]
    summaries: Mapping[str, ProviderSummary]
    leases: tuple[Aggregate, ...] = ()
    locks: Locks | None = None
    readings: Mapping[str, HostReading] = dataclasses.field(
        default_factory=dict
    )
    access: Mapping[str, bool] = dataclasses.field(default_factory=dict)

    def closed(
        self, reservation: Reservation, hosts: Iterable[str]
    ) -> Mapping[str, str]:
        """Return why locks close hosts to the servers of a reservation.

        :param hosts: The names of the hosts to check.
        :returns: The predicate of a sentence, by name of the host; empty if
            the filters of nova-scheduler are not known.
        """
        if self.locks is None:
            return {}
        return self.locks.closed(
            reservation, {name: self.hosts[name].service for name in hosts}
        )

    @lazy_property
    def cleaning_time(self) -> datetime.timedelta:
        """The minimum time between two reservations of the same capacity.

        :raises InvalidRequest: if the pool has no valid number of seconds.
        """
        seconds = settings.number(
            self.pool, names.CLEANING_KEY, 'seconds', _MOST_CLEANING, 600
        )
        return datetime.timedelta(seconds=seconds or 0)

    def reservation(self, reservation: str) -> Reservation:
        """Return a reservation.

        :raises NotFound: if there is no such reservation.
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
        """All reservations, sorted by start."""
        return sorted(
            self.records.reservations.values(), key=lambda r: (r.start, r.id)
        )

    def tree(self, host: ReservationHost) -> list[ProviderSummary]:
        """Return the providers of a host's resources, the root first.

        :returns: An empty list if the host is gone.
        """
        return self._trees.get(host.root, [])

    @lazy_property
    def _trees(self) -> Mapping[str, list[ProviderSummary]]:
        own = {host.provider for host in self.hosts.values()}
        trees = {
            summary.root: [summary]
            for summary in self.summaries.values()
            if summary.parent is None
        }
        for summary in self.summaries.values():
            if summary.parent is not None and summary.uuid not in own:
                trees.get(summary.root, []).append(summary)
        return trees

    def slot_providers(self, reservation: str) -> list[str]:
        """Return the reservation providers with slots of a reservation."""
        providers = (
            self.hosts[name].provider for name in self.slots(reservation)
        )
        return [provider for provider in providers if provider]

    def slots(self, reservation: str) -> dict[str, HostSlots]:
        """Return the slots of a reservation by name of the host."""
        return dict(self._by_reservation.get(reservation, {}))

    @lazy_property
    def _by_reservation(self) -> Mapping[str, Mapping[str, HostSlots]]:
        by_reservation: dict[str, dict[str, HostSlots]] = {}
        for host in self.hosts.values():
            for reservation, slots in host.slots.items():
                by_reservation.setdefault(reservation, {})[host.name] = slots
        return by_reservation

    # The state after a change.

    def with_reservation(self, reservation: Reservation) -> 'ObservedState':
        """Return the state with other values of a reservation."""
        return self._with_records(
            reservations={
                **self.records.reservations,
                reservation.id: reservation,
            }
        )

    def without_reservation(self, reservation: str) -> 'ObservedState':
        """Return the state without a reservation and its slots."""
        state = self
        for name in self.slots(reservation):
            state = state.with_slots(name, reservation, HostSlots(0, 0, 0))
        return state._with_records(
            reservations=_without(self.records.reservations, reservation)
        )

    def without_old_flavors(self, reservation: str) -> 'ObservedState':
        """Return the state without earlier revisions of a reservation."""
        return self._with_records(
            old_flavors=_without(self.records.old_flavors, reservation)
        )

    def with_extra_specs(self, flavor: Flavor) -> 'ObservedState':
        """Return the state with all extra specs of a flavor set."""
        extra_specs = {
            **self.extra_specs.get(flavor.id, {}),
            **flavor.extra_specs,
        }
        return self._replace(
            extra_specs={**self.extra_specs, flavor.id: extra_specs}
        )

    def with_access(
        self, reservation: str, has_access: bool
    ) -> 'ObservedState':
        """Return the state with access granted or revoked."""
        return self._replace(access={**self.access, reservation: has_access})

    def with_slots(
        self,
        name: str,
        reservation: str,
        slots: HostSlots,
        generation: int | None = None,
    ) -> 'ObservedState':
        """Return the state with other slots of a reservation on a host.

        :param generation: The new generation of its reservation provider.
        """
        host = self.hosts[name]
        on_host = _without(host.slots, reservation)
        by_host = _without(self.slots(reservation), name)
        if slots.total:
            on_host[reservation] = by_host[name] = slots
        host = dataclasses.replace(
            host,
            slots=on_host,
            generation=host.generation if generation is None else generation,
        )
        state = self._replace(hosts={**self.hosts, name: host})
        vars(state)['_by_reservation'] = {
            **self._by_reservation,
            reservation: by_host,
        }
        return state

    def _with_records(self, **changes: Any) -> 'ObservedState':
        return self._replace(
            records=dataclasses.replace(self.records, **changes)
        )

    def _replace(self, **changes: Any) -> 'ObservedState':
        """Return a changed copy that need not compute everything again."""
        state = dataclasses.replace(self, **changes)
        kept = ['_trees', '_by_reservation', 'cleaning_time']
        if 'records' not in changes:
            kept.append('_needs')
        for name in kept:
            if name in vars(self):
                vars(state)[name] = vars(self)[name]
        return state


def _without(values: Mapping[str, _T], key: str) -> dict[str, _T]:
    return {name: value for name, value in values.items() if name != key}


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
        *(f'host {name} {what}' for name, what in status.oversold.items()),
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
