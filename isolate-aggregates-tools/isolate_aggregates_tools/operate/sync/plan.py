# SPDX-License-Identifier: Apache-2.0
"""Computes the changes that sync has to make."""

from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
)
import dataclasses
import enum

from isolate_aggregates.aggregates import Aggregate, Lock, tags
from isolate_aggregates.aggregates import rollups as rollups_of
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request.extra_specs import (
    RESERVATION_TRAIT,
    TRAIT_PREFIX,
)
from isolate_aggregates.text import named, plural
from isolate_aggregates_tools import domains as tools_domains
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.locking_traits import kept, opposite, why_not_put
from isolate_aggregates_tools.operate.sync import projects
from isolate_aggregates_tools.operate.sync.snapshot import SyncSnapshot
from isolate_aggregates_tools.operate.sync.target import (
    Causes,
    Outcome,
    ProviderChange,
    Rollups,
    Target,
)
from isolate_aggregates_tools.placement.provider import Provider, nodes_by_host

# The description of a mark that is to be deleted.
IDLE = 'which no longer marks anything'


class Part(enum.Enum):
    """A part of the work of sync."""

    MIRROR = 'mirror'
    TRAITS = 'traits'
    ROLLUPS = 'rollups'
    DOMAINS = 'domains'


@dataclasses.dataclass(frozen=True)
class SyncPlan:
    """The changes to make.

    :param target: Returns the target of a resource provider.
    :param outcomes: What the providers that change will be, by their uuids.
    :param old_marks: The marks that are no longer in use afterwards.
    :param differences: The tags of domains that are not right.
    """

    snapshot: SyncSnapshot
    parts: frozenset[Part]
    target: Callable[[Provider], Target]
    outcomes: Mapping[str, Outcome]
    new_traits: tuple[str, ...]
    old_marks: tuple[str, ...]
    # An audit plans for many clouds, and shows what is wrong of none.
    _problems: Callable[[], Iterable[str]] = dataclasses.field(repr=False)
    forgets: bool = False
    differences: tuple[tools_domains.Difference, ...] = ()

    @property
    def targets(self) -> Iterator[Target]:
        """The targets of all resource providers."""
        snapshot = self.snapshot
        return map(self.target, (*snapshot.nodes, *snapshot.others))

    @property
    def _changing(self) -> Iterator[Provider]:
        """The resource providers that change."""
        nodes = (*self.snapshot.nodes, *self.snapshot.others)
        return (node for node in nodes if node.uuid in self.outcomes)

    @lazy_property
    def pending(self) -> tuple[Target, ...]:
        """The targets that are not reached yet."""
        return tuple(map(self.target, self._changing))

    @lazy_property
    def changes(self) -> tuple[ProviderChange, ...]:
        """The changes of resource providers."""
        return tuple(
            change
            for node, target in zip(self._changing, self.pending, strict=True)
            for change in target.changes(node)
        )

    @lazy_property
    def problems(self) -> tuple[str, ...]:
        """What cannot be done or looks wrong, one sentence each."""
        problems = () if self.forgets else self._problems()
        return (*self.snapshot.problems, *problems)

    @property
    def tags(self) -> tuple[projects.TagChange, ...]:
        """The changes of tags of aggregates."""
        return tuple(
            change
            for difference in self.differences
            for change in projects.changes(difference)
        )

    @property
    def sentences(self) -> list[str]:
        """The changes and the marks to delete, one sentence each."""
        return [
            *map(str, self.tags),
            *map(str, self.changes),
            *(f'delete trait {mark}, {IDLE}' for mark in self.old_marks),
        ]


def make(
    snapshot: SyncSnapshot,
    locks: Iterable[Lock],
    parts: Collection[Part] = tuple(Part),
    forget: bool = False,
) -> SyncPlan:
    """Compute the plan.

    :param forget: Whether to remove rollups and marks, and to leave traits and
        memberships as they are.
    """
    if forget:
        parts = frozenset(parts) - {Part.MIRROR, Part.DOMAINS}
        locks = ()
    planner = _Planner(snapshot, locks, frozenset(parts), forget)
    outcomes: dict[str, Outcome] = {}
    # Most nodes are like others.
    known: dict[Hashable, Outcome] = {}
    for node in (*snapshot.nodes, *snapshot.others):
        likeness = planner.likeness(node)
        if likeness not in known:
            known[likeness] = planner.target(node).outcome(node)
        if known[likeness] != (node.traits, node.aggregates):
            outcomes[node.uuid] = known[likeness]
    # A rollup is marked before it has members.
    marks_in_use = frozenset(
        marks.of_rollup(uuid) for uuid in planner.rollups.uuids
    ).union(*{each.traits for each in known.values()})
    return SyncPlan(
        snapshot=snapshot,
        parts=frozenset(parts),
        target=planner.target,
        outcomes=outcomes,
        new_traits=tuple(sorted(marks_in_use - snapshot.traits)),
        old_marks=tuple(
            sorted(filter(planner.is_ours, snapshot.traits - marks_in_use))
        ),
        _problems=planner.problems,
        forgets=forget,
        differences=tuple(
            difference
            for aggregate in snapshot.index
            for difference in tools_domains.differences(
                aggregate, snapshot.domains
            )
            if Part.DOMAINS in parts
        ),
    )


