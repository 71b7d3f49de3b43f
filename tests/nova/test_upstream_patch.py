# SPDX-License-Identifier: Apache-2.0
"""The proposed hook for request filters in Nova.

``etc/upstream/nova/request-filters.patch`` is applied to a copy of the Nova
that is installed.
"""

from importlib import metadata
import os
import pathlib
import re
import subprocess
import sys

import nova
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PATCH = ROOT / 'etc/upstream/nova/request-filters.patch'


@pytest.mark.slow
@pytest.mark.skipif(
    not metadata.version('nova').startswith('34.'),
    reason='the patch is for Nova 34',
)
def test_the_patch_applies_and_novas_own_tests_pass(tmp_path):
    changed = {
        pathlib.PurePath(path)
        for path in re.findall(
            r'^\+\+\+ b/(.+)$', PATCH.read_text('utf-8'), re.MULTILINE
        )
    }
    assert pathlib.PurePath('nova/scheduler/request_filter.py') in changed
    installed = pathlib.Path(nova.__file__).parents[1]
    above = {parent for path in changed for parent in path.parents}
    for place in sorted(above - {pathlib.PurePath()}):
        (tmp_path / place).mkdir()
        # Release notes are not part of the installed package.
        if not (installed / place).exists():
            continue
        for entry in (installed / place).iterdir():
            path = place / entry.name
            if path in changed:
                (tmp_path / path).write_bytes(entry.read_bytes())
            elif path not in above and entry.name != '__pycache__':
                (tmp_path / path).symlink_to(entry)
    # As if it were not in a git clone.
    alone = {**os.environ, 'GIT_CEILING_DIRECTORIES': str(tmp_path.parent)}
    subprocess.run(
        ['git', 'apply', PATCH], cwd=tmp_path, env=alone, check=True
    )
    result = subprocess.run(
        [
            *(sys.executable, '-m', 'unittest', '-v'),
            'nova.tests.unit.scheduler.test_request_filter',
            'nova.tests.unit.scheduler.test_manager',
        ],
        cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    # The tests that the patch adds were run, too.
    assert 'TestLoadFilters.test_unknown_filter' in result.stderr
