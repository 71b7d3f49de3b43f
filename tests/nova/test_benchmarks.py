# SPDX-License-Identifier: Apache-2.0
"""The benchmarks for the documentation run, and write the data it needs."""

import csv
import pathlib
import subprocess
import sys

import pytest

BENCHMARKS = pathlib.Path(__file__).parents[2] / 'tools' / 'benchmarks'


@pytest.mark.parametrize(
    ('name', 'arguments', 'key', 'measured'),
    [
        pytest.param(
            'databases',
            ['--quick', '--databases', 'sqlite'],
            ('database', 'aggregates', 'filters'),
            [
                ('sqlite', '10', 'isolate_aggregates'),
                ('sqlite', '10', 'default'),
                ('sqlite', '10', 'shortened'),
                ('sqlite', '20', 'isolate_aggregates'),
                ('sqlite', '20', 'default'),
                ('sqlite', '20', 'shortened'),
            ],
            id='databases',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            'leases',
            ['--quick', '10', '20'],
            ('leases',),
            [('10',), ('20',)],
            id='leases',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            'candidate_limit',
            ['1'],
            ('wanted', 'limit'),
            [
                ('20', '50'),
                ('20', '100'),
                ('20', '200'),
                ('5', '100'),
                ('5', '500'),
            ],
            id='candidate_limit',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            'effect',
            ['40'],
            ('hosts', 'servers'),
            [('40', '800')],
            id='effect',
        ),
        pytest.param(
            'rehearsals',
            ['40'],
            ('tool', 'hosts', 'flavors'),
            [
                ('true', '40', '2'),
                ('4 changes', '40', '2'),
                ('all flavors', '40', '200'),
            ],
            id='rehearsals',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            'ledger',
            ['200'],
            ('servers', 'source', 'stays'),
            [('200', 'nova', '240'), ('200', 'file', '240')],
            id='ledger',
        ),
        pytest.param(
            'decision_logs',
            ['200'],
            ('lines', 'kind', 'records'),
            [
                ('200', 'plain', '200'),
                ('200', 'json', '200'),
                ('200', 'mixed', '20'),
                ('200', 'shadow', '200'),
            ],
            id='decision_logs',
        ),
        pytest.param(
            'expectations',
            ['80'],
            ('hosts', 'expectations'),
            [('80', '56')],
            id='expectations',
        ),
        pytest.param(
            'slots',
            ['20'],
            ('hosts', 'locks'),
            [('20', '2')],
            id='slots',
        ),
        pytest.param(
            'metrics',
            ['2'],
            ('what',),
            [('switched off',), ('switched on',), ('a refusal',)],
            id='metrics',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            'reservations',
            # 400 reservations need more than three hosts have.
            ['3:1', '3:400'],
            ('hosts', 'reservations'),
            [('3', '1'), ('3', '400')],
            id='reservations',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            'records',
            ['20', '--databases', 'sqlite'],
            ('database', 'servers'),
            [('sqlite', '20')],
            id='records',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            'endurance',
            ['sync', 'reconcile', '--rounds', '20'],
            ('service', 'percent', 'done'),
            [
                ('sync', '10', '2'),
                ('sync', '50', '10'),
                ('sync', '100', '20'),
                ('reconcile', '10', '2'),
                ('reconcile', '50', '10'),
                ('reconcile', '100', '20'),
            ],
            id='endurance',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            'scale',
            ['10', '20', '--commands', 'lock show', 'sync', 'exporter'],
            ('command', 'hosts', 'aggregates', 'flavors'),
            [
                ('lock show', '10', '5', '1'),
                ('lock show', '20', '7', '1'),
                ('sync', '10', '5', '1'),
                ('sync', '20', '7', '1'),
                ('exporter', '10', '5', '1'),
                ('exporter', '20', '7', '1'),
            ],
            id='scale',
        ),
        pytest.param(
            'scale',
            ['10'],
            ('command',),
            [
                (command,)
                for command in (
                    'filter list',
                    'lock show',
                    'lock list',
                    'candidate list --query',
                    'candidate list',
                    'explain',
                    'capacity list',
                    'matrix list',
                    'matrix list as JSON',
                    'audit',
                    'audit of servers',
                    'survival list',
                    'report save',
                    'exporter',
                    'sync',
                    'sync with effect',
                    'effect show --to',
                )
            ],
            id='scale with all commands',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            'trouble',
            ['10', '--states', 'all answer'],
            ('state', 'kind', 'requests', 'refused'),
            [
                ('all answer', 'fits', '10', '0'),
                ('all answer', 'shortened', '10', '0'),
                ('all answer', 'host check', '10', '0'),
                ('all answer', 'forced', '1', '0'),
            ],
            id='trouble',
        ),
    ],
)
def test_a_benchmark_writes_the_columns_that_pages_are_made_from(
    name, arguments, key, measured, tmp_path
):
    written = tmp_path / 'written.csv'
    subprocess.run(
        [
            *(sys.executable, '-W', 'ignore', BENCHMARKS / f'{name}.py'),
            *arguments,
            *('--csv', written),
        ],
        check=True,
        capture_output=True,
    )
    with written.open(encoding='utf-8') as stream:
        found = csv.DictReader(stream)
        rows = [*found]
    assert [tuple(row[one] for one in key) for row in rows] == measured
    with (BENCHMARKS / 'results' / f'{name}.csv').open() as stream:
        assert found.fieldnames == csv.DictReader(stream).fieldnames
