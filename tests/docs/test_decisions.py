# SPDX-License-Identifier: Apache-2.0
"""The decision records are complete and name what there is."""

import datetime
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / 'doc' / 'source' / 'contributor' / 'decisions'
RECORDS = sorted(FOLDER.glob('0*.rst'))
HEADINGS = (
    'Context', 'Decision', 'Consequences', 'Alternatives', 'In the code',
)  # fmt: skip
_HEADING = re.compile(r'^(\S.*)\n(=+)$', re.MULTILINE)

each = pytest.mark.parametrize('record', RECORDS, ids=lambda path: path.stem)


def sections(record):
    """Return the text below each heading of a record."""
    _, title, _, _, *rest = _HEADING.split(record.read_text('utf-8'))
    return title, dict(zip(rest[::3], rest[2::3], strict=True))


def test_records_are_numbered_without_a_gap():
    numbers = [int(path.stem.partition('-')[0]) for path in RECORDS]
    assert numbers == list(range(1, len(RECORDS) + 1))
    assert len(RECORDS) >= 12


@each
def test_a_record_has_all_sections_and_its_number(record):
    title, told = sections(record)
    assert title.startswith(f'{int(record.stem.partition("-")[0])}. ')
    assert tuple(told) == HEADINGS
    assert all(text.strip() for text in told.values())


@each
def test_a_record_has_a_status_and_a_date(record):
    status, date = re.search(
        r'^:Status: (.+)\n:Date: (.+)\n\nContext$',
        record.read_text('utf-8'),
        re.MULTILINE,
    ).groups()
    assert re.fullmatch(r'accepted|superseded by \d+', status)
    datetime.date.fromisoformat(date)


def test_every_record_is_in_one_group():
    index = (FOLDER / 'index.rst').read_text('utf-8')
    listed = re.findall(r'^   (0\d{3}-.+)$', index, re.MULTILINE)
    assert sorted(listed) == [path.stem for path in RECORDS]


@each
def test_a_record_fits_on_a_page(record):
    assert len(record.read_text('utf-8').splitlines()) <= 68


@each
def test_files_named_in_a_record_exist(record):
    _, told = sections(record)
    text = record.read_text('utf-8')
    paths = set(re.findall(r'``(\w[\w./-]*\.\w+)``', text))
    paths = {path for path in paths if '/' in path}
    assert [path for path in paths if not (ROOT / path).is_file()] == []
    named = re.findall(r'``(.+?)``', told['In the code'])
    assert set(named) <= paths
    assert any(re.search(r'(^|/)isolate_aggregates', path) for path in named)


@each
def test_options_and_classes_named_in_a_record_exist(record):
    words = set(re.findall(r'``(\w+)``', record.read_text('utf-8')))
    source = '\n'.join(
        path.read_text('utf-8')
        for folder in (
            'isolate_aggregates',
            'isolate-aggregates-tools/isolate_aggregates_tools',
            'isolate-aggregates-reservations/isolate_aggregates_reservations',
            'doc/source/admin',
        )
        for path in (ROOT / folder).rglob('*')
        if path.suffix in ('.py', '.rst')
    )
    assert [word for word in words if word not in source] == []
