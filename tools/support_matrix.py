# SPDX-License-Identifier: Apache-2.0
"""Adds the results of test runs to the support matrix.

Run it with the Python that ran the tests, and with the reports of
``pytest --junitxml``::

    python tools/support_matrix.py nova.xml nova_functional.xml

A run replaces an older one with the same versions. With ``--check`` nothing is
written; missing columns and releases of Nova that tox runs are reported.
"""

from collections.abc import Iterable, Iterator, Sequence
import configparser
import csv
from importlib import metadata
import pathlib
import platform
import re
import sys
import tomllib
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).parents[1]
MATRIX = ROOT / 'doc' / 'source' / 'reference' / 'support-matrix.csv'

PACKAGES = {
    'Nova': 'nova',
    'Placement': 'openstack-placement',
    'OpenStackClient': 'python-openstackclient',
    'oslo.config': 'oslo.config',
    'oslo.db': 'oslo.db',
    'SQLAlchemy': 'SQLAlchemy',
    'stevedore': 'stevedore',
}
# These columns identify a row.
KEY = ('Nova', 'Placement', 'Python', 'Tests')
RESULT = ('Files', 'Passed', 'Failed', 'Skipped', 'Date')
COLUMNS = (*KEY, *RESULT, *(name for name in PACKAGES if name not in KEY))

Row = dict[str, str]


def versions() -> Row:
    """Return the installed versions."""
    found = {'Python': '.'.join(platform.python_version_tuple()[:2])}
    for name, package in PACKAGES.items():
        try:
            found[name] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[name] = ''
    return found


def result(reports: Iterable[ElementTree.Element]) -> Row:
    """Return the result of the reports for one directory.

    :param reports: The documents that ``pytest --junitxml`` has written.
    """
    counts = dict.fromkeys(('tests', 'failures', 'errors', 'skipped'), 0)
    files, dates = set(), []
    for report in reports:
        for suite in report.iter('testsuite'):
            dates.append(suite.attrib['timestamp'][:10])
            for name in counts:
                counts[name] += int(suite.attrib[name])
        for case in report.iter('testcase'):
            files.add(_file(case.attrib['classname']))
    [directory] = {path.parent for path in files}
    every = len(list((ROOT / directory).glob('test_*.py')))
    failed = counts['failures'] + counts['errors']
    return {
        'Tests': str(directory),
        'Files': f'{len(files)} of {every}',
        'Passed': str(counts['tests'] - failed - counts['skipped']),
        'Failed': str(failed),
        'Skipped': str(counts['skipped']),
        'Date': max(dates),
    }


def _file(classname: str) -> pathlib.PurePosixPath:
    """Return the file of a test, which may be in a class or not."""
    parts = classname.split('.')
    while not parts[-1].startswith('test_'):
        parts.pop()
    return pathlib.PurePosixPath(*parts)


def merge(rows: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Return the sorted rows, with old ones replaced by new ones."""
    merged = {tuple(row[name] for name in KEY): row for row in [*rows, *new]}
    return [merged[key] for key in sorted(merged)]


def read(path: pathlib.Path) -> list[Row]:
    """Return the rows of a matrix; none if there is no such file."""
    if not path.exists():
        return []
    with path.open(encoding='utf-8', newline='') as file:
        return list(csv.DictReader(file))


def releases() -> set[str]:
    """Return the releases of Nova that tox has an environment for."""
    parser = configparser.ConfigParser()
    with (ROOT / 'pyproject.toml').open('rb') as stream:
        tox = tomllib.load(stream)['tool']['tox']
    parser.read_string(tox['legacy_tox_ini'])
    [found] = [
        match[1].split(',')
        for section in parser.sections()
        if (match := re.fullmatch(r'testenv:nova\{(.+)\}', section))
    ]
    return set(found)


def faults(matrix: pathlib.Path) -> Iterator[str]:
    """Yield a sentence for each missing part of a matrix."""
    rows = read(matrix)
    for name in COLUMNS:
        if any(name not in row for row in rows):
            yield f'There is no column {name}.'
    known = {row['Nova'].partition('.')[0] for row in rows if 'Nova' in row}
    for release in sorted(releases() - known):
        yield f'There is no row for Nova {release}; run tox -e nova{release}.'


def main(arguments: Sequence[str], matrix: pathlib.Path = MATRIX) -> int:
    """Add the reports of one environment to the matrix, or check it."""
    if list(arguments) == ['--check']:
        results = list(faults(matrix))
        for fault in results:
            print(f'{matrix.name}: {fault}')
        return 1 if results else 0
    by_directory: dict[pathlib.PurePosixPath, list[ElementTree.Element]] = {}
    for name in arguments:
        # Trusted input: written by tests that ran here.
        report = ElementTree.parse(name).getroot()  # noqa: S314
        cases = report.iter('testcase')
        directory = _file(next(cases).attrib['classname']).parent
        by_directory.setdefault(directory, []).append(report)
    new = [versions() | result(results) for results in by_directory.values()]
    rows = merge(read(matrix), new)
    with matrix.open('w', encoding='utf-8', newline='') as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator='\n')
        writer.writeheader()
        writer.writerows(rows)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
