# SPDX-License-Identifier: Apache-2.0
"""What one compute node's resource provider shall have, and what that changes.

Nothing here depends on what the provider has at the moment, so a target can be
held against what is there when the plan is made, and again when it is done.
"""

from collections.abc import Iterator, Mapping
import dataclasses

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import naming
from isolate_aggregates.sync import marks

Causes = Mapping[str, tuple[Aggregate, ...]]


@dataclasses.dataclass(frozen=True)
class Change:
    """One change of one resource provider.

    :param host: The compute service whose node it is.
    :param provider: The name of the provider.
    :param action: What is done: ``add trait``.
    :param subject: The trait, or the name of the aggregate.
    :param why: Why it is done.
    """

    host: str
    provider: str
    action: str
    subject: str
    why: str


@dataclasses.dataclass(frozen=True)
class Target:
    """What the resource provider of a compute node shall have.

    :param provider: The uuid of the provider.
    :param name: Its name.
    :param host: The compute service whose node it is.
    :param traits: The traits it needs, each with the aggregates that require
        it; None to leave all traits alone.
    :param mirror: The host aggregates it has to be a member of, by uuid.
    :param rollups: The rollups it has to be a member of, by uuid, each with
        the aggregates it stands for.
    :param names: Names of rollups by uuid, as far as they are known.
    :param known: The uuids of all that sync may have made it a member of.
    """

    provider: str
    name: str
    host: str
    traits: Causes | None = None
    mirror: Mapping[str, Aggregate] = dataclasses.field(default_factory=dict)
    rollups: Causes = dataclasses.field(default_factory=dict)
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    known: frozenset[str] = frozenset()

    def traits_after(self, traits: frozenset[str]) -> frozenset[str]:
        """Return the traits it shall have in place of some.

        What it needs and does not have is put there together with its mark.
        What is marked and not needed is taken away. A trait without a mark
        is somebody else's and stays, and so does the absence of its mark.

        :param traits: Its traits as they are.
        """
        if self.traits is None:
            return traits
        add = self.traits.keys() - traits
        take = marks.marked_traits(traits) - self.traits.keys()
        after = traits - take - {marks.of_trait(trait) for trait in take}
        return after | add | {marks.of_trait(trait) for trait in add}

    def aggregates_after(self, aggregates: frozenset[str]) -> frozenset[str]:
        """Return the aggregates it shall be a member of in place of some.

        :param aggregates: The uuids of its aggregates as they are.
        """
        kept = {uuid for uuid in aggregates if uuid not in self.known}
        return frozenset(kept | self.mirror.keys() | self.rollups.keys())

    def trait_changes(
        self, before: frozenset[str], after: frozenset[str]
    ) -> Iterator[Change]:
        """Yield what changes from some traits to others, in words.

        :param before: Its traits before.
        :param after: Its traits after.
        """
        for trait in sorted(after - before):
            if not marks.is_mark(trait):
                required = (self.traits or {}).get(trait, ())
                yield self._change(
                    'add trait',
                    trait,
                    f'{naming(required)} '
                    + _verb(required, 'require')
                    + ' it',
                )
        for trait in sorted(marks.marked_traits(before - after)):
            yield self._change(
                'remove trait',
                trait if trait in before else marks.of_trait(trait),
                'sync put it there, and no aggregate of the host requires it '
                'any more',
            )

    def aggregate_changes(
        self, before: frozenset[str], after: frozenset[str]
    ) -> Iterator[Change]:
        """Yield what changes from some aggregates to others, in words.

        :param before: The uuids of its aggregates before.
        :param after: The uuids of its aggregates after.
        """
        added = after - before
        for uuid, aggregate in self.mirror.items():
            if uuid in added:
                yield self._change(
                    'add aggregate',
                    aggregate.name,
                    'the host is in it, its resource provider is not',
                )
        for uuid, members in self.rollups.items():
            if uuid in added:
                yield self._change(
                    'add rollup',
                    self.names[uuid],
                    f'it stands for {naming(members)}',
                )
        for uuid in sorted(before - after):
            yield self._change(
                'remove rollup',
                self.names.get(uuid, uuid),
                'it stands for no aggregate of the host any more',
            )

    def correction(self, aggregate: Aggregate, member: bool) -> Change:
        """Return that a mirrored membership is undone, or put back, in words.

        :param aggregate: The host aggregate.
        :param member: Whether the host is in it.
        """
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

    def _change(self, action: str, subject: str, why: str) -> Change:
        return Change(self.host, self.name, action, subject, why)


def _verb(aggregates: tuple[Aggregate, ...], verb: str) -> str:
    return f'{verb}s' if len(aggregates) == 1 else verb
