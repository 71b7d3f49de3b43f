# SPDX-License-Identifier: Apache-2.0
"""Finds hosts for several servers at once."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
import dataclasses

from isolate_aggregates.text import quoted
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.room.kinds import Kind
from isolate_aggregates_tools.room.occupancy import Occupancy


@dataclasses.dataclass(frozen=True)
class Homeless:
    """A server that needs a host.

    :param server: The server; None for one that does not exist yet.
    """

    kind: Kind
    server: Server | None = None


@dataclasses.dataclass(frozen=True)
class Packed:
    """Which servers found a host.

    :param placed: The servers with their hosts.
    :param left: The servers without one.
    :param least: No placement leaves fewer.
    """

    placed: tuple[tuple[Homeless, str], ...]
    left: tuple[Homeless, ...]
    least: int = 0


def pack(
    homeless: Iterable[Homeless],
    occupancy: Occupancy,
    targets: Mapping[Kind, Collection[str]],
) -> Packed:
    """Place servers one after the other, the most demanding first.

    First each takes the host with the most room, which is fast. If servers are
    left that had a host before others took it, all try again, each on the host
    that it fills best.

    :param occupancy: The room, which is used up by those that are placed.
    :param targets: The hosts that each kind may use.
    """
    order = sorted(
        homeless,
        key=lambda one: (
            len(targets[one.kind]),
            [-amount for _, amount in sorted(one.kind.amounts.items())],
        ),
    )
    with occupancy.trial():
        packed = _placed(order, occupancy, targets, tight=False)
    least = _alone(order, occupancy, targets) if packed.left else 0
    if len(packed.left) > least:
        with occupancy.trial():
            tight = _placed(order, occupancy, targets, tight=True)
        if len(tight.left) < len(packed.left):
            packed = tight
    for one, host in packed.placed:
        occupancy.add(one.kind, one.server, host)
    return dataclasses.replace(packed, least=least)


def roomiest(
    kind: Kind, occupancy: Occupancy, hosts: Iterable[str]
) -> list[str]:
    """Return hosts in order, those with the most room for a kind first."""
    ranked = [
        (-slack, host)
        for some in occupancy.by_room(hosts)
        for slack in [occupancy.slack(kind, some[0])]
        for host in some
    ]
    return [host for _, host in sorted(ranked)]


def _placed(
    order: Iterable[Homeless],
    occupancy: Occupancy,
    targets: Mapping[Kind, Collection[str]],
    tight: bool,
) -> Packed:
    placed, left = [], []
    # The hosts without room for a kind stay so, as no server leaves.
    full: dict[Kind, set[str]] = {}
    for one in order:
        host = _host(one, occupancy, targets, full, tight)
        if host is None:
            left.append(one)
        else:
            occupancy.add(one.kind, one.server, host)
            placed.append((one, host))
    return Packed(tuple(placed), tuple(left))


def _host(
    one: Homeless,
    occupancy: Occupancy,
    targets: Mapping[Kind, Collection[str]],
    full: dict[Kind, set[str]],
    tight: bool,
) -> str | None:
    without_room = full.setdefault(one.kind, set())
    has_group = one.server is not None and occupancy.is_grouped(one.server)
    best: tuple[tuple[float, float], str] | None = None
    own = one.server.host if one.server else None
    for host in targets[one.kind]:
        if (
            host == own
            or host in without_room
            or occupancy.group_objection(one.server, host)
        ):
            continue
        if not occupancy.fits(one.kind, host):
            without_room.add(host)
            continue
        if not tight and not has_group:
            return host
        slack = occupancy.slack(one.kind, host)
        rank = (
            -occupancy.preference(one.server, host),
            slack if tight else -slack,
        )
        if best is None or rank < best[0]:
            best = rank, host
    return best[1] if best else None


def _alone(
    homeless: Iterable[Homeless],
    occupancy: Occupancy,
    targets: Mapping[Kind, Collection[str]],
) -> int:
    """Return how many servers have no host even if nobody else takes it.

    No placement of all of them can do better.
    """
    kinds = Counter(one.kind for one in homeless)
    return sum(
        max(0, number - slots(kind, occupancy, targets[kind], number))
        for kind, number in kinds.items()
    )


def slots(
    kind: Kind, occupancy: Occupancy, hosts: Iterable[str], most: int
) -> int:
    """Return how many servers of a kind there is room for, up to a number."""
    number = 0
    for host in hosts:
        number += _fitting(kind, occupancy, host, most - number)
        if number >= most:
            return most
    return number


def _fitting(kind: Kind, occupancy: Occupancy, host: str, most: int) -> int:
    """Return how many servers of a kind fit on a host.

    :param most: Where they are placed one by one, no more are.
    """
    if occupancy.is_counted(host):
        return occupancy.times(kind, host)
    with occupancy.trial():
        for number in range(most):
            if not occupancy.fits(kind, host):
                return number
            occupancy.add(kind, None, host)
    return most


def objection(
    kind: Kind,
    server: Server | None,
    hosts: Collection[str],
    occupancy: Occupancy,
) -> str:
    """Return why a server has no place on any of some hosts.

    :param hosts: The hosts that it may use.
    """
    if kind.refusal:
        return f'the filters refuse it: {kind.refusal}'
    if not hosts:
        if kind.cell:
            return f'no other host of its cell {quoted(kind.cell)} may be used'
        return 'no other host may be used'
    if server and occupancy.is_grouped(server):
        objections = {occupancy.group_objection(server, h) for h in hosts}
        if '' not in objections:
            return ' or '.join(sorted(objections))
    if len(hosts) == 1:
        [host] = hosts
        return f'there is no room on {host}, the only other host'
    return f'there is no room on the {len(hosts)} other hosts'
