# SPDX-License-Identifier: Apache-2.0
"""What the pages show about rehearsals works with real programs."""

import os
import pathlib
import shutil
import subprocess
import sys

from operator_tools import CLOUD, EXAMPLES
import pages
import pytest

ADMIN = pages.SOURCE / 'admin'
BIN = pathlib.Path(sys.executable).parent


def blocks(page):
    return {
        block.caption: block.text
        for block in pages.blocks(ADMIN / page)
        if block.caption
    }


@pytest.fixture
def run(operator, tmp_path):
    """Run a command in the folder with the cloud file; return its status."""
    shutil.copy(CLOUD, operator / 'cloud.yaml')

    def run_command(*command):
        done = subprocess.run(
            command,
            env={**os.environ, 'PATH': f'{BIN}:{os.environ["PATH"]}'},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    return run_command


EXPECTATIONS = """
version: 1
expectations:
- name: the GPU hosts are for their flavor only
  flavor: m1
  never: {host: g1}
"""


@pytest.mark.parametrize(
    ('name', 'status'),
    [
        # Nova refuses the wrong value, and the play stops.
        ('flavor-keys-replaced', 9),
        ('aggregate-deleted-by-its-short-name', 4),
        ('refusal-ignored', 7),
        ('check-mode', 0),
        # Something changes, and the test is passed.
        ('aggregate-created-then-given-a-host', 0),
        # A server is where it may not be any more.
        ('image-properties', 5),
    ],
)
def test_the_script_for_any_tool_ends_as_it_should(
    run, operator, name, status
):
    script = blocks('effect-pipelines.rst')['rehearsal.sh']
    (operator / 'rehearsal.sh').write_text(script)
    (operator / 'expectations.yaml').write_text(EXPECTATIONS)
    shutil.copy(EXAMPLES / f'{name}.yml', operator / 'site.yml')
    found, out = run('sh', 'rehearsal.sh')
    assert found == status, out


def test_the_test_of_a_playbook_passes_and_can_fail(run, operator):
    for name, text in blocks('rehearsal.rst').items():
        (operator / name).write_text(text)
    pytest_ = (sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider', '-q')
    (operator / 'pyproject.toml').touch()
    status, out = run(*pytest_, 'test_rack.py')
    assert (status, '1 passed' in out) == (0, True), out
    playbook = operator / 'rack.yml'
    playbook.write_text(playbook.read_text().replace('g1, c2', 'g1'))
    status, out = run(*pytest_, 'test_rack.py')
    assert (status, '1 failed' in out) == (1, True), out
