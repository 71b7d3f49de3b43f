# SPDX-License-Identifier: Apache-2.0
"""Finds hosts for servers that must move, so that few others have to."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
import dataclasses

from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.room import packing
from isolate_aggregates_tools.room.kinds import Kind
from isolate_aggregates_tools.room.occupancy import Occupancy
from isolate_aggregates_tools.room.packing import Homeless
from isolate_aggregates_tools.room.program import (
    Program,
    is_available,
    rounded_up,
)
from isolate_aggregates_tools.room.task import Movables

# The time of the solver for a plan, in seconds.
SECONDS = 60


@dataclasses.dataclass(frozen=True)
class Assignment:
    """New hosts for servers.

    :param targets: The servers that move, with their new hosts.
    :param left: The servers that must move, and have no new host.
    :param missing: How many of the wanted servers there is no room for.
    :param least: How many servers must move at least, if no fewer are left and
        missing.
    """

    targets: tuple[tuple[Server, str], ...]
    left: tuple[Server, ...]
    missing: int
    least: int

    @property
    def failures(self) -> int:
        """How many servers are left or missing."""
        return len(self.left) + self.missing

    @property
    def badness(self) -> tuple[int, int]:
        """A key by which better assignments come first."""
        return self.failures, len(self.targets)

    @property
    def is_proven(self) -> bool:
        """Whether no assignment is better."""
        return not self.failures and len(self.targets) <= self.least


def direct(
    movables: Movables,
    occupancy: Occupancy,
    closed: Collection[str],
    wanted: tuple[Kind, int] | None,
) -> Assignment:
    """Place the servers that must move, where there is room now.

    :param closed: The hosts that nothing may move to.
    """
    homeless = [
        Homeless(movables.kinds[server.id], server)
        for server in movables.required
    ]
    if wanted:
        homeless += [Homeless(wanted[0])] * wanted[1]
    targets = {
        kind: packing.roomiest(kind, occupancy, kind.hosts - frozenset(closed))
        for kind in {one.kind for one in homeless}
    }
    with occupancy.trial():
        packed = packing.pack(homeless, occupancy, targets)
    return Assignment(
        tuple((one.server, h) for one, h in packed.placed if one.server),
        tuple(one.server for one in packed.left if one.server),
        sum(one.server is None for one in packed.left),
        # Each of them has to move, if only once.
        sum(one.server is not None for one, _ in packed.placed),
    )


def fewest(
    movables: Movables,
    occupancy: Occupancy,
    closed: Collection[str],
    wanted: tuple[Kind, int] | None,
    seconds: float = SECONDS,
) -> Assignment | None:
    """Place the servers that must move, and move others out of their way.

    As few as possible are left and missing; then as few as possible move.
    Other parameters are those of :func:`direct`.

    :param seconds: The time for the solver.
    :returns: The best assignment; None if the solver is not installed or finds
        none.
    """
    if not is_available():
        return None
    return _Formulation(movables, occupancy, closed, wanted).solved(seconds)


@dataclasses.dataclass
class _Alike:
    """Servers that the program does not tell apart."""

    kind: Kind
    servers: dict[str, list[Server]]
    stays: dict[str, int] = dataclasses.field(default_factory=dict)
    arrivals: dict[str, int] = dataclasses.field(default_factory=dict)


class _Formulation:
    """The question as an integer program."""

    def __init__(
        self,
        movables: Movables,
        occupancy: Occupancy,
        closed: Collection[str],
        wanted: tuple[Kind, int] | None,
    ) -> None:
        self._required = {server.id for server in movables.required}
        self._occupancy = occupancy
        self._closed = frozenset(closed)
        self._program = Program()
        everybody = (*movables.required, *movables.optional)
        # Worse than any number of moves.
        self._penalty = len(everybody) + 1
        self._alike: dict[tuple[Kind, str, bool], _Alike] = {}
        for server in everybody:
            kind = movables.kinds[server.id]
            key = (
                kind,
                occupancy.group_of(server),
                server.id in self._required,
            )
            alike = self._alike.setdefault(key, _Alike(kind, {}))
            alike.servers.setdefault(server.host or '', []).append(server)
        # The variables on each host, with what each takes.
        self._takers: dict[str, dict[int, Kind]] = defaultdict(dict)
        self._grouped: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._freed: dict[str, Counter[str]] = defaultdict(Counter)
        for (_, group, required), alike in self._alike.items():
            self._add(alike, group, required)
        self._rooms: dict[str, int] = {}
        self._missing: int | None = None
        if wanted:
            self._add_wanted(*wanted)
        self._limit()

    def _add(self, alike: _Alike, group: str, required: bool) -> None:
        program, kind = self._program, alike.kind
        for host, some in alike.servers.items():
            cost = self._penalty if required else 0
            stay = program.variable(len(some), cost)
            alike.stays[host] = stay
            self._takers[host][stay] = kind
            if group:
                self._grouped[group, host].append(stay)
            for name, amount in kind.amounts.items():
                self._freed[host][name] += amount * len(some)
        total = sum(map(len, alike.servers.values()))
        example = next(iter(alike.servers.values()))[0]
        for host in sorted(kind.hosts - self._closed):
            limit = self._occupancy.group_limit(example, host)
            policy = self._occupancy.policy_of(example)
            if policy == 'affinity' and limit == 0:
                continue
            arrival = program.variable(total, 1)
            alike.arrivals[host] = arrival
            self._takers[host][arrival] = kind
            if group:
                self._grouped[group, host].append(arrival)
        variables = [*alike.stays.values(), *alike.arrivals.values()]
        program.exactly(dict.fromkeys(variables, 1), total)

    def _add_wanted(self, kind: Kind, number: int) -> None:
        program = self._program
        self._missing = program.variable(number, self._penalty)
        for host in sorted(kind.hosts - self._closed):
            room = program.variable(number)
            self._rooms[host] = room
            self._takers[host][room] = kind
        program.exactly(
            dict.fromkeys([self._missing, *self._rooms.values()], 1), number
        )

    def _limit(self) -> None:
        """Limit the variables by the room on each host, and by groups."""
        for host, takers in self._takers.items():
            room = self._occupancy.room(host)
            for name in {n for kind in takers.values() for n in kind.amounts}:
                amounts = {
                    variable: kind.amounts[name]
                    for variable, kind in takers.items()
                    if kind.amounts.get(name)
                }
                limit = max(0, room.get(name, 0)) + self._freed[host][name]
                self._program.at_most(amounts, limit)
        examples = {
            group: next(iter(alike.servers.values()))[0]
            for (_, group, _), alike in self._alike.items()
        }
        for (group, host), variables in self._grouped.items():
            if self._occupancy.policy_of(examples[group]) != 'anti-affinity':
                continue
            here = sum(
                len(alike.servers.get(host, ()))
                for (_, other, _), alike in self._alike.items()
                if other == group
            )
            most = self._occupancy.group_limit(examples[group], host, here)
            # More than allowed may be there already.
            self._program.at_most(
                dict.fromkeys(variables, 1), max(most or 0, here)
            )

    def solved(self, seconds: float) -> Assignment | None:
        """Return the best assignment that is found."""
        solution = self._program.solve(seconds)
        values = solution.values
        if values is None:
            return None
        targets: list[tuple[Server, str]] = []
        left: list[Server] = []
        for (_, _, required), alike in self._alike.items():
            leaving: list[Server] = []
            for host, some in alike.servers.items():
                stay = values[alike.stays[host]]
                leaving += some[stay:]
                if required:
                    left += some[:stay]
            hosts = [
                host
                for host, variable in alike.arrivals.items()
                for _ in range(values[variable])
            ]
            targets += _paired(leaving, hosts)
        missing = 0 if self._missing is None else values[self._missing]
        failures = len(left) + missing
        return Assignment(
            tuple(targets),
            tuple(left),
            missing,
            max(0, rounded_up(solution.least - self._penalty * failures)),
        )


def _paired(
    servers: Sequence[Server], hosts: Sequence[str]
) -> Iterator[tuple[Server, str]]:
    """Pair servers with new hosts.

    No host is among the old and the new ones, as that would cost a move more.
    """
    rest = list(hosts)
    for server in servers:
        host = next(h for h in rest if h != server.host)
        rest.remove(host)
        yield server, host
