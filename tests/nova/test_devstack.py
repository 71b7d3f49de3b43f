# SPDX-License-Identifier: Apache-2.0
"""The DevStack plugin, phase by phase, with a stand-in for DevStack."""

import configparser
import os
import pathlib
import shlex
import subprocess
import sys

import pages
import pytest
from starting import starts

from isolate_aggregates_tools.cli import app

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
PLUGIN = ROOT / 'devstack'

# The relevant part of nova.conf before the plugin runs.
NOVA_CONF = """\
[filter_scheduler]
enabled_filters = ComputeFilter,SameHostFilter
"""


def quote(path):
    """Return a path as a word of the shell."""
    return shlex.quote(str(path))


@pytest.fixture
def stack(tmp_path):
    """Run phases of the plugin; return its commands."""
    (tmp_path / 'nova.conf').write_text(NOVA_CONF)

    def run(*phases, check=True, **variables):
        lines = [
            'set -o errexit',
            f'. {quote(HERE / "devstack_functions.sh")}',
            f'. {quote(PLUGIN / "settings")}',
            *(f'. {quote(PLUGIN / "plugin.sh")} {phase}' for phase in phases),
        ]
        environment = {
            'PATH': f'{pathlib.Path(sys.executable).parent}:{os.defpath}',
            'DEST': str(tmp_path),
            'ISOLATE_AGGREGATES_DIR': str(ROOT),
        }
        return subprocess.run(
            ['bash', '-c', '\n'.join(lines)],
            env=environment | variables,
            capture_output=True,
            text=True,
            check=check,
        )

    return run


def lines_of(path, group):
    """Return the lines of a group in an ini file."""
    text = path.read_text('utf-8')
    part = text.partition(f'[{group}]\n')[2].partition('\n[')[0]
    return sorted(part.strip().splitlines())


def test_nova_conf_has_the_lines_of_the_page(stack, tmp_path):
    stack('stack post-config')
    page = pages.path('admin/nova-scheduler.rst')
    [shown] = [
        block.text
        for block in pages.blocks(page)
        if 'isolate_aggregates.nova.all_filters' in block.text
    ]
    told = tmp_path / 'told.conf'
    told.write_text(shown.replace('...', 'SameHostFilter'))
    for group in ('filter_scheduler', 'isolate_aggregates'):
        assert lines_of(tmp_path / 'nova.conf', group) == lines_of(told, group)
    assert lines_of(tmp_path / 'nova.conf', 'scheduler') == [
        'enable_isolated_aggregate_filtering = True'
    ]


def test_nova_scheduler_starts_with_that_nova_conf(stack, tmp_path):
    stack('stack post-config')
    started = starts(tmp_path / 'nova.conf')
    assert started['unknown'] == []
    assert started['registration'] == 'SUCCESS'
    assert started['filters'] == (
        'Request filters: isolate_aggregates, reservation_prefix.'
    )
    assert started['host_filters'] == [
        'ComputeFilter',
        'SameHostFilter',
        'IsolatedAggregatesFilter',
    ]


def test_a_second_run_changes_nothing(stack, tmp_path):
    stack('stack post-config')
    once = (tmp_path / 'nova.conf').read_text()
    stack('stack post-config')
    assert (tmp_path / 'nova.conf').read_text() == once


@pytest.mark.slow
def test_reservations_are_named_with_the_prefix_that_is_set(stack, tmp_path):
    stack(
        'stack post-config',
        ISOLATE_AGGREGATES_RESERVATION_PREFIX='reservation:',
    )
    assert lines_of(tmp_path / 'nova.conf', 'scheduler') == [
        'enable_isolated_aggregate_filtering = True',
        'placement_req_default_forbidden_member_prefix = reservation:',
        'placement_req_required_member_prefix = reservation:',
    ]
    assert starts(tmp_path / 'nova.conf')['unknown'] == []


