# SPDX-License-Identifier: Apache-2.0
"""Drawings are up to date, and have text descriptions."""

import runpy
import sys
from xml.etree import ElementTree as ET

import pages
import pytest
import yaml

DRAW = runpy.run_path(str(pages.ROOT / 'doc' / 'draw_request.py'))
SVG = '{http://www.w3.org/2000/svg}'


@pytest.fixture
def drawings(monkeypatch, tmp_path):
    """What draws, with a single image."""
    monkeypatch.setattr(sys, 'path', list(sys.path))
    found = runpy.run_path(str(pages.ROOT / 'doc' / 'drawings.py'))
    image = tmp_path / 'image.svg'
    found['main'].__globals__.update(
        ROOT=tmp_path, drawn=lambda: [(image, 'new')]
    )
    return found['main'], image


def test_checking_names_outdated_drawings_without_changing_them(
    drawings, monkeypatch, capsys
):
    main, image = drawings
    image.write_text('old')
    monkeypatch.setattr(sys, 'argv', ['drawings.py', '--check'])
    assert main() == 1
    assert capsys.readouterr().out == (
        'image.svg is out of date; run "make architecture".\n'
    )
    assert image.read_text() == 'old'


def test_outdated_drawings_are_redrawn(drawings, monkeypatch):
    main, image = drawings
    monkeypatch.setattr(sys, 'argv', ['drawings.py'])
    assert main() == 0
    assert image.read_text() == 'new'
    monkeypatch.setattr(sys, 'argv', ['drawings.py', '--check'])
    assert main() == 0


def test_the_image_has_a_text_alternative():
    root = ET.fromstring(DRAW['draw']())
    source = yaml.safe_load(DRAW['SOURCE'].read_text('utf-8'))
    assert root.findtext(f'{SVG}title') == source['title']
    said = root.findtext(f'{SVG}desc')
    shown = [text.text for text in root.iter(f'{SVG}text')]
    assert len(shown) == 12
    assert all(text in said for text in shown)
