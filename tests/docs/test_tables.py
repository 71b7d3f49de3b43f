# SPDX-License-Identifier: Apache-2.0
"""The figures of the pages are those that the benchmarks have written."""

import csv
import io
import runpy
import sys

import pages
import pytest

TOOLS = pages.ROOT / 'tools'
FOLDER = pages.SOURCE / 'tables'


@pytest.fixture
def tables(monkeypatch):
    """What makes the tables."""
    monkeypatch.setattr(sys, 'path', [str(TOOLS), *sys.path])
    return runpy.run_path(str(TOOLS / 'tables.py'))


def test_the_tables_show_the_measured_values(tables):
    made = dict(tables['tables']())
    assert made == {path: path.read_text('utf-8') for path in made}
    assert {*made} == {*FOLDER.iterdir()}


def test_each_table_is_on_a_page():
    shown = ''.join(page.read_text('utf-8') for page in pages.PAGES)
    for path in FOLDER.iterdir():
        assert f'../tables/{path.name}\n' in shown


def test_figures_are_formatted_for_reading(tables):
    row = {
        **{'database': 'mariadb', 'aggregates': '5000', 'filters': 'default'},
        **{'in_tree': '1383.4', 'fresh': '6.74', 'cached': '0.4'},
        **{'in_tree_shortest': '913.2', 'database_alone': '3.17'},
        **{'times': '205.3'},
    }
    [_, line] = csv.reader(
        io.StringIO(tables['_written'](tables['CLOCK'], [row]))
    )
    assert line == [
        *('MariaDB', '5,000', 'default'),
        *('1,383', '913', '6.7', '3.2', '0.4', '205x'),
    ]


def test_values_not_measured_are_dashes(tables):
    row = {'in_tree_1': '3.2', 'in_tree_8': '', 'in_tree_32': ''}
    assert tables['threads']('in_tree')(row) == '3.2 / - / -'
