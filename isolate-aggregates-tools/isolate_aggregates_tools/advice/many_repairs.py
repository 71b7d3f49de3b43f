# SPDX-License-Identifier: Apache-2.0
"""Compares the clouds before and after many repairs, all at once.

A repair that changes the tags of an aggregate affects only its hosts. So the
repairs of aggregates without a common host are made together, all requests are
decided once, and what a host gains is put down to the repair of its aggregate.
One by one, each request would be decided again for each repair.
"""

from collections.abc import Iterable, Mapping
import dataclasses
from typing import NamedTuple

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools.answers.deciding import Question
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.changes import Alteration, Change
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.repairs.commands import Commands
from isolate_aggregates_tools.simulator.index import ProviderSet


@dataclasses.dataclass(frozen=True)
class Local:
    """Repairs that each affect hosts that no other affects.

    :param hosts: The hosts of each repair.
    :param after: The cloud after all of them.
    """

    hosts: Mapping[Commands, frozenset[str]]
    after: Snapshot


def local(snapshot: Snapshot, some: Iterable[Commands]) -> Local:
    """Return those of some repairs that change the tags of one aggregate.

    Of those with a common host, it is the first one.
    """
    hosts: dict[Commands, frozenset[str]] = {}
    taken: set[str] = set()
    for todo in dict.fromkeys(some):
        if len(todo) != 1:
            continue
        changed = _retagged(snapshot, todo[0].change)
        if changed and taken.isdisjoint(changed):
            hosts[todo] = changed
            taken |= changed
    made = changes.made(snapshot, (todo[0].change for todo in hosts))
    return Local(hosts, made)


def _retagged(snapshot: Snapshot, change: Change) -> frozenset[str]:
    """Return the hosts of the aggregate whose tags alone change."""
    if not isinstance(change, Alteration) or change.field != 'aggregates':
        return frozenset()
    pairs: list[tuple[Aggregate, Aggregate]] = [*change.pairs(snapshot)]
    if len(pairs) != 1:
        return frozenset()
    [(old, new)] = pairs
    if dataclasses.replace(new, metadata=old.metadata) != old:
        return frozenset()
    return new.hosts


def is_local(
    old: Question | None, new: Question | None, traits: frozenset[str]
) -> bool:
    """Return whether questions differ at most in forbidden aggregates.

    An aggregate is forbidden for what it is, whatever the others are.

    :param traits: Those that exist only before or after the repairs or sync;
        Placement rejects queries for others.
    """
    if old is None or new is None:
        return old is new
    was, now = old.destination, new.destination
    return was.required_aggregates == now.required_aggregates and not any(
        traits & query.traits for query in new.queries
    )


class Use(NamedTuple):
    """The compute nodes that servers may use, of those of repairs.

    :param elsewhere: Whether they could use others.
    """

    was: ProviderSet
    now: ProviderSet
    elsewhere: bool


class Shares:
    """Puts down what servers gain and lose to the repairs, in one world.

    :param hosts: The hosts of each repair.
    :param before: The offers before all repairs.
    :param after: The offers after them, of the same compute nodes.
    """

    def __init__(
        self,
        hosts: Mapping[Commands, frozenset[str]],
        before: Offers,
        after: Offers,
    ) -> None:
        self._before, self._after = before, after
        self._of_host = {
            host: todo for todo, some in hosts.items() for host in some
        }
        self._here = before.index.set_of(
            number
            for host, number in before.index.hosts
            if host in self._of_host
        )
        self._nodes: dict[Commands, list[int]] = {todo: [] for todo in hosts}
        for host, number in before.index.hosts:
            if host in self._of_host:
                self._nodes[self._of_host[host]].append(number)

    def use(self, old: Question | None, new: Question | None) -> Use:
        """Return what servers use, and will use, of the hosts of repairs."""
        was, now = self._before.usable(old), self._after.usable(new)
        here = self._here
        return Use(was & here, now & here, bool(was & ~here))

    def of(self, use: Use) -> dict[Commands, tuple[set[str], set[str]]]:
        """Return the hosts that servers gain and lose by each repair."""
        was, now, _ = use
        before, after = (
            {index.host_of[number] for number in index.members(nodes)}
            for index, nodes in (
                (self._before.index, self._around(was ^ now, was)),
                (self._after.index, self._around(was ^ now, now)),
            )
        )
        shares: dict[Commands, tuple[set[str], set[str]]] = {}
        for place, hosts in enumerate((after - before, before - after)):
            for host in hosts:
                if todo := self._of_host.get(host):
                    shares.setdefault(todo, (set(), set()))[place].add(host)
        return shares

    def strands(self, todo: Commands, use: Use) -> bool:
        """Return whether servers had hosts, and lose all by a repair."""
        here = self._before.index.set_of(self._nodes[todo])
        had = use.was and not use.elsewhere
        return bool(had and not use.now & here and not use.was & ~here)

    def _around(self, changed: ProviderSet, some: ProviderSet) -> ProviderSet:
        """Return those of some nodes on a host that has a changed one."""
        if not changed or not self._has_several:
            return changed & some
        index = self._before.index
        hosts = {index.host_of[number] for number in index.members(changed)}
        return some & index.set_of(n for h, n in index.hosts if h in hosts)

    @lazy_property
    def _has_several(self) -> bool:
        """Whether a host has several nodes."""
        hosts = self._before.index.hosts
        return len({host for host, _ in hosts}) < len(hosts)
