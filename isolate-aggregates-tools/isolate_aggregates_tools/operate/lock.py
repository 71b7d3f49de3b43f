# SPDX-License-Identifier: Apache-2.0
"""Locks an aggregate with traits.

The steps are those of `Filtering hosts by isolating aggregates
<https://docs.openstack.org/nova/latest/reference/isolate-aggregates.html>`_,
in another order. A locked host accepts only servers that require its traits.
Until all steps are done, it must never accept servers that it did not accept
before:

1. The traits are created; no host has them.
2. Missing hosts are added to the aggregate's Placement aggregate; otherwise
   the tag would have no effect on them.
3. The aggregate is tagged. From here on the hosts are closed to all servers:
   the tag excludes those that do not require the traits, and the others find
   no host with the traits.
4. The hosts get the traits, one by one, and are open to servers that require
   them.

With the traits first, as in Nova's guide, servers that require them would
share hosts with all others. If the command is interrupted, the hosts are
closed to too many servers; running it again completes it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import functools

import os_traits

from isolate_aggregates import text
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.compute.client import ComputeNode
from isolate_aggregates_tools.locking_traits import kept, opposite
from isolate_aggregates_tools.operate import hosts, names
from isolate_aggregates_tools.operate.plan import Plan, Step
from isolate_aggregates_tools.placement import edits
from isolate_aggregates_tools.placement.provider import Below


def plan(cloud: LiveCloud, name: str, traits: Sequence[str]) -> Plan:
    """Return the plan to lock an aggregate.

    A trait that is added to a host gets a mark, so that
    :mod:`~isolate_aggregates_tools.operate.unlock` and ``sync`` may remove it.
    An existing trait gets none.
    """
    existing = cloud.traits()
    for trait in traits:
        names.check_lock(trait, existing)
    aggregate = names.aggregate(cloud.aggregates(), name, cloud.where)
    nodes, problems = hosts.nodes(cloud, aggregate.hosts)
    unique = tuple(dict.fromkeys(traits))
    holders = {
        # Placement rejects queries for traits that do not exist.
        trait: cloud.placement.resource_providers(required=[trait])
        if trait in existing
        else []
        for trait in unique
    }
    below = cloud.holders_below(existing.intersection(unique))
    contrary = {
        trait: _contrary(cloud, nodes, trait, existing) for trait in unique
    }
    lacking = {
        trait: [
            node
            for node in _lacking(nodes, trait, holders[trait], below)
            if node not in contrary[trait]
        ]
        for trait in unique
    }
    problems += tuple(_contradictions(contrary, existing))
    tag = tuple(_tag(cloud, aggregate, unique))
    steps = (
        *_create(cloud, lacking, existing),
        *_join(cloud, aggregate, nodes),
        *tag,
        *add_traits(cloud, lacking),
    )
    notes = (*_notes(aggregate, tag), *_below(nodes, holders, below))
    return Plan(steps, unique, notes, problems, aggregate)


_Entries = Sequence[Mapping[str, str | None]]


def _lacking(
    nodes: tuple[ComputeNode, ...],
    trait: str,
    holders: _Entries,
    below: Below,
) -> list[ComputeNode]:
    """Return the nodes that neither have a trait nor a helper with it.

    If a child provider has it, for example a GPU, or storage that they share,
    the node does not get it: servers that do not use that provider must stay
    excluded.
    """
    itself = {provider['uuid'] for provider in holders}
    return [
        node
        for node in nodes
        if node.uuid not in itself and trait not in below.get(node.uuid, {})
    ]


def _contrary(
    cloud: LiveCloud,
    nodes: Sequence[ComputeNode],
    trait: str,
    existing: frozenset[str],
) -> list[ComputeNode]:
    """Return the nodes with the opposite of a trait."""
    other = opposite(trait, existing)
    if not other:
        return []
    holders = cloud.placement.resource_providers(required=[other])
    uuids = {provider['uuid'] for provider in holders}
    return [node for node in nodes if node.uuid in uuids]


def _contradictions(
    contrary: Mapping[str, Iterable[ComputeNode]], existing: frozenset[str]
) -> Iterator[str]:
    """Yield which hosts do not get a trait, as they have its opposite."""
    for trait, nodes in contrary.items():
        for node in nodes:
            yield (
                f'{hosts.node_label(node)} does not get {trait}: '
                f'{kept(opposite(trait, existing))}; remove the host from the '
                'aggregate'
            )


def _below(
    nodes: tuple[ComputeNode, ...],
    holders: Mapping[str, _Entries],
    below: Below,
) -> Iterator[str]:
    """Yield notes about other providers that have a trait already."""
    for trait, owners in holders.items():
        itself = {provider['uuid'] for provider in owners}
        for node in nodes:
            names_below = below.get(node.uuid, {}).get(trait, ())
            if names_below and node.uuid not in itself:
                yield (
                    f'{hosts.node_label(node)} has {trait} on '
                    f'{text.named("provider", names_below)}; servers find it '
                    'there if they request resources of that provider'
                )


def _create(
    cloud: LiveCloud,
    lacking: dict[str, list[ComputeNode]],
    existing: frozenset[str],
) -> Iterator[Step]:
    for trait, nodes in lacking.items():
        names_needed = [marks.of_trait(trait)] if nodes else []
        if os_traits.is_custom(trait):
            names_needed.insert(0, trait)
        for name in names_needed:
            if name not in existing:
                yield Step(
                    f'create trait {name}',
                    functools.partial(
                        edits.create_trait, cloud.placement, name
                    ),
                    changes.new_trait(name),
                )


def _join(
    cloud: LiveCloud, aggregate: Aggregate, nodes: tuple[ComputeNode, ...]
) -> Iterator[Step]:
    if not nodes:
        return
    members = {
        provider['uuid']
        for provider in cloud.placement.resource_providers(
            member_of=[aggregate.uuid]
        )
    }
    for node in nodes:
        if node.uuid not in members:
            yield Step(
                f'add {hosts.node_label(node)} to aggregate {aggregate.name} '
                'in Placement',
                functools.partial(
                    edits.change_aggregates,
                    cloud.placement,
                    node.uuid,
                    frozenset({aggregate.uuid}).union,
                ),
                changes.names_of_provider(
                    node.uuid,
                    'aggregates',
                    frozenset({aggregate.uuid}).union,
                ),
            )


def _tag(
    cloud: LiveCloud, aggregate: Aggregate, traits: Sequence[str]
) -> Iterator[Step]:
    for trait in traits:
        key = TRAIT_PREFIX + trait
        if aggregate.metadata.get(key) != REQUIRED:
            yield Step(
                f'tag aggregate {aggregate.name} {key}={REQUIRED}',
                functools.partial(
                    cloud.nova.set_metadata, aggregate, {key: REQUIRED}
                ),
                changes.values(aggregate, {key: REQUIRED}),
            )


def _notes(aggregate: Aggregate, tag: Sequence[Step]) -> Iterator[str]:
    if not aggregate.hosts:
        yield (
            f'aggregate {aggregate.name} has no hosts; after adding hosts, '
            'run the same command again, or sync'
        )
    elif tag:
        yield (
            'existing servers stay on the hosts; audit --servers lists those '
            'that may not run there'
        )


def add_traits(
    cloud: LiveCloud, lacking: Mapping[str, Sequence[ComputeNode]]
) -> Iterator[Step]:
    """Yield the steps that add traits and their marks to hosts."""
    for trait, nodes in lacking.items():
        for node in nodes:
            yield Step(
                f'add trait {trait} to {hosts.node_label(node)}',
                functools.partial(
                    edits.change_traits,
                    cloud.placement,
                    node.uuid,
                    functools.partial(_with, trait),
                ),
                changes.names_of_provider(
                    node.uuid, 'traits', functools.partial(_with, trait)
                ),
            )


def _with(trait: str, traits: frozenset[str]) -> frozenset[str]:
    if trait in traits or opposite(trait, traits):
        # Another client has added the trait since, or its opposite.
        return traits
    return traits | {trait, marks.of_trait(trait)}
