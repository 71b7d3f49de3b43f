# SPDX-License-Identifier: Apache-2.0
"""Import rules are enforced, and filters import little."""

import configparser
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

from cases import cases
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PLUGIN = 'isolate_aggregates'
TOOLS = 'isolate-aggregates-tools/isolate_aggregates_tools'
RESERVATIONS = (
    'isolate-aggregates-reservations/isolate_aggregates_reservations'
)
LINT_IMPORTS = pathlib.Path(sys.executable).with_name('lint-imports')

# Modules that filters of other packages must not load.
CLIENTS = {'keystoneauth1', 'novaclient', 'openstack', 'oslo_log', 'stevedore'}


@pytest.fixture(scope='module')
def copied(tmp_path_factory):
    """Return a directory with a copy of the package and its contracts."""
    directory = tmp_path_factory.mktemp('copy')
    shutil.copy(ROOT / 'pyproject.toml', directory)
    for package in (PLUGIN, TOOLS, RESERVATIONS):
        shutil.copytree(
            ROOT / package,
            directory / pathlib.Path(package).name,
            ignore=shutil.ignore_patterns('__pycache__'),
        )
    return directory


@cases(
    ('importer', 'line', 'broken'),
    {
        'as it is': ('isolate_aggregates.nova', '', set()),
        'nova-scheduler imports the tools': (
            'isolate_aggregates.nova',
            'from isolate_aggregates_tools.cli import base',
            {'street'},
        ),
        'what is asked of Placement is a sibling of aggregates': (
            'isolate_aggregates.aggregates',
            'from isolate_aggregates.placement import client',
            {'plugin'},
        ),
        'a filter imports what calls it': (
            'isolate_aggregates.filters',
            'from isolate_aggregates import decision',
            {'plugin'},
        ),
        'a command imports reservations': (
            'isolate_aggregates_tools.cli',
            'from isolate_aggregates_reservations import limits',
            {'street', 'tools'},
        ),
        'helpers for tests import reservations': (
            'isolate_aggregates_tools.testing',
            'from isolate_aggregates_reservations import plan',
            {'street'},
        ),
        'Nova elsewhere': (
            'isolate_aggregates_tools.cli',
            'from nova import context',
            {'nova'},
        ),
        'reservations import a tool beside the framework of commands': (
            'isolate_aggregates_reservations',
            'from isolate_aggregates_tools.cloud.live import live_cloud',
            {'reservations'},
        ),
        'a product imports another one above it': (
            'isolate_aggregates_tools.audit',
            'from isolate_aggregates_tools.advice import effects',
            {'tools'},
        ),
        'Nova by way of its plugin': (
            'isolate_aggregates_reservations',
            'from isolate_aggregates.nova import runner',
            {'nova-package'},
        ),
        'Blazar elsewhere': (
            'isolate_aggregates_reservations',
            'from blazar import context',
            {'blazar'},
        ),
    },
)
def test_a_forbidden_import_breaks_its_contract(
    importer, line, broken, copied
):
    module = copied / importer.replace('.', '/') / '__init__.py'
    before = module.read_text('utf-8')
    module.write_text(f'{before}\n{line}\n', 'utf-8')
    try:
        result = subprocess.run(
            [LINT_IMPORTS, '--no-cache', '--no-logo'],
            cwd=copied,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        module.write_text(before, 'utf-8')
    settings = tomllib.loads((copied / 'pyproject.toml').read_text('utf-8'))
    found = {
        contract['id']
        for contract in settings['tool']['importlinter']['contracts']
        if f'{contract["name"]} BROKEN' in result.stdout
    }
    assert found == broken, result.stdout
    assert (result.returncode != 0) == bool(broken)


def _loads(*modules):
    """Return what a fresh interpreter has loaded after importing these."""
    script = f'import sys, {", ".join(modules)}; print(*sys.modules)'
    result = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', script],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(result.stdout.split())


def test_filters_load_no_clients():
    setup = configparser.ConfigParser()
    setup.read(ROOT / 'setup.cfg')
    entry_points = setup['entry_points']['isolate_aggregates.request_filters']
    built_in = re.findall(r'= (.+):', entry_points)
    assert 'isolate_aggregates.filters.isolate_aggregates' in built_in
    loaded = _loads(
        *('isolate_aggregates.aggregates', 'isolate_aggregates.request'),
        *built_in,
    )
    assert not loaded & CLIENTS


def test_the_check_sees_clients_loaded_by_plugins():
    assert 'stevedore' in _loads('isolate_aggregates.entry_points')


def test_helpers_for_tests_load_no_client_of_nova_and_no_service():
    loaded = _loads('isolate_aggregates_tools.testing')
    assert 'isolate_aggregates_tools.testing.service' in loaded
    assert not loaded & {'nova', 'novaclient', 'openstack', 'placement'}
