# SPDX-License-Identifier: Apache-2.0
"""Finds what is wrong with reservations, and names what mends it."""

from collections.abc import Iterable, Iterator, Mapping
import datetime

from isolate_aggregates import exception, text
from isolate_aggregates_reservations import errors, names
from isolate_aggregates_reservations.reservation import Reservation
from isolate_aggregates_reservations.state import (
    HostSlots,
    HostState,
    ObservedState,
    ReservationHost,
)
from isolate_aggregates_reservations.status import (
    Kind,
    Phase,
    Problem,
    Status,
    phase_of,
)
from isolate_aggregates_reservations.store import ReservationStore
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.placement import inventories

# How long after its time a start or an end counts as missed. The pages let
# reconcile run twice a minute.
LATE = datetime.timedelta(minutes=10)


def status_of(
    store: ReservationStore,
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
    short: Mapping[str, str],
    stale: str = '',
    notes: Iterable[Problem] = (),
) -> Status:
    """Return the status of a reservation.

    What no list has is read, if there is a problem that needs it.

    :param short: The capacity problems of hosts, by name of the host.
    :param stale: What is wrong if its record is older than its slots.
    :param notes: What else is wrong.
    """
    found = _Problems(store, state, reservation, now)
    return Status(
        reservation,
        found.phase,
        found.slots,
        (
            *notes,
            *found.missed(),
            *found.unusable(short),
            *found.oversold(),
            *found.remaining(),
            *([Problem(Kind.STALE, stale)] if stale else []),
        ),
    )


