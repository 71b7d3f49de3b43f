# SPDX-License-Identifier: Apache-2.0
"""Adds the results of test runs to the support matrix.

Run it with the Python that ran the tests, and with the folder of their
reports, as ``TESTS_REPORTS`` names it to ``tools/run_tests.py``::

    python tools/support_matrix.py reports

A run replaces an older one of the same release of Nova. With ``--check``
nothing is written; what is missing, failed or stale is reported, for each
release of Nova that tox runs.
"""

from collections.abc import Iterable, Iterator, Sequence
import configparser
import csv
import datetime
from importlib import metadata
import pathlib
import platform
import re
import subprocess
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
RESULT = ('Tests', 'Files', 'Passed', 'Failed', 'Skipped', 'Date')
COLUMNS = ('Nova', 'Placement', 'Python', *RESULT, *list(PACKAGES)[2:])
# Days after which a run says little about the code and about the newest
# releases: Nova's branches have new ones every few weeks.
LIMIT = 30

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


def _key(row: Row) -> tuple[str, ...]:
    return _series(row), row['Python'], row['Tests']


def _series(row: Row) -> str:
    """Return the release of Nova without what came in its branch."""
    return row['Nova'].partition('.')[0]


def merge(rows: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Return the sorted rows, with old ones replaced by new ones."""
    merged = {_key(row): row for row in [*rows, *new]}
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


def faults(rows: Sequence[Row], today: datetime.date) -> Iterator[str]:
    """Yield a sentence for each fault of a matrix."""
    tests = sorted({row['Tests'] for row in rows})
    for release in sorted(releases()):
        again = f'run tox -e nova{release}.'
        own = {row['Tests']: row for row in rows if _series(row) == release}
        if not own:
            yield f'There is no row for Nova {release}; {again}'
            continue
        for name in tests:
            if name not in own:
                yield f'{name} has no row for Nova {release}; {again}'
                continue
            row = own[name]
            if row['Failed'] != '0':
                yield f'{name} fails with Nova {release}: {row["Failed"]}.'
            age = (today - datetime.date.fromisoformat(row['Date'])).days
            if age > LIMIT:
                yield (
                    f'{name} ran {age} days ago with Nova {release}, more '
                    f'than {LIMIT}; {again}'
                )


def date_of_commit() -> datetime.date:
    """Return the date of what is checked out."""
    command = ('git', 'log', '-1', '--format=%cs')
    date = subprocess.check_output(command, cwd=ROOT, text=True)  # noqa: S603
    return datetime.date.fromisoformat(date.strip())


def main(arguments: Sequence[str], matrix: pathlib.Path = MATRIX) -> int:
    """Add the reports of one environment to the matrix, or check it."""
    if list(arguments) == ['--check']:
        results = list(faults(read(matrix), date_of_commit()))
        for fault in results:
            print(f'{matrix.name}: {fault}')
        return 1 if results else 0
    [folder] = arguments
    by_directory: dict[pathlib.PurePosixPath, list[ElementTree.Element]] = {}
    for name in sorted(pathlib.Path(folder).glob('*.xml')):
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
