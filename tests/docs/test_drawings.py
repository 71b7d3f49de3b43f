# SPDX-License-Identifier: Apache-2.0
"""The drawing of a request is made from its text, and says what it shows."""

import runpy
from xml.etree import ElementTree as ET

import pages
import yaml

DRAW = runpy.run_path(str(pages.ROOT / 'doc' / 'draw_request.py'))
SVG = '{http://www.w3.org/2000/svg}'


def test_the_image_is_drawn_from_the_text():
    drawn = DRAW['IMAGE'].read_text('utf-8')
    assert drawn == DRAW['draw'](), 'run "make architecture"'


def test_the_image_says_in_words_what_it_shows():
    root = ET.fromstring(DRAW['draw']())
    source = yaml.safe_load(DRAW['SOURCE'].read_text('utf-8'))
    assert root.findtext(f'{SVG}title') == source['title']
    said = root.findtext(f'{SVG}desc')
    shown = [text.text for text in root.iter(f'{SVG}text')]
    assert len(shown) == 12
    assert all(text in said for text in shown)
