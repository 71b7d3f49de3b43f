# SPDX-License-Identifier: Apache-2.0
"""Each older release does what is relied on, and the newest with eventlet.

nova-api refuses what the tools say it refuses. nova-scheduler records what
servers are placed with and why there was no host, and filters in shadow leave
it alone. Only the package of Nova is of that release; what it
needs is installed.
"""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
TESTS = {
    'moves': (HERE, 'test_moves.py'),
    'changes': (HERE, 'test_refused_changes.py'),
    'boots': (HERE.parent / 'nova', 'test_nova_api.py'),
    'placed': (HERE, 'test_placed.py'),
    'records': (HERE, 'test_records.py'),
    'records-mended': (HERE, 'test_records_mended.py'),
    'records-of-moves': (HERE, 'test_records_of_moves.py'),
    'shadow': (HERE, 'test_shadow.py'),
}


@pytest.fixture(scope='module', params=(31, 32, 33))
def nova(request, tmp_path_factory):
    """Return a folder with a release of Nova."""
    folder = tmp_path_factory.mktemp(f'nova{request.param}')
    download = subprocess.run(
        [
            *(sys.executable, '-m', 'pip', 'install', '--quiet', '--no-deps'),
            *(f'--target={folder}', f'nova=={request.param}.*'),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    if download.returncode:
        pytest.skip('pip cannot install older releases of Nova')
    return folder


@pytest.mark.slow
@pytest.mark.parametrize('rules', TESTS)
def test_an_older_nova_does_what_is_relied_on(nova, rules):
    run(rules, PYTHONPATH=str(nova))


@pytest.mark.slow
@pytest.mark.parametrize('rules', ['placed', 'records', 'shadow'])
def test_with_eventlet_the_newest_nova_does_it_too(rules):
    run(rules, OS_NOVA_DISABLE_EVENTLET_PATCHING='false')


def run(rules, **variables):
    """Run tests in a process of their own."""
    folder, name = TESTS[rules]
    environment = {
        key: value
        for key, value in os.environ.items()
        # Native threads are what this release has.
        if not key.startswith(('PYTEST_', 'OS_NOVA_'))
    }
    result = subprocess.run(
        [
            *(sys.executable, '-m', 'pytest', '-q', '-p', 'no:warnings'),
            *('-p', 'no:cacheprovider', f'--confcutdir={folder}'),
            str(folder / name),
        ],
        env={**environment, **variables},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-20000:]
