# SPDX-License-Identifier: Apache-2.0
"""Plans migrations that empty hosts, bring servers home, or make room."""

from collections.abc import Collection, Iterable, Iterator, Sequence
import dataclasses

from oslo_config import cfg

from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.audit.servers import out_of_place
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.room import ejection, fewest, order, packing
from isolate_aggregates_tools.room.fewest import Assignment
from isolate_aggregates_tools.room.kinds import Kind, Kinds, by_host
from isolate_aggregates_tools.room.occupancy import Occupancy
from isolate_aggregates_tools.room.task import (
    Left,
    Movables,
    Move,
    Task,
    is_live,
    movables,
)


@dataclasses.dataclass(frozen=True)
class Relocation:
    """A plan of migrations.

    :param rounds: The moves that can be made at the same time, one round after
        another.
    :param left: The servers that should move, and do not.
    :param least: No plan that leaves no more servers has fewer moves.
    :param is_proven: Whether no plan is better.
    :param emptied: The hosts that have no servers left.
    :param wanted: The number of servers that there should be room for.
    :param missing: How many of them there is no room for.
    :param after: The cloud after the moves.
    """

    rounds: tuple[tuple[Move, ...], ...]
    left: tuple[Left, ...]
    least: int
    is_proven: bool
    emptied: frozenset[str]
    wanted: int
    missing: int
    after: Snapshot

    @property
    def moves(self) -> tuple[Move, ...]:
        """All moves, in their order."""
        return tuple(move for moves in self.rounds for move in moves)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Hosts that are empty at the same time.

    :param hosts: The hosts, sorted.
    :param plan: The moves that empty them, after those of earlier batches.
    :param again: How many of its servers an earlier batch has moved already.
    """

    hosts: tuple[str, ...]
    plan: Relocation
    again: int


class Planner:
    """Plans migrations in a cloud.

    :param snapshot: The cloud, with its servers.
    :param conf: The configuration of nova-scheduler.
    :param releases: The possible releases of its Nova; empty if unknown.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        conf: cfg.ConfigOpts,
        releases: Sequence[int] = (),
    ) -> None:
        self._snapshot = snapshot
        self._conf = conf
        self._kinds = Kinds(snapshot, conf, releases)

    @property
    def not_known(self) -> Iterator[str]:
        """What is not known, and may matter."""
        return self._kinds.not_known

    def kind_of(
        self, flavor: Flavor, image: Image | None, project: str | None
    ) -> Kind:
        """Return the kind of new servers."""
        request = self._kinds.requests.new(flavor, image, project)
        return self._kinds.of_request(request)

    @lazy_property
    def misplaced(self) -> frozenset[str]:
        """The ids of the servers out of place that can have another host.

        They are those that an audit finds. A server keeps its copy of the
        flavor, so it is at home where that may be.
        """
        servers = self._snapshot.known_servers
        cloud = AuditedCloud.of(self._snapshot, self._conf, servers=servers)
        return frozenset(
            each.server.id
            for each in out_of_place(cloud)
            if each.kind in ('server-misplaced', 'server-changed')
            and not each.is_refused
            and each.server.host
            not in self._kinds.of_server(each.server).hosts
        )

    def plan(
        self,
        task: Task,
        parallel: int = 1,
        seconds: float = fewest.SECONDS,
    ) -> Relocation:
        """Return the moves that a task needs.

        :param parallel: How many moves are made at the same time.
        :param seconds: The time for the solver.
        :raises RequestUnacceptable: if the servers that there shall be room
            for are refused.
        """
        if task.wanted and task.wanted[0].refusal:
            raise errors.RequestUnacceptable(
                'There cannot be room for these servers: '
                f'{task.wanted[0].refusal}.'
            )
        occupancy = Occupancy(self._snapshot, self._kinds)
        servers = self._snapshot.known_servers.placed
        return self._planned(
            task, servers, occupancy, task.emptied, parallel, seconds
        )

    def rolling(
        self,
        task: Task,
        parallel: int = 1,
        together: int | None = None,
    ) -> tuple[list[Batch], list[Left]]:
        """Return in which order hosts can be emptied, one batch after another.

        Servers go to hosts that are not to be emptied, or have been already,
        so that each moves once; only if a host cannot be emptied so, to those
        whose turn comes later. The order is that of hroller of Ganeti: as many
        hosts at a time as possible.

        :param task: The hosts to be emptied.
        :param parallel: How many moves are made at the same time.
        :param together: The most hosts of a batch; None for no limit.
        :returns: The batches, and the servers that cannot leave their hosts.
        """
        occupancy = Occupancy(self._snapshot, self._kinds)
        servers = {s.id: s for s in self._snapshot.known_servers.placed}
        waiting = set(task.emptied)
        batches: list[Batch] = []
        left: list[Left] = []
        moved: set[str] = set()
        while waiting:
            for closed in (waiting, None):
                batch = self._batch(
                    task,
                    servers,
                    occupancy,
                    waiting,
                    closed,
                    together,
                )
                if batch:
                    break
            else:
                left += self._stranded(task, servers, occupancy, waiting)
                break
            plan = self._planned(
                dataclasses.replace(task, emptied=frozenset(batch)),
                servers.values(),
                occupancy,
                waiting if closed else batch,
                parallel,
                0,
            )
            ids = {move.server.id for move in plan.moves}
            batches.append(Batch(tuple(sorted(batch)), plan, len(ids & moved)))
            moved |= ids
            for move in plan.moves:
                servers[move.server.id] = dataclasses.replace(
                    servers[move.server.id], host=move.target
                )
            waiting -= batch
        return batches, left

    def _batch(
        self,
        task: Task,
        servers: dict[str, Server],
        occupancy: Occupancy,
        waiting: Collection[str],
        closed: Collection[str] | None,
        together: int | None,
    ) -> set[str]:
        """Return hosts that can be empty at the same time.

        :param closed: The hosts that nothing may move to; None for those of
            the batch alone. Then there is one host in it.
        """
        here = by_host(servers.values())
        batch: set[str] = set()
        with occupancy.trial():
            for host in sorted(
                waiting, key=lambda host: (len(here.get(host, ())), host)
            ):
                if together and len(batch) == together:
                    break
                one = dataclasses.replace(task, emptied=frozenset([host]))
                found = movables(here.get(host, ()), one, self._kinds, False)
                if found.left:
                    continue
                assignment = fewest.direct(
                    found,
                    occupancy,
                    [host] if closed is None else closed,
                    None,
                )
                if assignment.left:
                    continue
                batch.add(host)
                for server, target in assignment.targets:
                    occupancy.add(found.kinds[server.id], server, target)
                if closed is None:
                    break
        return batch

    def _stranded(
        self,
        task: Task,
        servers: dict[str, Server],
        occupancy: Occupancy,
        hosts: Collection[str],
    ) -> Iterator[Left]:
        """Yield the servers that keep hosts from being emptied."""
        for host in sorted(hosts):
            one = dataclasses.replace(task, emptied=frozenset([host]))
            found = movables(servers.values(), one, self._kinds, False)
            yield from found.left
            assignment = fewest.direct(found, occupancy, [host], None)
            for server in assignment.left:
                yield self._why(server, found, occupancy, [host])

    def _planned(
        self,
        task: Task,
        servers: Iterable[Server],
        occupancy: Occupancy,
        closed: Collection[str],
        parallel: int,
        seconds: float,
    ) -> Relocation:
        """Return the moves; afterwards, the occupancy is that after them."""
        servers = tuple(servers)
        found = movables(servers, task, self._kinds, False)
        best = fewest.direct(found, occupancy, closed, task.wanted)
        if seconds and (best.left or best.missing):
            found = movables(servers, task, self._kinds, True)
            best = _better(
                best, ejection.ejecting(found, occupancy, closed, task.wanted)
            )
            if not best.is_proven:
                best = _better(
                    best,
                    fewest.fewest(
                        found, occupancy, closed, task.wanted, seconds
                    ),
                )
        reasons = [
            self._why(server, found, occupancy, closed) for server in best.left
        ]
        sequence = order.ordered(
            best.targets, found.kinds, occupancy, closed, parallel
        )
        left = [
            *found.left,
            *reasons,
            *(
                Left(
                    step.server,
                    f'there is room on {step.target} only after others have '
                    'moved, which wait for it',
                )
                for step in sequence.stuck
            ),
        ]
        rounds = tuple(
            tuple(
                Move(
                    dataclasses.replace(step.server, host=step.source),
                    step.source,
                    step.target,
                    is_live(step.server, task),
                )
                for step in steps
            )
            for steps in sequence.rounds
        )
        homes = {
            move.server.id: move.target for moves in rounds for move in moves
        }
        after = tuple(
            dataclasses.replace(server, host=homes[server.id])
            if server.id in homes
            else server
            for server in servers
        )
        return Relocation(
            rounds,
            tuple(left),
            best.least,
            best.is_proven,
            task.emptied - by_host(after).keys(),
            task.wanted[1] if task.wanted else 0,
            best.missing,
            dataclasses.replace(
                occupancy.snapshot(self._snapshot),
                servers=dataclasses.replace(
                    self._snapshot.known_servers, placed=after
                ),
            ),
        )

    def _why(
        self,
        server: Server,
        found: Movables,
        occupancy: Occupancy,
        closed: Collection[str],
    ) -> Left:
        kind = found.kinds[server.id]
        hosts = kind.hosts - frozenset(closed) - {server.host or ''}
        return Left(server, packing.objection(kind, server, hosts, occupancy))


def _better(one: Assignment, other: Assignment | None) -> Assignment:
    """Return the better assignment, with the better bound of both."""
    if other is None:
        return one
    best = min(one, other, key=lambda each: each.badness)
    if one.failures == other.failures:
        least = max(one.least, other.least)
        best = dataclasses.replace(best, least=least)
    return best
