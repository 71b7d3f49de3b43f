# SPDX-License-Identifier: Apache-2.0
"""``make linkcheck`` finds the links that lead nowhere, and no others."""

import pathlib
import runpy

from cases import cases

ROOT = pathlib.Path(__file__).parents[2]
LINKS = runpy.run_path(str(ROOT / 'tools' / 'links.py'))


@cases(
    ('target', 'wrong'),
    {
        'a page': ('other.html', None),
        'an anchor': ('other.html#there', None),
        'an anchor of the page itself': ('#here', None),
        'another site': ('https://example.com/#x', None),
        'no page': ('gone.html', 'there is no such file'),
        'a directory': ('sub/', 'there is no such file'),
        'no anchor': ('other.html#gone', 'the page has no such anchor'),
    },
)
def test_broken_links_are_found(target, wrong, tmp_path):
    (tmp_path / 'sub').mkdir()
    (tmp_path / 'other.html').write_text('<h1 id="there">Other</h1>')
    (tmp_path / 'index.html').write_text(
        f'<a name="here" href="{target}">a link</a>'
    )
    results = list(LINKS['faults'](tmp_path))
    assert results == ([f'index.html: {target}: {wrong}'] if wrong else [])
