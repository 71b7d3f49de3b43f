# SPDX-License-Identifier: Apache-2.0
"""Keeps account of the room on hosts while servers come and go.

A host whose servers use only its own compute node is counted in numbers. For
others, such as those with child or sharing providers, the simulator answers,
and what leaves is counted as free only where it is certain from which provider
it came.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
import contextlib
import dataclasses
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates_tools import nova_candidates
from isolate_aggregates_tools.capacity import involved, simulator
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.room.kinds import Kind, Kinds

_Amounts = Mapping[str, int]


class Occupancy:
    """What is free on the hosts of a cloud.

    :param snapshot: The cloud, with its servers.
    """

    def __init__(self, snapshot: Snapshot, kinds: Kinds) -> None:
        index = kinds.index
        self._groups = groups = kinds.groups
        self._trees: dict[str, list[list[Provider]]] = {}
        # What is free on hosts with a single provider, by resource class: one
        # value for all hosts with the same room.
        self.free: dict[str, dict[str, int]] = {}
        # What was before each change, the last change last.
        self._before: list[tuple[dict[Any, Any], Hashable, Any]] = []
        self._used: dict[str, dict[str, int]] = {}
        nodes: Counter[str] = Counter(
            provider.host for provider in snapshot.providers if provider.host
        )
        rooms: dict[int, dict[str, int]] = {}
        for number, provider in enumerate(index.providers):
            host = provider.host
            if host is None:
                continue
            tree = involved(index, number)
            if len(tree) == 1 and nodes[host] == 1:
                first = index.rooms[number]
                if first not in rooms:
                    rooms[first] = {
                        name: provider.free(name)
                        for name in provider.inventories
                    }
                self.free[host] = rooms[first]
            else:
                self._trees.setdefault(host, []).append(tree)
                for each in tree:
                    self._used.setdefault(each.uuid, dict(each.usages))
        # Answers of the simulator, by kind, tree and what is used of it.
        self._claims: dict[Hashable, Mapping[str, _Amounts] | None] = {}
        # The servers of each group on each host.
        self._members: Counter[tuple[str, str]] = Counter()
        for server in snapshot.known_servers.placed:
            group = groups.get(server.id)
            if group and server.host:
                self._members[group.id, server.host] += 1

    def is_counted(self, host: str) -> bool:
        """Return whether the room on a host is counted in numbers."""
        return host in self.free

    def by_room(self, hosts: Iterable[str]) -> Iterable[list[str]]:
        """Group hosts: those that are counted by what is free there now.

        All others are in one group.
        """
        groups: dict[int, list[str]] = {}
        for host in hosts:
            groups.setdefault(id(self.free.get(host)), []).append(host)
        return groups.values()

    def times(self, kind: Kind, host: str) -> int:
        """Return how often a kind fits on a host that is counted."""
        free = self.free[host]
        # Fallback queries differ in what they take.
        return max(
            (
                min(
                    (
                        max(0, free.get(name, 0)) // amount
                        for name, amount in amounts.items()
                    ),
                    default=0,
                )
                for amounts in kind.demands
            ),
            default=0,
        )

    def is_grouped(self, server: Server) -> bool:
        """Return whether a server is in a server group."""
        return server.id in self._groups

    def group_of(self, server: Server | None) -> str:
        """Return the id of the group of a server; empty if it has none."""
        group = self._groups.get(server.id) if server else None
        return group.id if group else ''

    def policy_of(self, server: Server | None) -> str:
        """Return the policy of the group of a server; empty if none."""
        group = self._groups.get(server.id) if server else None
        return group.policy if group else ''

    def group_limit(
        self, server: Server | None, host: str, leaving: int = 0
    ) -> int | None:
        """Return how many more servers of a group a host may have.

        None if there is no limit.

        :param leaving: How many of those on the host do not count.
        """
        group = self._groups.get(server.id) if server else None
        if group and group.policy == 'anti-affinity':
            here = self._members[group.id, host] - leaving
            return max(0, group.max_per_host - here)
        return 0 if self.group_objection(server, host) else None

    def room(self, host: str) -> Mapping[str, int]:
        """Return what is free on a host in total, by resource class.

        A server may fit less often than this says, but never more often.
        """
        if host in self.free:
            return self.free[host]
        room: Counter[str] = Counter()
        providers = {
            each.uuid: each
            for tree in self._trees.get(host, ())
            for each in tree
        }
        for each in providers.values():
            for name, inventory in each.inventories.items():
                used = self._used[each.uuid].get(name, 0)
                room[name] += max(0, inventory.capacity - used)
        return room

    def group_objection(self, server: Server | None, host: str) -> str:
        """Return why the group of a server rules out a host; or nothing.

        Nova takes the present hosts of all servers of a group with the policy
        ``affinity``, also that of the server itself (``ServerGroupAffinity``
        and ``setup_instance_group`` in its scheduler).
        """
        group = self._groups.get(server.id) if server else None
        if group is None:
            return ''
        here = self._members[group.id, host]
        if group.policy == 'anti-affinity' and here >= group.max_per_host:
            return 'its server group has enough servers there'
        if group.policy == 'affinity' and not here:
            return 'its server group is bound to other hosts'
        return ''

    def preference(self, server: Server | None, host: str) -> int:
        """Return how much the soft policy of a group prefers a host."""
        group = self._groups.get(server.id) if server else None
        if group is None or not group.policy.startswith('soft-'):
            return 0
        here = self._members[group.id, host]
        return here if group.policy == 'soft-affinity' else -here

    def fits(self, kind: Kind, host: str) -> bool:
        """Return whether there is room for one more server on a host."""
        free = self.free.get(host)
        if free is not None:
            return any(_has(free, amounts) for amounts in kind.demands)
        return self._claim(kind, host) is not None

    def slack(self, kind: Kind, host: str) -> float:
        """Return the largest share of the room that would be left."""
        free = self.free.get(host)
        if free is None:
            return 1.0
        return max(
            (
                (free.get(name, 0) - amount) / max(free.get(name, 0), 1)
                for name, amount in kind.amounts.items()
            ),
            default=1.0,
        )

    def add(self, kind: Kind, server: Server | None, host: str) -> None:
        """Count a server on a host that has room for it.

        :param server: The server; None for one that does not exist.
        """
        self._count(server, host, 1)
        free = self.free.get(host)
        if free is not None:
            claim = next(some for some in kind.demands if _has(free, some))
            left = {n: amount - claim.get(n, 0) for n, amount in free.items()}
            self._put(self.free, host, left)
            return
        for uuid, amounts in (self._claim(kind, host) or {}).items():
            self._use(uuid, amounts)

    def remove(self, kind: Kind, server: Server | None, host: str) -> None:
        """Free what is certain to become free when a server leaves a host."""
        self._count(server, host, -1)
        free = self.free.get(host)
        if free is not None:
            gained = kind.amounts
            more = {n: amount + gained.get(n, 0) for n, amount in free.items()}
            self._put(self.free, host, more)
            return
        for name, amount in kind.amounts.items():
            sources = [
                provider
                for tree in self._trees.get(host, ())
                for provider in tree
                if name in provider.inventories
            ]
            if len(sources) == 1:
                self._use(sources[0].uuid, {name: -amount})

    @contextlib.contextmanager
    def trial(self) -> Iterator[None]:
        """Forget at the end what comes and goes meanwhile."""
        start = len(self._before)
        try:
            yield
        finally:
            while len(self._before) > start:
                where, key, value = self._before.pop()
                where[key] = value

    def snapshot(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with the room that is left now."""
        providers = []
        for each in snapshot.providers:
            usages = self._used.get(each.uuid, each.usages)
            if each.host in self.free:
                usages = {
                    name: each.inventories[name].capacity - free
                    for name, free in self.free[each.host].items()
                }
            providers.append(
                dataclasses.replace(each, usages=usages)
                if usages != each.usages
                else each
            )
        return dataclasses.replace(snapshot, providers=tuple(providers))

    def _use(self, provider: str, amounts: _Amounts) -> None:
        used = dict(self._used[provider])
        for name, amount in amounts.items():
            used[name] = max(0, used.get(name, 0) + amount)
        self._put(self._used, provider, used)

    def _count(self, server: Server | None, host: str, number: int) -> None:
        group = self._groups.get(server.id) if server else None
        if group:
            key = group.id, host
            self._put(self._members, key, self._members[key] + number)

    def _put(
        self, where: dict[Any, Any], key: Hashable, value: object
    ) -> None:
        """Change a value; a new one takes its place, as others may have it."""
        self._before.append((where, key, where.get(key, 0)))
        where[key] = value

    def _claim(self, kind: Kind, host: str) -> Mapping[str, _Amounts] | None:
        """Return what a server would take, by provider; None if nothing fits.

        It is the first candidate that Nova would take.
        """
        for number, tree in enumerate(self._trees.get(host, ())):
            used = tuple(
                tuple(sorted(self._used[each.uuid].items())) for each in tree
            )
            key = kind, host, number, used
            if key not in self._claims:
                self._claims[key] = self._first_candidate(kind, host, tree)
            if self._claims[key] is not None:
                return self._claims[key]
        return None

    def _first_candidate(
        self, kind: Kind, host: str, tree: list[Provider]
    ) -> Mapping[str, _Amounts] | None:
        now = [
            dataclasses.replace(each, usages=self._used[each.uuid])
            for each in tree
        ]
        for query in kind.queries:
            try:
                answer = simulator(now, query).allocation_candidates(query)
            except exception.BadQuery:
                continue
            for root in _roots(tree, host):
                candidates = nova_candidates.of_node(
                    answer.by_root(query).get(root, ()), root
                )
                if candidates:
                    return candidates[0]
        return None


def _has(free: _Amounts, amounts: _Amounts) -> bool:
    return all(free.get(name, 0) >= n for name, n in amounts.items())


def _roots(tree: Iterable[Provider], host: str) -> list[str]:
    return [each.uuid for each in tree if each.host == host]
