# SPDX-License-Identifier: Apache-2.0
"""Removes the lock of an aggregate.

The order is the opposite of :mod:`~isolate_aggregates_tools.operate.lock`:
first the hosts lose the traits that lock or sync added, then the aggregate
loses the tag. In between, the hosts are closed to all servers. In the other
order, other
servers could share the hosts with those that require the traits.

The membership in Placement is kept, because Nova maintains it. The traits
themselves are kept too, because flavors may name them.

Single hosts leave the aggregate instead, which keeps its tag. If they left it
with the traits, servers with the key would still be placed there.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
import dataclasses
import functools

from isolate_aggregates import text
from isolate_aggregates.aggregates import Aggregate, tags
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.compute.client import ComputeNode
from isolate_aggregates_tools.operate import hosts, lock, names
from isolate_aggregates_tools.operate.plan import Plan, Step
from isolate_aggregates_tools.placement import edits


def plan(
    cloud: LiveCloud,
    name: str,
    traits: Sequence[str],
    again: bool = False,
    leaving: Collection[str] = (),
) -> Plan:
    """Return the plan to unlock an aggregate, or some of its hosts.

    A trait is kept on a host if another program or person added it, or if
    another aggregate of the host requires it.

    :param traits: The traits to unlock; empty for all that lock the aggregate.
    :param leaving: The hosts to take out of the aggregate, by name of the
        compute service; empty to unlock the aggregate itself. Those that have
        left it already lose its traits.
    :param again: Whether an earlier plan was carried out. Then a trait is
        restored on hosts for which another aggregate requires it since.
    """
    aggregates = cloud.aggregates()
    aggregate = names.aggregate(aggregates, name, cloud.where)
    keys = _keys(aggregate, traits)
    to_unlock = [
        trait
        for trait in (key.removeprefix(TRAIT_PREFIX) for key in keys)
        if tags.is_trait_name(trait)
    ]
    meant = frozenset(leaving) or aggregate.hosts
    nodes, problems = hosts.nodes(cloud, meant)
    existing = cloud.traits()
    on_hosts = _TraitsOnHosts(
        cloud,
        nodes,
        _holders(cloud, to_unlock, existing),
        _needed(aggregate, aggregates, meant),
    )
    steps = (
        *on_hosts.remove_traits(),
        *on_hosts.delete_marks(),
        # Last, because without --trait a second run depends on the tags.
        *(
            _leave(cloud, aggregate, leaving)
            if leaving
            else _untag(cloud, aggregate, keys)
        ),
        *(on_hosts.restore_traits() if again else ()),
    )
    notes = [*_not_locked(aggregate, keys), *on_hosts.notes()]
    if steps and marks.marked_rollups(existing):
        notes.append(
            'requests with long queries cannot use the hosts until sync has '
            'removed them from the rollup aggregates too'
        )
    return Plan(steps, tuple(to_unlock), tuple(notes), problems)


# An aggregate that requires a trait, by host and trait.
_Others = Mapping[str, Mapping[str, Aggregate]]


@dataclasses.dataclass(frozen=True)
class _Holders:
    """The providers with a trait.

    :param owners: The uuids of the providers that have it.
    :param trees: The uuids of the roots of their trees.
    :param marked: The uuids of the providers that have its mark.
    :param has_mark: Whether the mark exists in Placement.
    """

    owners: frozenset[str]
    trees: frozenset[str]
    marked: frozenset[str]
    has_mark: bool


@dataclasses.dataclass(frozen=True)
class _TraitsOnHosts:
    """Plans the removal of traits from hosts."""

    cloud: LiveCloud
    nodes: Sequence[ComputeNode]
    holders: Mapping[str, _Holders]
    others: _Others

    def remove_traits(self) -> Iterator[Step]:
        for trait, holders in self.holders.items():
            for node in self._losing(trait, holders):
                yield Step(
                    f'remove trait {trait} from {hosts.node_label(node)}',
                    functools.partial(
                        edits.change_traits,
                        self.cloud.placement,
                        node.uuid,
                        functools.partial(_without, trait),
                    ),
                    changes.names_of_provider(
                        node.uuid, 'traits', functools.partial(_without, trait)
                    ),
                )

    def delete_marks(self) -> Iterator[Step]:
        """Yield the steps that delete marks which are no longer in use."""
        for trait, holders in self.holders.items():
            nodes = {node.uuid for node in self._losing(trait, holders)}
            if holders.has_mark and holders.marked <= nodes:
                mark = marks.of_trait(trait)
                yield Step(
                    f'delete trait {mark}',
                    functools.partial(
                        self.cloud.placement.send,
                        'DELETE',
                        f'/traits/{mark}',
                        # 404: another client removed it. 409: it is in use.
                        accept=(204, 404, 409),
                    ),
                    changes.unused_trait_deleted(mark),
                )

    def restore_traits(self) -> Iterator[Step]:
        for trait, holders in self.holders.items():
            lacking = [
                node
                for node in self.nodes
                if node.uuid not in holders.trees
                and self._needing(trait, node) is not None
            ]
            yield from lock.add_traits(self.cloud, {trait: lacking})

    def notes(self) -> Iterator[str]:
        """Yield which hosts keep a trait, in one sentence for each reason."""
        for trait, holders in self.holders.items():
            keeping: dict[str, list[str]] = {}
            for node in self.nodes:
                if node.uuid not in holders.owners:
                    continue
                other = self._needing(trait, node)
                if other is not None:
                    why = f'aggregate {other.name} requires'
                elif node.uuid not in holders.marked:
                    why = 'isolate-aggregates did not add'
                else:
                    continue
                label = hosts.node_label(node).removeprefix('host ')
                keeping.setdefault(why, []).append(label)
            for why, labels in keeping.items():
                number = len(labels)
                keep = text.plural(number, 'keeps', 'keep')
                yield (
                    f'{text.counted(number, "host")} ({text.listed(labels)}) '
                    f'{keep} trait {trait}, which {why}'
                    if number > 1
                    else f'host {labels[0]} {keep} trait {trait}, which {why}'
                )

    def _losing(self, trait: str, holders: _Holders) -> Iterator[ComputeNode]:
        for node in self.nodes:
            if (
                node.uuid in holders.marked
                and self._needing(trait, node) is None
            ):
                yield node

    def _needing(self, trait: str, node: ComputeNode) -> Aggregate | None:
        return self.others.get(node.host, {}).get(trait)


def _keys(aggregate: Aggregate, traits: Sequence[str]) -> list[str]:
    if traits:
        return [TRAIT_PREFIX + trait for trait in dict.fromkeys(traits)]
    return sorted(
        key
        for key, value in aggregate.metadata.items()
        if tags.is_lock(key, value)
    )


def _is_tagged(aggregate: Aggregate, key: str) -> bool:
    return tags.is_lock(key, aggregate.metadata.get(key, ''))


def _holders(
    cloud: LiveCloud, traits: Sequence[str], existing: frozenset[str]
) -> dict[str, _Holders]:
    def listed(trait: str) -> list[dict[str, str]]:
        # Placement rejects queries for traits that do not exist.
        if trait not in existing:
            return []
        return cloud.placement.resource_providers(required=[trait])

    below = cloud.holders_below(existing.intersection(traits))
    holders = {}
    for trait in traits:
        owners, mark = listed(trait), marks.of_trait(trait)
        holders[trait] = _Holders(
            frozenset(owner['uuid'] for owner in owners),
            frozenset(owner['root_provider_uuid'] for owner in owners)
            | {root for root, some in below.items() if trait in some},
            frozenset(owner['uuid'] for owner in listed(mark)),
            mark in existing,
        )
    return holders


def _needed(
    aggregate: Aggregate,
    aggregates: Sequence[Aggregate],
    hosts_meant: frozenset[str],
) -> _Others:
    """Return the traits that other aggregates require, by host."""
    required: dict[str, dict[str, Aggregate]] = {}
    for other in aggregates:
        if other.uuid != aggregate.uuid:
            for host in other.hosts & hosts_meant:
                for trait in tags.required_traits(other):
                    required.setdefault(host, {})[trait] = other
    return required


def _without(trait: str, traits: frozenset[str]) -> frozenset[str]:
    mark = marks.of_trait(trait)
    return traits - {trait, mark} if mark in traits else traits


def _untag(
    cloud: LiveCloud, aggregate: Aggregate, keys: Sequence[str]
) -> Iterator[Step]:
    for key in keys:
        if _is_tagged(aggregate, key):
            yield Step(
                f'untag aggregate {aggregate.name} {key}',
                functools.partial(
                    cloud.nova.set_metadata, aggregate, {key: None}
                ),
                changes.values(aggregate, {key: None}),
            )


def _leave(
    cloud: LiveCloud, aggregate: Aggregate, leaving: Collection[str]
) -> Iterator[Step]:
    def without(host: str, members: frozenset[str]) -> frozenset[str]:
        return members - {host}

    for host in sorted(aggregate.hosts.intersection(leaving)):
        yield Step(
            f'remove host {host} from aggregate {aggregate.name}',
            functools.partial(cloud.nova.remove_host, aggregate, host),
            changes.hosts(aggregate, functools.partial(without, host)),
        )


def _not_locked(aggregate: Aggregate, keys: Sequence[str]) -> Iterator[str]:
    for key in keys:
        if not _is_tagged(aggregate, key):
            yield f'aggregate {aggregate.name} has no tag {key}={REQUIRED}'
    if not keys:
        yield f'aggregate {aggregate.name} is not locked by any trait'
