# SPDX-License-Identifier: Apache-2.0
"""Lays out a graph whose arrows all point downwards, in rows.

The classic steps for such graphs (K. Sugiyama, S. Tagawa, M. Toda: "Methods
for Visual Understanding of Hierarchical System Structures", 1981): an arrow
that passes a row gets a place in it, the places of each row are put in the
order with the fewest crossings that a number of sweeps finds, and then moved
towards what they are connected with. The same graph always gives the same
layout.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import itertools

SWEEPS = 60
# The gap between two places of a row.
GAP = 18.0
# The width of the place of a passing arrow.
PASSING = 6.0

# A box by its name, or an arrow that passes a row.
Place = str | tuple[str, str, int]
Rows = list[list[Place]]


class Layout:
    """The positions of boxes, and the path of each arrow.

    :param rows: The names of the boxes in each row, from top to bottom.
    :param arrows: Pairs of boxes, the second in a lower row.
    :param width_of: Returns the width of a box.
    """

    def __init__(
        self,
        rows: Sequence[Sequence[str]],
        arrows: Iterable[tuple[str, str]],
        width_of: Callable[[str], float],
    ) -> None:
        self._width_of = width_of
        self._row_of = {
            name: number for number, row in enumerate(rows) for name in row
        }
        self.rows: Rows = [list(row) for row in rows]
        self.ways = {arrow: self._way(arrow) for arrow in sorted(arrows)}
        self._above: dict[Place, list[Place]] = {}
        self._below: dict[Place, list[Place]] = {}
        for way in self.ways.values():
            for upper, lower in itertools.pairwise(way):
                self._below.setdefault(upper, []).append(lower)
                self._above.setdefault(lower, []).append(upper)
        self.rows = self._ordered()
        self.x = self._placed()

    @property
    def width(self) -> float:
        """The total width; the leftmost box begins at 0."""
        return max(
            self.x[place] + self.width_of(place) / 2
            for row in self.rows
            for place in row
        )

    def width_of(self, place: Place) -> float:
        """Return the width of a place."""
        return PASSING if isinstance(place, tuple) else self._width_of(place)

    def _way(self, arrow: tuple[str, str]) -> list[Place]:
        """Return the places of an arrow, and add those on its way."""
        start, end = arrow
        passed: list[Place] = []
        for number in range(self._row_of[start] + 1, self._row_of[end]):
            place = (start, end, number)
            self.rows[number].append(place)
            passed.append(place)
        return [start, *passed, end]

    def _ordered(self) -> Rows:
        """Return the rows in the best order that was found."""
        rows = [list(row) for row in self.rows]
        best, fewest = rows, self._crossings(rows)
        for sweep in range(SWEEPS):
            rows = [list(row) for row in rows]
            down = sweep % 2 == 0
            neighbours = self._above if down else self._below
            numbers = range(len(rows)) if down else range(len(rows))[::-1]
            for number in numbers:
                at = _centres(rows)
                rows[number].sort(
                    key=lambda place: _mean(
                        [at[other] for other in neighbours.get(place, ())],
                        at[place],
                    )
                )
            crossings = self._crossings(rows)
            if crossings < fewest:
                best, fewest = rows, crossings
        return best

    def _crossings(self, rows: Rows) -> int:
        """Count the crossings of arrows between adjacent rows."""
        found = 0
        for upper, lower in itertools.pairwise(rows):
            at = {place: number for number, place in enumerate(lower)}
            ends = [
                (number, at[below])
                for number, place in enumerate(upper)
                for below in self._below.get(place, ())
            ]
            found += sum(
                (a - c) * (b - d) < 0
                for (a, b), (c, d) in itertools.combinations(ends, 2)
            )
        return found

    def _placed(self) -> Mapping[Place, float]:
        """Return the horizontal centre of each place."""
        x: dict[Place, float] = {}
        for row in self.rows:
            for place in row:
                x[place] = 0.0
            self._spread(row, x)
        for sweep in range(SWEEPS):
            rows = self.rows if sweep % 2 == 0 else self.rows[::-1]
            for row in rows:
                for place in row:
                    near = [
                        *self._above.get(place, ()),
                        *self._below.get(place, ()),
                    ]
                    x[place] = _mean([x[other] for other in near], x[place])
                self._spread(row, x)
        left = min(x[p] - self.width_of(p) / 2 for r in self.rows for p in r)
        return {place: middle - left for place, middle in x.items()}

    def _spread(self, row: Sequence[Place], x: dict[Place, float]) -> None:
        """Move places of a row minimally, so that they do not overlap."""
        groups: list[tuple[list[Place], float]] = []
        for place in row:
            group, middle = [place], x[place]
            while groups:
                width = self._length(groups[-1][0]) / 2
                if groups[-1][1] + width + GAP <= (
                    middle - self._length(group) / 2
                ):
                    break
                before, where = groups.pop()
                share = len(before) / (len(before) + len(group))
                middle = where * share + middle * (1 - share)
                group = [*before, *group]
            groups.append((group, middle))
        for group, middle in groups:
            edge = middle - self._length(group) / 2
            for place in group:
                x[place] = edge + self.width_of(place) / 2
                edge += self.width_of(place) + GAP

    def _length(self, group: Sequence[Place]) -> float:
        widths = sum(map(self.width_of, group))
        return widths + GAP * (len(group) - 1)


def _centres(rows: Rows) -> dict[Place, float]:
    """Return the relative position of each place in its row, from 0 to 1."""
    return {
        place: (number + 0.5) / len(row)
        for row in rows
        for number, place in enumerate(row)
    }


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