class _Problems:
    def __init__(
        self,
        store: ReservationStore,
        state: ObservedState,
        reservation: Reservation,
        now: datetime.datetime,
    ) -> None:
        self.phase = phase_of(reservation, now)
        self.slots = state.slots(reservation.id)
        self._store = store
        self._state = state
        self._reservation = reservation
        self._now = now

    def missed(self) -> Iterator[Problem]:
        """Yield what has been due for so long that nothing seems to do it."""
        reservation, now = self._reservation, self._now
        is_open = any(on_host.open for on_host in self.slots.values())
        if is_open and reservation.end and now - reservation.end >= LATE:
            yield _missed(
                Kind.END,
                reservation.end,
                'ended, and its slots are still open',
            )
        elif (
            self.phase is Phase.ACTIVE
            and self.slots
            and not (is_open or reservation.has_access)
            and now - reservation.start >= LATE
        ):
            yield _missed(
                Kind.START,
                reservation.start,
                'started, and its slots are still closed',
            )

    def unusable(self, short: Mapping[str, str]) -> Iterator[Problem]:
        """Yield tampering, and slots that no server can use."""
        if self.phase in (Phase.ASKED, Phase.ENDING):
            return
        yield from self._tampering()
        yield from self._unknown_hosts()
        yield from self._missing()
        leaving = self._reservation.leaving
        closed = self._state.closed(
            self._reservation,
            [
                name
                for name in self.slots
                if name not in leaving
                and self._state.hosts[name].obstacle is None
            ],
        )
        own = self._reservation.id
        for name, on in sorted(self.slots.items()):
            if name in short:
                repair = shell.command(
                    shell.Kind.RESERVATION_REPAIR,
                    own,
                    *(
                        shell.option('--from', name)
                        if on.used == on.total
                        else ()
                    ),
                )
                yield Problem(Kind.OTHER, short[name], f'; run {repair}', name)
            if name in leaving:
                there = text.counted(on.used, 'server')
                stay = shell.command(
                    shell.Kind.RESERVATION_REPAIR, own, '--call-off'
                )
                yield Problem(
                    Kind.OTHER,
                    f'is being left and still has {there}',
                    '; migrate or delete '
                    f'{text.plural(on.used, "it", "them")}, or run {stay}',
                    name,
                )
                continue
            host = self._state.hosts[name]
            what = host.obstacle or closed.get(name)
            if what is None:
                continue
            kind = Kind.HOST if host.obstacle else Kind.CLOSED
            if host.state is HostState.GONE:
                what = 'left the cloud'
            yield Problem(kind, what, _stuck(own, host, on), name, on.total)

    def _tampering(self) -> Iterator[Problem]:
        """Yield what was added to its flavor by others."""
        reservation, flavor = self._reservation, self._reservation.flavor
        access = self._state.access.get(reservation.id, frozenset())
        for project in sorted(access - reservation.projects):
            unset = shell.command(
                shell.Kind.FLAVOR_UNSET,
                *shell.option('--project', project),
                names=[flavor.name],
            )
            share = shell.command(
                shell.Kind.RESERVATION_SET,
                reservation.id,
                *shell.option('--share', project),
            )
            yield Problem(
                Kind.OTHER,
                f'project {project} has access to its flavor without being '
                'one of its projects',
                f'; run {unset}, or {share}',
            )
        extra_specs = self._state.extra_specs.get(reservation.id, {})
        for key in sorted(extra_specs.keys() - flavor.extra_specs.keys()):
            unset = shell.command(
                shell.Kind.FLAVOR_UNSET,
                *shell.option('--property', key),
                names=[flavor.name],
            )
            yield Problem(
                Kind.OTHER,
                'its flavor has an extra spec that it was not created with: '
                f'{key}={extra_specs[key]}',
                f'; run {unset}',
            )

    def _unknown_hosts(self) -> Iterator[Problem]:
        """Yield the hosts of ``--host`` that are not there any more."""
        reservation, hosts = self._reservation, self._state.hosts
        known = hosts.keys() | {host.former_name for host in hosts.values()}
        for name in reservation.only_on:
            if name not in known:
                enable = shell.command(
                    shell.Kind.RESERVATION_HOST_SET, '--enable', names=[name]
                )
                end = shell.command(
                    shell.Kind.RESERVATION_END, names=[reservation.id]
                )
                yield Problem(
                    Kind.OTHER,
                    'for which it was created is no host for reservations any '
                    'more, so it gets no slots there',
                    f'; run {enable}, or if the host has another name now, '
                    f'run {end} and reservation create with --host and that '
                    'name',
                    name,
                )

    def _missing(self) -> Iterator[Problem]:
        reservation = self._reservation
        status = Status(reservation, self.phase, self.slots)
        if not status.missing:
            return
        have = text.plural(status.missing, 'has', 'have')
        less = (
            shell.command(
                shell.Kind.RESERVATION_SET,
                *(reservation.id, '--amount', str(status.slots)),
            )
            if status.slots
            else shell.command(
                shell.Kind.RESERVATION_END, names=[reservation.id]
            )
        )
        yield Problem(
            Kind.MISSING,
            f'{text.counted(status.missing, "slot")} of {reservation.amount} '
            f'{have} no host',
            '; run reservation reconcile once there is room, for example '
            'after reservation host set --enable with another host, or '
            f'{less}',
            slots=status.missing,
        )

    def oversold(self) -> Iterator[Problem]:
        own = self._reservation
        on_hosts = {
            name: on for name, on in sorted(self.slots.items()) if on.oversold
        }
        # Nova lists those that were created last first.
        servers = self._store.compute.servers_of(own.id) if on_hosts else []
        for name, on in on_hosts.items():
            what = (
                f'has {text.counted(on.total, "slot")} for {on.used} servers'
            )
            holders = self._holders(name)
            newest = [server for server in servers if server in holders]
            if newest:
                newest = newest[: on.oversold]
                what += f'; created last: {text.named("server", newest)}'
            more = shell.command(
                shell.Kind.RESERVATION_SET,
                *(own.id, '--amount', str(own.amount + on.oversold)),
            )
            yield Problem(
                Kind.OVERSOLD,
                what,
                f'; run {shell.Kind.SERVER_DELETE} with one of them, '
                f'or {more}',
                name,
                on.oversold,
            )

    def remaining(self) -> Iterator[Problem]:
        """Yield what keeps an end from completing.

        On a host that has not failed, servers may take some time to be
        deleted. They are not deleted before all slots are closed.
        """
        end = self._reservation.end
        if self.phase is not Phase.ENDING or any(
            on_host.open for on_host in self.slots.values()
        ):
            return
        assert end is not None
        is_late = self._now - end >= LATE
        for name, on_host in sorted(self.slots.items()):
            host = self._state.hosts[name]
            if on_host.used and (is_late or host.has_failed):
                holders = sorted(self._holders(name))
                has_server = self._store.compute.has_server
                servers = [holder for holder in holders if has_server(holder)]
                others = [h for h in holders if h not in servers]
                if holders:
                    yield Problem(
                        Kind.REMAINING,
                        _blocked(host, servers, others),
                        host=name,
                    )

    def _holders(self, host: str) -> set[str]:
        provider = self._state.hosts[host].provider
        if not provider:
            return set()
        return self._store.holders(provider, self._reservation.resource_class)


def _missed(kind: Kind, due: datetime.datetime, what: str) -> Problem:
    return Problem(
        kind,
        f'at {due.isoformat(timespec="seconds")} it {what}',
        '; let reservation reconcile run regularly',
    )


def _stuck(reservation: str, host: ReservationHost, on: HostSlots) -> str:
    """Return how many slots a host cannot serve, and what to do about it."""
    there = f': {text.counted(on.total, "slot")} there'
    options: tuple[str, ...] = ()
    if on.used:
        servers = text.plural(on.used, 'a server', 'servers')
        there += f', {on.used} with {servers}'
        options = (*shell.option('--from', host.name),)
        if host.has_failed and host.service:
            options += ('--evacuate',)
    repair = shell.command(
        shell.Kind.RESERVATION_REPAIR, reservation, *options
    )
    if host.state is HostState.GONE:
        advice = f'run {repair}'
    elif not host.is_enabled:
        enable = shell.command(
            shell.Kind.RESERVATION_HOST_SET, '--enable', names=[host.name]
        )
        advice = f'run {enable}'
    elif host.state is HostState.DISABLED:
        advice = f'run {_set_service("--enable", host)}, or {repair}'
    elif host.state is HostState.DOWN:
        advice = f'start its nova-compute, or run {repair}'
    else:
        advice = f'unlock it, or run {repair}'
    return f'{there}; {advice}'


