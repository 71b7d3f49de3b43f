# SPDX-License-Identifier: Apache-2.0
"""Adds the results of test runs to the support matrix.

Run it with the Python that ran the tests, and with the folder of their
reports, as ``TESTS_REPORTS`` names it to ``tools/run_tests.py``::

    python tools/support_matrix.py reports

A run replaces an older one of the same releases of Nova and Python. Without
Nova the results go into another file, that of versions of Python. With
``--check`` nothing is written; what is missing, failed or stale is reported,
for each release of Nova that tox runs and each Python that the metadata names.
"""

from collections import Counter
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
REFERENCE = ROOT / 'doc' / 'source' / 'reference'
MATRIX = REFERENCE / 'support-matrix.csv'
# Of the unit tests, which run without Nova.
PYTHONS = REFERENCE / 'pythons.csv'

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
PYTHON_COLUMNS = ('Python', *RESULT)
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


def results(reports: Iterable[ElementTree.Element]) -> list[Row]:
    """Return the result of each directory.

    :param reports: The documents that ``pytest --junitxml`` has written.
    """
    counts: dict[str, Counter[str]] = {}
    files: dict[str, set[pathlib.PurePosixPath]] = {}
    dates: dict[str, str] = {}
    for report in reports:
        date = max(
            s.attrib['timestamp'][:10] for s in report.iter('testsuite')
        )
        for case in report.iter('testcase'):
            file = _file(case.attrib['classname'])
            directory = _directory(file)
            files.setdefault(directory, set()).add(file)
            dates[directory] = max(date, dates.get(directory, date))
            outcomes = {part.tag for part in case}
            counts.setdefault(directory, Counter())[
                'Failed'
                if outcomes & {'failure', 'error'}
                else 'Skipped'
                if 'skipped' in outcomes
                else 'Passed'
            ] += 1
    return [
        {
            'Tests': directory,
            'Files': f'{len(files[directory])} of {len(every)}',
            **{
                outcome: str(counts[directory][outcome])
                for outcome in ('Passed', 'Failed', 'Skipped')
            },
            'Date': dates[directory],
        }
        for directory in files
        for every in [list((ROOT / directory).rglob('test_*.py'))]
    ]


def _directory(file: pathlib.PurePosixPath) -> str:
    """Return the directory of a file below ``tests``."""
    below = file.parts.index('tests')
    return str(pathlib.PurePosixPath(*file.parts[: below + 2]))


def _file(classname: str) -> pathlib.PurePosixPath:
    """Return the file of a test, which may be in a class or not."""
    parts = classname.split('.')
    while not parts[-1].startswith('test_'):
        parts.pop()
    return pathlib.PurePosixPath(*parts)


def _key(row: Row) -> tuple[str, tuple[int, ...], str]:
    python = tuple(map(int, row['Python'].split('.')))
    return _series(row), python, row['Tests']


def _series(row: Row) -> str:
    """Return the release of Nova without what came in its branch."""
    return row.get('Nova', '').partition('.')[0]


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


def declared() -> list[str]:
    """Return the versions of Python that the metadata names."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / 'setup.cfg')
    classifiers = setup['metadata']['classifier']
    return re.findall(r'Python :: (3\.\d+)$', classifiers, re.MULTILINE)


def python_faults(rows: Sequence[Row], today: datetime.date) -> Iterator[str]:
    """Yield a sentence for each Python without a run that says it works."""
    for python in declared():
        again = f'run tox -e py{python.replace(".", "")}-unit.'
        own = [row for row in rows if row['Python'] == python]
        if not own:
            yield f'There is no row for Python {python}; {again}'
        for row in own:
            if row['Failed'] != '0':
                yield f'{row["Tests"]} fails with Python {python}.'
            age = (today - datetime.date.fromisoformat(row['Date'])).days
            if age > LIMIT:
                yield (
                    f'{row["Tests"]} ran {age} days ago with Python {python}, '
                    f'more than {LIMIT}; {again}'
                )


def main(arguments: Sequence[str], matrix: pathlib.Path = MATRIX) -> int:
    """Add the reports of one environment to its file, or check both files."""
    if list(arguments) == ['--check']:
        found = [
            f'{path.name}: {fault}'
            for path, check in ((matrix, faults), (PYTHONS, python_faults))
            for fault in check(read(path), date_of_commit())
        ]
        print(*found, sep='\n')
        return 1 if found else 0
    [folder] = arguments
    installed = versions()
    path, columns = (
        (matrix, COLUMNS) if installed['Nova'] else (PYTHONS, PYTHON_COLUMNS)
    )
    reports = [
        # Trusted input: written by tests that ran here.
        ElementTree.parse(name).getroot()  # noqa: S314
        for name in sorted(pathlib.Path(folder).glob('*.xml'))
    ]
    rows = merge(read(path), [installed | each for each in results(reports)])
    with path.open('w', encoding='utf-8', newline='') as file:
        writer = csv.DictWriter(
            file, columns, extrasaction='ignore', lineterminator='\n'
        )
        writer.writeheader()
        writer.writerows(rows)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
