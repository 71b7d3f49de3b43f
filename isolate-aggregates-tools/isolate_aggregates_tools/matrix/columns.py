# SPDX-License-Identifier: Apache-2.0
"""The columns of a matrix: hosts, groups of hosts, aggregates or locks."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
import dataclasses
import enum
import itertools

from isolate_aggregates.aggregates import Aggregate, Lock
from isolate_aggregates.text import listed
from isolate_aggregates_tools.matrix.matrix import Matrix, Objection, Row

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

    :param hosts: The names of the hosts, sorted.
    :param groups: The indexes of their groups in the matrix. An aggregate may
        have only some hosts of a group.
    """

    name: str
    hosts: tuple[str, ...]
    groups: tuple[int, ...]


def by_host(matrix: Matrix) -> list[Column]:
    """Return a column for each host, sorted by name."""
    return sorted(
        (
            Column(host, (host,), (place,))
            for place, group in enumerate(matrix.groups)
            for host in group.hosts
        ),
        key=lambda column: column.name,
    )


def alike(matrix: Matrix, locks: Iterable[Lock] = ()) -> list[Column]:
    """Return a column for each set of hosts with the same access.

    :param locks: Only hosts behind the same of these are in one column.
    """
    locks_of: dict[str, set[str]] = {}
    for lock in locks:
        for aggregate in lock.aggregates:
            locks_of.setdefault(aggregate.uuid, set()).add(lock.name)
    places: dict[Hashable, list[int]] = {}
    for place, group in enumerate(matrix.groups):
        access = tuple(place in row.closed for row in matrix.rows)
        names = (locks_of.get(uuid, ()) for uuid in group.aggregates)
        places.setdefault(
            (access, frozenset(itertools.chain(*names))), []
        ).append(place)
    columns = (_of_groups(matrix, '', same) for same in places.values())
    return [
        dataclasses.replace(column, name=_naming(column.hosts))
        for column in columns
    ]


def named(
    columns: Iterable[Column], preferences: Iterable[Column]
) -> list[Column]:
    """Rename columns with too many hosts to list.

    :param preferences: Columns whose names may be used. The first one with
        exactly the same hosts is used.
    """
    names: dict[tuple[str, ...], str] = {}
    for column in preferences:
        names.setdefault(column.hosts, column.name)
    return [_named(column, names) for column in columns]


def _named(column: Column, names: Mapping[tuple[str, ...], str]) -> Column:
    hosts = len(column.hosts)
    name = names.get(column.hosts)
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
    place_of = {
        host: place
        for place, group in enumerate(matrix.groups)
        for host in group.hosts
    }
    columns = []
    for aggregate in aggregates:
        hosts = sorted(
            host
            for service in aggregate.hosts
            for host in matrix.services.get(service, ())
        )
        places = sorted({place_of[host] for host in hosts})
        columns.append(Column(aggregate.name, tuple(hosts), tuple(places)))
    return columns


def by_lock(matrix: Matrix, locks: Iterable[Lock]) -> list[Column]:
    """Return a column for each lock, and one for hosts without any.

    :param locks: The locks that the matrix was computed with.
    """
    places: dict[str, list[int]] = {}
    for place, group in enumerate(matrix.groups):
        for uuid in group.aggregates:
            places.setdefault(uuid, []).append(place)
    columns = []
    for lock in locks:
        some = {p for a in lock.aggregates for p in places.get(a.uuid, ())}
        columns.append(_of_groups(matrix, lock.name, sorted(some)))
    locked = {place for column in columns for place in column.groups}
    rest = [p for p in range(len(matrix.groups)) if p not in locked]
    return [*columns, _of_groups(matrix, UNLOCKED, rest)] if rest else columns


def access(row: Row, column: Column) -> Access:
    """Return whether a request may use all hosts of a column, some or none.

    A column without hosts counts as none.
    """
    may = [place not in row.closed for place in column.groups]
    if not any(may):
        return Access.NO
    return Access.YES if all(may) else Access.SOME


def reasons(
    cells: Iterable[Iterable[Objection]],
) -> Mapping[Objection, list[int]]:
    """Return the indexes of the groups that each objection excludes.

    :param cells: The objections for each group.
    """
    places: dict[Objection, list[int]] = {}
    for place, objections in enumerate(cells):
        for objection in objections:
            places.setdefault(objection, []).append(place)
    return places


def _of_groups(matrix: Matrix, name: str, places: Sequence[int]) -> Column:
    hosts = sorted(h for p in places for h in matrix.groups[p].hosts)
    return Column(name, tuple(hosts), tuple(places))
