# SPDX-License-Identifier: Apache-2.0
"""The drawing of the architecture matches the imports in the code."""

import itertools
import pathlib
import runpy
from xml.etree import ElementTree as ET

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DRAW = runpy.run_path(str(ROOT / 'doc' / 'draw_architecture.py'))
SVG = '{http://www.w3.org/2000/svg}'


@pytest.fixture(scope='module')
def used():
    """Who imports whom."""
    return DRAW['uses']()


def reached(pairs):
    """Return all that each can reach by some arrows."""
    found = {}
    for start, end in pairs:
        found.setdefault(start, set()).add(end)
    while True:
        longer = {
            start: ends.union(*(found.get(end, ()) for end in ends))
            for start, ends in found.items()
        }
        if longer == found:
            return found
        found = longer


@pytest.mark.parametrize(
    ('name', 'other'),
    [
        pytest.param('filters', 'conf', id='an import more'),
        pytest.param('cloud', 'rest', id='an import fewer'),
    ],
)
def test_a_changed_import_changes_the_image_and_the_list(used, name, other):
    changed = {**used, name: used[name] ^ {other}}
    assert DRAW['draw'](changed) != DRAW['draw'](used)
    assert DRAW['listed'](changed) != DRAW['listed'](used)


def test_imports_are_those_of_the_code(used):
    package = ROOT / 'isolate_aggregates'
    text = (package / 'entry_points.py').read_text('utf-8')
    assert 'isolate_aggregates' not in text
    assert used['entry_points'] == set()
    text = (package / 'conf' / '__init__.py').read_text('utf-8')
    assert 'from isolate_aggregates import exception' in text
    assert used['conf'] == {'exception'}


def test_each_module_is_part_of_the_drawing(used):
    package = ROOT / 'isolate_aggregates'
    modules = {path.stem for path in package.glob('[a-z]*.py')}
    modules |= {path.parent.name for path in package.glob('*/__init__.py')}
    assert set(used) == modules


def test_omitted_arrows_follow_from_drawn_ones(used):
    drawn = DRAW['arrows'](used)
    every = [(name, one) for name, others in used.items() for one in others]
    assert set(drawn) < set(every)
    assert reached(drawn) == reached(every)


def test_all_arrows_point_down(used):
    row_of = {
        name: number
        for number, row in enumerate(DRAW['layers']())
        for name in row
    }
    for start, end in DRAW['arrows'](used):
        assert row_of[start] < row_of[end], (start, end)


def test_no_boxes_overlap(used):
    root = ET.fromstring(DRAW['draw'](used))
    boxes = [
        [float(box.get(side)) for side in ('x', 'y', 'width')]
        for box in root.iter(f'{SVG}rect')
        if box.get('class') == 'box'
    ]
    assert len(boxes) == len(used)
    rows = {}
    for x, y, width in boxes:
        rows.setdefault(y, []).append((x, x + width))
    for row in rows.values():
        row.sort()
        for (_, right), (left, _) in itertools.pairwise(row):
            assert right < left


def test_the_image_has_a_text_alternative(used):
    root = ET.fromstring(DRAW['draw'](used))
    said = root.findtext(f'{SVG}desc')
    assert root.findtext(f'{SVG}title') == DRAW['TITLE']
    assert 'conf uses exception.' in said
    assert all(name in said for name, others in used.items() if others)
