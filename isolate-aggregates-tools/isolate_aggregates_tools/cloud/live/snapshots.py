# SPDX-License-Identifier: Apache-2.0
"""Takes snapshots of a live cloud, completely or in part."""

from collections.abc import Iterable, Mapping
from concurrent import futures
import dataclasses
from typing import Any

import os_resource_classes as orc
import os_traits

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_tools.cloud.cloud import Track, untracked
from isolate_aggregates_tools.cloud.live.glance import GlanceClient
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.client import NovaClient
from isolate_aggregates_tools.placement import edits, inventories
from isolate_aggregates_tools.placement import providers as placement_providers
from isolate_aggregates_tools.placement.client import (
    PlacementClient,
    ProviderSummary,
)
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.placement.provider import Inventory, Provider

PARALLEL = edits.PARALLEL


def take(
    aggregates: Iterable[Aggregate],
    nova: NovaClient,
    glance: GlanceClient,
    placement: PlacementClient,
    settings: Mapping[tuple[str, str], object] | None = None,
    track: Track = untracked,
) -> Snapshot:
    """Return a snapshot of a live cloud.

    :raises IsolateAggregatesError: if anything cannot be read, because a
        snapshot must be complete.
    """
    snapshot = take_places(aggregates, nova, placement, track)
    return dataclasses.replace(
        snapshot,
        flavors=tuple(nova.flavors()),
        images=tuple(glance.images()),
        settings=settings or {},
        services=nova.compute_services(),
    )


def take_places(
    aggregates: Iterable[Aggregate],
    nova: NovaClient,
    placement: PlacementClient,
    track: Track = untracked,
) -> Snapshot:
    """Return a snapshot without flavors, images, settings and services."""
    providers = take_providers(nova, placement, track)
    traits = edits.known_traits(placement)
    classes = frozenset(inventories.classes(placement))
    return Snapshot(
        origin='live cloud',
        aggregates=tuple(aggregates),
        providers=providers,
        traits=traits.difference(
            os_traits.get_traits(),
            *(provider.traits for provider in providers),
        ),
        resource_classes=frozenset(filter(orc.is_custom, classes)).difference(
            *(provider.inventories for provider in providers)
        ),
    )


def take_providers(
    nova: NovaClient, placement: PlacementClient, track: Track = untracked
) -> tuple[Provider, ...]:
    """Return all resource providers of a live cloud, parents first.

    A single query for allocation candidates returns traits and usages of most
    providers; the rest is read one by one. Providers that have changed
    meanwhile are read again.
    """
    hosts = _hosts(nova)
    entries = _listed(placement)
    summaries = _summaries(placement)
    with futures.ThreadPoolExecutor(PARALLEL) as pool:
        providers = pool.map(
            lambda entry: read_provider(
                entry, hosts, placement, summaries.get(entry['uuid'])
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
            lambda entry: read_provider(entry, hosts, placement), updates
        ):
            by_uuid[provider.uuid] = provider
    return tuple(by_uuid[entry['uuid']] for entry in again)


def take_roots(
    nova: NovaClient, placement: PlacementClient, track: Track = untracked
) -> tuple[Provider, ...]:
    """Return the root providers with their traits and aggregates, by name.

    This is cheap enough to be called often. A single query returns the traits
    of most providers, so only the aggregates are read one by one.
    """
    hosts = _hosts(nova)
    # Compute nodes are always root providers.
    roots = [
        entry
        for entry in placement.resource_providers()
        if not entry['parent_provider_uuid']
    ]
    summaries = _summaries(placement)
    with futures.ThreadPoolExecutor(PARALLEL) as pool:
        providers = pool.map(
            lambda entry: _root(
                entry, hosts, placement, summaries.get(entry['uuid'])
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


def _summaries(placement: PlacementClient) -> Mapping[str, ProviderSummary]:
    """Return the summaries of all trees with a free CPU, with one query."""
    request = ResourceRequest()
    request.group().resources[orc.VCPU] = 1
    return placement.allocation_candidates(request).summaries


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
    summary: ProviderSummary | None = None,
) -> Provider:
    """Read the parts of a listed resource provider.

    :param entry: The provider, as Placement lists it.
    :param hosts: The compute services by node uuid; None if they are not
        known.
    """
    uuid = entry['uuid']
    path = f'/resource_providers/{uuid}'
    if summary:
        traits, usages = summary.traits, summary.used
    else:
        traits = placement_providers.traits(placement, uuid)
        usages = placement.read(f'{path}/usages', _usages)
    return Provider(
        uuid=uuid,
        name=entry['name'],
        parent=entry['parent_provider_uuid'],
        host=_host_of(entry, traits, hosts),
        inventories=placement.read(f'{path}/inventories', _inventories),
        usages={rc: amount for rc, amount in usages.items() if amount},
        traits=traits,
        aggregates=placement.aggregates(uuid),
    )


def _usages(document: Any) -> Mapping[str, int]:
    return dict(document['usages'])


def _inventories(document: Any) -> Mapping[str, Inventory]:
    fields = Inventory.__dataclass_fields__
    return {
        resource_class: Inventory(
            **{k: v for k, v in amounts.items() if k in fields}
        )
        for resource_class, amounts in document['inventories'].items()
    }


def _root(
    entry: Mapping[str, Any],
    hosts: Mapping[str, str] | None,
    placement: PlacementClient,
    summary: ProviderSummary | None,
) -> Provider | None:
    """Read a root provider; None if it was deleted meanwhile."""
    uuid = entry['uuid']
    try:
        traits = (
            summary.traits
            if summary
            else placement_providers.traits(placement, uuid)
        )
        aggregates = placement.aggregates(uuid)
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
