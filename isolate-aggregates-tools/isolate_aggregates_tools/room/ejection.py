# SPDX-License-Identifier: Apache-2.0
"""Moves servers out of the way of others, one host at a time.

This needs no solver, and does not look far: those that make room go where
there is room already. A bound tells whether a solver could do better.
"""

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
import itertools
import math

from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.room import fewest, packing
from isolate_aggregates_tools.room.fewest import Assignment
from isolate_aggregates_tools.room.kinds import Kind, by_host
from isolate_aggregates_tools.room.occupancy import Occupancy
from isolate_aggregates_tools.room.packing import Homeless
from isolate_aggregates_tools.room.task import Movables


def ejecting(
    movables: Movables,
    occupancy: Occupancy,
    closed: Collection[str],
    wanted: tuple[Kind, int] | None,
) -> Assignment:
    """Place the servers that must move, and move others out of their way.

    The parameters are those of :func:`~.fewest.direct`.
    """
    start = fewest.direct(movables, occupancy, closed, wanted)
    targets = list(start.targets)
    left: list[Server] = []
    missing = 0
    optional = by_host(movables.optional)
    with occupancy.trial():
        for server, host in start.targets:
            occupancy.add(movables.kinds[server.id], server, host)
        if wanted:
            kind, number = wanted
            for _ in range(number - start.missing):
                host = next(
                    h
                    for h in sorted(kind.hosts - frozenset(closed))
                    if occupancy.fits(kind, h)
                )
                occupancy.add(kind, None, host)
        homeless = [
            Homeless(movables.kinds[server.id], server)
            for server in start.left
        ]
        if wanted:
            homeless += [Homeless(wanted[0])] * start.missing
        for one in homeless:
            moves = _made_room(one, movables, occupancy, closed, optional)
            if moves is not None:
                targets += moves
            elif one.server:
                left.append(one.server)
            else:
                missing += 1
    least = start.least
    if wanted and not movables.required and not missing:
        least = least_moves(movables, occupancy, closed, *wanted)
    return Assignment(tuple(targets), tuple(left), missing, least)


def least_moves(
    movables: Movables,
    occupancy: Occupancy,
    closed: Collection[str],
    kind: Kind,
    number: int,
) -> int:
    """Return how many servers must leave their hosts to make room for others.

    That is less than it takes if those that leave find no room elsewhere.
    """
    here = by_host(movables.optional)
    cheapest: list[Fraction] = []
    for host in kind.hosts - frozenset(closed):
        fitting = packing.slots(kind, occupancy, [host], number)
        number -= fitting
        if number <= 0:
            return 0
        for more in range(1, number + 1):
            leaving = _leavers(
                kind,
                fitting + more,
                occupancy.room(host),
                here.get(host, ()),
                movables,
            )
            if leaving is None:
                break
            cheapest.append(Fraction(leaving, more))
    return math.ceil(number * min(cheapest, default=Fraction(0)))


def _leavers(
    kind: Kind,
    number: int,
    room: Mapping[str, int],
    servers: Iterable[Server],
    movables: Movables,
) -> int | None:
    """Return how many servers must leave a host; None if all are too few."""
    most = 0
    for name, amount in kind.amounts.items():
        lacking = number * amount - max(0, room.get(name, 0))
        sizes = sorted(
            (movables.kinds[s.id].amounts.get(name, 0) for s in servers),
            reverse=True,
        )
        sums = itertools.accumulate(sizes, initial=0)
        leaving = next((n for n, s in enumerate(sums) if s >= lacking), None)
        if leaving is None:
            return None
        most = max(most, leaving)
    return most


def _made_room(
    one: Homeless,
    movables: Movables,
    occupancy: Occupancy,
    closed: Collection[str],
    optional: dict[str, list[Server]],
) -> list[tuple[Server, str]] | None:
    """Place a server where few others have to leave.

    :param optional: The servers that can leave each host. Those that do are
        taken out.
    :returns: The moves; None if there is no host.
    """
    best: tuple[str, list[tuple[Server, str]]] | None = None
    own = {one.server.host} if one.server else set()
    for host in sorted(one.kind.hosts - frozenset(closed) - own):
        if occupancy.group_objection(one.server, host):
            continue
        with occupancy.trial():
            moves = _leaving(one, host, movables, occupancy, closed, optional)
        if moves is not None and (best is None or len(moves) < len(best[1])):
            best = host, moves
    if best is None:
        return None
    host, moves = best
    for server, target in moves:
        kind = movables.kinds[server.id]
        occupancy.remove(kind, server, server.host or '')
        occupancy.add(kind, server, target)
    optional[host] = [
        server
        for server in optional.get(host, ())
        if server.id not in {each.id for each, _ in moves}
    ]
    occupancy.add(one.kind, one.server, host)
    return [*moves, *([(one.server, host)] if one.server else [])]


def _leaving(
    one: Homeless,
    host: str,
    movables: Movables,
    occupancy: Occupancy,
    closed: Collection[str],
    optional: dict[str, list[Server]],
) -> list[tuple[Server, str]] | None:
    """Return who has to leave a host, the largest first; None if in vain."""
    moves: list[tuple[Server, str]] = []
    for server in sorted(
        optional.get(host, ()),
        key=lambda each: -sum(movables.kinds[each.id].amounts.values()),
    ):
        if occupancy.fits(one.kind, host):
            break
        kind = movables.kinds[server.id]
        hosts = kind.hosts - frozenset(closed) - {host}
        target = next(
            (
                other
                for other in packing.roomiest(kind, occupancy, hosts)
                if occupancy.fits(kind, other)
                and not occupancy.group_objection(server, other)
            ),
            None,
        )
        if target is not None:
            occupancy.remove(kind, server, host)
            occupancy.add(kind, server, target)
            moves.append((server, target))
    return moves if occupancy.fits(one.kind, host) else None
