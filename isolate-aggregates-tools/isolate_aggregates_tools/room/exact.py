# SPDX-License-Identifier: Apache-2.0
"""Places as many servers as possible, with proof."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from isolate_aggregates_tools.room.kinds import Kind
from isolate_aggregates_tools.room.occupancy import Occupancy
from isolate_aggregates_tools.room.packing import Homeless, Packed
from isolate_aggregates_tools.room.program import (
    Program,
    is_available,
    rounded_up,
)

# The time for one question, in seconds.
_SECONDS = 10


def most(
    packed: Packed,
    homeless: Sequence[Homeless],
    occupancy: Occupancy,
    targets: Mapping[Kind, Collection[str]],
) -> tuple[Packed, int]:
    """Return the best placement, and how many must at least be left out.

    :param packed: A placement that was found without the solver.
    :param targets: The hosts that each kind may use.
    """
    least = packed.least
    if least == len(packed.left) or not is_available():
        return packed, least
    program = Program()
    columns: dict[tuple[int, str], int] = {}
    # Servers of a kind are alike, except those in server groups.
    alike: dict[tuple[Kind, str], list[Homeless]] = defaultdict(list)
    for one in homeless:
        alike[one.kind, occupancy.group_of(one.server)].append(one)
    takers: dict[str, list[tuple[int, Kind]]] = defaultdict(list)
    grouped: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, ((kind, group), some) in enumerate(alike.items()):
        for host in targets[kind]:
            limit = occupancy.group_limit(some[0].server, host)
            if limit == 0:
                continue
            column = program.variable(len(some), cost=-1)
            columns[number, host] = column
            takers[host].append((column, kind))
            if limit is not None:
                grouped[group, host].append(column)
                program.at_most(dict.fromkeys(grouped[group, host], 1), limit)
        own = [c for (n, _), c in columns.items() if n == number]
        program.at_most(dict.fromkeys(own, 1), len(some))
    for host, columns_here in takers.items():
        for name, free in occupancy.room(host).items():
            amounts = {
                column: kind.amounts[name]
                for column, kind in columns_here
                if kind.amounts.get(name)
            }
            if amounts:
                program.at_most(amounts, max(0, free))
    solution = program.solve(_SECONDS)
    least = max(least, len(homeless) + rounded_up(solution.least))
    if solution.values is None:
        return packed, least
    values = solution.values
    placed = _carried_out(
        [
            (some, {h: values[c] for (n, h), c in columns.items() if n == i})
            for i, some in enumerate(alike.values())
        ],
        occupancy,
    )
    return min(placed, packed, key=lambda each: len(each.left)), least


def _carried_out(
    chosen: Iterable[tuple[list[Homeless], Mapping[str, int]]],
    occupancy: Occupancy,
) -> Packed:
    """Return a placement of the solver, as far as it is one."""
    placed, left = [], []
    with occupancy.trial():
        for some, numbers in chosen:
            rest = iter(some)
            for host, number in numbers.items():
                for _ in range(number):
                    one = next(rest)
                    if occupancy.fits(one.kind, host) and not (
                        occupancy.group_objection(one.server, host)
                    ):
                        occupancy.add(one.kind, one.server, host)
                        placed.append((one, host))
                    else:
                        left.append(one)
            left += rest
    return Packed(tuple(placed), tuple(left))
