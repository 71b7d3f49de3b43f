# SPDX-License-Identifier: Apache-2.0
"""Takes snapshots of a live cloud, completely or in part."""

from collections.abc import Collection, Iterable, Mapping
import dataclasses
import datetime
from typing import Any

import os_resource_classes as orc
import os_traits

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_tools.cloud.cloud import Track, untracked
from isolate_aggregates_tools.cloud.live import bulk, memberships
from isolate_aggregates_tools.cloud.live.bulk import Amounts, Bulk
from isolate_aggregates_tools.cloud.live.glance import GlanceClient
from isolate_aggregates_tools.cloud.live.provider_memory import (
    Known,
    ProviderMemory,
)
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.client import NovaClient
from isolate_aggregates_tools.compute.records import ReservationRecords
from isolate_aggregates_tools.placement import edits, inventories
from isolate_aggregates_tools.placement import providers as placement_providers
from isolate_aggregates_tools.placement.client import (
    PlacementClient,
    ProviderSummary,
)
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.placement.provider import Inventory, Provider

# Each query sums up all trees in which one unit of a class is free.
_COMMON = (orc.VCPU, orc.MEMORY_MB, orc.DISK_GB)
# If the summaries lack at most so many providers, these are read one by one.
_FEW = 8


@dataclasses.dataclass(frozen=True)
class Names:
    """All traits and resource classes that exist in Placement.

    Each is one call, so a round reads them once.
    """

    traits: frozenset[str]
    classes: frozenset[str]

    @classmethod
    def read(cls, placement: PlacementClient) -> 'Names':
        """Return those of now."""
        return cls(
            edits.known_traits(placement),
            frozenset(inventories.classes(placement)),
        )

    def seen_in(self, providers: Iterable[Provider]) -> 'Names':
        """Return the same with those of providers that were read later."""
        providers = tuple(providers)
        return Names(
            self.traits.union(*(p.traits for p in providers)),
            self.classes.union(*(p.inventories for p in providers)),
        )


def take(
    aggregates: Iterable[Aggregate],
    nova: NovaClient,
    glance: GlanceClient,
    placement: PlacementClient,
    settings: Mapping[tuple[str, str], object] | None = None,
    track: Track = untracked,
    memory: ProviderMemory | None = None,
    members_of: Collection[str] | None = None,
    names: Names | None = None,
) -> Snapshot:
    """Return a snapshot of a live cloud.

    :param memory: What is known of its resource providers; it learns.
    :param members_of: As for :func:`take_providers`.
    :param names: As for :func:`take_places`.
    :raises IsolateAggregatesError: if anything cannot be read, because a
        snapshot must be complete.
    """
    snapshot = take_places(
        aggregates, nova, placement, track, memory, members_of, names=names
    )
    # Before the flavors: what is due then has not been done later.
    now = datetime.datetime.now(datetime.UTC)
    flavors, records = nova.flavors_and_records()
    return dataclasses.replace(
        snapshot,
        flavors=tuple(flavors),
        reservations=ReservationRecords(now, tuple(records))
        if records
        else None,
        images=tuple(glance.images()),
        settings=settings or {},
        services=nova.compute_services(),
    )


def take_places(
    aggregates: Iterable[Aggregate],
    nova: NovaClient,
    placement: PlacementClient,
    track: Track = untracked,
    memory: ProviderMemory | None = None,
    members_of: Collection[str] | None = None,
    amounts: Amounts | None = None,
    names: Names | None = None,
) -> Snapshot:
    """Return a snapshot without flavors, images, settings and services.

    :param amounts: As for :func:`take_providers`.
    :param names: The traits and resource classes, if they are read already.
    """
    if names is None:
        names = Names.read(placement)
    providers = take_providers(
        nova, placement, track, memory, members_of, amounts, names.classes
    )
    return Snapshot(
        origin='live cloud',
        aggregates=tuple(aggregates),
        providers=providers,
        traits=names.traits.difference(
            os_traits.get_traits(),
            *(provider.traits for provider in providers),
        ),
        resource_classes=frozenset(
            filter(orc.is_custom, names.classes)
        ).difference(*(provider.inventories for provider in providers)),
    )


