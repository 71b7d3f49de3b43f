# SPDX-License-Identifier: Apache-2.0
"""What servers a plan may move, and which it must move."""

from collections.abc import Iterable, Mapping
import dataclasses

from isolate_aggregates_tools import errors
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.mirrored.nova_api.moves import STATUSES, MoveKind
from isolate_aggregates_tools.room.kinds import Kind, Kinds, by_host


@dataclasses.dataclass(frozen=True)
class Move:
    """A migration of a server.

    :param server: The server, as it was when the move was planned.
    :param source: Its compute service.
    :param target: The compute service that it shall have.
    :param live: Whether it is migrated live; otherwise cold, with a restart.
    """

    server: Server
    source: str
    target: str
    live: bool


# What is not counted here, by the names of the options that include it.
INCLUDABLE = {
    'pinned': 'pinned CPUs',
    'devices': 'devices',
}


@dataclasses.dataclass(frozen=True)
class Task:
    """What a plan shall do.

    :param emptied: The hosts that all servers shall leave.
    :param homecoming: The ids of servers that shall leave their hosts.
    :param wanted: The kind and number of servers that there shall be room for.
    :param include: Which servers to move although not all about them is
        counted here; names of ``INCLUDABLE``.
    :param cold: Whether all servers are migrated cold.
    """

    emptied: frozenset[str] = frozenset()
    homecoming: frozenset[str] = frozenset()
    wanted: tuple[Kind, int] | None = None
    include: frozenset[str] = frozenset()
    cold: bool = False


@dataclasses.dataclass(frozen=True)
class Left:
    """A server that should be moved, and is not.

    :param reason: Why not, without a full stop.
    """

    server: Server
    reason: str


@dataclasses.dataclass(frozen=True)
class Movables:
    """The servers of a cloud, as a plan sees them.

    :param kinds: The kinds of the servers that can be moved, by their ids.
    :param required: Those of them that must move.
    :param optional: Those of them that may move for the others.
    :param left: Those that should be moved, and cannot.
    """

    kinds: Mapping[str, Kind]
    required: tuple[Server, ...]
    optional: tuple[Server, ...]
    left: tuple[Left, ...]


def movables(
    servers: Iterable[Server], task: Task, kinds: Kinds, others: bool
) -> Movables:
    """Return which servers can be moved.

    :param others: Whether to look at those that need not be moved.
    """
    required: list[Server] = []
    optional: list[Server] = []
    left: list[Left] = []
    of_server = {}
    for host, here in by_host(servers).items():
        for server in here:
            must = host in task.emptied or server.id in task.homecoming
            if not must and not others:
                continue
            objection = _objection(server, task, kinds)
            if not objection:
                try:
                    kind = kinds.of_server(server)
                except errors.InvalidRequest as exc:
                    objection = str(exc).rstrip('.')
            if not objection and kind.refusal:
                objection = f'the filters refuse it: {kind.refusal}'
            if objection:
                if must:
                    left.append(Left(server, objection))
                continue
            of_server[server.id] = kind
            (required if must else optional).append(server)
    return Movables(of_server, tuple(required), tuple(optional), tuple(left))


def is_live(server: Server, task: Task) -> bool:
    """Return whether a server is migrated live."""
    return not task.cold and server.status in STATUSES[MoveKind.LIVE]


def _objection(server: Server, task: Task, kinds: Kinds) -> str:
    """Return why a server is left alone; empty if it is not."""
    if server.flavor is None:
        return 'its cell is down'
    live = is_live(server, task)
    refusal = kinds.refusal(MoveKind.LIVE if live else MoveKind.COLD, server)
    if refusal:
        cold = live and not kinds.refusal(MoveKind.COLD, server)
        return f'{refusal}; --cold moves it' if cold else refusal
    tied = kinds.tied(server)
    if tied:
        return tied
    included = {INCLUDABLE[name] for name in task.include}
    facts = [f for f in kinds.unmodelled(server) if f not in included]
    if facts:
        options = [
            f'--include {name}'
            for name, fact in INCLUDABLE.items()
            if fact in facts
        ]
        return (
            f'it has {" and ".join(facts)}, which is not counted here; '
            f'{" ".join(options)} moves it'
        )
    return ''
