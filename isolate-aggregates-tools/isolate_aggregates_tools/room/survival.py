# SPDX-License-Identifier: Apache-2.0
"""Finds which servers have nowhere to go if hosts fail."""

from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import dataclasses
import itertools
import math
import operator
from typing import TypeVar

import os_traits
from oslo_config import cfg

from isolate_aggregates import filter_sets
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.text import counted, plural
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.documents import Count
from isolate_aggregates_tools.mirrored import chain, compute_services
from isolate_aggregates_tools.room import exact, packing
from isolate_aggregates_tools.room.kinds import Alike, Kind, Kinds
from isolate_aggregates_tools.room.occupancy import Occupancy
from isolate_aggregates_tools.room.packing import Homeless
from isolate_aggregates_tools.room.remembered import Memory, Remaining

# More combinations of failing hosts are not examined.
MOST = 5_000

# More room on a host is not counted.
_PLENTY = 100

_T = TypeVar('_T')

# The tag of the aggregates that a reserved host is for, by default of
# instance-ha of Red Hat (infra-operator, templates/instanceha).
_EVACUABLE = 'evacuable'

NO_LOCK = 'no lock'


@dataclasses.dataclass(frozen=True)
class Stranded:
    """A server that has nowhere to go.

    :param reason: Why not, without a full stop.
    :param locks: The names of the locks that its host is behind.
    """

    server: Server
    reason: str
    locks: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Failure:
    """Hosts that fail together, and what becomes of their servers.

    :param hosts: The hosts, sorted.
    :param servers: The number of servers on them.
    :param stranded: The servers that have nowhere to go.
    :param least: The least number of them, however the others are placed.
    :param spares: The reserved hosts that take part.
    """

    hosts: tuple[str, ...]
    servers: int
    stranded: tuple[Stranded, ...]
    least: int
    spares: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Margin:
    """The room behind a lock for the servers of a flavor, in the worst case.

    If not all of them may use the same hosts, it is that for those which lack
    most.

    :param lock: The name of the lock; ``no lock`` for all other hosts.
    :param needed: The servers of the flavor on the failing hosts.
    :param free: The room for them on the other hosts.
    :param hosts_short: How many empty hosts like those behind the lock would
        have to be added.
    """

    lock: str
    flavor: str
    needed: Count
    free: Count
    hosts_short: Count


@dataclasses.dataclass(frozen=True)
class Survival:
    """What becomes of the servers of a cloud if some of its hosts fail.

    :param failures: How many hosts fail at a time.
    :param cases: The failures, the worst first.
    :param margins: The room behind each lock, the worst first.
    :param locks: For each lock, the most servers that have nowhere to go.
    :param combinations: How many combinations of hosts can fail.
    :param not_evaluated: The servers whose cell is down.
    :param not_known: What is not known and may matter.
    """

    failures: int
    cases: tuple[Failure, ...]
    margins: tuple[Margin, ...]
    locks: Mapping[str, int]
    combinations: int
    not_evaluated: int
    not_known: tuple[str, ...]

    @property
    def is_survived(self) -> bool:
        """Whether every server has somewhere to go, in each case."""
        return not any(case.stranded for case in self.cases)

    @property
    def worst(self) -> int:
        """The most servers that may have nowhere to go."""
        return max((len(case.stranded) for case in self.cases), default=0)


def survival(
    snapshot: Snapshot,
    conf: cfg.ConfigOpts,
    failures: int = 1,
    among: Collection[str] | None = None,
    releases: Sequence[int] = (),
) -> Survival:
    """Return what becomes of the servers if any hosts fail.

    :param snapshot: The cloud, with its servers.
    :param conf: The configuration of nova-scheduler.
    :param failures: How many hosts fail at a time.
    :param among: The hosts of which some fail; None for all.
    :param releases: The possible releases of its Nova; empty if unknown.
    :raises InvalidRequest: if there are not so many hosts.
    """
    return _Simulation(snapshot, conf, releases).of(failures, among)


def survival_of(cloud: AuditedCloud, conf: cfg.ConfigOpts) -> Survival | None:
    """Return what becomes of the servers of a cloud if any host fails.

    :returns: None if its servers were not read.
    """
    if cloud.servers is None:
        return None
    snapshot = dataclasses.replace(cloud.snapshot, servers=cloud.servers)
    return survival(snapshot, conf, releases=cloud.nova_releases)


@dataclasses.dataclass(frozen=True)
class _Fate:
    """What becomes of servers.

    :param stranded: The numbers of those that have nowhere to go, and why not.
    :param least: The least number of them.
    """

    stranded: tuple[tuple[int, str], ...]
    least: int


