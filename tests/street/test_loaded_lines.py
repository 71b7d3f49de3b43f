# SPDX-License-Identifier: Apache-2.0
"""A command loads no more than it needs.

Raise a number only in a commit that says what its command needs it for.
"""

from importlib import metadata
import json
import subprocess
import sys

from cases import cases
import pytest

# The most lines of the tools and the reservations that a command loads.
BUDGET = {
    'audit': 25_100,
    'candidate_list': 13_900,
    'capacity_list': 13_800,
    'check': 15_500,
    'decision_list': 2_300,
    'effect_show': 25_900,
    'explain': 22_600,
    'exporter': 23_800,
    'filter_list': 10_900,
    'key_add': 13_000,
    'key_remove': 13_000,
    'ledger': 15_100,
    'lock_create': 13_800,
    'lock_delete': 13_800,
    'lock_list': 10_400,
    'lock_show': 10_400,
    'matrix_list': 14_400,
    'provider_set': 12_800,
    'provider_unset': 12_800,
    'rehearse': 28_600,
    'relocation_create': 26_400,
    'report_save': 28_800,
    'reservation_calendar_list': 14_600,
    'reservation_create': 15_100,
    'reservation_end': 15_400,
    'reservation_history_list': 14_700,
    'reservation_host_list': 14_800,
    'reservation_host_set': 14_800,
    'reservation_list': 15_400,
    'reservation_reconcile': 14_800,
    'reservation_repair': 14_800,
    'reservation_set': 15_400,
    'reservation_show': 15_400,
    'snapshot_save': 9_700,
    'survival_list': 25_100,
    'sync': 15_900,
    'test': 28_900,
}
# The most lines of the tools that a command of the reservations loads.
FRAMEWORK = 6_500

TOOLS = 'isolate_aggregates_tools'
RESERVATIONS = 'isolate_aggregates_reservations'

_SCRIPT = """
import importlib, json, pathlib, sys
names, prefixes = json.loads(sys.argv[1]), json.loads(sys.argv[2])
counted = {}
for name, module in names.items():
    for loaded in [*sys.modules]:
        if loaded.startswith('isolate_aggregates'):
            del sys.modules[loaded]
    importlib.import_module(module)
    counted[name] = {
        prefix: sum(
            len(pathlib.Path(each.__file__).read_bytes().splitlines())
            for one, each in sys.modules.items()
            if f'{one}.'.startswith(f'{prefix}.')
        )
        for prefix in prefixes
    }
print(json.dumps(counted))
"""


@pytest.fixture(scope='module')
def lines():
    """How many lines of either part each command loads."""
    modules = {
        one.name: one.module
        for one in metadata.entry_points(group='isolate_aggregates.cli')
    }
    result = subprocess.run(
        [
            *(sys.executable, '-W', 'ignore', '-c', _SCRIPT),
            *map(json.dumps, (modules, (TOOLS, RESERVATIONS))),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(result.stdout)


def test_every_command_has_a_budget(lines):
    assert lines.keys() == BUDGET.keys()


@cases('name', {name: name for name in BUDGET})
def test_a_command_loads_no_more_than_its_budget(lines, name):
    assert sum(lines[name].values()) <= BUDGET[name]


def test_reservations_load_little_of_the_tools(lines):
    loaded = {
        name: counts[TOOLS]
        for name, counts in lines.items()
        if counts[RESERVATIONS]
    }
    assert len(loaded) > 10
    assert max(loaded.values()) <= FRAMEWORK