def take_providers(
    nova: NovaClient,
    placement: PlacementClient,
    track: Track = untracked,
    memory: ProviderMemory | None = None,
    members_of: Collection[str] | None = None,
    amounts: Amounts | None = None,
    classes: Collection[str] = (),
) -> tuple[Provider, ...]:
    """Return all resource providers of a live cloud, parents first.

    A few queries for allocation candidates return traits and usages of most
    providers; the rest is read one by one, unless it is known and has not
    changed. Providers that have changed meanwhile are read again.

    :param memory: What is known of the providers; it learns.
    :param members_of: The uuids of the aggregates that matter, besides those
        of sharing providers and of roots that are no compute nodes; None for
        all.
    :param amounts: The amounts by resource class that matter, each for a
        single request group; None for all. Inventories from which all of them
        can be allocated may have nothing but the capacity.
    :param classes: The resource classes that exist, if there are amounts.
    """
    if memory is None:
        memory = ProviderMemory()
    hosts = _hosts(nova)
    entries = _listed(placement)
    memory.begin(entries)
    summaries = _summaries(placement, entries)
    memory.compare(summaries)
    with placement.pool() as pool:
        known = Bulk(
            summaries,
            memberships.read(placement, entries, hosts, members_of, pool),
            None
            if amounts is None
            else bulk.sufficient(placement, amounts, classes, pool),
            amounts or {},
        )
        providers = pool.map(
            lambda entry: read_provider(
                entry, hosts, placement, memory.of(entry), known
            ),
            entries,
        )
        by_uuid = {
            p.uuid: p
            for p in track(providers, 'resource providers', len(entries))
        }
        generations = {e['uuid']: e['generation'] for e in entries}
        again = _listed(placement)
        updates = [
            entry
            for entry in again
            if entry['generation'] != generations.get(entry['uuid'])
        ]
        for provider in pool.map(
            lambda entry: read_provider(
                entry, hosts, placement, memory.of(entry)
            ),
            updates,
        ):
            by_uuid[provider.uuid] = provider
    return tuple(by_uuid[entry['uuid']] for entry in again)


def take_capacities(
    nova: NovaClient, placement: PlacementClient
) -> tuple[Provider, ...]:
    """Return all resource providers with capacity, usage and traits alone.

    Inventories have nothing but the capacity, and there are no aggregates. So
    a few queries are enough for all trees in which anything is free.
    """
    hosts = _hosts(nova)
    entries = _listed(placement)
    summaries = _summaries(placement, entries)

    def read(entry: Mapping[str, Any]) -> Provider:
        summary = summaries.get(entry['uuid'])
        if summary is None:
            return read_provider(entry, hosts, placement)
        return Provider(
            uuid=entry['uuid'],
            name=entry['name'],
            parent=entry['parent_provider_uuid'],
            host=_host_of(entry, summary.traits, hosts),
            inventories={
                rc: Inventory(amount)
                for rc, amount in summary.capacity.items()
            },
            usages={
                rc: amount for rc, amount in summary.used.items() if amount
            },
            traits=summary.traits,
        )

    with placement.pool() as pool:
        return tuple(pool.map(read, entries))


def take_roots(
    nova: NovaClient,
    placement: PlacementClient,
    track: Track = untracked,
    memory: ProviderMemory | None = None,
    members_of: Collection[str] | None = None,
) -> tuple[Provider, ...]:
    """Return the root providers with their traits and aggregates, by name.

    This is cheap enough to be called often. A few queries return the traits
    of most providers, and the members of an aggregate are one.

    :param memory: As for :func:`take_providers`.
    :param members_of: As for :func:`take_providers`.
    """
    if memory is None:
        memory = ProviderMemory()
    hosts = _hosts(nova)
    entries = placement.resource_providers()
    # Compute nodes are always root providers.
    roots = [e for e in entries if not e['parent_provider_uuid']]
    memory.begin(roots)
    summaries = _summaries(placement, roots)
    memory.compare(summaries)
    with placement.pool() as pool:
        known = Bulk(
            summaries,
            memberships.read(placement, roots, hosts, members_of, pool),
        )
        providers = pool.map(
            lambda entry: _root(
                entry, hosts, placement, memory.of(entry), known
            ),
            roots,
        )
        results = track(providers, 'resource providers', len(roots))
        existing = [provider for provider in results if provider]
    return tuple(sorted(existing, key=lambda provider: provider.name))


def _hosts(nova: NovaClient) -> Mapping[str, str] | None:
    """Return the compute services by node uuid; None if Nova is too old."""
    nodes = nova.compute_nodes()
    return None if nodes is None else {n.uuid: n.host for n in nodes}


def _listed(placement: PlacementClient) -> list[dict[str, Any]]:
    """List all resource providers in Placement, parents first.

    :raises ServiceError: if Placement hides parents of listed providers.
    """
    entries = placement.resource_providers()
    providers = _parents_first(entries)
    uuids = {entry['uuid'] for entry in providers}
    orphans = sorted(e['name'] for e in entries if e['uuid'] not in uuids)
    if orphans:
        raise exception.ServiceError(
            'Placement',
            None,
            'lists resource providers without their parents: '
            f'{", ".join(orphans[:5])}; use credentials with the admin role.',
        )
    return providers


