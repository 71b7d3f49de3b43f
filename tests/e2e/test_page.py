# SPDX-License-Identifier: Apache-2.0
"""What the page about these tests tells to type works as it stands."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / 'tests' / 'docs'))

import runners  # noqa: E402

PAGE = 'contributor/end-to-end.rst'


@pytest.fixture
def commands(admin):
    """The commands of the page that ask the cloud; the server is deleted."""
    yield runners.commands_of(PAGE, 'tests/e2e/test_page.py')
    admin('server', 'delete', '--wait', 'first')


def test_the_page_makes_you_the_administrator(commands, plane, tmp_path):
    (tmp_path / '.cloud').symlink_to(plane.settings.state)
    typed = '\n'.join(command.text for command in commands)
    finished = subprocess.run(
        ['bash', '-exc', typed],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    assert 'ACTIVE' in finished.stdout
