# SPDX-License-Identifier: Apache-2.0
"""Draws the path of a request, from ``images/request.yaml``.

    python doc/draw_request.py

The image has light colours, or dark ones where the reader's system has them,
and says in words what it shows.
"""

import pathlib
from typing import Any
from xml.etree import ElementTree as ET

import yaml

IMAGES = pathlib.Path(__file__).resolve().parent / 'source' / 'images'
SOURCE = IMAGES / 'request.yaml'
IMAGE = IMAGES / 'request.svg'

MARGIN, BOX, STEP = 16, 54, 84
MAIN, BESIDE, BETWEEN = 400, 240, 64
STYLE = """
svg { --paper: #ffffff; --ink: #22272e; --box: #eef3f8; --line: #5b7083 }
@media (prefers-color-scheme: dark) {
  svg { --paper: #1c2128; --ink: #e6edf3; --box: #2d3a48; --line: #9fb3c8 }
}
.paper { fill: var(--paper) }
.box { fill: var(--box); stroke: var(--line) }
.arrow { stroke: var(--line); stroke-width: 1.6 }
.head { fill: var(--line) }
text { fill: var(--ink); font: 13px sans-serif; text-anchor: middle }
.name { font-weight: bold; font-size: 15px }
"""

Step = dict[str, Any]


def described(steps: list[Step]) -> str:
    """Return a text description of the image."""
    said = []
    for step in steps:
        other = step.get('uses')
        uses = f', from {other["name"]}: {other["says"]}' if other else ''
        said.append(f'{step["name"]}: {step["says"]}{uses}')
    return f'From top to bottom. {"; ".join(said)}.'


class Drawing:
    """An image that is being drawn.

    :param title: Its title.
    :param steps: The steps, from top to bottom.
    """

    def __init__(self, title: str, steps: list[Step]) -> None:
        width = MAIN + BETWEEN + BESIDE + 2 * MARGIN
        height = STEP * (len(steps) - 1) + BOX + 2 * MARGIN
        self.root = ET.Element(
            'svg',
            {
                'xmlns': 'http://www.w3.org/2000/svg',
                'width': str(width),
                'height': str(height),
                'viewBox': f'0 0 {width} {height}',
                'role': 'img',
                'aria-labelledby': 'title description',
            },
        )
        self._add('title', title, id='title')
        self._add('desc', described(steps), id='description')
        self._add('style', STYLE)
        self._add('rect', width=width, height=height, **{'class': 'paper'})
        middle = MARGIN + MAIN // 2
        for number, step in enumerate(steps):
            top = MARGIN + STEP * number
            if number:
                self._down(middle, top - (STEP - BOX), top)
            self._box(step, MARGIN, top, MAIN)
            if 'uses' in step:
                left = MARGIN + MAIN + BETWEEN
                self._box(step['uses'], left, top, BESIDE)
                self._left(left, MARGIN + MAIN, top + BOX // 2)

    def _add(
        self, tag: str, text: str | None = None, **attributes: object
    ) -> None:
        named = {name: str(value) for name, value in attributes.items()}
        ET.SubElement(self.root, tag, named).text = text

    def _box(self, step: Step, left: int, top: int, width: int) -> None:
        self._add(
            'rect', x=left, y=top, width=width, height=BOX, rx=6,
            **{'class': 'box'},
        )  # fmt: skip
        middle = left + width // 2
        self._add(
            'text', step['name'], x=middle, y=top + 22, **{'class': 'name'}
        )
        self._add('text', step['says'], x=middle, y=top + 42)

    def _down(self, x: int, start: int, end: int) -> None:
        self._add(
            'line', x1=x, y1=start, x2=x, y2=end - 8, **{'class': 'arrow'}
        )
        points = f'{x - 5},{end - 9} {x + 5},{end - 9} {x},{end}'
        self._add('polygon', points=points, **{'class': 'head'})

    def _left(self, start: int, end: int, y: int) -> None:
        self._add(
            'line', x1=start, y1=y, x2=end + 8, y2=y, **{'class': 'arrow'}
        )
        points = f'{end + 9},{y - 5} {end + 9},{y + 5} {end},{y}'
        self._add('polygon', points=points, **{'class': 'head'})


def draw() -> str:
    """Return the image as SVG."""
    source = yaml.safe_load(SOURCE.read_text('utf-8'))
    root = Drawing(source['title'], source['steps']).root
    ET.indent(root)
    return f'{ET.tostring(root, encoding="unicode")}\n'


if __name__ == '__main__':
    IMAGE.write_text(draw(), 'utf-8')
