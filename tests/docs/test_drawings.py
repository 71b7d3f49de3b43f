# SPDX-License-Identifier: Apache-2.0
"""Drawings are up to date, and have text descriptions."""

import runpy
import sys
from xml.etree import ElementTree as ET

import pages
import pytest

IMAGES = pages.ROOT / 'doc' / 'source' / 'images'
SVG = '{http://www.w3.org/2000/svg}'


@pytest.fixture
def drawings(monkeypatch, tmp_path):
    """What draws, with a single image."""
    monkeypatch.setattr(sys, 'path', list(sys.path))
    found = runpy.run_path(str(pages.ROOT / 'tools' / 'drawings.py'))
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


@pytest.mark.parametrize('name', ['request', 'wings'])
def test_an_image_describes_in_words_what_it_shows(name):
    root = ET.parse(IMAGES / f'{name}.svg').getroot()
    description = root.findtext(f'{SVG}desc')
    labels = [
        word
        for label in root.iter(f'{SVG}text')
        if label.get('class') is None
        for word in label.text.split()
    ]
    assert labels
    assert [word for word in labels if word not in description] == []


def test_the_picture_of_the_wings_has_every_part_of_the_package():
    root = ET.parse(IMAGES / 'wings.svg').getroot()
    labels = {
        word
        for label in root.iter(f'{SVG}text')
        for word in label.text.split()
    }
    tools = pages.ROOT / 'isolate-aggregates-tools/isolate_aggregates_tools'
    parts = [
        path.stem
        for folder in (pages.ROOT / 'isolate_aggregates', tools)
        for path in folder.glob('[a-z]*')
        if path.suffix == '.py' or (path / '__init__.py').exists()
    ]
    assert len(parts) > 20
    helpers = {
        'testing', 'api_client', 'comparison', 'derived', 'documents',
        'domains', 'errors', 'files', 'filter_keys', 'filter_sets', 'identity',
        'locking_traits', 'marks', 'nova_candidates', 'options',
        'placement_rows', 'programs', 'ranges', 'reservation_review',
        'server_images', 'shell', 'suggestions', 'upgrade_check', 'wording',
    }  # fmt: skip
    assert set(parts) - labels - helpers == set()
