# SPDX-License-Identifier: Apache-2.0
"""The columns of a matrix: hosts, groups of hosts, aggregates or locks."""

from collections.abc import Iterable, Mapping
import dataclasses
import enum

from isolate_aggregates.aggregates import Aggregate, Lock
from isolate_aggregates.text import listed
from isolate_aggregates.tools.matrix.matrix import Matrix, Row
from isolate_aggregates.tools.matrix.rules import Objection

# The name of the column for hosts without a lock.
UNLOCKED = '(no lock)'
# The most hosts whose names are listed.
_LISTED = 2


class Access(enum.Enum):
    """Whether a request may use the hosts of a column."""

    YES = 'yes'
    SOME = 'some'
    NO = 'no'


@dataclasses.dataclass(frozen=True)
class Column:
    """Hosts that are shown together.

    :param groups: The indexes of their groups in the matrix; empty if the
        column has no hosts.
    """

    name: str
    groups: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Exclusion:
    """The hosts that one objection excludes."""

    objection: Objection
    hosts: tuple[str, ...]


def by_host(matrix: Matrix) -> list[Column]:
    """Return a column for each host, sorted by name."""
    return sorted(
        (
            Column(host, (place,))
            for place, group in enumerate(matrix.groups)
            for host in group.hosts
        ),
        key=lambda column: column.name,
    )


def alike(matrix: Matrix) -> list[Column]:
    """Return a column for each set of hosts with the same access."""
    places: dict[tuple[bool, ...], list[int]] = {}
    for place in range(len(matrix.groups)):
        access = tuple(not row.objections[place] for row in matrix.rows)
        places.setdefault(access, []).append(place)
    return [
        Column(_naming(hosts_of(matrix, same)), tuple(same))
        for same in places.values()
    ]


def named(
    matrix: Matrix, columns: Iterable[Column], preferences: Iterable[Column]
) -> list[Column]:
    """Rename columns with too many hosts to list.

    :param preferences: Columns whose names may be used. The first one with
        exactly the same hosts is used.
    """
    names: dict[frozenset[int], str] = {}
    for column in preferences:
        names.setdefault(frozenset(column.groups), column.name)
    return [_named(matrix, column, names) for column in columns]


def _named(
    matrix: Matrix, column: Column, names: Mapping[frozenset[int], str]
) -> Column:
    hosts = len(hosts_of(matrix, column.groups))
    name = names.get(frozenset(column.groups))
    if name is None or hosts <= _LISTED:
        return column
    return dataclasses.replace(column, name=f'{name}, {hosts:,} hosts')


def _naming(hosts: tuple[str, ...]) -> str:
    if len(hosts) <= _LISTED:
        return listed(hosts)
    # Also where sentences give all names: a head of a column has no room.
    return f'{hosts[0]} and {len(hosts) - 1} more'


def by_aggregate(
    matrix: Matrix, aggregates: Iterable[Aggregate]
) -> list[Column]:
    """Return a column for each aggregate, in their order."""
    return [
        Column(aggregate.name, _inside(matrix, [aggregate]))
        for aggregate in aggregates
    ]


def by_lock(matrix: Matrix, locks: Iterable[Lock]) -> list[Column]:
    """Return a column for each lock, and one for hosts without any."""
    columns = [Column(k.name, _inside(matrix, k.aggregates)) for k in locks]
    places = {place for column in columns for place in column.groups}
    rest = tuple(p for p in range(len(matrix.groups)) if p not in places)
    return [*columns, Column(UNLOCKED, rest)] if rest else columns


def hosts_of(matrix: Matrix, places: Iterable[int]) -> tuple[str, ...]:
    """Return the hosts of some groups, sorted."""
    return tuple(sorted(h for p in places for h in matrix.groups[p].hosts))


def access(row: Row, column: Column) -> Access:
    """Return whether a request may use all hosts of a column, some or none.

    A column without hosts counts as none.
    """
    may = [not row.objections[place] for place in column.groups]
    if not any(may):
        return Access.NO
    return Access.YES if all(may) else Access.SOME


def exclusions(matrix: Matrix, row: Row, column: Column) -> list[Exclusion]:
    """Return the hosts of a column that a request may not use, by reason."""
    if not column.groups:
        return [Exclusion(Objection(None, 'no-hosts', 'has no hosts'), ())]
    places: dict[Objection, list[int]] = {}
    for place in column.groups:
        for objection in row.objections[place]:
            places.setdefault(objection, []).append(place)
    return [
        Exclusion(objection, hosts_of(matrix, kept_out))
        for objection, kept_out in places.items()
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
