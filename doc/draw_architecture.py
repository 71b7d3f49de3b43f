# SPDX-License-Identifier: Apache-2.0
"""Draws the architecture, from the imports in the code.

    python doc/draw_architecture.py

Layers are those of ``.importlinter``, arrows are the imports that grimp finds.
An arrow that follows from two others is left out of the image; the list of
imports beneath it has them all.
"""

from collections.abc import Mapping, Sequence
import configparser
import itertools
import pathlib
import sys
from xml.etree import ElementTree as ET

import grimp

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMAGE = ROOT / 'doc' / 'source' / 'images' / 'architecture.svg'
LIST = ROOT / 'doc' / 'source' / 'contributor' / 'imports.inc'
PACKAGE = 'isolate_aggregates'

sys.path.insert(0, str(ROOT / 'doc'))

from layered import Layout  # noqa: E402

ROW, BOX, MARGIN, CHARACTER = 76, 28, 24, 7.3
TITLE = 'What each part of isolate-aggregates uses'
# Both colour schemes are readable on any background.
STYLE = """
svg { --paper: #ffffff; --ink: #22272e; --box: #eef3f8; --line: #5b7083 }
@media (prefers-color-scheme: dark) {
  svg { --paper: #1c2128; --ink: #e6edf3; --box: #2d3a48; --line: #9fb3c8 }
}
.paper { fill: var(--paper) }
.box { fill: var(--box); stroke: var(--line) }
.arrow { fill: none; stroke: var(--line); stroke-width: 1.2 }
.head { fill: var(--line) }
text { fill: var(--ink); font: 12px monospace; text-anchor: middle }
"""

Uses = Mapping[str, frozenset[str]]


def layers() -> list[list[str]]:
    """Return the names of the parts in each layer, from top to bottom."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / '.importlinter')
    text = parser['importlinter:contract:layers']['layers'].strip()
    return [
        [part.strip().removeprefix(f'{PACKAGE}.') for part in line.split('|')]
        for line in text.splitlines()
    ]


def uses() -> Uses:
    """Return which parts each part imports, by name."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    names = list(itertools.chain.from_iterable(layers()))
    part_of = {}
    for name in names:
        module = f'{PACKAGE}.{name}'
        for one in {module, *graph.find_descendants(module)}:
            part_of[one] = name
    found: dict[str, set[str]] = {name: set() for name in names}
    for module, part in part_of.items():
        imported = graph.find_modules_directly_imported_by(module)
        others = {part_of[one] for one in imported if one in part_of}
        found[part] |= others - {part}
    return {name: frozenset(others) for name, others in found.items()}


def arrows(used: Uses) -> list[tuple[str, str]]:
    """Return the imports between parts, without those that others imply."""
    reached: dict[str, set[str]] = {}
    for name in reversed(list(itertools.chain.from_iterable(layers()))):
        reached[name] = set(used[name])
        for other in used[name]:
            reached[name] |= reached[other]
    return [
        (name, other)
        for name, others in used.items()
        for other in sorted(others)
        if not any(other in reached[third] for third in others)
    ]


def described(used: Uses) -> list[str]:
    """Return a sentence on each part that uses others."""
    return [
        f'{name} uses {", ".join(sorted(others))}.'
        for name, others in used.items()
        if others
    ]


def width_of(name: str) -> float:
    """Return the width of the box of a part."""
    return CHARACTER * len(name) + 20


class Drawing:
    """An image that is being drawn.

    :param used: The imports between parts.
    """

    def __init__(self, used: Uses) -> None:
        rows = layers()
        self._layout = Layout(rows, arrows(used), width_of)
        self._row_of = {
            name: number for number, row in enumerate(rows) for name in row
        }
        width = self._layout.width + 2 * MARGIN
        height = ROW * (len(rows) - 1) + BOX + 2 * MARGIN
        self.root = ET.Element(
            'svg',
            {
                'xmlns': 'http://www.w3.org/2000/svg',
                'viewBox': f'0 0 {width:.0f} {height}',
                'role': 'img',
                'aria-labelledby': 'title description',
            },
        )
        self._add('title', TITLE, id='title')
        self._add('desc', ' '.join(described(used)), id='description')
        self._add('style', STYLE)
        self._add(
            'rect', width='100%', height='100%', rx='8', **{'class': 'paper'}
        )
        for way in self._layout.ways.values():
            self._arrow(way)
        for row in rows:
            for name in row:
                self._box(name)

    def _add(self, tag: str, text: str | None = None, **shape: str) -> None:
        ET.SubElement(self.root, tag, shape).text = text

    def _box(self, name: str) -> None:
        x, y = self._layout.x[name] + MARGIN, self._y(self._row_of[name])
        width = width_of(name)
        self._add(
            'rect',
            x=f'{x - width / 2:.1f}',
            y=f'{y - BOX / 2:.1f}',
            width=f'{width:.1f}',
            height=f'{BOX}',
            rx='4',
            **{'class': 'box'},
        )
        self._add('text', name, x=f'{x:.1f}', y=f'{y + 4:.1f}')

    def _arrow(self, way: Sequence[object]) -> None:
        first = self._row_of[str(way[0])]
        points = [
            (self._layout.x[place] + MARGIN, self._y(first + number))
            for number, place in enumerate(way)
        ]
        x, y = points[0]
        path = [f'M{x:.1f},{y + BOX / 2:.1f}']
        for number, (x2, y2) in enumerate(points[1:], 2):
            start = y + BOX / 2
            end = y2 - BOX / 2 - (5 if number == len(points) else 0)
            half = (start + end) / 2
            path.append(
                f'C{x:.1f},{half:.1f} {x2:.1f},{half:.1f} {x2:.1f},{end:.1f}'
            )
            if number < len(points):
                path.append(f'V{y2 + BOX / 2:.1f}')
            x, y = x2, y2
        self._add('path', d=' '.join(path), **{'class': 'arrow'})
        tip = y - BOX / 2
        self._add(
            'path',
            d=f'M{x - 4:.1f},{tip - 7:.1f} h8 l-4,7 z',
            **{'class': 'head'},
        )

    def _y(self, row: int) -> float:
        return MARGIN + BOX / 2 + ROW * row


def draw(used: Uses) -> str:
    """Return the image as SVG."""
    root = Drawing(used).root
    ET.indent(root)
    return f'{ET.tostring(root, encoding="unicode")}\n'


def listed(used: Uses) -> str:
    """Return all imports as text for the page."""
    lines = ['.. Written by doc/draw_architecture.py', '']
    for name, others in used.items():
        names = ', '.join(f'``{other}``' for other in sorted(others))
        lines += [f'``{name}``', f'  {names or "nothing"}', '']
    return '\n'.join(lines)


def main() -> None:
    """Write image and list."""
    used = uses()
    IMAGE.write_text(draw(used), 'utf-8')
    LIST.write_text(listed(used), 'utf-8')
    for path in (IMAGE, LIST):
        print(path.relative_to(ROOT))


if __name__ == '__main__':
    main()
