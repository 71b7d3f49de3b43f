# SPDX-License-Identifier: Apache-2.0
"""The plots of the documentation have text descriptions."""

import pathlib
import runpy
from xml.etree import ElementTree as ET

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PLOT = runpy.run_path(str(ROOT / 'tools' / 'plot.py'))
SVG = '{http://www.w3.org/2000/svg}'


@pytest.mark.parametrize('plot', PLOT['plots'](), ids=lambda plot: plot.name)
def test_an_image_has_a_text_alternative(plot):
    root = ET.fromstring(PLOT['draw'](plot))
    assert root.findtext(f'{SVG}title') == plot.title
    message = root.findtext(f'{SVG}desc')
    labels = [text.text for text in root.iter(f'{SVG}text')]
    for line in plot.lines:
        assert line.label in message
        assert line.label in labels
