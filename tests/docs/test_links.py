# SPDX-License-Identifier: Apache-2.0
"""``make linkcheck`` finds the links that lead nowhere, and no others."""

import pathlib
import runpy

import pytest

ROOT = pathlib.Path(__file__).parents[2]
LINKS = runpy.run_path(str(ROOT / 'tools' / 'links.py'))


@pytest.mark.parametrize(
    ('target', 'wrong'),
    [
        pytest.param('other.html', None, id='a page'),
        pytest.param('other.html#there', None, id='an anchor'),
        pytest.param('#here', None, id='an anchor of the page itself'),
        pytest.param('https://example.com/#x', None, id='another site'),
        pytest.param('gone.html', 'there is no such file', id='no page'),
        pytest.param('sub/', 'there is no such file', id='a directory'),
        pytest.param(
            'other.html#gone', 'the page has no such anchor', id='no anchor'
        ),
    ],
)
def test_broken_links_are_found(target, wrong, tmp_path):
    (tmp_path / 'sub').mkdir()
    (tmp_path / 'other.html').write_text('<h1 id="there">Other</h1>')
    (tmp_path / 'index.html').write_text(
        f'<a name="here" href="{target}">a link</a>'
    )
    results = list(LINKS['faults'](tmp_path))
    assert results == ([f'index.html: {target}: {wrong}'] if wrong else [])
