# SPDX-License-Identifier: Apache-2.0
"""Everything that is imported is declared, and the other way round."""

import json
import pathlib

import pytest
from releasing import (
    EXTRAS,
    ROOT,
    package_of,
    run,
    tool,
)

NOVA = 'isolate_aggregates/nova'
TOOLS = 'isolate_aggregates_tools'
BLAZAR = 'isolate_aggregates_reservations/blazar'

# Where code may use what is not in requirements.txt. Programs that bring it
# themselves, as nova-scheduler does, are in no extra.
ONLY_IN = {
    'blazar': [BLAZAR],
    'junitparser': [f'{TOOLS}/expectations/report.py'],
    'nova': [NOVA],
    'oslo_concurrency': [BLAZAR],
    'oslo_db': [NOVA, f'{TOOLS}/embedded.py', BLAZAR],
    'placement': [f'{TOOLS}/embedded.py', f'{TOOLS}/placement_rows.py'],
    'prometheus_client': [
        *(f'{NOVA}/worker_metrics.py', f'{TOOLS}/cli/base.py'),
        *(f'{TOOLS}/commands/exporter.py', f'{TOOLS}/metrics'),
    ],
    'pytest': [f'{TOOLS}/testing'],
    'requests_mock': [f'{TOOLS}/testing'],
    'sqlalchemy': [NOVA, BLAZAR, f'{TOOLS}/placement_rows.py'],
    'tqdm': [f'{TOOLS}/cli/progress.py'],
    'wsgi_intercept': [f'{TOOLS}/embedded.py'],
}
# What comes with the program in which the code of a folder runs.
BROUGHT = {NOVA: {'oslo_db', 'sqlalchemy'}, BLAZAR: {'oslo_db', 'sqlalchemy'}}


def _problems(folder, distribution, *requirements, tmp_path):
    """Return what deptry finds, by its codes."""
    found = tmp_path / 'deptry.json'
    run(
        *(tool('deptry'), package_of(distribution), '--no-ansi'),
        *('--config', ROOT / 'pyproject.toml'),
        *('--requirements-files', ','.join(map(str, requirements))),
        *('--json-output', found),
        cwd=folder,
        expected=(0, 1),
    )
    return json.loads(found.read_text())


@pytest.fixture
def all_extras(distribution, tmp_path):
    """Return a file of what all extras ask for that are not for developers."""
    path = tmp_path / 'extras.txt'
    path.write_text('\n'.join(EXTRAS[distribution].values()))
    return path


@pytest.fixture
def without_ours(folder, tmp_path):
    """Return a file of what it requires of others."""
    path = tmp_path / 'requirements.txt'
    lines = (folder / 'requirements.txt').read_text().splitlines()
    path.write_text(
        '\n'.join(one for one in lines if 'isolate-aggregates' not in one)
    )
    return path


def test_extras_are_imported_only_by_the_modules_that_need_them(
    folder, distribution, without_ours, tmp_path
):
    problems = _problems(folder, distribution, without_ours, tmp_path=tmp_path)
    elsewhere = [
        f'{problem["location"]["file"]}: {problem["error"]["message"]}'
        for problem in problems
        if not any(
            pathlib.Path(problem['location']['file']).is_relative_to(place)
            for place in ONLY_IN.get(problem['module'], ())
        )
    ]
    assert elsewhere == []


def test_declared_and_used_dependencies_are_the_same(
    folder, distribution, without_ours, all_extras, tmp_path
):
    problems = _problems(
        folder, distribution, without_ours, all_extras, tmp_path=tmp_path
    )
    undeclared = [
        problem['error']['message']
        for problem in problems
        if not any(
            pathlib.Path(problem['location']['file']).is_relative_to(place)
            and problem['module'] in brought
            for place, brought in BROUGHT.items()
        )
    ]
    assert undeclared == []