class _Planner:
    """Computes the target states."""

    def __init__(
        self,
        snapshot: SyncSnapshot,
        locks: Iterable[Lock],
        parts: frozenset[Part],
        forget: bool,
    ) -> None:
        self._snapshot = snapshot
        self._parts = parts
        self._forget = forget
        self._memberships = snapshot.memberships
        self._aggregates = tuple(snapshot.index)
        self._places = {a.uuid: n for n, a in enumerate(self._aggregates)}
        # Most hosts are in the same aggregates as others.
        self._alike: dict[
            Hashable, tuple[Causes | None, Mapping[str, Aggregate]]
        ] = {}
        # Rollups that no longer exist, with their names as far as known.
        old = {
            TRAIT_PREFIX + trait
            for trait in marks.marked_traits(snapshot.traits)
        }
        self.rollups = (
            Rollups(
                rollups_of.rollups(locks),
                snapshot.index,
                marks.marked_rollups(snapshot.traits),
                {rollups_of.uuid_of(name): name for name in old},
            )
            if Part.ROLLUPS in parts
            else Rollups()
        )

    def is_ours(self, trait: str) -> bool:
        """Return whether a trait is a mark that the plan's parts manage."""
        # Hardly any trait is one, and this is asked for each.
        if not marks.is_mark(trait):
            return False
        part = Part.ROLLUPS if marks.marked_rollups([trait]) else Part.TRAITS
        return part in self._parts

    def likeness(self, node: Provider) -> Hashable:
        """Return a key; what has to change is the same for equal keys."""
        return (
            node.host and True,
            self._memberships.get(node.host or ''),
            *self._snapshot.below.get(node.uuid, ()),
            node.aggregates,
            node.traits,
        )

    def target(self, node: Provider) -> Target:
        """Return the target state of a resource provider."""
        if node.host is None:
            # Sync only takes other providers out of rollups.
            return Target(
                node.uuid,
                node.name,
                '',
                node.is_sharing,
                rollups=self.rollups,
            )
        uuids = self._memberships.get(node.host, frozenset())
        below = self._snapshot.below.get(node.uuid, {})
        key = uuids, frozenset(below)
        if key not in self._alike:
            places = sorted(self._places[uuid] for uuid in uuids)
            mine = [self._aggregates[place] for place in places]
            has_traits = Part.TRAITS in self._parts and not self._forget
            is_mirrored = Part.MIRROR in self._parts
            self._alike[key] = (
                self._traits(mine, below) if has_traits else None,
                {a.uuid: a for a in mine} if is_mirrored else {},
            )
        traits, mirror = self._alike[key]
        return Target(
            provider=node.uuid,
            name=node.name,
            host=node.host,
            traits=traits,
            keeps_marks=Part.TRAITS not in self._parts or not self._forget,
            mirror=mirror,
            aggregates=uuids,
            rollups=self.rollups,
            below=below,
        )

    def problems(self) -> Iterator[str]:
        """Yield what cannot be done or looks wrong."""
        by_host = nodes_by_host(self._snapshot.nodes)
        if Part.TRAITS in self._parts:
            yield from tags.problems(self._snapshot.index)
        if Part.DOMAINS in self._parts:
            yield from projects.problems(
                self._snapshot.index, self._snapshot.domains
            )
        for aggregate in self._snapshot.index:
            # Of keys, "-" would look at all.
            hosts = aggregate.hosts.difference(by_host)
            if hosts:
                yield (
                    f'aggregate {aggregate.name}: {_have(hosts)} no compute '
                    'node with a resource provider; check that nova-compute '
                    'runs there, or remove it from the aggregate'
                )
            if Part.TRAITS in self._parts:
                yield from self._trait_problems(aggregate, by_host)

    def _trait_problems(
        self, aggregate: Aggregate, by_host: Mapping[str, tuple[Provider, ...]]
    ) -> Iterator[str]:
        for trait in sorted(tags.required_traits(aggregate)):
            yield from _contradictions(aggregate, trait, by_host)
            reason = why_not_put(trait, self._snapshot.traits)
            # Hosts are not supposed to have that of reservations.
            if reason is None or trait == RESERVATION_TRAIT:
                continue
            lacking = {
                host
                for host in aggregate.hosts
                for node in by_host.get(host, ())
                if trait not in node.traits
                and trait not in self._snapshot.below.get(node.uuid, {})
            }
            if lacking:
                yield (
                    f'aggregate {aggregate.name}: {_have(lacking)} no '
                    f'{trait}, and sync does not add it: {reason}'
                )

    def _traits(
        self, aggregates: Iterable[Aggregate], below: Collection[str]
    ) -> dict[str, tuple[Aggregate, ...]]:
        """Return the traits that a compute node itself must have.

        Traits of its child providers, and of those that share with it, are
        left out: on the node, they would admit servers that do not use that
        provider.
        """
        causes: dict[str, list[Aggregate]] = {}
        for aggregate in aggregates:
            for trait in tags.required_traits(aggregate):
                if trait not in below and not why_not_put(
                    trait, self._snapshot.traits
                ):
                    causes.setdefault(trait, []).append(aggregate)
        return {trait: tuple(causes[trait]) for trait in sorted(causes)}


def _contradictions(
    aggregate: Aggregate,
    trait: str,
    by_host: Mapping[str, tuple[Provider, ...]],
) -> Iterator[str]:
    """Yield which hosts do not get a trait, as they have its opposite."""
    hosts: dict[str, set[str]] = {}
    for host in sorted(aggregate.hosts):
        for node in by_host.get(host, ()):
            if contrary := opposite(trait, node.traits):
                hosts.setdefault(contrary, set()).add(host)
    for contrary, some in hosts.items():
        yield (
            f'aggregate {aggregate.name}: {_have(some)} no {trait}, and sync '
            f'does not add it: {kept(contrary)}; remove the '
            f'{plural(len(some), "host")} from the aggregate'
        )


def _have(hosts: Collection[str]) -> str:
    """Return the start of a sentence: ``hosts a, b and 7 more have``."""
    return f'{named("host", hosts)} {plural(len(hosts), "has", "have")}'