def _summaries(
    placement: PlacementClient, entries: Iterable[Mapping[str, Any]]
) -> Mapping[str, ProviderSummary]:
    """Return the summaries of all trees with something free, if possible.

    :param entries: All resource providers, as Placement lists them.
    """
    missing = {entry['uuid'] for entry in entries}
    summaries: dict[str, ProviderSummary] = {}
    for resource_class in _COMMON:
        if summaries and len(missing) <= _FEW:
            break
        request = ResourceRequest()
        request.group().resources[resource_class] = 1
        summaries |= placement.allocation_candidates(request).summaries
        missing -= summaries.keys()
    return summaries


def _parents_first(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the providers tree by tree, in the order of a cloud file."""
    children: dict[str | None, list[dict[str, Any]]] = {}
    for entry in entries:
        children.setdefault(entry['parent_provider_uuid'], []).append(entry)
    result: list[dict[str, Any]] = []
    waiting = _backwards(children.get(None, []))
    while waiting:
        entry = waiting.pop()
        result.append(entry)
        waiting += _backwards(children.get(entry['uuid'], []))
    return result


def _backwards(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda entry: entry['name'], reverse=True)


def read_provider(
    entry: Mapping[str, Any],
    hosts: Mapping[str, str] | None,
    placement: PlacementClient,
    known: Known | None = None,
    found: Bulk | None = None,
) -> Provider:
    """Read the parts of a listed resource provider.

    :param entry: The provider, as Placement lists it.
    :param hosts: The compute services by node uuid; None if they are not
        known.
    :param known: What is known of it; it learns.
    :param found: What need not be read.
    """
    uuid = entry['uuid']
    path = f'/resource_providers/{uuid}'
    known = known or Known(entry['generation'])
    found = found or Bulk()
    summary = found.summaries.get(uuid)
    usages = (
        summary.used if summary else placement.read(f'{path}/usages', _usages)
    )
    traits = _traits(known, placement, uuid, found)
    amounts = known.inventories
    if amounts is None:
        amounts = found.inventories(uuid)
    if amounts is None:
        amounts = known.get(
            'inventories',
            lambda: placement.read(f'{path}/inventories', _inventories),
        )
    return Provider(
        uuid=uuid,
        name=entry['name'],
        parent=entry['parent_provider_uuid'],
        host=_host_of(entry, traits, hosts),
        inventories=amounts,
        usages={rc: amount for rc, amount in usages.items() if amount},
        traits=traits,
        aggregates=_aggregates(found, placement, uuid),
    )


def _traits(
    known: Known, placement: PlacementClient, uuid: str, found: Bulk
) -> frozenset[str]:
    summary = found.summaries.get(uuid)
    if summary and known.traits is None:
        known.traits = summary.traits
    return known.get(
        'traits', lambda: placement_providers.read(placement, uuid, 'traits')
    )


def _aggregates(
    found: Bulk, placement: PlacementClient, uuid: str
) -> frozenset[str]:
    if found.members is None:
        return placement.aggregates(uuid)
    return found.members.get(uuid, frozenset())


def _usages(document: Any) -> Mapping[str, int]:
    return dict(document['usages'])


def _inventories(document: Any) -> tuple[Mapping[str, Inventory], int]:
    fields = Inventory.__dataclass_fields__
    return {
        resource_class: Inventory(
            **{k: v for k, v in amounts.items() if k in fields}
        )
        for resource_class, amounts in document['inventories'].items()
    }, document[placement_providers.GENERATION]


def _root(
    entry: Mapping[str, Any],
    hosts: Mapping[str, str] | None,
    placement: PlacementClient,
    known: Known,
    found: Bulk,
) -> Provider | None:
    """Read a root provider; None if it was deleted meanwhile."""
    uuid = entry['uuid']
    try:
        traits = _traits(known, placement, uuid, found)
        aggregates = _aggregates(found, placement, uuid)
    except exception.ServiceNotFound:
        return None
    return Provider(
        uuid,
        entry['name'],
        host=_host_of(entry, traits, hosts),
        traits=traits,
        aggregates=aggregates,
    )


def _host_of(
    entry: Mapping[str, Any],
    traits: frozenset[str],
    hosts: Mapping[str, str] | None,
) -> str | None:
    """Return the compute service of a provider; None if it is not a node."""
    if hosts is not None:
        return hosts.get(entry['uuid'])
    # If Nova is too old, all roots that are not sharing providers are nodes.
    is_node = not (
        entry['parent_provider_uuid']
        or os_traits.MISC_SHARES_VIA_AGGREGATE in traits
    )
    return entry['name'] if is_node else None
