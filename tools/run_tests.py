# SPDX-License-Identifier: Apache-2.0
"""Runs the tests part by part, each part in a separate process.

make, tox and ``.ci/run`` call it; what they run is listed only here. Nova,
Blazar, Chromium and Nova's database each need a separate process. With
``ENVIRONMENTS=.venv`` the tests of a distribution run in ``.venv-plugin``,
``.venv-tools`` and ``.venv-reservations``::

    python tools/run_tests.py library nova:smoke -- -k reservation

``nova:smoke`` is what is marked as smoke in that part, ``nova:rest`` is
everything else; ``library:slow`` is what is marked as slow, ``library:quick``
is everything else; ``nova:quick-rest`` is what is marked as neither. A name of
``SETS`` stands for several of these. What follows ``--`` goes to pytest in
each part. A path below ``tests`` runs in the part that it belongs to.

A part without any test has failed. One whose tests are all skipped, for
example because there is no Chromium, is named as left out. It has failed, too,
if ``WITHOUT`` is set, which says what may be left out, and may be empty::

    make test WITHOUT=browser

Only if the arguments select tests may a part have none, but not all parts.

With ``TESTS_RECORD`` a line for each test is added to that file: ``ran``, or
``skipped`` and why. With ``TESTS_REPORTS`` what ``pytest --junitxml`` writes
of each part is kept in that folder.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
import dataclasses
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The exit statuses of pytest after which other parts can run.
PASSED, FAILED, EMPTY = 0, 1, 5
SELECTIONS = {
    '': (),
    'smoke': ('-m', 'smoke'),
    'rest': ('-m', 'not smoke'),
    'slow': ('-m', 'slow'),
    'quick': ('-m', 'not slow'),
    'quick-rest': ('-m', 'not smoke and not slow'),
}

TOOLS, RESERVATIONS = (
    'isolate-aggregates-tools',
    'isolate-aggregates-reservations',
)

# The beginnings of the paths of tests.
PATHS = ('tests/', f'{TOOLS}/', f'{RESERVATIONS}/')
# The arguments of pytest that select tests. Paths do, too.
SELECTING = ('-k', '-m', '--lf', '--last-failed', '--deselect', '--ignore')

# The number of parallel tests, and of parallel tests that mostly wait.
JOBS = ('-n', os.environ.get('JOBS', 'auto'), '--dist', 'worksteal')
WAITING_JOBS = ('-n', os.environ.get('WAITING_JOBS', '3'))


@dataclasses.dataclass(frozen=True)
class Part:
    """Tests that can share a process, and options for it.

    :param imports: The folders of the distributions that they may import.
    :param environment: The environment that has these and nothing else; the
        one in which this program runs if there is none of that name.
    """

    folders: tuple[str, ...]
    options: tuple[str, ...] = ()
    imports: tuple[str, ...] = ('.', TOOLS, RESERVATIONS)
    environment: str = ''

    @property
    def python(self) -> str:
        """The interpreter of their environment."""
        beginning = os.environ.get('ENVIRONMENTS', '')
        if beginning and self.environment:
            return f'{beginning}-{self.environment}/bin/python'
        return sys.executable


# Tests that need neither another program nor a process of their own: those
# that pytest runs if it is given no folder.
LIBRARY = tomllib.loads((ROOT / 'pyproject.toml').read_text('utf-8'))['tool'][
    'pytest'
]['ini_options']['testpaths']

PARTS = {
    # The tests of one distribution each, which run where only it and what it
    # requires is installed.
    'plugin': Part(('tests/unit',), JOBS, ('.',), 'plugin'),
    'tools': Part((f'{TOOLS}/tests',), JOBS, ('.', TOOLS), 'tools'),
    'reservations': Part(
        (f'{RESERVATIONS}/tests/unit', f'{RESERVATIONS}/tests/functional'),
        JOBS,
        environment='reservations',
    ),
    'unit': Part(
        ('tests/unit', f'{TOOLS}/tests/unit', f'{RESERVATIONS}/tests/unit'),
        JOBS,
    ),
    'functional': Part((f'{TOOLS}/tests/functional',), JOBS),
    # What needs all three, and no other program.
    'street': Part(('tests/street', 'tests/docs', 'tests/nova'), JOBS),
    'adapter': Part(('tests/nova',), JOBS),
    'library': Part(tuple(LIBRARY), JOBS),
    'servers': Part(('tests/servers',), JOBS),
    'clone': Part(('tests/clone',), JOBS),
    # playwright runs an event loop.
    'browser': Part(('tests/browser',), JOBS),
    # Ansible and clients, which are in an environment of their own.
    'rehearsals': Part(('tests/rehearsals',), WAITING_JOBS),
    # All commands about 200 clouds.
    'answers': Part(
        (f'{TOOLS}/tests/functional/test_one_cloud_one_answer.py',),
        JOBS,
    ),
    # Nova's configuration, messaging and database are global in a process.
    'databases': Part(('tests/databases',), ('--confcutdir=tests/databases',)),
    # Nova's fixtures decide how threads work before anything is imported.
    # Nothing runs again: a race that shows once in thousands is one.
    'nova': Part(
        ('tests/nova_functional',),
        ('--confcutdir=tests/nova_functional', *WAITING_JOBS),
    ),
    # Blazar's threads and configuration are not Nova's.
    'blazar': Part(
        (f'{RESERVATIONS}/tests/blazar',),
        (f'--confcutdir={RESERVATIONS}/tests/blazar', *WAITING_JOBS),
    ),
    # In environments of their own: that of the services, and of releases.
    'e2e': Part(('tests/e2e',), ('--confcutdir=tests/e2e', '--timeout=3600')),
    'release': Part(('tests/release',), ('--confcutdir=tests/release', *JOBS)),
}

SETS = {
    'test': (
        *('plugin:quick', 'tools:quick', 'reservations:quick'),
        *('street:quick', 'databases:quick', 'servers:smoke'),
        *('browser:smoke', 'nova:smoke', 'blazar:smoke'),
    ),
    # What "test" leaves out.
    'rest': (
        *('library:slow', 'databases:slow', 'clone', 'servers:rest'),
        *('browser:rest', 'nova:rest', 'blazar:rest', 'rehearsals'),
    ),
    # Of these what a change has to pass, after "test". What takes minutes is
    # left out: one more case of what quicker ones show, each way to rebuild
    # and move a server, races with Placement over HTTP, and all that the
    # plugins of blazar-manager do.
    'gate': (
        *('answers:slow', 'clone', 'servers:rest', 'browser:rest'),
        'nova:quick-rest',
    ),
    'all': (
        *('plugin', 'tools', 'reservations', 'street', 'databases', 'clone'),
        *('servers', 'browser', 'nova', 'blazar', 'rehearsals'),
    ),
    # The browser tests cover no Python code.
    'cover': (
        *('library', 'databases', 'clone', 'servers', 'nova', 'blazar'),
        'rehearsals',
    ),
    # What tells whether a release of Nova is supported.
    'support': ('adapter', 'nova'),
    # What runs with all that an operator may have installed.
    'installed': ('unit', 'functional'),
}
COVERAGE = ('--cov', '--cov-append', '--cov-report=')


def command(name: str, arguments: Sequence[str]) -> list[str] | None:
    """Return the command of a part; None if the arguments name other paths.

    :param name: The part, with or without a selection.
    :param arguments: The arguments for pytest.
    """
    name, _, selection = name.partition(':')
    part = PARTS[name]
    paths = [one for one in arguments if one.startswith(PATHS)]
    own = [
        path
        for path in paths
        if any(f'{path}/'.startswith(f'{one}/') for one in part.folders)
    ]
    if paths and not own:
        return None
    return [
        *(part.python, '-m', 'pytest'),
        *part.options,
        *SELECTIONS[selection],
        *(one for one in arguments if one not in paths),
        *(own or part.folders),
    ]


def surroundings(name: str) -> dict[str, str]:
    """Return the environment variables for a part.

    A copy of the clone, without an environment of its own, has PYTHONPATH set.
    It must lead to no more than the part may import.
    """
    variables = dict(os.environ)
    if 'PYTHONPATH' in variables:
        part = PARTS[name.partition(':')[0]]
        variables['PYTHONPATH'] = os.pathsep.join(
            str(ROOT / folder) for folder in part.imports
        )
    return variables


class Totals:
    """Counts what several runs of pytest report."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._counts = dict.fromkeys(
            ('tests', 'failures', 'errors', 'skipped'), 0
        )
        # By reason.
        self.skipped: Counter[str] = Counter()

    def add(self, report: pathlib.Path) -> int:
        """Add what ``pytest --junitxml`` has written.

        :returns: The number of tests that ran.
        """
        lines = []
        # Trusted input: written by tests that ran here.
        root = ElementTree.parse(report)  # noqa: S314
        for suite in root.iter('testsuite'):
            for name in self._counts:
                self._counts[name] += int(suite.attrib[name])
        for test in root.iter('testcase'):
            skipped = test.find('skipped')
            if skipped is None:
                lines.append('ran')
            else:
                reason = ' '.join(skipped.attrib.get('message', '').split())
                self.skipped[reason] += 1
                lines.append(f'skipped {reason}')
        if record := os.environ.get('TESTS_RECORD'):
            with open(record, 'a', encoding='utf-8') as stream:
                stream.writelines(f'{line}\n' for line in lines)
        return lines.count('ran')

    def __str__(self) -> str:
        tests, failed, errors, skipped = self._counts.values()
        passed = tests - failed - errors - skipped
        said = ', '.join(
            f'{number} {word}'
            for number, word in (
                (failed, 'failed'),
                (passed, 'passed'),
                (skipped, 'skipped'),
                (errors, 'errors'),
            )
            if number
        )
        return f'{said} in {time.monotonic() - self._began:.2f}s'


