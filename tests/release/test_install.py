# SPDX-License-Identifier: Apache-2.0
"""The wheel works in empty environments with its declared dependencies."""

import json
import os
import pathlib
import sys

import pytest
from releasing import DISTRIBUTIONS, EXTRAS, ROOT, run, tool

HERE = pathlib.Path(__file__).parent
EXAMPLE = ROOT / 'examples' / 'windows-licensing.yaml'

# The packages for modules with optional dependencies.
NEEDS = {
    'isolate_aggregates_reservations.blazar': 'blazar',
    'isolate_aggregates_tools.metrics': 'metrics',
    'isolate_aggregates.nova': 'nova',
    # pytest itself loads it.
    'isolate_aggregates_tools.testing.plugin': 'pytest',
}

# Each distribution with each of its extras alone, and with all of them.
CHOICES = [
    (name, extras)
    for name, found in EXTRAS.items()
    for extras in dict.fromkeys(['', *found, ','.join(found)])
]


def wanted(wheels, chosen, extras):
    """Return requirements of a distribution and of those that it needs."""
    names = [*DISTRIBUTIONS]
    return [
        f'{name}[{extras if name == chosen else ""}] @ {wheels[name]}'
        for name in names[: names.index(chosen) + 1]
    ]


# The oldest supported release determines the limit.
NOVA = {
    '2025.1': 'nova==31.0.0',
    '2025.2': 'nova<33',
    '2026.1': 'nova<34',
    '2026.2': 'nova<35',
}


class Environment:
    """A virtual environment.

    :param path: Where to make it.
    """

    def __init__(self, path):
        self.path = path
        run(tool('uv'), 'venv', '--quiet', '--python', sys.executable, path)

    def install(self, *arguments):
        """Install with uv."""
        python = self.path / 'bin' / 'python'
        run(tool('uv'), *('pip', 'install', '--python', python), *arguments)

    def run(self, program, *arguments):
        """Return what one of its programs prints."""
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(('OS_', 'PYTHON'))
        }
        return run(self.path / 'bin' / program, *arguments, env=clean)

    def broken_modules(self, *installed):
        """Return the modules whose import fails with these dependencies."""
        printed = self.run('python', HERE / 'import_everything.py')
        return {
            module: error
            for module, error in json.loads(printed.splitlines()[-1]).items()
            if all(
                need in installed
                for prefix, need in NEEDS.items()
                if f'{module}.'.startswith(f'{prefix}.')
            )
        }


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / 'venv')


@pytest.mark.parametrize('resolution', ['lowest-direct', 'highest'])
@pytest.mark.parametrize(('chosen', 'extras'), CHOICES)
def test_each_extra_works_with_its_oldest_and_newest_versions(
    chosen, extras, resolution, wheels, environment
):
    environment.install(
        '--resolution', resolution, *wanted(wheels, chosen, extras)
    )
    assert environment.broken_modules(*extras.split(',')) == {}
    if chosen == 'isolate-aggregates':
        return
    assert 'candidate list' in environment.run('isolate-aggregates', '--help')
    if 'embedded' in extras:
        answer = environment.run(
            *(
                'isolate-aggregates',
                'candidate',
                'list',
                '--snapshot',
                EXAMPLE,
            ),
            *('--flavor', 'm1.small', '--image', 'debian-12'),
        )
        assert '2 hosts may be used.' in answer
    if 'osc' in extras:
        help_text = environment.run(
            'openstack', 'isolation', 'candidate', 'list', '--help'
        )
        assert '--snapshot' in help_text


@pytest.mark.parametrize('release', NOVA)
def test_all_install_beside_nova_with_upper_constraints(
    release, wheels, environment
):
    """Nothing that Nova uses has to be newer than OpenStack tested it with."""
    extras = ['embedded', 'metrics', 'osc', 'progress']
    environment.install(
        *('--constraints', HERE / 'constraints' / f'{release}.txt'),
        NOVA[release],
        *wanted(wheels, 'isolate-aggregates-tools', ','.join(extras)),
    )
    assert environment.broken_modules(*extras, 'nova') == {}