def test_our_plugin_replaces_blazars_plugin(stack, tmp_path):
    (tmp_path / 'nova.conf').write_text(
        '[filter_scheduler]\n'
        'enabled_filters = ComputeFilter, BlazarFilter\n'
        'available_filters = nova.scheduler.filters.all_filters\n'
        'available_filters = '
        'blazarnova.scheduler.filters.blazar_filter.BlazarFilter\n'
    )
    blazar = tmp_path / 'blazar.conf'
    blazar.write_text(
        '[manager]\nplugins = physical.host.plugin,virtual.instance.plugin\n'
    )
    stack('stack post-config', ISOLATE_AGGREGATES_BLAZAR='yes')
    assert lines_of(blazar, 'manager') == [
        'plugins = physical.host.plugin,virtual.instance.placement'
    ]
    started = starts(tmp_path / 'nova.conf')
    assert started['unknown'] == []
    assert 'blazar_reservation' in started['request_filters']
    assert started['host_filters'] == [
        'ComputeFilter',
        'IsolatedAggregatesFilter',
    ]
    # The filters that other plugins made available stay.
    [available] = [
        line
        for line in lines_of(tmp_path / 'nova.conf', 'filter_scheduler')
        if 'BlazarFilter' in line
    ]
    assert available.startswith('available_filters')


def test_the_package_is_installed_with_the_clients_commands(stack):
    assert stack('stack pre-install', 'stack install').stdout == (
        f'setup_develop {ROOT}\n'
        f'setup_develop {ROOT}/isolate-aggregates-tools osc\n'
    )


@pytest.mark.parametrize('status', [0, 1])
def test_stack_continues_after_warnings(stack, status, tmp_path):
    result = stack(
        'stack extra', STATUS=str(status), ISOLATE_AGGREGATES_SYNC='False'
    )
    assert result.stdout == (
        'isolate-aggregates-status --config-file '
        f'{tmp_path}/nova.conf upgrade check\n'
    )


def test_stack_ends_if_the_check_fails(stack):
    result = stack('stack extra', STATUS='2', check=False)
    assert result.returncode == 1
    assert (
        result.stderr == 'isolate-aggregates is not set up as it has to be\n'
    )


def test_the_timer_runs_sync_as_the_user_of_devstack(stack, tmp_path):
    result = stack('stack extra')
    units = tmp_path / 'systemd'
    assert (
        'systemctl enable --now isolate-aggregates-sync.timer' in result.stdout
    )
    service = configparser.RawConfigParser(strict=True)
    service.optionxform = str
    service.read(units / 'isolate-aggregates-sync.service')
    assert service['Service']['User'] == 'stack'
    assert service['Service']['ExecStart'] == (
        f'{tmp_path}/bin/isolate-aggregates --config-file '
        f'{tmp_path}/nova.conf --os-cloud devstack-admin sync --yes'
    )
    stack('unstack', 'clean')
    assert list(units.iterdir()) == []


def test_the_example_uses_existing_commands(
    stack, tmp_path, monkeypatch, without_configuration
):
    result = stack(
        'stack test-config',
        ISOLATE_AGGREGATES_EXAMPLE='True',
        ISOLATE_AGGREGATES_EXAMPLE_HOSTS='h1,h2',
    )
    lines = result.stdout.splitlines()
    assert [line for line in lines if ' add host ' in line] == [
        f'openstack --os-cloud devstack-admin aggregate add host win-hosts {h}'
        for h in ('h1', 'h2')
    ]
    ours = [line.split()[1:] for line in lines if line.startswith('isolate')]
    assert [words[4:6] for words in ours] == [
        ['lock', 'create'],
        ['key', 'add'],
    ]
    for words in ours:
        program = app.IsolateAggregatesApp(words)
        _, rest = program.parser.parse_known_args(words)
        command, _, own = program.command_manager.find_command(rest)
        command(program, None).get_parser('x').parse_args(own)


@pytest.mark.parametrize(
    'phase',
    [
        'stack pre-install',
        'stack install',
        'stack post-config',
        'stack extra',
        'stack test-config',
        'unstack',
        'clean',
    ],
)
def test_a_node_without_nova_scheduler_is_left_alone(stack, phase, tmp_path):
    result = stack(
        phase,
        ENABLED_SERVICES='n-cpu',
        ISOLATE_AGGREGATES_EXAMPLE='True',
        ISOLATE_AGGREGATES_BLAZAR='True',
    )
    assert result.stdout == result.stderr == ''
    assert (tmp_path / 'nova.conf').read_text() == NOVA_CONF
