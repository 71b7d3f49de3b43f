# SPDX-License-Identifier: Apache-2.0
"""Reports on tests become the support matrix."""

import csv
import pathlib
import runpy

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def tool():
    return runpy.run_path(str(ROOT / 'tools' / 'support_matrix.py'))


def report(path, *cases, failures=0, errors=0, skipped=0):
    """Write what pytest reports of some tests."""
    lines = ''.join(
        f'<testcase classname="{case}" name="test"/>' for case in cases
    )
    path.write_text(
        '<testsuites><testsuite name="pytest" '
        f'tests="{len(cases)}" failures="{failures}" errors="{errors}" '
        f'skipped="{skipped}" timestamp="2026-11-21T12:00:00.000000+00:00">'
        f'{lines}</testsuite></testsuites>'
    )
    return str(path)


def rows(path):
    with path.open(newline='') as file:
        return list(csv.DictReader(file))


def test_reports_of_one_directory_are_one_row(tool, tmp_path):
    matrix = tmp_path / 'matrix.csv'
    first = report(
        tmp_path / '1.xml',
        *['tests.nova.test_status'] * 5,
        failures=1,
        errors=1,
        skipped=1,
    )
    second = report(tmp_path / '2.xml', 'tests.nova.test_query.TestCase')
    tool['main']([first, second], matrix)
    [row] = rows(matrix)
    every = len(list((ROOT / 'tests' / 'nova').glob('test_*.py')))
    assert row['Tests'] == 'tests/nova'
    assert row['Files'] == f'2 of {every}'
    assert (row['Passed'], row['Failed'], row['Skipped']) == ('3', '2', '1')
    assert row['Date'] == '2026-11-21'


def test_a_run_replaces_only_its_older_results(tool, tmp_path):
    matrix = tmp_path / 'matrix.csv'
    other = report(tmp_path / '0.xml', 'tests.nova_functional.test_sync')
    tool['main']([other], matrix)
    for failures in (1, 0):
        again = report(
            tmp_path / '1.xml', 'tests.nova.test_query', failures=failures
        )
        tool['main']([again], matrix)
    assert [(row['Tests'], row['Failed']) for row in rows(matrix)] == [
        ('tests/nova', '0'),
        ('tests/nova_functional', '0'),
    ]


def test_the_versions_are_the_installed_ones(tool):
    found = tool['versions']()
    assert found['Python'].startswith('3.')
    assert int(found['Nova'].partition('.')[0]) >= 31


def test_an_outdated_matrix_is_reported(tool, tmp_path, capsys):
    matrix = tmp_path / 'matrix.csv'
    releases = sorted(tool['releases']())
    assert len(releases) > 1
    columns = [name for name in tool['COLUMNS'] if name != 'Placement']
    with matrix.open('w', newline='') as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for release in releases[:-1]:
            writer.writerow(dict.fromkeys(columns) | {'Nova': f'{release}.0'})
    assert tool['main'](['--check'], matrix) == 1
    last = releases[-1]
    assert capsys.readouterr().out.splitlines() == [
        'matrix.csv: There is no column Placement.',
        f'matrix.csv: There is no row for Nova {last}; run tox -e nova{last}.',
    ]


def test_a_matrix_with_all_releases_is_up_to_date(tool, tmp_path):
    matrix = tmp_path / 'matrix.csv'
    with matrix.open('w', newline='') as file:
        writer = csv.DictWriter(file, tool['COLUMNS'])
        writer.writeheader()
        for release in tool['releases']():
            writer.writerow({'Nova': f'{release}.0'})
    assert tool['main'](['--check'], matrix) == 0
