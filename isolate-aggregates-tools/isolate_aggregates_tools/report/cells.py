# SPDX-License-Identifier: Apache-2.0
"""Encodes the matrix for the script of the page."""

from collections.abc import Hashable, Iterable, Sequence
import dataclasses
import itertools
from typing import Any, Generic, TypeVar

from isolate_aggregates.aggregates import Aggregate, Lock
from isolate_aggregates_tools.matrix import columns
from isolate_aggregates_tools.matrix.columns import Column
from isolate_aggregates_tools.matrix.matrix import Matrix, Objection, Row
from isolate_aggregates_tools.report.rooms import Rooms

_T = TypeVar('_T', bound=Hashable)
# The name of the filter, the parts of the cause, and names of aggregates.
_Reason = tuple[str | None, tuple[str, ...], tuple[str, ...]]


def cells(
    matrix: Matrix,
    aggregates: Sequence[Aggregate],
    locks: Iterable[Lock],
    images: Sequence[str | None],
    other_projects: Iterable[Matrix] = (),
    room: Rooms | None = None,
) -> dict[str, Any]:
    """Encode the matrix, with every text only once.

    The rows are each flavor with each image. The page shows those of one image
    at a time.

    A row refers to a line, which many flavors share. A line has the indexes of
    terms, and a term the index of a reason and then the groups of hosts that
    it excludes. The cause of a reason is a list of parts, with the flavor of
    the row between them; its aggregates are the indexes of their columns.
    Columns refer to groups of hosts, and those of aggregates to hosts, by
    their index in all groups, one after the other. The script builds the
    columns for single hosts. Indexes that follow each other are written as
    the first and the last of them, as those of most lines do.

    :param images: The names of the images; None for no image.
    :param other_projects: The same requests of other projects, of which only
        the lines are encoded.
    :param room: How many servers of the requests fit on the hosts.
    """
    reasons: _Numbers[_Reason] = _Numbers()
    shared_lines: _Numbers[tuple[int, ...]] = _Numbers()
    terms: _Numbers[tuple[int, ...]] = _Numbers()

    known_lines: dict[Hashable, int] = {}

    def line(row: Row) -> int:
        likeness = row.likeness
        if likeness not in known_lines:
            known_lines[likeness] = line_of(row)
        return known_lines[likeness]

    def line_of(row: Row) -> int:
        return shared_lines.of(
            _runs(
                terms.of((reasons.of(_reason(row, each)), *_runs(places)))
                for each, places in row.terms
            )
        )

    lines = [line(row) for row in matrix.rows]
    other_projects = tuple(other_projects)
    others = [[line(row) for row in other.rows] for other in other_projects]
    places = {a.name: place for place, a in enumerate(aggregates)}
    hosts = itertools.chain(*(group.hosts for group in matrix.groups))
    numbers = {host: number for number, host in enumerate(hosts)}
    of_aggregates = columns.by_aggregate(matrix, aggregates)
    locks = tuple(locks)
    of_locks = columns.by_lock(matrix, locks)
    of_others = itertools.chain(*(each.rows for each in other_projects))
    everything = dataclasses.replace(matrix, rows=(*matrix.rows, *of_others))
    alike = columns.named(
        columns.alike(everything, locks), [*of_aggregates, *of_locks]
    )
    locked_uuids = {a.uuid for lock in locks for a in lock.aggregates}
    return {
        'groups': [
            {
                'hosts': group.hosts,
                'locked': not locked_uuids.isdisjoint(group.aggregates),
            }
            for group in matrix.groups
        ],
        'reasons': [
            {
                'filter': filter_name,
                'cause': parts,
                'aggregates': [places[name] for name in names],
            }
            for filter_name, parts, names in reasons
        ],
        'terms': list(terms),
        'images': len(images),
        'rows': [
            {
                **_about(row, image),
                'cells': number,
                'room': room and room.rows[place],
            }
            for place, (row, number, image) in enumerate(
                zip(matrix.rows, lines, itertools.cycle(images), strict=False)
            )
        ],
        'room': room and {'kinds': room.kinds, 'lines': room.lines},
        'tries': others,
        'lines': list(shared_lines),
        'columns': {
            'alike': _columns(alike),
            'lock': _columns(of_locks),
            'aggregate': [
                {
                    'name': column.name,
                    'hosts': _runs(numbers[host] for host in column.hosts),
                }
                for column in of_aggregates
            ],
        },
    }


class _Numbers(Generic[_T]):
    """Assigns consecutive numbers to values, in order of first use."""

    def __init__(self) -> None:
        self._numbers: dict[_T, int] = {}

    def __iter__(self) -> Any:
        return iter(self._numbers)

    def of(self, thing: _T) -> int:
        return self._numbers.setdefault(thing, len(self._numbers))


def _runs(numbers: Iterable[int]) -> tuple[int, ...]:
    """Return the first and the last of numbers that follow each other."""
    runs: list[int] = []
    for number in numbers:
        if runs and number == runs[-1] + 1:
            runs[-1] = number
        else:
            runs += (number, number)
    return tuple(runs)


def _reason(row: Row, objection: Objection) -> _Reason:
    parts = tuple(objection.cause.split(row.flavor))
    return objection.filter_name, parts, objection.aggregates


def _about(row: Row, image: str | None) -> dict[str, Any]:
    request = row.request
    keys = {
        'flavor': request.flavor.extra_specs,
        'image': request.image_properties,
    }
    return {
        'flavor': request.flavor.name,
        'image': image,
        'keys': [
            [whose, f'{key}={value}']
            for whose, settings in keys.items()
            for key, value in sorted(settings.items())
        ],
    }


def _columns(columns_: Iterable[Column]) -> list[dict[str, Any]]:
    return [{'name': c.name, 'groups': c.groups} for c in columns_]
