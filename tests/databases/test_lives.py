# SPDX-License-Identifier: Apache-2.0
"""Lives of servers, with Nova's databases on the databases of clouds.

The tests are those of ``tests/nova_functional``, whose fixtures need a process
of their own.
"""

import os
import pathlib
import subprocess
import sys

import database_servers
import pytest

TESTS = pathlib.Path(__file__).parents[1] / 'nova_functional'

# On a busy machine it takes more than the quarter of an hour of other tests.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.mark.parametrize('kind', database_servers.KINDS)
def test_what_a_server_was_accepted_with_is_found_again(kind):
    if not database_servers.KINDS[kind].is_installed():
        pytest.skip(f'{kind} is not installed')
    subprocess.run(
        [
            *(sys.executable, '-m', 'pytest', '-q'),
            f'--confcutdir={TESTS}',
            *(TESTS / 'test_lives.py', TESTS / 'test_rebuilt_servers.py'),
        ],
        env={**os.environ, 'NOVA_DATABASE': kind},
        check=True,
    )
