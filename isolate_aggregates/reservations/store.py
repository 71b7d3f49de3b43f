# SPDX-License-Identifier: Apache-2.0
"""Reads reservations and their hosts from Nova and Placement, with few calls.

A few lists have most of the data: a single query for allocation candidates
returns capacity and usage of the providers in the pool. Closed slots are not
visible there, so reservation providers that have some are read individually,
and again only after their generation has changed.
"""

from collections.abc import Iterable, Mapping
from concurrent import futures
import dataclasses
import datetime
from typing import Any

import os_resource_classes as orc

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.placement import inventories, providers
from isolate_aggregates.placement.client import (
    PlacementClient,
    ProviderSummary,
)
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.reservations import names, record
from isolate_aggregates.reservations.access import FlavorAccess
from isolate_aggregates.reservations.compute import Compute, Node
from isolate_aggregates.reservations.observed import (
    HostSlots,
    HostState,
    ObservedState,
    ReservationHost,
    slots_from,
)
from isolate_aggregates.reservations.reservation import Reservation
from isolate_aggregates.rest.connection import Connection

# Parallel requests: enough to hide latency, without overloading Placement.
_PARALLEL = 8

# The largest difference allowed between the local clock and Placement's.
MOST_SKEW = datetime.timedelta(seconds=10)

DEFAULT_POOL = 'freepool'
_NO_TIME = datetime.timedelta()


