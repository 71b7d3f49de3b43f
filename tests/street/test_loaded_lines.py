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
    'audit': 24_500,
    'candidate_list': 13_600,
    'capacity_list': 13_500,
    'check': 15_100,
    'decision_list': 2_300,
    'effect_show': 25_300,
    'explain': 22_200,
    'exporter': 23_200,
    'filter_list': 10_600,
    'key_add': 12_600,
    'key_remove': 12_600,
    'ledger': 14_600,
    'lock_create': 13_300,
    'lock_delete': 13_300,
    'lock_list': 10_200,
    'lock_show': 10_200,
    'matrix_list': 14_100,
    'provider_set': 12_400,
    'provider_unset': 12_400,
    'rehearse': 27_600,
    'relocation_create': 25_900,
    'report_save': 28_200,
    'reservation_calendar_list': 14_100,
    'reservation_create': 14_600,
    'reservation_end': 14_900,
    'reservation_history_list': 14_500,
    'reservation_host_list': 14_300,
    'reservation_host_set': 14_300,
    'reservation_list': 14_900,
    'reservation_reconcile': 14_500,
    'reservation_repair': 14_500,
    'reservation_set': 14_900,
    'reservation_show': 14_900,
    'snapshot_save': 9_400,
    'survival_list': 24_600,
    'sync': 15_500,
    'test': 28_400,
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
