# SPDX-License-Identifier: Apache-2.0
"""Reports on tests become the support matrix."""

import csv
import datetime
import itertools
import pathlib
import runpy

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def tool():
    return runpy.run_path(str(ROOT / 'tools' / 'support_matrix.py'))


@pytest.fixture
def add(tool, tmp_path):
    """Write what pytest reports of tests, and add it to a matrix."""

    def add_reports(*reports):
        folder = tmp_path / 'reports'
        folder.mkdir(exist_ok=True)
        for number, (cases, outcomes) in enumerate(reports):
            children = itertools.chain(outcomes, itertools.repeat(''))
            lines = ''.join(
                f'<testcase classname="{case}" name="test">{child}</testcase>'
                for case, child in zip(cases, children, strict=False)
            )
            (folder / f'{number}.xml').write_text(
                '<testsuites><testsuite '
                'timestamp="2026-11-21T12:00:00.000000+00:00">'
                f'{lines}</testsuite></testsuites>'
            )
        tool['main']([str(folder)], tmp_path / 'matrix.csv')
        with (tmp_path / 'matrix.csv').open(newline='') as file:
            return list(csv.DictReader(file))

    return add_reports


def test_reports_of_one_directory_are_one_row(add):
    [row] = add(
        (
            ['tests.nova.test_status'] * 5,
            ('<failure/>', '<error/>', '<skipped/>'),
        ),
        (['tests.nova.test_query.TestCase'], ()),
    )
    every = len(list((ROOT / 'tests' / 'nova').rglob('test_*.py')))
    assert row['Tests'] == 'tests/nova'
    assert row['Files'] == f'2 of {every}'
    assert (row['Passed'], row['Failed'], row['Skipped']) == ('3', '2', '1')
    assert row['Date'] == '2026-11-21'


def test_a_run_replaces_only_its_older_results(add):
    add((['tests.nova_functional.test_sync'], ()))
    for outcomes in (('<failure/>',), ()):
        rows = add((['tests.nova.test_query'], outcomes))
    assert [(row['Tests'], row['Failed']) for row in rows] == [
        ('tests/nova', '0'),
        ('tests/nova_functional', '0'),
    ]


def test_a_report_of_several_directories_is_a_row_for_each(add):
    rows = add(
        (
            [
                'tests.nova.test_query',
                'isolate-aggregates-tools.tests.unit.changes.test_move',
            ],
            (),
        )
    )
    assert [row['Tests'] for row in rows] == [
        'isolate-aggregates-tools/tests/unit',
        'tests/nova',
    ]


def test_without_nova_the_rows_are_those_of_python(
    add, tool, tmp_path, monkeypatch
):
    installed = {'Nova': '', 'Python': '3.12'}
    functions = tool['main'].__globals__
    monkeypatch.setitem(functions, 'versions', lambda: installed)
    monkeypatch.setitem(functions, 'PYTHONS', tmp_path / 'pythons.csv')
    (tmp_path / 'pythons.csv').write_text('Python,Tests\n3.9,tests/unit\n')
    with pytest.raises(FileNotFoundError):
        add((['tests.unit.test_text'], ()))
    with (tmp_path / 'pythons.csv').open(newline='') as file:
        rows = list(csv.DictReader(file))
    # Not as text, where 3.12 is less than 3.9.
    assert [row['Python'] for row in rows] == ['3.9', '3.12']
    assert rows[1]['Passed'] == '1'


def test_each_python_of_the_metadata_needs_a_run_without_failures(tool):
    first, second, *others = tool['declared']()
    rows = [
        {'Python': python, 'Tests': 'tests/unit', 'Failed': failed}
        | {'Date': '2026-11-21'}
        for python, failed in ((first, '0'), (second, '1'))
    ]
    on = datetime.date.fromisoformat
    assert list(tool['python_faults'](rows, on('2026-11-21'))) == [
        f'tests/unit fails with Python {second}.',
        *(
            f'There is no row for Python {python}; run tox -e '
            f'py{python.replace(".", "")}-unit.'
            for python in others
        ),
    ]
    assert next(tool['python_faults'](rows[:1], on('2026-12-22'))) == (
        f'tests/unit ran 31 days ago with Python {first}, more than 30; run '
        f'tox -e py{first.replace(".", "")}-unit.'
    )


def test_the_versions_are_the_installed_ones(tool):
    found = tool['versions']()
    assert found['Python'].startswith('3.')
    assert int(found['Nova'].partition('.')[0]) >= 31


def test_what_is_missing_failed_or_stale_is_reported(tool):
    first, *others, last = sorted(tool['releases']())
    ran = {'Tests': 'tests/nova', 'Failed': '0', 'Date': '2026-11-21'}
    rows = [ran | {'Nova': f'{each}.1.0'} for each in (first, *others)]
    rows.append(rows[0] | {'Tests': 'tests/nova_functional', 'Failed': '2'})

    def faults(day):
        return list(tool['faults'](rows, datetime.date.fromisoformat(day)))

    missing = [
        f'tests/nova_functional fails with Nova {first}: 2.',
        *(
            f'tests/nova_functional has no row for Nova {each}; '
            f'run tox -e nova{each}.'
            for each in others
        ),
        f'There is no row for Nova {last}; run tox -e nova{last}.',
    ]
    assert faults('2026-12-21') == missing
    stale = faults('2026-12-22')
    assert set(missing) < set(stale)
    assert stale[0] == (
        f'tests/nova ran 31 days ago with Nova {first}, more than 30; '
        f'run tox -e nova{first}.'
    )
    assert len(stale) == len(missing) + len(rows)