def _set_service(option: str, host: ReservationHost) -> str:
    return shell.command(
        shell.Kind.SERVICE_SET,
        option,
        names=[host.service or host.name, 'nova-compute'],
    )


def _blocked(
    host: ReservationHost, servers: list[str], others: list[str]
) -> str:
    """Return what keeps an end from completing on a host, and what to do.

    :param servers: The servers there that Nova still has.
    :param others: The other consumers: migrations, or allocations that were
        left when Nova deleted a server.
    """
    clauses = []
    if servers:
        has = f'still has {text.named("server", servers)}'
        them = text.plural(len(servers), 'it', 'them')
        works = host.service is None or host.has_failed
        clauses.append(
            f'{has}; run reservation reconcile to delete {them}'
            if works
            else f'{has}, which Nova does not delete; if the host has failed, '
            f'run {_set_service("--down", host)}, and the next reservation '
            f'reconcile deletes {them}'
        )
    if others:
        deletions = ' and '.join(
            shell.command(shell.Kind.ALLOCATION_DELETE, names=[consumer])
            for consumer in others
        )
        clauses.append(
            f'has slots of {text.named("consumer", others)}, which Nova does '
            f'not know as a server; unless {shell.Kind.SERVER_MIGRATION_LIST} '
            f'has it as a migration, run {deletions}, and the next '
            'reservation reconcile completes the end'
        )
    return '; it '.join(clauses)


# Reservations that cannot be read.


def find_unreadable(
    store: ReservationStore, state: ObservedState
) -> list[errors.ReservationError]:
    """Return what is wrong with each reservation that cannot be read.

    Their slots stay, and nothing else can be planned on the hosts of a
    reservation that has no record at all.
    """
    records = state.records
    readable_or_foreign = {*records.reservations, *records.foreign}
    lost: dict[str, dict[str, HostSlots]] = {}
    for host in state.hosts.values():
        for name, on_host in host.slots.items():
            if name not in readable_or_foreign and _is_lost(store, host, name):
                lost.setdefault(name, {})[host.name] = on_host
    return [
        *records.problems.values(),
        *(
            errors.ReservationError(name, _problem(state, name, lost[name]))
            for name in sorted(lost)
        ),
    ]


def find_reservation(
    store: ReservationStore, state: ObservedState, reservation: str
) -> Reservation:
    """Return a reservation that a command names.

    :raises NotFound: if there is none.
    :raises ReservationError: if it cannot be read, or there are only slots.
    """
    try:
        return state.reservation(reservation)
    except tools_errors.NotFound:
        for problem in find_unreadable(store, state):
            if problem.reservation == names.reservation_id(reservation):
                raise problem from None
        raise


def _is_lost(
    store: ReservationStore, host: ReservationHost, reservation: str
) -> bool:
    """Return whether a host has slots of a reservation without a record.

    The slots and the records were not read at the same time, and the
    reservation may have ended in between: then its slots were deleted before
    its record.
    """
    if store.compute.record(reservation) is not None:
        return False
    try:
        current = inventories.read(store.placement, host.provider or '')
    except exception.ServiceNotFound:
        return False
    return names.resource_class(reservation) in current.by_class


def _problem(
    state: ObservedState, reservation: str, on_hosts: Mapping[str, HostSlots]
) -> str:
    """Return the predicate of a sentence about a reservation."""
    total = sum(on_host.total for on_host in on_hosts.values())
    used = sum(on_host.used for on_host in on_hosts.values())
    name = names.resource_class(reservation)
    providers = sorted(state.hosts[host].provider or '' for host in on_hosts)
    free = ' and '.join(
        shell.command(
            shell.Kind.INVENTORY_DELETE,
            *('--resource-class', name),
            names=[provider],
        )
        for provider in providers
    )
    servers = (
        f', {used} with {text.plural(used, "a server", "servers")}'
        if used
        else ''
    )
    first = 'first delete the servers, then ' if used else ''
    keep = shell.command(
        shell.Kind.RESERVATION_CREATE,
        *('--id', reservation, '--amount', str(total)),
    )
    return (
        f'has no record in Nova, but {text.counted(total, "slot")} on '
        f'{text.named("host", on_hosts)}{servers}; no other slots are planned '
        'there. To keep '
        f'it, run {keep} with its project and size; to '
        f'free its slots, {first}run {free}'
    )
