# SPDX-License-Identifier: Apache-2.0
"""The columns of a matrix: single hosts, hosts alike, aggregates, locks."""

from collections.abc import Iterable
import dataclasses
import enum

from isolate_aggregates.aggregates import Aggregate, Lock
from isolate_aggregates.inspect.matrix import Matrix, Row
from isolate_aggregates.inspect.rules import Reason
from isolate_aggregates.text import listed

# What the hosts are called that no lock keeps anybody out of.
UNLOCKED = '(no lock)'


class Verdict(enum.Enum):
    """Whether a request may go to the hosts of a column."""

    YES = 'yes'
    SOME = 'some'
    NO = 'no'


@dataclasses.dataclass(frozen=True)
class Column:
    """Hosts that are shown together.

    :param name: What they are called.
    :param groups: The places of their groups in the matrix; none if there
        are no such hosts.
    """

    name: str
    groups: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Objection:
    """A reason, and the hosts that it keeps a request from.

    :param reason: The reason.
    :param hosts: The names of the hosts, sorted.
    """

    reason: Reason
    hosts: tuple[str, ...]


def by_host(matrix: Matrix) -> list[Column]:
    """Return a column for each host, sorted by name.

    :param matrix: The matrix.
    """
    return sorted(
        (
            Column(host, (place,))
            for place, group in enumerate(matrix.groups)
            for host in group.hosts
        ),
        key=lambda column: column.name,
    )


def alike(matrix: Matrix) -> list[Column]:
    """Return a column for all hosts that the same requests may go to.

    :param matrix: The matrix.
    """
    places: dict[tuple[bool, ...], list[int]] = {}
    for place in range(len(matrix.groups)):
        verdicts = tuple(not row.reasons[place] for row in matrix.rows)
        places.setdefault(verdicts, []).append(place)
    return [
        Column(_naming(hosts_of(matrix, same)), tuple(same))
        for same in places.values()
    ]


def _naming(hosts: tuple[str, ...]) -> str:
    return listed(hosts, most=1 if len(hosts) > 2 else 2)


def by_aggregate(
    matrix: Matrix, aggregates: Iterable[Aggregate]
) -> list[Column]:
    """Return a column for each aggregate, in their order.

    :param matrix: The matrix.
    :param aggregates: The aggregates of the cloud.
    """
    return [
        Column(aggregate.name, _inside(matrix, [aggregate]))
        for aggregate in aggregates
    ]


def by_lock(matrix: Matrix, locks: Iterable[Lock]) -> list[Column]:
    """Return a column for each lock, and one for hosts without any.

    :param matrix: The matrix.
    :param locks: The locks of the cloud.
    """
    columns = [Column(k.name, _inside(matrix, k.aggregates)) for k in locks]
    locked = {place for column in columns for place in column.groups}
    rest = tuple(p for p in range(len(matrix.groups)) if p not in locked)
    return [*columns, Column(UNLOCKED, rest)] if rest else columns


def hosts_of(matrix: Matrix, places: Iterable[int]) -> tuple[str, ...]:
    """Return the hosts of some groups, sorted.

    :param matrix: The matrix.
    :param places: The places of the groups.
    """
    return tuple(sorted(h for p in places for h in matrix.groups[p].hosts))


def verdict(row: Row, column: Column) -> Verdict:
    """Tell whether a request may go to all hosts of a column, some or none.

    :param row: The row of the request.
    :param column: The column. If it has no hosts there are none to go to.
    """
    may = [not row.reasons[place] for place in column.groups]
    if not any(may):
        return Verdict.NO
    return Verdict.YES if all(may) else Verdict.SOME


def objections(matrix: Matrix, row: Row, column: Column) -> list[Objection]:
    """Return why a request may not go to hosts of a column.

    :param matrix: The matrix.
    :param row: The row of the request.
    :param column: The column.
    """
    if not column.groups:
        return [Objection(Reason(None, 'has no hosts'), ())]
    places: dict[Reason, list[int]] = {}
    for place in column.groups:
        for reason in row.reasons[place]:
            places.setdefault(reason, []).append(place)
    return [
        Objection(reason, hosts_of(matrix, kept_out))
        for reason, kept_out in places.items()
    ]


def _inside(
    matrix: Matrix, aggregates: Iterable[Aggregate]
) -> tuple[int, ...]:
    uuids = {aggregate.uuid for aggregate in aggregates}
    return tuple(
        place
        for place, group in enumerate(matrix.groups)
        if not uuids.isdisjoint(group.aggregates)
    )
