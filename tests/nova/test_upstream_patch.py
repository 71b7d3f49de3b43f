# SPDX-License-Identifier: Apache-2.0
"""The proposed changes of Nova.

Each patch of ``contributor/upstream/nova`` is applied to a copy of the Nova
that is installed.
"""

from importlib import metadata
import os
import pathlib
import re
import subprocess
import sys

from cases import cases
import nova
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PATCHES = ROOT / 'doc/source/contributor/upstream/nova'
REBUILDS = (
    'test_rebuild_instance_with_device_profile',
    'test_rebuild_instance_with_scheduler',
    'test_rebuild_instance_with_scheduler_no_host',
)


@pytest.mark.slow
@pytest.mark.skipif(
    not metadata.version('nova').startswith('34.'),
    reason='the patches are for Nova 34',
)
@cases(
    ('name', 'modules', 'added'),
    {
        'request-filters': (
            'request-filters',
            ('scheduler.test_request_filter', 'scheduler.test_manager'),
            ('TestLoadFilters.test_unknown_filter',),
        ),
        'forbidden-aggregates': (
            'forbidden-aggregates',
            (
                'scheduler.test_utils.TestUtils',
                'objects.test_request_spec.TestDestinationObject',
            ),
            (
                'test_resources_from_request_spec_coerces_forbidden_once',
                'test_destination_append_forbidden_aggregates_coerces_once',
            ),
        ),
        'refused-rebuild': (
            'refused-rebuild',
            (
                'compute.test_api.ComputeAPIUnitTestCase.'
                'test_rebuild_change_image',
                *(
                    f'conductor.test_conductor.ConductorTaskTestCase.{test}'
                    for test in REBUILDS
                ),
            ),
            ('test_rebuild_change_image', *REBUILDS),
        ),
    },
)
def test_the_patch_applies_and_novas_own_tests_pass(
    tmp_path, name, modules, added
):
    patch = PATCHES / f'{name}.patch'
    changed = {
        pathlib.PurePath(path)
        for path in re.findall(
            r'^\+\+\+ b/(.+)$', patch.read_text('utf-8'), re.MULTILINE
        )
    }
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
        ['git', 'apply', patch], cwd=tmp_path, env=alone, check=True
    )
    result = subprocess.run(
        [
            *(sys.executable, '-m', 'unittest', '-v'),
            *(f'nova.tests.unit.{module}' for module in modules),
        ],
        cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    # The tests that the patch adds were run, too. Nova's log may stand between
    # the name of a test and its result.
    for test in added:
        assert re.search(
            rf'{re.escape(test)}\b.* \.\.\. (?!skipped)', result.stderr
        )
