# SPDX-License-Identifier: Apache-2.0
"""Reads reservations and their hosts from Nova and Placement, with few calls.

A few lists have almost everything: a single query for allocation candidates
returns capacity, usage and traits of all hosts for reservations, full ones
included. Only hosts that are not in its answer are read individually, and the
inventories of slots whose number it does not tell; see ``slots``.
"""

import bisect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
import contextlib
import dataclasses
import datetime
import logging
from typing import Any, TypeVar
from uuid import uuid4

from keystoneauth1 import exceptions as ks_exceptions

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_reservations import errors, names, record, slots
from isolate_aggregates_reservations.compute import Compute, Node
from isolate_aggregates_reservations.locks import Locks
from isolate_aggregates_reservations.reservation import Reservation
from isolate_aggregates_reservations.state import (
    MOST_SKEW,
    HostSlots,
    HostState,
    Limits,
    ObservedState,
    ReservationHost,
    Tree,
    Usage,
    slots_by_reservation,
    trees_of,
)
from isolate_aggregates_tools.placement import inventories, providers
from isolate_aggregates_tools.placement.client import (
    PlacementClient,
    ProviderSummary,
)
from isolate_aggregates_tools.placement.group import ResourceRequest

_T = TypeVar('_T')
_R = TypeVar('_R')

DEFAULT_POOL = 'freepool'

# How many reservations' access is checked per round.
_CHECKED = 20


LOG = logging.getLogger(__name__)

# A reservation that cannot be read, or a host or the pool with a problem.
Unreadable = (
    errors.ReservationError | errors.ReservationHostError | errors.PoolError
)

# Called for each of these.
OnUnreadable = Callable[[Unreadable], None]


