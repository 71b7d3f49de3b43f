# SPDX-License-Identifier: Apache-2.0
"""Reads the aggregates of resource providers, in bulk if that is cheaper.

Placement lists the members of an aggregate in one call, but not all
aggregates. So the aggregates that decide about servers are listed: those of
Nova, rollups, and all those of sharing providers and of network segments. What
else a compute node may be in is left out; nothing asks for it.
"""

from collections.abc import Collection, Iterable, Mapping
from concurrent import futures
import dataclasses
import itertools
from typing import Any

import os_traits

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.provider import Provider

# How many compute nodes that Nova has in other aggregates are read again.
_MOST_DIFFERING = 50


def read(
    placement: PlacementClient,
    entries: Iterable[Mapping[str, Any]],
    hosts: Collection[str] | None,
    aggregates: Collection[str] | None,
    pool: futures.Executor,
) -> Mapping[str, frozenset[str]] | None:
    """Return the aggregates of each provider that is in any.

    :param entries: The providers, as Placement lists them.
    :param hosts: The uuids of the compute nodes; None if unknown.
    :param aggregates: The uuids of the aggregates that matter, besides those
        of sharing providers and of roots that are no compute nodes; None if
        all aggregates do.
    :returns: None if it is cheaper to read each provider, or necessary.
    """
    uuids = {entry['uuid'] for entry in entries}
    if aggregates is None or len(aggregates) >= len(uuids):
        return None
    special = {
        provider['uuid']
        for provider in placement.resource_providers(
            required=[os_traits.MISC_SHARES_VIA_AGGREGATE]
        )
    }
    if hosts is not None:
        special |= {
            entry['uuid']
            for entry in entries
            if not entry['parent_provider_uuid'] and entry['uuid'] not in hosts
        }
    if len(special) + len(aggregates) >= len(uuids):
        return None
    named = sorted(special)
    own = pool.map(lambda uuid: _aggregates(placement, uuid), named)
    held = {uuid: set(found) for uuid, found in zip(named, own, strict=True)}
    listed = sorted(set(aggregates).union(*held.values()))
    members = pool.map(
        lambda uuid: placement.resource_providers(member_of=[uuid]), listed
    )
    for aggregate, providers in zip(listed, members, strict=True):
        for provider in providers:
            held.setdefault(provider['uuid'], set()).add(aggregate)
    # Most providers have the same few sets.
    once: dict[frozenset[str], frozenset[str]] = {}
    return {
        uuid: once.setdefault(found, found)
        for uuid, found in ((u, frozenset(f)) for u, f in held.items())
    }


def with_differing(
    placement: PlacementClient,
    aggregates: Iterable[Aggregate],
    providers: Iterable[Provider],
) -> tuple[Provider, ...]:
    """Return providers with all aggregates of nodes that lack some of Nova.

    They may be in one of these by another spelling of its uuid, which is not
    listed. Nodes that lack none are not read, nor more than 50.
    """
    expected: dict[str, set[str]] = {}
    for aggregate in aggregates:
        for host in aggregate.hosts:
            expected.setdefault(host, set()).add(aggregate.uuid)
    providers = tuple(providers)
    differing = itertools.islice(
        (
            each.uuid
            for each in providers
            if each.host
            and not expected.get(each.host, set()) <= each.aggregates
        ),
        _MOST_DIFFERING,
    )
    found = placement.each(
        lambda uuid: _aggregates(placement, uuid), differing
    )
    return tuple(
        dataclasses.replace(
            each, aggregates=each.aggregates | found[each.uuid]
        )
        if each.uuid in found
        else each
        for each in providers
    )


def _aggregates(placement: PlacementClient, uuid: str) -> frozenset[str]:
    try:
        return placement.aggregates(uuid)
    except exception.ServiceNotFound:
        # It was deleted meanwhile.
        return frozenset()