def _spares(snapshot: Snapshot, conf: cfg.ConfigOpts) -> frozenset[str]:
    """Return the reserved hosts that take no servers until they are enabled.

    Without ComputeFilter, only the trait of a disabled host keeps servers out.
    """
    spares = frozenset(
        service.host
        for service in snapshot.services or ()
        if service.is_spare and service.is_up
    )
    filters = chain.as_in_nova(conf).filters
    if any(each.name == compute_services.NAME for each in filters):
        return spares
    disabled = os_traits.COMPUTE_STATUS_DISABLED
    return spares & {
        node.host for node in snapshot.providers if disabled in node.traits
    }


class _Simulation:
    """Lets hosts of a cloud fail."""

    def __init__(
        self, snapshot: Snapshot, conf: cfg.ConfigOpts, releases: Sequence[int]
    ) -> None:
        self._snapshot = snapshot
        self._conf = conf
        self._spares = _spares(snapshot, conf)
        self._kinds = Kinds(snapshot, conf, releases, self._spares)
        self._occupancy = Occupancy(snapshot, self._kinds)
        # Without those in cells that are down. The answer does not depend on
        # their order.
        self._servers = {
            host: sorted((s for s in servers if s.flavor), key=_identity)
            for host, servers in snapshot.known_servers.by_host.items()
        }
        self._alike = {
            host: tuple(map(self._kinds.alike, servers))
            for host, servers in self._servers.items()
        }
        self._fates = Memory[_Fate]()
        self._rooms_known = Memory[Sequence[Margin]]()
        self._targets: dict[Kind, list[str]] = {}
        self._rooms: dict[Kind, Mapping[str, int]] = {}

    def of(self, failures: int, among: Collection[str] | None) -> Survival:
        """Return what becomes of the servers."""
        everywhere = {p.host for p in self._snapshot.providers if p.host}
        hosts = sorted(
            host
            for host in everywhere | self._servers.keys()
            if among is None or host in among
        )
        if failures > len(hosts):
            raise errors.InvalidRequest(
                f'{counted(failures, "host")} cannot fail at the same time: '
                f'there {plural(len(hosts), "is", "are")} only {len(hosts)}.'
            )
        combinations = math.comb(len(hosts), failures)
        cases = [
            self._failure(some)
            for some in self._combinations(hosts, failures, combinations)
        ]
        cases.sort(key=lambda case: (-len(case.stranded), case.hosts))
        return Survival(
            failures,
            tuple(cases),
            tuple(self._margins(cases)),
            self._by_lock(cases),
            combinations,
            sum(
                server.flavor is None
                for server in self._snapshot.known_servers.placed
            ),
            tuple(self._not_known()),
        )

    def _combinations(
        self, hosts: list[str], failures: int, combinations: int
    ) -> Iterable[tuple[str, ...]]:
        """Return the hosts that fail together, the likely worst if too many.

        Hosts without servers fail, too: then nothing can go there.
        """
        if combinations <= MOST or failures == 1:
            return itertools.combinations(hosts, failures)
        return self._likely_worst(hosts, failures)

    def _likely_worst(
        self, hosts: list[str], failures: int
    ) -> Iterable[tuple[str, ...]]:
        """Return each host with those that its servers would need most."""
        busy = [host for host in hosts if host in self._servers]
        quota = max(1, MOST // max(1, len(busy)))
        number = failures - 1
        while math.comb(number + 1, failures - 1) <= quota:
            number += 1
        worst = {}
        for host in busy:
            needed = self._needed(host, hosts)[:number]
            for others in itertools.combinations(needed, failures - 1):
                worst[tuple(sorted((host, *others)))] = True
        return itertools.islice(worst, MOST)

    def _needed(self, host: str, hosts: Iterable[str]) -> list[str]:
        """Return the other hosts, those first whose failure hurts most.

        That is the room that its servers lose there, and the servers like them
        that look for room, too.
        """
        kinds = self._kinds_on[host]
        hurts: Counter[str] = Counter()
        for kind, number in kinds.items():
            for other, room in self._room_for(kind).items():
                hurts[other] += min(room, number)
        for other, there in self._kinds_on.items():
            hurts[other] += sum(there[kind] for kind in kinds)
        return sorted(
            (other for other in hosts if other != host),
            key=lambda other: (-hurts[other], other),
        )

    @lazy_property
    def _kinds_on(self) -> Mapping[str, Counter[Kind]]:
        """The kinds of the servers on each host, with their numbers."""
        return {
            host: Counter(each.kind for each in alike)
            for host, alike in self._alike.items()
        }

    def _room_for(self, kind: Kind) -> Mapping[str, int]:
        """Return how many servers of a kind fit on each host, up to some."""
        if kind not in self._rooms:
            self._rooms[kind] = {
                host: packing.slots(kind, self._occupancy, [host], _PLENTY)
                for host in kind.hosts
            }
        return self._rooms[kind]

    def _failure(self, hosts: tuple[str, ...]) -> Failure:
        """Let hosts fail, and find new ones for their servers."""
        spares = self._activated(hosts)
        servers = list(_of_all(hosts, self._servers))
        fate = self._fate(
            servers,
            tuple(_of_all(hosts, self._alike)),
            self._out(hosts, spares),
        )
        stranded = [
            Stranded(server, reason, self._locks_of(server.host))
            for number, reason in fate.stranded
            for server in [servers[number]]
        ]
        stranded.sort(key=lambda each: _identity(each.server))
        return Failure(
            hosts,
            len(servers),
            tuple(stranded),
            fate.least,
            tuple(sorted(spares)),
        )

    def _out(
        self, hosts: Iterable[str], spares: Collection[str]
    ) -> frozenset[str]:
        """Return the hosts that take no servers.

        :param hosts: Those that fail.
        :param spares: The reserved hosts that take part.
        """
        return frozenset((*hosts, *(self._spares - {*spares})))

    def _fate(
        self,
        servers: Sequence[Server],
        alike: tuple[Alike, ...],
        out: frozenset[str],
    ) -> _Fate:
        """Return which servers have nowhere to go without some hosts."""
        if any(map(self._occupancy.is_grouped, servers)):
            return self._placed(servers, alike, out, set())
        return self._fates.of(
            (alike, tuple([len(out & each.kind.hosts) for each in alike])),
            out,
            lambda looked_at: self._placed(servers, alike, out, looked_at),
        )

    def _placed(
        self,
        servers: Sequence[Server],
        alike: Sequence[Alike],
        out: frozenset[str],
        looked_at: set[str],
    ) -> _Fate:
        """Find new hosts for servers.

        :param looked_at: Gets the hosts that decide.
        """
        numbers = {id(server): n for n, server in enumerate(servers)}
        refused = [
            (number, f'Nova does not evacuate it: {each.refusal}')
            for number, each in enumerate(alike)
            if each.refusal
        ]
        homeless = [
            Homeless(each.kind, server)
            for server, each in zip(servers, alike, strict=True)
            if not each.refusal
        ]
        targets = {
            kind: self._remaining(kind, out, looked_at)
            for kind in {one.kind for one in homeless}
        }
        with self._occupancy.trial():
            packed = packing.pack(homeless, self._occupancy, targets)
        least = 0
        if packed.left:
            packed, least = exact.most(
                packed, homeless, self._occupancy, targets
            )
        left = [
            (
                numbers[id(one.server)],
                packing.objection(
                    one.kind,
                    one.server,
                    Remaining(one.kind, one.kind.hosts, out, looked_at),
                    self._occupancy,
                ),
            )
            for one in packed.left
        ]
        return _Fate((*refused, *left), len(refused) + least)

    def _remaining(
        self, kind: Kind, out: frozenset[str], looked_at: set[str]
    ) -> Remaining:
        """Return the hosts of a kind, those with the most room first."""
        if kind not in self._targets:
            # No server leaves: what is full stays so.
            with_room = [
                host
                for some in self._occupancy.by_room(kind.hosts)
                if not self._occupancy.is_counted(some[0])
                or self._occupancy.fits(kind, some[0])
                for host in some
            ]
            self._targets[kind] = packing.roomiest(
                kind, self._occupancy, with_room
            )
        return Remaining(kind, self._targets[kind], out, looked_at)

    def _activated(self, failing: tuple[str, ...]) -> frozenset[str]:
        """Return the reserved hosts that would be enabled.

        For each failing host, instance-ha enables the first reserved host of
        an aggregate with it, if that host is in an aggregate with the tag.
        """
        if not self._spares:
            return frozenset()
        free = sorted(self._spares - {*failing})
        chosen = set()
        index = self._snapshot.index
        for host in failing:
            near = index.aggregates_of.get(host, frozenset())
            spare = next(
                (
                    spare
                    for spare in free
                    if near & index.aggregates_of.get(spare, frozenset())
                    and any(
                        aggregate.metadata.get(_EVACUABLE, '').lower()
                        == 'true'
                        for aggregate in index.by_host.get(spare, ())
                    )
                ),
                None,
            )
            if spare:
                free.remove(spare)
                chosen.add(spare)
        return frozenset(chosen)

    @lazy_property
    def _locks(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the locks of each host that is behind one."""
        names: dict[str, list[str]] = {}
        for lock in filter_sets.locks(self._conf, self._snapshot.index):
            for host in {h for a in lock.aggregates for h in a.hosts}:
                names.setdefault(host, []).append(lock.name)
        return {host: tuple(sorted(some)) for host, some in names.items()}

    def _locks_of(self, host: str | None) -> tuple[str, ...]:
        return self._locks.get(host or '', (NO_LOCK,))

    def _by_lock(self, cases: Iterable[Failure]) -> Mapping[str, int]:
        worst: dict[str, int] = {}
        for host in self._servers:
            for lock in self._locks_of(host):
                worst.setdefault(lock, 0)
        for case in cases:
            if not case.stranded:
                break  # The worst come first.
            numbers = Counter(
                lock for stranded in case.stranded for lock in stranded.locks
            )
            for lock, number in numbers.items():
                worst[lock] = max(worst[lock], number)
        return dict(sorted(worst.items()))

    def _margins(self, cases: Iterable[Failure]) -> Iterator[Margin]:
        """Yield the room behind each lock, the worst case of each flavor."""
        worst: dict[tuple[str, str], Margin] = {}
        # Most cases are alike. By identity; they are kept, so that it stays
        # theirs.
        seen: dict[tuple[str, int], Sequence[Margin]] = {}
        for case in cases:
            out = self._out(case.hosts, case.spares)
            behind: dict[str, list[Alike]] = {}
            for host in case.hosts:
                some = self._alike.get(host, ())
                for lock in self._locks_of(host):
                    behind.setdefault(lock, []).extend(some)
            for lock, servers in behind.items():
                rooms = self._room_of(servers, out, len(case.hosts))
                if (lock, id(rooms)) in seen:
                    continue
                seen[lock, id(rooms)] = rooms
                for margin in rooms:
                    key = lock, margin.flavor
                    if key not in worst or _badness(margin) < _badness(
                        worst[key]
                    ):
                        worst[key] = margin
        margins = [
            dataclasses.replace(margin, lock=lock)
            for (lock, _), margin in worst.items()
        ]
        yield from sorted(
            margins, key=lambda m: (*_badness(m), m.lock, m.flavor)
        )

    def _room_of(
        self, servers: Sequence[Alike], out: frozenset[str], failures: int
    ) -> Sequence[Margin]:
        """Return the room for servers, as if behind no lock, by flavor.

        :param out: The hosts that take none.
        """

        def counted_with(looked_at: set[str]) -> list[Margin]:
            return [
                self._margin(flavor, number, failures, kind, hosts)
                for (flavor, kind), number in Counter(
                    (alike.flavor, alike.kind) for alike in servers
                ).items()
                for hosts in [self._remaining(kind, out, looked_at)]
            ]

        return self._rooms_known.of(
            (tuple(servers), failures), out, counted_with
        )

    def _margin(
        self,
        flavor: str,
        number: int,
        failures: int,
        kind: Kind,
        hosts: Iterable[str],
    ) -> Margin:
        most = 10 * number + 100
        free = packing.slots(kind, self._occupancy, hosts, most)
        short = max(0, number - free)
        hosts_short = math.ceil(short / (number / failures))
        return Margin(NO_LOCK, flavor, number, free, hosts_short)

    def _not_known(self) -> Iterator[str]:
        yield from self._kinds.not_known
        numbers = Counter(itertools.chain.from_iterable(self._alike.values()))
        # Those in cells that are down.
        numbers.update(
            self._kinds.alike(server)
            for server in self._snapshot.known_servers.placed
            if server.host and not server.flavor
        )
        facts: Counter[str] = Counter()
        for alike, number in numbers.items():
            facts.update(dict.fromkeys(alike.unmodelled, number))
        for fact, number in sorted(facts.items()):
            yield f'whether hosts have {fact} for {number} servers'


_identity: Callable[[Server], tuple[str, str]]
_identity = operator.attrgetter('name', 'id')


def _of_all(
    hosts: Iterable[str], by_host: Mapping[str, Sequence[_T]]
) -> Iterator[_T]:
    return (each for host in hosts for each in by_host.get(host, ()))


def _badness(margin: Margin) -> tuple[int, int, int]:
    return -margin.hosts_short, margin.free - margin.needed, -margin.needed