class ReservationStore:
    """Access to the reservations of a cloud.

    :param pool: The name of the aggregate of the hosts for reservations.
    :param owner_key: The metadata key of the aggregates of Blazar's leases.
    :param pipeline: The request filters of nova-scheduler, which close hosts;
        None if they are not known.
    """

    def __init__(
        self,
        connection: Connection,
        pool: str = DEFAULT_POOL,
        owner_key: str = 'blazar:owner',
        pipeline: Pipeline | None = None,
    ) -> None:
        self._connection = connection
        self._session = connection.session
        # The id of the reservation whose access was checked last. It is random
        # first: processes of one round each do not check the same every time.
        self._checked_last = str(uuid4())
        self._keep(
            Compute(connection),
            PlacementClient.of(connection),
            pool,
            owner_key,
            pipeline,
        )

    def _keep(
        self,
        compute: Compute,
        placement: PlacementClient,
        pool: str,
        owner_key: str,
        pipeline: Pipeline | None,
    ) -> None:
        """Keep what reading needs."""
        self.compute = compute
        self.placement = placement
        self.pool = pool
        self._owner_key = owner_key
        self._pipeline = pipeline

    @property
    def read_at(self) -> datetime.datetime | None:
        """When what is read was read; None for a live cloud: now."""
        return None

    def now(self) -> datetime.datetime:
        """Return the time of the local clock, after checking it.

        Reservations start and end by the local clock, so it is compared with
        the ``Date`` header of Placement's web server, which all machines see.
        Without this header the clock is not checked.

        :raises ServiceError: if the clocks differ by more than ``MOST_SKEW``.
        """
        before = _now()
        server_time = self.placement.date()
        after = _now()
        if server_time is not None:
            # The header has whole seconds.
            behind = server_time - after
            ahead = before - server_time - datetime.timedelta(seconds=1)
            if max(behind, ahead) > MOST_SKEW:
                way = 'behind' if behind > ahead else 'ahead'
                seconds = max(behind, ahead).total_seconds()
                raise exception.ServiceError(
                    'Placement',
                    self.placement.endpoint,
                    'has a different time: the clock of this machine is '
                    f'{seconds:,.0f} s {way}; reservations depend on the '
                    'time, so synchronize both clocks, for example with NTP.',
                )
        return after

    @property
    def user(self) -> str:
        """The id of the user whose credentials are used; empty if unknown."""
        with contextlib.suppress(ks_exceptions.ClientException):
            return self._session.get_user_id() or ''
        return ''

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id of a project by its id or name, from Keystone.

        :param domain: The id or name of its domain; None for any.
        """
        # Imported late: few commands name projects.
        from isolate_aggregates_tools.identity import KeystoneClient

        return KeystoneClient(self._connection).project(name, domain)

    def read(self, before: ObservedState | None = None) -> ObservedState:
        """Read the current state.

        :param before: A state that was read moments ago, to take the compute
            nodes and the pool from; None to read them too. A host that is
            disabled meanwhile has a new generation.
        """
        # The generations come first; see state.
        entries = self.placement.resource_providers()
        nodes = before.nodes if before else tuple(self.compute.nodes())
        aggregates = [] if before else self.compute.aggregates()
        pool = before.pool if before else self._pool_among(aggregates)
        leases = before.leases if before else self._leases_among(aggregates)
        locks = before.locks if before else None
        if not before and self._pipeline:
            locks = Locks(aggregates, self._pipeline)
        summaries = self._summaries()
        flavors = self.compute.records()
        records = record.read(flavors)
        hosts = _hosts(entries, nodes, pool)
        # Not to be in the answer does not mean to have no slots.
        roots = {
            host.root
            for host in hosts
            if host.provider and host.provider not in summaries
        }
        summaries |= self._read_each(
            entry for entry in entries if entry['root_provider_uuid'] in roots
        )
        by_provider = self._slots(hosts, summaries, records)
        by_name = {
            host.name: dataclasses.replace(
                host,
                is_ready=names.TRAIT in summary.traits,
                is_marked=names.MARKER in summary.capacity,
                slots=by_provider.get(summary.uuid, {}),
            )
            if (summary := summaries.get(host.provider or ''))
            else host
            for host in hosts
        }
        return ObservedState(
            pool=pool,
            nodes=nodes,
            providers={
                entry['name']: entry['uuid']
                for entry in entries
                if not entry['parent_provider_uuid']
            },
            hosts=by_name,
            records=records,
            extra_specs={
                entry.flavor.id: entry.flavor.extra_specs for entry in flavors
            },
            trees=trees_of(summaries.values(), hosts),
            by_reservation=slots_by_reservation(by_name.values()),
            reader=_Reader(self),
            leases=leases,
            locks=locks,
        )

    def ordinary_consumers(
        self, source: str, provider: str | None
    ) -> Collection[str]:
        """Return the consumers without a slot that use a provider.

        :param source: The uuid of the provider that they use.
        :param provider: The uuid of the host's reservation provider, if any.
        :raises ServiceNotFound: if one of the providers is gone.
        """
        return self._ordinary(source, provider).keys()

    def ordinary_usage(
        self, source: str, provider: str | None
    ) -> Mapping[str, int]:
        """Return what these consumers use of the provider together."""
        total: Counter[str] = Counter()
        for usage in self._ordinary(source, provider).values():
            total.update(usage)
        return total

    def holders(self, provider: str, resource_class: str) -> set[str]:
        """Return the consumers of slots of a reservation on a host.

        :param provider: The uuid of the host's reservation provider.
        """
        return slots.holders(self.placement, [provider], resource_class)

    def _ordinary(
        self, source: str, provider: str | None
    ) -> dict[str, Mapping[str, int]]:
        consumers = inventories.consumers(self.placement, source)
        reserved = (
            inventories.consumers(self.placement, provider) if provider else {}
        )
        return {
            consumer: amounts
            for consumer, amounts in consumers.items()
            if consumer not in reserved
        }

    def with_access(
        self, state: ObservedState, reservations: Iterable[str]
    ) -> ObservedState:
        """Read which projects have access to the flavors of reservations."""
        return state.with_access(
            self.placement.each(
                lambda reservation: frozenset(
                    self.compute.projects(reservation)
                ),
                reservations,
            )
        )

    def next_to_check(self, reservations: Iterable[str]) -> list[str]:
        """Return a few reservations whose access is to be read, in turn."""
        ids = sorted(reservations)
        first = bisect.bisect(ids, self._checked_last)
        turn = [*ids[first:], *ids[:first]][:_CHECKED]
        if turn:
            self._checked_last = turn[-1]
        return turn

    def records(self) -> record.Records:
        return record.read(self.compute.records())

    def check_newest(self, reservation: Reservation) -> None:
        """Raise ServiceConflict unless a record is unchanged."""
        if self._newest(reservation) != reservation:
            raise _conflict(reservation.id)

    def _newest(self, reservation: Reservation) -> Reservation | None:
        records = record.read(self.compute.revisions(reservation))
        return records.reservations.get(reservation.id)

    def check_record(
        self, state: ObservedState, reservation: Reservation
    ) -> None:
        """Check that a record is not older than its slots.

        :raises StaleRecord: if it is.
        :raises ServiceConflict: if another command has changed it since it was
            read.
        """
        for problem in self.stale_records(state, [reservation]).values():
            raise problem

    def stale_records(
        self, state: ObservedState, reservations: Iterable[Reservation]
    ) -> dict[str, errors.StaleRecord | exception.ServiceConflict]:
        """Find records that are older than their slots, by reservation id.

        It is a conflict if another command has changed one since it was read.
        """
        by_id = {reservation.id: reservation for reservation in reservations}
        changes = self.placement.each(
            lambda provider: slots.changes(self.placement, provider),
            {
                provider
                for name in by_id
                for provider in state.slot_providers(name)
            },
        )
        latest: dict[str, int] = {}
        for numbers in changes.values():
            for name, change in numbers.items():
                latest[name] = max(change, latest.get(name, 0))
        found: dict[str, errors.StaleRecord | exception.ServiceConflict] = {}
        for name, reservation in sorted(by_id.items()):
            change = latest.get(name, 0)
            if change <= reservation.change:
                continue
            # The slots were read after the record, and written after theirs.
            newest = self._newest(reservation)
            if newest is None or newest.change >= change:
                found[name] = _conflict(name)
            else:
                found[name] = errors.StaleRecord(name, change)
        return found

    def read_pool(self) -> Aggregate | None:
        """Return the aggregate of the pool; None if it does not exist."""
        return self._pool_among(self.compute.aggregates())

    def _pool_among(self, aggregates: Iterable[Aggregate]) -> Aggregate | None:
        for aggregate in aggregates:
            if aggregate.name == self.pool:
                return aggregate
        return None

    def _leases_among(
        self, aggregates: Iterable[Aggregate]
    ) -> tuple[Aggregate, ...]:
        return tuple(
            aggregate
            for aggregate in aggregates
            if self._owner_key in aggregate.metadata
            and aggregate.name != self.pool
        )

    def _summaries(self) -> dict[str, ProviderSummary]:
        """Return the trees of all hosts with the marker class."""
        request = ResourceRequest()
        request.group().resources[names.MARKER] = 1
        try:
            return dict(
                self.placement.allocation_candidates(request).summaries
            )
        except exception.BadQuery:
            # The class does not exist, as no host has a unit of it.
            return {}

    def _read_each(
        self, entries: Iterable[Mapping[str, Any]]
    ) -> dict[str, ProviderSummary]:
        by_uuid = {entry['uuid']: entry for entry in entries}
        summaries = self.placement.each(
            lambda uuid: self._read_provider(by_uuid[uuid]), by_uuid
        )
        return {uuid: found for uuid, found in summaries.items() if found}

    def _read_provider(
        self, entry: Mapping[str, Any]
    ) -> ProviderSummary | None:
        uuid = entry['uuid']
        try:
            by_class = inventories.read(self.placement, uuid).by_class
            _, used = inventories.usages(self.placement, uuid)
            traits = providers.traits(self.placement, uuid)
        except exception.ServiceNotFound:
            return None
        return ProviderSummary(
            uuid=uuid,
            root=entry['root_provider_uuid'],
            parent=entry['parent_provider_uuid'],
            capacity={
                name: inventories.capacity(body)
                for name, body in by_class.items()
            },
            used=used,
            traits=traits,
        )

    def _slots(
        self,
        hosts: Iterable[ReservationHost],
        summaries: Mapping[str, ProviderSummary],
        records: record.Records,
    ) -> dict[str, dict[str, HostSlots]]:
        changing = {
            reservation.id
            for reservation in records.reservations.values()
            if reservation.pending
        }
        by_provider = {
            summary.uuid: slots.from_summary(summary, changing)
            for host in hosts
            if (summary := summaries.get(host.provider or ''))
        }
        by_provider |= self.placement.each(
            lambda uuid: self._read_slots(summaries[uuid]),
            [uuid for uuid, read in by_provider.items() if read is None],
        )
        return {uuid: read or {} for uuid, read in by_provider.items()}

    def _read_slots(self, summary: ProviderSummary) -> dict[str, HostSlots]:
        try:
            current = inventories.read(self.placement, summary.uuid)
        except exception.ServiceNotFound:
            # Deleted meanwhile; writes to it will fail.
            return {}
        return slots.from_inventories(current.by_class, summary.used)


def _conflict(reservation: str) -> exception.ServiceConflict:
    return exception.ServiceConflict(
        'Nova',
        None,
        f'has a new record of reservation {reservation}; run the command '
        'again.',
    )


class _Reader:
    """Reads more of hosts, and remembers it for a state."""

    def __init__(self, store: ReservationStore) -> None:
        self._store = store
        self._ordinary: dict[str, Usage | None] = {}
        self._limits: dict[str, Limits | None] = {}

    def ordinary(
        self, hosts: Iterable[tuple[ReservationHost, Tree]]
    ) -> Mapping[str, Usage | None]:
        return _read_once(
            self._ordinary, hosts, self._read_ordinary, self._store
        )

    def limits(
        self, hosts: Iterable[tuple[ReservationHost, Tree]]
    ) -> Mapping[str, Limits | None]:
        return _read_once(self._limits, hosts, self._read_limits, self._store)

    def _read_ordinary(self, host: ReservationHost, tree: Tree) -> Usage:
        return {
            summary.uuid: self._store.ordinary_usage(
                summary.uuid, host.provider
            )
            for summary in tree
            if any(summary.used.values())
        }

    def _read_limits(self, host: ReservationHost, tree: Tree) -> Limits:
        placement = self._store.placement
        return [
            inventories.read(placement, provider.uuid).by_class
            for provider in tree
        ]


def _read_once(
    known: dict[str, _T | None],
    hosts: Iterable[tuple[ReservationHost, Tree]],
    read: Callable[[ReservationHost, Tree], _T],
    store: ReservationStore,
) -> Mapping[str, _T | None]:
    """Read of hosts what is not known yet; None if one is gone."""
    by_name = {host.name: (host, tree) for host, tree in hosts}

    def found(name: str) -> _T | None:
        try:
            return read(*by_name[name])
        except exception.ServiceNotFound:
            return None

    known |= store.placement.each(found, sorted(by_name.keys() - known.keys()))
    return {name: known[name] for name in by_name}


def _hosts(
    entries: Iterable[Mapping[str, Any]],
    nodes: Iterable[Node],
    pool: Aggregate | None,
) -> list[ReservationHost]:
    """Return the hosts for reservations, without what their trees tell."""
    by_uuid = {node.uuid: node for node in nodes}
    children = {
        entry['parent_provider_uuid']: entry
        for entry in entries
        if entry['parent_provider_uuid'] and names.is_provider(entry['name'])
    }
    hosts = []
    for entry in entries:
        if entry['parent_provider_uuid']:
            continue
        node = by_uuid.get(entry['uuid'])
        child = children.get(entry['uuid'])
        in_pool = bool(node and pool and node.service in pool.hosts)
        if not child and not in_pool:
            continue
        hosts.append(
            ReservationHost(
                name=entry['name'],
                root=entry['uuid'],
                service=node.service if node else None,
                state=_state(node),
                in_pool=in_pool,
                has_failed=not (node and node.is_up),
                provider=child['uuid'] if child else None,
                generation=child['generation'] if child else 0,
                former_name=names.host_of(child['name']) if child else '',
            )
        )
    return sorted(hosts, key=lambda host: host.name)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _state(node: Node | None) -> HostState:
    if node is None:
        return HostState.GONE
    if not node.is_enabled:
        return HostState.DISABLED
    return HostState.UP if node.is_up else HostState.DOWN


def log_unreadable(problem: Unreadable) -> None:
    LOG.error('%s', problem)
