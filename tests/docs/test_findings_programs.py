# SPDX-License-Identifier: Apache-2.0
"""The programs in findings have their form, and a row in the table."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / 'findings'
README = (FOLDER / 'README.rst').read_text('utf-8')
FINDINGS = sorted(FOLDER.glob('*.sh'))
HEAD = ('Expected', 'Seen', 'Package', 'Why')

each = pytest.mark.parametrize('finding', FINDINGS, ids=lambda path: path.stem)


def head_of(finding):
    """Return the lines of comment between the interpreter and the script."""
    text = finding.read_text('utf-8')
    shebang, _, rest = text.partition('\n')
    assert shebang == '#!/usr/bin/env bash'
    head, _, _ = rest.partition('\nset -euo pipefail\n')
    return head.splitlines()


@each
def test_the_head_says_what_one_expects_sees_and_why_it_matters(finding):
    head = head_of(finding)
    assert 4 <= len(head) <= 10
    assert all(line.startswith('# ') for line in head)
    told = re.findall(r'^# (\w+): ', '\n'.join(head), re.MULTILINE)
    assert tuple(told) == HEAD


@each
def test_it_runs_pinned_packages_in_a_folder_that_it_removes(finding):
    text = finding.read_text('utf-8')
    assert 'folder=$(mktemp -d)\ntrap \'rm -rf "$folder"\' EXIT\n' in text
    installed = re.search(
        r'/venv/bin/pip" install --quiet \\\n +(.+)\n', text
    ).group(1)
    assert all('==' in one for one in installed.split())
    assert 'isolate_aggregates' not in text
    assert "sys.exit('changed" in text or "sys.exit(f'changed" in text


@each
def test_it_ends_with_what_a_real_run_printed(finding):
    _, _, seen = finding.read_text('utf-8').partition('\nPROGRAM\n')
    assert seen
    assert all(line.startswith('# seen: ') for line in seen.splitlines())


@each
def test_it_can_be_run_and_is_a_valid_script(finding):
    assert os.access(finding, os.X_OK)
    subprocess.run(['bash', '-n', finding], check=True)
    _, _, program = finding.read_text('utf-8').partition("<<'PROGRAM'\n")
    compile(program.partition('\nPROGRAM\n')[0], finding, 'exec')


def test_the_table_has_each_program_with_its_package():
    rows = re.findall(r'\* - ``(\S+)``\n +- (.+)\n', README)
    assert [name for name, _ in rows] == [path.name for path in FINDINGS]
    for name, packages in rows:
        assert f'# Package: {packages}' in (FOLDER / name).read_text('utf-8')


def test_the_table_names_files_that_exist():
    for name in re.findall(
        r'``((?:doc|isolate_aggregates|tests)/\S+)``', README
    ):
        assert (ROOT / name).exists(), name
