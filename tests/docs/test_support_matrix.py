# SPDX-License-Identifier: Apache-2.0
"""Reports on tests become the support matrix."""

import csv
import datetime
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
        for number, (cases, counts) in enumerate(reports):
            every = {'failures': 0, 'errors': 0, 'skipped': 0} | counts
            told = ' '.join(f'{name}="{n}"' for name, n in every.items())
            lines = ''.join(
                f'<testcase classname="{case}" name="test"/>' for case in cases
            )
            (folder / f'{number}.xml').write_text(
                f'<testsuites><testsuite tests="{len(cases)}" {told} '
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
            {'failures': 1, 'errors': 1, 'skipped': 1},
        ),
        (['tests.nova.test_query.TestCase'], {}),
    )
    every = len(list((ROOT / 'tests' / 'nova').glob('test_*.py')))
    assert row['Tests'] == 'tests/nova'
    assert row['Files'] == f'2 of {every}'
    assert (row['Passed'], row['Failed'], row['Skipped']) == ('3', '2', '1')
    assert row['Date'] == '2026-11-21'


def test_a_run_replaces_only_its_older_results(add):
    add((['tests.nova_functional.test_sync'], {}))
    for failures in (1, 0):
        rows = add((['tests.nova.test_query'], {'failures': failures}))
    assert [(row['Tests'], row['Failed']) for row in rows] == [
        ('tests/nova', '0'),
        ('tests/nova_functional', '0'),
    ]


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
