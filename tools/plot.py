# SPDX-License-Identifier: Apache-2.0
"""Draws plots of the benchmark results for the documentation.

    python tools/plot.py

Reads their results and writes ``doc/source/images``: cost and length
against the number of aggregates, both axes logarithmic, so that a straight
line is a power and a flat one a constant. Needs nothing but Python.
"""

from collections.abc import Iterator, Sequence
import csv
import dataclasses
import math
import pathlib
from xml.etree import ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / 'tools' / 'benchmarks' / 'results'
IMAGES = ROOT / 'doc' / 'source' / 'images'

DATABASES = {
    'sqlite': 'SQLite',
    'mariadb': 'MariaDB',
    'postgresql': 'PostgreSQL',
}

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 84, 190, 24, 56
# Lines differ in labels and marks too, not only in colour.
LOOKS = (
    ('#b3261e', 'square'),
    ('#1f5fa8', 'circle'),
    ('#1b7a3d', 'diamond'),
)
INK, GRID = '#333333', '#dddddd'
# Labels of lines that end closer than this would overlap.
LABEL = 17

Point = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a plot.

    :param label: Its label.
    :param points: Pairs of number of aggregates and amount.
    """

    label: str
    points: Sequence[Point]


@dataclasses.dataclass(frozen=True)
class Plot:
    """One image.

    :param name: The name of the file, without the extension.
    :param title: A short title.
    :param unit: The unit of the vertical axis.
    :param lines: The lines.
    :param limits: Limits by name, drawn as dashed lines.
    """

    name: str
    title: str
    unit: str
    lines: Sequence[Line]
    limits: Sequence[tuple[str, float]] = ()

    @property
    def description(self) -> str:
        """The figures as text, for readers who cannot see the plot."""
        said = '; '.join(
            f'{line.label}: '
            + ', '.join(f'{shown(y)} at {x:,.0f}' for x, y in line.points)
            for line in self.lines
        )
        limits = ''.join(f' {name}: {at:,.0f}.' for name, at in self.limits)
        unit = self.unit.capitalize()
        return f'{unit} by number of aggregates. {said}.{limits}'


class Drawing:
    """An image in the making.

    :param plot: What to draw.
    """

    def __init__(self, plot: Plot) -> None:
        self._plot = plot
        amounts = [y for line in plot.lines for _, y in line.points]
        numbers = [x for line in plot.lines for x, _ in line.points]
        amounts += [amount for _, amount in plot.limits]
        self._across = math.log10(min(numbers)), math.log10(max(numbers))
        self._up = (
            math.floor(math.log10(min(amounts))),
            math.ceil(math.log10(max(amounts))),
        )
        self.root = ET.Element(
            'svg',
            {
                'xmlns': 'http://www.w3.org/2000/svg',
                'viewBox': f'0 0 {WIDTH} {HEIGHT}',
                'role': 'img',
                'aria-labelledby': 'title description',
                'font-family': 'sans-serif',
                'font-size': '13',
                'fill': INK,
            },
        )
        self._add('title', plot.title, id='title')
        self._add('desc', plot.description, id='description')
        self._add('rect', width=WIDTH, height=HEIGHT, fill='#ffffff')
        self._axes()
        for _, amount in plot.limits:
            self._limit(amount)
        for line, (color, shape) in zip(plot.lines, LOOKS, strict=False):
            self._line(line, color, shape)
        self._labels()

    def _add(
        self, tag: str, text: str | None = None, **attributes: object
    ) -> None:
        named = {
            name.replace('_', '-'): f'{value:.1f}'
            if isinstance(value, float)
            else str(value)
            for name, value in attributes.items()
        }
        ET.SubElement(self.root, tag, named).text = text

    def _x(self, number: float) -> float:
        low, high = self._across
        share = (math.log10(number) - low) / (high - low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def _y(self, amount: float) -> float:
        low, high = self._up
        share = (math.log10(amount) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def _axes(self) -> None:
        for power in range(self._up[0], self._up[1] + 1):
            y = self._y(10**power)
            self._rule(LEFT, y, WIDTH - RIGHT, y)
            label = f'{10**power:,}' if power >= 0 else f'{10**power:g}'
            self._text(label, LEFT - 8, y + 4, 'end')
        numbers = sorted({x for ln in self._plot.lines for x, _ in ln.points})
        for number in numbers:
            x = self._x(number)
            self._rule(x, TOP, x, HEIGHT - BOTTOM)
            self._text(f'{number:,.0f}', x, HEIGHT - BOTTOM + 18, 'middle')
        middle = (LEFT + WIDTH - RIGHT) / 2
        self._text('aggregates', middle, HEIGHT - 14.0, 'middle')
        y = (TOP + HEIGHT - BOTTOM) / 2
        self._add(
            'text',
            self._plot.unit,
            x=0,
            y=0,
            text_anchor='middle',
            transform=f'translate(18 {y:.1f}) rotate(-90)',
        )

    def _rule(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self._add('line', x1=x1, y1=y1, x2=x2, y2=y2, stroke=GRID)

    def _text(
        self, text: str, x: float, y: float, anchor: str, color: str = INK
    ) -> None:
        self._add('text', text, x=x, y=y, text_anchor=anchor, fill=color)

    def _limit(self, amount: float) -> None:
        y = self._y(amount)
        self._add(
            'line',
            x1=LEFT,
            y1=y,
            x2=WIDTH - RIGHT,
            y2=y,
            stroke=INK,
            stroke_dasharray='6 4',
        )

    def _line(self, line: Line, color: str, shape: str) -> None:
        places = [(self._x(x), self._y(y)) for x, y in line.points]
        self._add(
            'polyline',
            points=' '.join(f'{x:.1f},{y:.1f}' for x, y in places),
            fill='none',
            stroke=color,
            stroke_width=2,
        )
        for x, y in places:
            self._mark(x, y, color, shape)

    def _mark(self, x: float, y: float, color: str, shape: str) -> None:
        if shape == 'circle':
            self._add('circle', cx=x, cy=y, r=4, fill=color)
            return
        half = 4.5
        corners = {
            'square': [(-1, -1), (1, -1), (1, 1), (-1, 1)],
            'diamond': [(0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)],
        }[shape]
        self._add(
            'polygon',
            points=' '.join(
                f'{x + half * dx:.1f},{y + half * dy:.1f}'
                for dx, dy in corners
            ),
            fill=color,
        )

    def _labels(self) -> None:
        """Label each line at its end, from top to bottom."""
        ends = [
            (self._y(line.points[-1][1]), line.label, color)
            for line, (color, _) in zip(self._plot.lines, LOOKS, strict=False)
        ]
        ends += [(self._y(at), name, INK) for name, at in self._plot.limits]
        last = 0.0
        for y, label, color in sorted(ends):
            last = max(y, last + LABEL)
            self._text(label, WIDTH - RIGHT + 12.0, last + 4, 'start', color)


def shown(amount: float) -> str:
    """Return an amount with at least two significant digits."""
    return f'{amount:,.0f}' if amount >= 10 else f'{amount:.2g}'


def column(rows: Sequence[dict[str, str]], name: str) -> list[Point]:
    """Return a column against the number of aggregates."""
    return [(float(row['aggregates']), float(row[name])) for row in rows]


def by_filter(rows: Sequence[dict[str, str]]) -> list[Line]:
    """Return the lines of Nova's filter and of ours."""
    return [
        Line("Nova's own filter", column(rows, 'in_tree')),
        Line('ours, always fresh', column(rows, 'fresh')),
        Line('ours, remembered', column(rows, 'cached')),
    ]


