# SPDX-License-Identifier: Apache-2.0
"""Puts moves in an order in which each fits when its turn comes.

While a server is migrated, it takes room on both hosts. What it leaves is free
only for the next round.
"""

from collections.abc import Collection, Iterable, Mapping
import dataclasses

from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.room import packing
from isolate_aggregates_tools.room.kinds import Kind
from isolate_aggregates_tools.room.occupancy import Occupancy


@dataclasses.dataclass(frozen=True)
class Step:
    """A server that goes from one host to another."""

    server: Server
    source: str
    target: str


@dataclasses.dataclass(frozen=True)
class Order:
    """Moves in their order.

    :param rounds: The moves that can be made at the same time, one round after
        another.
    :param stuck: The moves for which there never is room, because they wait
        for each other.
    """

    rounds: tuple[tuple[Step, ...], ...]
    stuck: tuple[Step, ...]


def ordered(
    targets: Iterable[tuple[Server, str]],
    kinds: Mapping[str, Kind],
    occupancy: Occupancy,
    closed: Collection[str],
    parallel: int,
) -> Order:
    """Return moves in an order; servers that wait for each other go around.

    If no move fits, one of them goes to a third host first.

    :param targets: The servers with their new hosts.
    :param kinds: The kinds of the servers, by their ids.
    :param occupancy: The room before the moves; afterwards, the room after
        them.
    :param closed: The hosts that nothing may move to.
    :param parallel: How many moves are made at the same time.
    """
    waiting = [
        Step(server, server.host or '', target) for server, target in targets
    ]
    rounds: list[tuple[Step, ...]] = []
    away: set[str] = set()
    while waiting:
        running: list[Step] = []
        for step in waiting:
            if len(running) == parallel:
                break
            if _fits(step, kinds, occupancy):
                _claim(step, kinds, occupancy)
                running.append(step)
        if not running:
            detour = _detour(waiting, kinds, occupancy, closed, away)
            if detour is None:
                break
            step, around = detour
            away.add(step.server.id)
            _claim(around, kinds, occupancy)
            running = [around]
            waiting[waiting.index(step)] = dataclasses.replace(
                step, source=around.target
            )
        else:
            waiting = [step for step in waiting if step not in running]
        for step in running:
            kind = kinds[step.server.id]
            occupancy.remove(kind, step.server, step.source)
        rounds.append(tuple(running))
    return Order(tuple(rounds), tuple(waiting))


def _fits(step: Step, kinds: Mapping[str, Kind], occupancy: Occupancy) -> bool:
    return occupancy.fits(
        kinds[step.server.id], step.target
    ) and not occupancy.group_objection(step.server, step.target)


def _claim(
    step: Step, kinds: Mapping[str, Kind], occupancy: Occupancy
) -> None:
    occupancy.add(kinds[step.server.id], step.server, step.target)


def _detour(
    waiting: Iterable[Step],
    kinds: Mapping[str, Kind],
    occupancy: Occupancy,
    closed: Collection[str],
    away: Collection[str],
) -> tuple[Step, Step] | None:
    """Return a move that waits, and one to a third host in its place.

    Preferred are servers whose leaving lets another move in.
    """
    waiting = list(waiting)
    sought = {step.target for step in waiting}
    candidates = sorted(
        (step for step in waiting if step.server.id not in away),
        key=lambda step: (step.source not in sought, step.server.id),
    )
    for step in candidates:
        kind = kinds[step.server.id]
        hosts = kind.hosts - frozenset(closed) - {step.source, step.target}
        for host in packing.roomiest(kind, occupancy, hosts):
            around = dataclasses.replace(step, target=host)
            if _fits(around, kinds, occupancy):
                return step, around
    return None
