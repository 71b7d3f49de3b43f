# SPDX-License-Identifier: Apache-2.0
"""The target state of a resource provider, and the changes to reach it.

A target does not depend on the current state of the provider. So it can be
compared with the state when the plan is made, and again when it is carried
out.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
import dataclasses
from typing import NamedTuple

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import naming
from isolate_aggregates.aggregates.rollups import Rollup
from isolate_aggregates.text import named, plural
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.locking_traits import contradicted, opposite
from isolate_aggregates_tools.placement.provider import Provider

Causes = Mapping[str, tuple[Aggregate, ...]]


@dataclasses.dataclass(frozen=True)
class ProviderChange:
    """One change of one resource provider.

    :param host: Its compute service; empty if it is not a compute node.
    :param action: The action, for example ``add trait``.
    :param subject: The trait, or the name of the aggregate.
    """

    host: str
    provider: str
    action: str
    subject: str
    why: str

    def __str__(self) -> str:
        # The provider of a compute node has the name of its host.
        names = dict.fromkeys(filter(None, (self.host, self.provider)))
        return f'{", ".join(names)}: {self.action} {self.subject}'


class Rollups:
    """The rollups that providers must be members of.

    A provider belongs in a rollup if it is a member, in Placement, of an
    aggregate that the rollup stands for, even if its host is not a member in
    Nova, because forbidding the aggregate excludes it. It also belongs there
    if its host is a member in Nova, even if Placement does not have the
    membership yet.

    Only compute nodes belong in rollups. A sharing provider serves the
    providers with which it has any aggregate in common, so in a rollup it
    would serve every host behind the lock.

    :param aggregates: All aggregates, including those in rollups.
    :param other_uuids: The uuids of further rollups to which sync may have
        added providers.
    :param names: The names of rollups that may no longer exist, by uuid.
    """

    def __init__(
        self,
        rollups: Collection[Rollup] = (),
        aggregates: Iterable[Aggregate] = (),
        other_uuids: Iterable[str] = (),
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.uuids = frozenset(rollup.uuid for rollup in rollups)
        self.managed = self.uuids.union(other_uuids)
        self._names = {
            **(names or {}),
            **{rollup.uuid: rollup.name for rollup in rollups},
        }
        self._stand_for: dict[str, list[str]] = {}
        for rollup in rollups:
            for uuid in rollup.aggregates:
                self._stand_for.setdefault(uuid, []).append(rollup.uuid)
        self._aggregates = {a.uuid: a for a in aggregates}

    def of(self, members: Iterable[str]) -> frozenset[str]:
        """Return the rollups that stand for some aggregates."""
        return frozenset(
            rollup
            for uuid in members
            for rollup in self._stand_for.get(uuid, ())
        )

    def behind(
        self, rollup: str, members: Iterable[str]
    ) -> tuple[Aggregate, ...]:
        """Return the members that a rollup stands for."""
        return tuple(
            self._aggregates[uuid]
            for uuid in sorted(members)
            if rollup in self._stand_for.get(uuid, ())
        )

    def name_of(self, rollup: str) -> str:
        """Return the name of a rollup, or its uuid if the name is unknown."""
        return self._names.get(rollup, rollup)


class Outcome(NamedTuple):
    """What a resource provider will be."""

    traits: frozenset[str]
    aggregates: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Target:
    """The target state of a resource provider.

    :param provider: The uuid of the provider.
    :param traits: The traits it needs, each with the aggregates that require
        it; None to change no traits except marks.
    :param keeps_marks: Whether marks are kept, for ``traits=None``.
    :param mirror: The host aggregates it must be a member of, by uuid.
    :param host: Its compute service; empty if it is not a compute node, or one
        that Nova does not list, as its cell is down.
    :param is_sharing: Whether it shares its resources by aggregates.
    :param aggregates: The uuids of the host aggregates of its host.
    :param below: The names of the child providers, and of the providers that
        share with it, that have a trait; by trait.
    """

    provider: str
    name: str
    host: str
    is_sharing: bool = False
    traits: Causes | None = None
    keeps_marks: bool = True
    mirror: Mapping[str, Aggregate] = dataclasses.field(default_factory=dict)
    aggregates: frozenset[str] = frozenset()
    rollups: Rollups = dataclasses.field(default_factory=Rollups)
    below: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict
    )

    def traits_after(self, traits: frozenset[str]) -> frozenset[str]:
        """Return the target traits, given the current ones.

        Missing traits are added together with their marks, unless another
        program keeps their opposite. Marked traits that are not needed are
        removed. A trait without a mark was added by another
        program or person, so it is kept and gets no mark.
        """
        if self.traits is None:
            removals = () if self.keeps_marks else marks.marked_traits(traits)
            return traits - {marks.of_trait(trait) for trait in removals}
        needed = self.traits.keys() - contradicted(self.traits, traits)
        add = needed - traits
        take = marks.marked_traits(traits) - needed
        after = traits - take - {marks.of_trait(trait) for trait in take}
        return after | add | {marks.of_trait(trait) for trait in add}

    def aggregates_after(self, aggregates: frozenset[str]) -> frozenset[str]:
        """Return the target aggregates, given the current ones."""
        others = aggregates - self.rollups.managed
        # A set of keys would make it a set.
        members = others.union(self.mirror)
        return members | self._rollups(members, aggregates)

    def _rollups(
        self, members: frozenset[str], before: frozenset[str]
    ) -> frozenset[str]:
        """Return the rollups that it belongs in, given its aggregates."""
        if self.is_sharing:
            return frozenset()
        wanted = self.rollups.of(members | self.aggregates)
        return wanted if self.host else wanted & before

    def outcome(self, node: Provider) -> Outcome:
        """Return what a resource provider in its current state will be."""
        return Outcome(
            self.traits_after(node.traits),
            self.aggregates_after(node.aggregates),
        )

    def changes(self, node: Provider) -> Iterator[ProviderChange]:
        """Yield the changes of a resource provider in its current state."""
        traits, members = self.outcome(node)
        yield from self.aggregate_changes(node.aggregates, members)
        yield from self.trait_changes(node.traits, traits)

    def trait_changes(
        self, before: frozenset[str], after: frozenset[str]
    ) -> Iterator[ProviderChange]:
        """Yield the changes between two sets of traits."""
        for trait in sorted(after - before):
            if not marks.is_mark(trait):
                required = (self.traits or {}).get(trait, ())
                verb = plural(len(required), 'requires', 'require')
                yield self._change(
                    'add trait', trait, f'{naming(required)} {verb} it'
                )
        for trait in sorted(marks.marked_traits(before - after)):
            if self.traits is None:
                yield self._change(
                    'remove mark',
                    marks.of_trait(trait),
                    'the trait stays, as if another program had added it',
                )
                continue
            yield self._change(
                'remove trait',
                trait if trait in before else marks.of_trait(trait),
                f'sync added it, and {self._needless(trait, before)}',
            )

    def _needless(self, trait: str, traits: frozenset[str]) -> str:
        if contrary := opposite(trait, traits):
            return f'{contrary} contradicts it'
        if trait in self.below:
            below = self.below[trait]
            verb = plural(len(below), 'has', 'have')
            return f'{named("provider", below)} {verb} it'
        return 'no aggregate of the host requires it any longer'

    def aggregate_changes(
        self, before: frozenset[str], after: frozenset[str]
    ) -> Iterator[ProviderChange]:
        """Yield the changes between two sets of aggregates."""
        additions = after - before
        for uuid, aggregate in self.mirror.items():
            if uuid in additions:
                yield self._change(
                    'add aggregate',
                    aggregate.name,
                    'the host is in it, but its resource provider is not',
                )
        rollups = self.rollups
        members = after | self.aggregates
        for uuid in sorted(
            rollups.of(members) & additions, key=rollups.name_of
        ):
            yield self._change(
                'add rollup',
                rollups.name_of(uuid),
                f'it stands for {naming(rollups.behind(uuid, members))}',
            )
        for uuid in sorted(before - after, key=rollups.name_of):
            yield self._change(
                'remove rollup',
                rollups.name_of(uuid),
                'the provider shares its resources, and would serve all '
                'hosts of the rollup'
                if self.is_sharing
                else 'it no longer stands for any aggregate of the host',
            )

    def correction(self, aggregate: Aggregate, member: bool) -> ProviderChange:
        """Return the change that removes or restores a mirrored membership."""
        if member:
            return self._change(
                'add aggregate',
                aggregate.name,
                'the host came back to it meanwhile',
            )
        return self._change(
            'remove aggregate',
            aggregate.name,
            'the host left it meanwhile',
        )

    def _change(self, action: str, subject: str, why: str) -> ProviderChange:
        return ProviderChange(self.host, self.name, action, subject, why)