def results(name: str) -> list[dict[str, str]]:
    """Return the rows of a result file."""
    with open(RESULTS / f'{name}.csv', encoding='utf-8') as stream:
        return list(csv.DictReader(stream))


def plots() -> Iterator[Plot]:
    """Yield all images."""
    cost = results('filters')
    yield Plot(
        name='filter-cost',
        title='Cost of the request filter per request',
        unit='milliseconds',
        lines=by_filter(cost),
    )
    measured = results('databases')
    for database in sorted({row['database'] for row in measured}):
        rows = [
            row
            for row in measured
            if (row['database'], row['filters']) == (database, 'default')
        ]
        yield Plot(
            name=f'request-{database}',
            title=f'A request on {DATABASES[database]}, by the clock',
            unit='milliseconds',
            lines=by_filter(rows),
        )
    length = [row for row in results('length') if row['keys'] == 'one']
    yield Plot(
        name='query-length',
        title='Length of the query of a server with one key',
        unit='bytes',
        lines=[
            Line('every aggregate', column(length, 'bytes_all')),
            Line('with rollups', column(length, 'bytes_rollups')),
        ],
        limits=[('gunicorn', 4094), ('Apache', 8190)],
    )


def draw(plot: Plot) -> str:
    """Return an image as SVG."""
    root = Drawing(plot).root
    ET.indent(root)
    return f'{ET.tostring(root, encoding="unicode")}\n'


def main() -> None:
    """Draw all images."""
    for plot in plots():
        path = IMAGES / f'{plot.name}.svg'
        path.write_text(draw(plot), 'utf-8')
        print(path.relative_to(ROOT))


if __name__ == '__main__':
    main()