class ReservationStore:
    """Access to the reservations of a cloud.

    :param pool: The name of the aggregate of the hosts for reservations.
    :param retry_delay: Seconds to wait before each retry; None for half a
        second before the first retry, doubled for each further one.
    :param cleaning_time: The minimum time between the end of a reservation and
        the start of the next one on the same host.
    """

    def __init__(
        self,
        connection: Connection,
        pool: str = DEFAULT_POOL,
        retry_delay: float | None = None,
        cleaning_time: datetime.timedelta = _NO_TIME,
    ) -> None:
        self.pool = pool
        self.cleaning_time = cleaning_time
        self.compute = Compute(connection, retry_delay)
        self.access = FlavorAccess(self.compute)
        self.placement = PlacementClient(
            connection.adapter('placement'), retry_delay
        )
        # Cache: the slots on a reservation provider at a generation, by uuid.
        self._known: dict[str, tuple[int, dict[str, HostSlots]]] = {}
        # Cache: a provider of a full host at a generation, by uuid.
        self._providers: dict[str, tuple[int, ProviderSummary]] = {}

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

    def read(
        self, closely: str | None = None, only: str | None = None
    ) -> ObservedState:
        """Read the current state.

        :param closely: The id of a reservation that may have both open and
            closed slots on a host.
        :param only: The id of a reservation; hosts that certainly have no
            slots of it are left out. None for all hosts.
        """
        listed = self.placement.resource_providers()
        # If a provider gets the trait between the two calls, its generation is
        # newer in the second one; _hosts uses the older one.
        try:
            ready = self.placement.resource_providers(required=[names.TRAIT])
        except exception.BadQuery:
            # No host was ever enabled, so the trait does not exist.
            ready = []
        nodes = self.compute.nodes()
        pool = self.read_pool()
        summaries = self._summaries(pool)
        for cache in self._known, self._providers:
            for uuid in cache.keys() - {entry['uuid'] for entry in listed}:
                cache.pop(uuid, None)
        hosts = self._hosts(
            listed, {entry['uuid']: entry for entry in ready}, nodes, pool
        )
        if only is not None:
            # A provider with slots, open or closed, has the resource class.
            name = names.resource_class(only)
            hosts = [
                host
                for host in hosts
                if not (summary := summaries.get(host.provider or ''))
                or name in summary.capacity
            ]
        flavors = self.compute.records()
        records = record.read(flavors)
        changing = {
            reservation.id
            for reservation in records.reservations.values()
            if reservation.pending
            or reservation.leaving
            or reservation.id == closely
        }
        slots = self._slots(hosts, summaries, changing)
        return ObservedState(
            pool=pool,
            nodes=tuple(nodes),
            providers={
                entry['name']: entry['uuid']
                for entry in listed
                if not entry['parent_provider_uuid']
            },
            hosts={
                host.name: dataclasses.replace(
                    host, slots=slots.get(host.provider or '', {})
                )
                for host in hosts
            },
            records=records,
            extra_specs={
                entry.flavor.id: entry.flavor.extra_specs for entry in flavors
            },
            summaries=summaries,
        )

    def records(self) -> record.Records:
        """Read only the records."""
        return record.read(self.compute.records())

    def is_newest(self, reservation: Reservation) -> bool:
        """Return whether the record of a reservation is unchanged."""
        records = record.read(self.compute.revisions(reservation))
        return records.reservations.get(reservation.id) == reservation

    def read_pool(self) -> Aggregate | None:
        """Return the aggregate of the pool; None if it does not exist."""
        for aggregate in self.compute.aggregates():
            if aggregate.name == self.pool:
                return aggregate
        return None

    def tree(
        self, observed: ObservedState, host: ReservationHost
    ) -> list[ProviderSummary]:
        """Return the providers of a host's resources, the root first.

        A full host is no allocation candidate, so its providers are read
        individually, and again only after their generation has changed.
        Deleting an allocation does not change the generation, so the usage of
        deleted servers may still count.

        :raises ServiceNotFound: if one of the providers is gone.
        """
        generations = {host.root: host.root_generation, **host.below}
        return [
            observed.summaries.get(uuid)
            or self._provider(uuid, host.root, generation)
            for uuid, generation in generations.items()
        ]

    def _provider(
        self, uuid: str, root: str, generation: int
    ) -> ProviderSummary:
        cached_at, cached = self._providers.get(uuid, (None, None))
        if cached and cached_at == generation:
            return cached
        current = inventories.read(self.placement, uuid)
        later, used = inventories.usages(self.placement, uuid)
        summary = ProviderSummary(
            uuid=uuid,
            root=root,
            parent=None if uuid == root else root,
            capacity={
                name: inventories.capacity(inventory)
                for name, inventory in current.by_class.items()
            },
            used=used,
            traits=providers.traits(self.placement, uuid),
        )
        if generation == current.generation == later:
            self._providers[uuid] = generation, summary
        return summary

    def _summaries(
        self, pool: Aggregate | None
    ) -> Mapping[str, ProviderSummary]:
        if pool is None:
            return {}
        request = ResourceRequest()
        request.group().resources[orc.VCPU] = 1
        request.group().aggregates.append(frozenset([pool.uuid]))
        return self.placement.allocation_candidates(request).summaries

    def _hosts(
        self,
        listed: Iterable[Mapping[str, Any]],
        ready: Mapping[str, Mapping[str, Any]],
        nodes: Iterable[Node],
        pool: Aggregate | None,
    ) -> list[ReservationHost]:
        by_uuid = {node.uuid: node for node in nodes}
        children = {
            (entry['parent_provider_uuid'], entry['name']): entry
            for entry in listed
            if entry['parent_provider_uuid']
        }
        below: dict[str, dict[str, int]] = {}
        for entry in listed:
            if entry['parent_provider_uuid']:
                tree = below.setdefault(entry['root_provider_uuid'], {})
                tree[entry['uuid']] = entry['generation']
        hosts = []
        for entry in listed:
            if entry['parent_provider_uuid']:
                continue
            node = by_uuid.get(entry['uuid'])
            child = children.get(
                (entry['uuid'], names.provider(entry['name']))
            )
            in_pool = bool(node and pool and node.service in pool.hosts)
            if not child and not in_pool:
                continue
            host = ReservationHost(
                name=entry['name'],
                root=entry['uuid'],
                root_generation=entry['generation'],
                service=node.service if node else None,
                state=_state(node),
                in_pool=in_pool,
                has_failed=not (node and node.is_up),
                below={
                    uuid: generation
                    for uuid, generation in below.get(
                        entry['uuid'], {}
                    ).items()
                    if not child or uuid != child['uuid']
                },
            )
            if child:
                is_ready = child['uuid'] in ready
                host = dataclasses.replace(
                    host,
                    provider=child['uuid'],
                    # The older one, at which it certainly had the trait.
                    generation=min(
                        child['generation'],
                        ready.get(child['uuid'], child)['generation'],
                    ),
                    is_ready=is_ready,
                )
            hosts.append(host)
        return sorted(hosts, key=lambda host: host.name)

    def _slots(
        self,
        hosts: Iterable[ReservationHost],
        summaries: Mapping[str, ProviderSummary],
        changing: set[str],
    ) -> dict[str, dict[str, HostSlots]]:
        mixed = {names.resource_class(name) for name in changing}
        slots: dict[str, dict[str, HostSlots]] = {}
        unknown = []
        for host in hosts:
            if host.provider is None:
                continue
            generation, cached = self._known.get(host.provider, (None, {}))
            summary = summaries.get(host.provider)
            if generation == host.generation and summary:
                slots[host.provider] = {
                    name: dataclasses.replace(
                        on_host,
                        used=summary.used.get(names.resource_class(name), 0),
                    )
                    for name, on_host in cached.items()
                }
            elif generation == host.generation and not (
                # New allocations change the generation; deleted ones do not.
                (host.obstacle or changing & cached.keys())
                and any(on_host.used for on_host in cached.values())
            ):
                slots[host.provider] = cached
            elif (
                summary
                and all(summary.capacity.values())
                and not mixed & summary.capacity.keys()
            ):
                # All slots are open: a host has both open and closed slots of
                # a reservation only while a change is pending.
                slots[host.provider] = slots_from(
                    {
                        name: {'total': total}
                        for name, total in summary.capacity.items()
                    },
                    summary.used,
                )
            else:
                unknown.append(host)
        with futures.ThreadPoolExecutor(_PARALLEL) as pool:
            readings = pool.map(
                lambda host: self._read_slots(host, summaries), unknown
            )
            for host, reading in zip(unknown, readings, strict=True):
                slots[host.provider or ''] = reading
        return slots

    def _read_slots(
        self, host: ReservationHost, summaries: Mapping[str, ProviderSummary]
    ) -> dict[str, HostSlots]:
        provider = host.provider or ''
        try:
            current = inventories.read(self.placement, provider)
            generation = current.generation
            if provider in summaries:
                # Still valid: read after the generation of the host.
                used = summaries[provider].used
            else:
                generation, used = inventories.usages(self.placement, provider)
        except exception.ServiceNotFound:
            # Deleted meanwhile; writes to it will fail.
            return {}
        slots = slots_from(current.by_class, used)
        if host.generation == current.generation == generation:
            self._known[provider] = generation, slots
        return slots


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _state(node: Node | None) -> HostState:
    if node is None:
        return HostState.GONE
    if not node.is_enabled:
        return HostState.DISABLED
    return HostState.UP if node.is_up else HostState.DOWN