def selects(arguments: Sequence[str]) -> bool:
    """Return whether arguments of pytest select some of the tests."""
    return any(one.startswith((*SELECTING, *PATHS)) for one in arguments)


def run(parts: Sequence[str], arguments: Sequence[str]) -> int:
    """Run parts and return the exit status.

    :param parts: Names of parts, with or without a selection.
    :param arguments: The arguments for pytest.
    """
    totals = Totals()
    statuses = {}
    allowed = os.environ.get('WITHOUT')
    left_out = (allowed or '').split()
    all_skipped = []
    kept = os.environ.get('TESTS_REPORTS')
    with tempfile.TemporaryDirectory() as folder:
        for name in parts:
            report = pathlib.Path(kept or folder, f'{name}.xml')
            words = command(name, arguments)
            if words is None or name.partition(':')[0] in left_out:
                continue
            print(f'\nTests of {name}', flush=True)
            words.append(f'--junitxml={report}')
            # Trusted input: the arguments of a developer.
            statuses[name] = subprocess.call(  # noqa: S603
                words, cwd=ROOT, env=surroundings(name)
            )
            if statuses[name] not in (PASSED, FAILED, EMPTY):
                return statuses[name]
            # Missing if a test hung and its process was killed.
            ran = report.exists() and totals.add(report)
            if not ran and statuses[name] == PASSED:
                all_skipped.append(name)
                statuses[name] = EMPTY
    if set(statuses.values()) <= {EMPTY}:
        print(f'\nNo part runs a test: {shlex.join(arguments)}'.rstrip(': '))
        return EMPTY
    if len(statuses) > 1:
        print(f'\n{f" {totals} ":=^79}')
        for reason, number in totals.skipped.most_common():
            print(f'{number} skipped: {reason}')
    if allowed is None:
        left_out += all_skipped
    if left_out:
        print(f'Left out: {", ".join(left_out)}')
    if not selects(arguments):
        empty = [name for name, status in statuses.items() if status == EMPTY]
        for name in set(empty).difference(left_out):
            print(
                f'No test of {name} ran. Install what is missing, or set '
                f'WITHOUT={name.partition(":")[0]}.'
            )
            statuses[name] = FAILED
    failed = [name for name, status in statuses.items() if status == FAILED]
    if failed:
        print(f'Failed: {", ".join(failed)}')
    return FAILED if failed else PASSED


def coverage(*words: str) -> int:
    """Run a command of coverage."""
    command = (sys.executable, '-m', 'coverage', *words)
    return subprocess.call(command, cwd=ROOT)  # noqa: S603 - as above


def main() -> int:
    """Run what the command line names."""
    here = sys.argv[1:]
    split = here.index('--') if '--' in here else len(here)
    parser = argparse.ArgumentParser(
        description='Run the tests part by part.',
        epilog='What follows -- goes to pytest.',
    )
    selections = [f'{p}:{s}'.rstrip(':') for p in PARTS for s in SELECTIONS]
    parser.add_argument(
        'parts',
        nargs='+',
        choices=[*SETS, *selections],
        metavar='part',
        help=f'one of {", ".join([*SETS, *PARTS])}; a part with :smoke or '
        ':slow behind it is limited to what is marked so, with :rest or '
        ':quick to what is not',
    )
    named = parser.parse_args(here[:split]).parts
    parts = [part for name in named for part in SETS.get(name, (name,))]
    arguments = here[split + 1 :]
    if named != ['cover']:
        return run(parts, arguments)
    coverage('erase')
    return run(parts, [*COVERAGE, *arguments]) or coverage('report')


if __name__ == '__main__':
    sys.exit(main())
