# SPDX-License-Identifier: Apache-2.0
"""Dashboard and alerts use only existing metrics and labels.

That real programs take them is tested in ``tests/servers``.
"""

import json
import pathlib
import re

from pages import SOURCE
import pytest
from samples import documented
import yaml

ETC = pathlib.Path(__file__).parents[3] / 'etc'
DASHBOARD = json.loads(
    (ETC / 'grafana/isolate-aggregates.json').read_text('utf-8')
)
RULES = yaml.safe_load(
    (ETC / 'prometheus/isolate-aggregates.rules.yml').read_text('utf-8')
)
PAGE = (SOURCE / 'admin' / 'metrics.rst').read_text('utf-8')
# What Prometheus itself adds, and the label that tells clouds apart.
TARGET = {'cluster', 'instance', 'job'}

# The selector of the chosen clouds.
CLUSTER = '{cluster=~"$cluster"}'

ALERTS = [rule for group in RULES['groups'] for rule in group['rules']]
PANELS = [panel for panel in DASHBOARD['panels'] if panel['type'] != 'row']


def used(expression):
    """Return the metrics and the labels that an expression names."""
    names = re.findall(r'isolate_aggregates_\w+', expression)
    labels = re.findall(r'[{,] ?(\w+)(?:=~|!=|=)', expression)
    for some in re.findall(r'(?:by|on) \(([^)]+)\)', expression):
        labels += some.split(', ')
    return [name.removesuffix('_bucket') for name in names], set(labels)


def check(expression, also=()):
    """Check that the metrics have the labels in an expression."""
    all_names = documented(PAGE)
    names, labels = used(expression)
    assert names
    for name in names:
        assert name in all_names, name
    there = TARGET.union(*(all_names[name] for name in names), {'le'})
    assert labels | set(also) <= there


@pytest.mark.parametrize('panel', PANELS, ids=lambda panel: panel['title'])
def test_each_panel_uses_existing_metrics(panel):
    assert panel['fieldConfig']['defaults']['unit']
    assert panel['datasource']['uid'] == '${datasource}'
    assert panel['targets']
    for target in panel['targets']:
        assert target['datasource'] == panel['datasource']
        labels = re.findall(r'{{(\w+)}}', target['legendFormat'])
        check(target['expr'], labels)


@pytest.mark.parametrize('panel', PANELS, ids=lambda panel: panel['title'])
def test_each_panel_separates_the_chosen_clouds(panel):
    for target in panel['targets']:
        selectors = re.findall(
            r'isolate_aggregates_\w+(.{20})', target['expr']
        )
        assert selectors
        assert set(selectors) == {CLUSTER[:20]}
        for labels in re.findall(r'\b(?:sum|max) (.*?)\(', target['expr']):
            assert labels == 'by '
        for labels in re.findall(r'by \((.*?)\)', target['expr']):
            assert 'cluster' in labels.split(', ')
        assert target['legendFormat'].startswith('{{cluster}} ')


def test_panels_have_distinct_titles_and_places():
    titles = [panel['title'] for panel in DASHBOARD['panels']]
    assert len(set(titles)) == len(titles)
    ids = [panel['id'] for panel in DASHBOARD['panels']]
    assert len(set(ids)) == len(ids)
    taken = set()
    for panel in DASHBOARD['panels']:
        at = panel['gridPos']
        cells = {
            (x, y)
            for x in range(at['x'], at['x'] + at['w'])
            for y in range(at['y'], at['y'] + at['h'])
        }
        assert not cells & taken, panel['title']
        assert at['x'] + at['w'] <= 24
        taken |= cells


def test_the_data_source_and_the_selection_can_be_chosen():
    variables = {one['name']: one for one in DASHBOARD['templating']['list']}
    assert variables['datasource']['type'] == 'datasource'
    names = documented(PAGE)
    for name in variables.keys() - {'datasource'}:
        metric, selector, label = re.fullmatch(
            r'label_values\((\w+)({.+})?, (\w+)\)',
            variables[name]['definition'],
        ).groups()
        assert label in TARGET.union(names[metric])
        assert selector == (None if name == 'cluster' else CLUSTER)
    used = {
        name
        for panel in PANELS
        for target in panel['targets']
        for name in re.findall(r'\$(\w+)', target['expr'])
    }
    assert used == variables.keys() - {'datasource'} | {'__rate_interval'}


@pytest.mark.parametrize('rule', ALERTS, ids=lambda rule: rule['alert'])
def test_each_alert_uses_existing_metrics(rule):
    assert set(rule) == {'alert', 'expr', 'for', 'labels', 'annotations'}
    assert set(rule['labels']) == {'severity'}
    runbook = rule['annotations']['runbook_url']
    assert runbook.endswith(f'/admin/metrics.html#{rule["alert"].lower()}')
    assert set(rule['annotations']) == {
        *('summary', 'description', 'runbook_url')
    }
    labels = re.findall(r'\$labels\.(\w+)', str(rule['annotations']))
    check(rule['expr'], labels)


def test_the_page_says_what_to_do_about_each_alert():
    after = PAGE.partition('\nDashboard and alerts\n')[2]
    assert re.findall(r'^(\w+)\n-+\n', after, re.MULTILINE) == [
        rule['alert'] for rule in ALERTS
    ]


def test_every_metric_is_in_the_dashboard_or_in_an_alert():
    expressions = ' '.join(
        [rule['expr'] for rule in ALERTS]
        + [target['expr'] for panel in PANELS for target in panel['targets']]
    )
    hardly = {
        # Of what few clouds have, of the exporter itself, or in others.
        'isolate_aggregates_lock_aggregates',
        'isolate_aggregates_lock_capacity_bytes_per_second',
        'isolate_aggregates_lock_used_bytes_per_second',
        'isolate_aggregates_lock_capacity_packets_per_second',
        'isolate_aggregates_lock_used_packets_per_second',
        'isolate_aggregates_snapshot_duration_seconds',
        'isolate_aggregates_last_failure_timestamp_seconds',
        'isolate_aggregates_build_info',
    }
    assert documented(PAGE).keys() - hardly == set(used(expressions)[0])
