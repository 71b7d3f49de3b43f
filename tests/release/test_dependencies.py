# SPDX-License-Identifier: Apache-2.0
"""Everything that is imported is declared, and the other way round."""

import json
import pathlib

import pytest
from releasing import EXTRAS, ROOT, run, tool

# Where code may use what is not in requirements.txt. Programs that bring it
# themselves, as nova-scheduler does, are in no extra.
ONLY_IN = {
    'blazar': ['reservations/blazar'],
    'junitparser': ['tools/expectations/report.py'],
    'nova': ['nova'],
    'oslo_concurrency': ['reservations/blazar'],
    'oslo_db': ['nova', 'tools/embedded.py', 'reservations/blazar'],
    'placement': ['tools/embedded.py', 'tools/placement_rows.py'],
    'prometheus_client': [
        *('nova/worker_metrics.py', 'tools/cli/base.py'),
        *('tools/commands/exporter.py', 'tools/metrics'),
    ],
    'pytest': ['testing'],
    'requests_mock': ['testing'],
    'shtab': ['tools/cli/completion.py'],
    'sqlalchemy': [
        *('nova', 'reservations/blazar', 'tools/placement_rows.py'),
    ],
    'tqdm': ['tools/cli/progress.py'],
    'wsgi_intercept': ['tools/embedded.py'],
}


def _problems(*requirements, tmp_path):
    """Return what deptry finds, by its codes."""
    found = tmp_path / 'deptry.json'
    run(
        *(tool('deptry'), 'isolate_aggregates', '--no-ansi'),
        *('--requirements-files', ','.join(map(str, requirements))),
        *('--json-output', found),
        cwd=ROOT,
        expected=(0, 1),
    )
    return json.loads(found.read_text())


@pytest.fixture
def all_extras(tmp_path):
    """Return a file of what all extras ask for that are not for developers."""
    path = tmp_path / 'extras.txt'
    path.write_text('\n'.join(EXTRAS.values()))
    return path


def test_extras_are_imported_only_by_the_modules_that_need_them(tmp_path):
    problems = _problems(ROOT / 'requirements.txt', tmp_path=tmp_path)
    elsewhere = [
        f'{problem["location"]["file"]}: {problem["error"]["message"]}'
        for problem in problems
        if not any(
            pathlib.Path(problem['location']['file']).is_relative_to(
                pathlib.Path('isolate_aggregates', place)
            )
            for place in ONLY_IN.get(problem['module'], ())
        )
    ]
    assert elsewhere == []


def test_declared_and_used_dependencies_are_the_same(tmp_path, all_extras):
    problems = _problems(
        ROOT / 'requirements.txt', all_extras, tmp_path=tmp_path
    )
    assert [problem['error']['message'] for problem in problems] == []
