# SPDX-License-Identifier: Apache-2.0
"""``isolate-aggregates audit``: output, statuses, what could not be read."""

import json
import re

from cases import cases
from http_fakes import NOVA
from live_example import ISOLATE
import pytest

CLEAN = """
    settings: {scheduler: {enable_isolated_aggregate_filtering: true}}
    aggregates:
    - {name: win, metadata: {trait:CUSTOM_A: required}, hosts: [h1]}
    providers:
    - {name: h1, inventories: {VCPU: 4}, traits: [CUSTOM_A]}
    flavors:
    - {name: f, vcpus: 1, extra_specs: {trait:CUSTOM_A: required}}
"""
MISSING = CLEAN.replace('traits: [CUSTOM_A]', 'traits: []')
ODD = CLEAN + '    - {name: odd, extra_specs: {trait:CUSTOM_A: maybe}}\n'
NOTE = CLEAN.replace(
    '{trait:CUSTOM_A: required}, hosts',
    '{trait:CUSTOM_A: required, trait:CUSTOM_B: maybe}, hosts',
)


@pytest.fixture
def audit(run, write_cloud):
    """Audit the cloud that a text describes."""
    return lambda text, *arguments: run(
        'audit', '--snapshot', str(write_cloud(text)), *arguments
    )


@cases(
    ('text', 'level', 'status'),
    {
        'clean': (CLEAN, 'info', 0),
        'info': (NOTE, 'info', 4),
        'only info': (NOTE, 'warning', 0),
        'error': (MISSING, 'error', 4),
    },
)
def test_the_exit_code_tells_whether_there_are_findings(
    audit, text, level, status
):
    result = audit(text, '--fail-on', level)
    assert (result.code, result.err) == (status, '')


def test_warnings_fail_unless_a_threshold_is_given(audit):
    assert audit(ODD).code == 4
    assert audit(ODD, '--fail-on', 'error').code == 0


def test_each_finding_is_a_paragraph_with_its_repair_below_it(audit):
    result = audit(MISSING)
    # A file has none: --fix needs a live cloud.
    head, first, second, last = result.out.split('\n\n')
    assert head == (
        'error: 1, warning: 1, info: 0\n'
        'Repairs with * are safe; --fix applies them to the live cloud.'
    )
    assert first.startswith('1. error: aggregate ')
    assert first.endswith(
        '\n * isolate-aggregates sync\n      lets flavor f use h1'
    )
    assert second.startswith('2. warning: ')
    assert second.endswith('\n * the repair of 1')
    assert last == (
        'The page Findings of the documentation has a section for each '
        'kind: no-host, trait-missing.\n'
    )


def test_findings_are_a_table_for_those_who_choose_columns(audit):
    result = audit(MISSING, '-c', 'No.', '-c', 'Severity')
    assert '| No. | Severity |' in result.out
    assert 'isolate-aggregates sync' not in result.out


def test_fix_is_not_offered_without_safe_repairs(audit):
    assert '--fix' not in audit(ODD).out


def test_long_names_all_hosts_in_a_sentence(audit):
    names = [f'h{number}' for number in range(9)]
    text = """
aggregates:
- name: a
  metadata: {trait:HW_CPU_X86_AVX: required}
providers:
""" + ''.join(f'- {{name: {n}, traits: [HW_CPU_X86_AVX]}}\n' for n in names)
    wide = '--max-width', '500'
    assert 'is on h0, h1, h2, h3, h4 and 4 more' in audit(text, *wide).out
    for options in (('--long', *wide), ('-f', 'value'), ('-f', 'csv')):
        assert f'is on {", ".join(names)}' in audit(text, *options).out


def test_each_host_without_the_trait_is_named(audit):
    names = [f'h{number}' for number in range(9)]
    text = f"""
settings: {{scheduler: {{enable_isolated_aggregate_filtering: true}}}}
aggregates:
- name: a
  metadata: {{trait:CUSTOM_A: required}}
  hosts: [{', '.join(names)}]
providers:
- {{name: h0, traits: [CUSTOM_A]}}
""" + ''.join(f'- name: {name}\n' for name in names[1:])
    [said] = re.findall('requires trait.*', audit(text, '-f', 'value').out)
    assert f'missing in Placement on {", ".join(names[1:])} ' in said
    assert 'no server can land on them: ' in said
    assert 'missing in Placement on h[1-8]' in audit(text).out


def test_a_clean_cloud_is_reported(audit):
    assert audit(CLEAN).out.startswith('No problems found.\n')


def test_json_and_yaml_have_one_document(audit):
    result = audit(MISSING, '-f', 'json')
    document = json.loads(result.out)
    assert document['summary'] == {'info': 0, 'warning': 1, 'error': 1}
    assert document['findings'][0] == {
        'kind': 'trait-missing',
        'severity': 'error',
        'subject': 'aggregate win',
        'problem': 'requires trait CUSTOM_A, which is missing in Placement '
        'on h1',
        'consequence': 'no server can land on it: servers that require '
        'the trait do not find it, and all others are kept out',
        'repairs': [
            {
                'command': 'isolate-aggregates sync',
                'text': 'lets flavor f use h1',
                'opens': [
                    {
                        'flavors': ['f'],
                        'images': [],
                        'projects': [],
                        'hosts': ['h1'],
                    }
                ],
                'safe': True,
            }
        ],
        'hosts': ['h1'],
        'aggregates': ['win'],
        'flavors': [],
        'images': [],
        'projects': [],
        'servers': [],
    }


def test_both_repairs_are_offered_for_a_trait_that_no_host_has(audit):
    other = (
        '    - {name: g, vcpus: 1, extra_specs: {trait:CUSTOM_B: required}}\n'
    )
    repairs = audit(CLEAN + other).out.partition('1. ')[2].splitlines()
    assert '--property trait:CUSTOM_B' in repairs[1]
    assert repairs[2].startswith(
        ' or: isolate-aggregates lock create AGGREGATE --trait CUSTOM_B'
    )
    # sync gives it to a host of an aggregate that requires it.
    assert ' or: ' not in audit(MISSING).out


def test_csv_and_value_have_one_row_per_finding(audit):
    result = audit(MISSING, '-f', 'value', '-c', 'Kind', '-c', 'Safe')
    assert result.out == 'trait-missing True\nno-host True\n'


def test_control_characters_in_names_are_escaped(audit):
    text = CLEAN.replace('name: win', r'name: "\e[2Jwin\nfake"')
    text = text.replace('traits: [CUSTOM_A]', 'traits: []')
    assert audit(text).code == 4
    assert '\x1b' not in audit(text).out
    assert r'\x1b[2Jwin\nfake' in audit(text).out


@pytest.mark.parametrize(
    'arguments',
    [
        ('--snapshot', 'x.yaml', '--fix'),
        ('--yes',),
        ('--fail-on', 'never'),
    ],
)
def test_invalid_arguments_are_refused(run, arguments):
    result = run('audit', *arguments)
    assert result.code == 2
    assert result.err.endswith(' audit --help.\n')


# Data that could not be read never counts as clean.


def test_an_invalid_cloud_file_is_a_failure(audit):
    result = audit('aggregates: 7')
    assert (result.code, result.out) == (1, '')
    assert 'Cloud file' in result.err


@pytest.mark.usefixtures('without_configuration')
def test_an_unreadable_configuration_is_a_failure(run, config):
    result = run('--config-file', config('[scheduler'), 'audit')
    assert (result.code, result.out) == (1, '')
    assert result.err.startswith('The configuration ')


@pytest.mark.usefixtures('without_configuration')
def test_missing_credentials_are_a_failure(run, config):
    result = run('--config-file', config(ISOLATE), 'audit')
    assert (result.code, result.out) == (1, '')


@pytest.fixture
def live_audit(run, config, live, in_environment):
    """Audit the example as a live cloud."""
    path = config(ISOLATE)
    return lambda *arguments: run('--config-file', path, 'audit', *arguments)


def test_a_live_cloud_in_order_is_clean(live_audit):
    result = live_audit('-f', 'json')
    findings = json.loads(result.out)['findings']
    # For maintenance.
    assert [(f['kind'], f['subject']) for f in findings] == [
        ('service-disabled', 'host linux-3')
    ]
    assert (result.code, result.err) == (0, '')


@pytest.mark.parametrize(
    'path',
    [
        'os-aggregates',
        'flavors/detail',
        'os-hypervisors/detail',
        'servers',
        'servers/detail',
        'v2/images',
        'resource_providers',
        'resource_classes',
        'traits',
    ],
)
@pytest.mark.parametrize('status', [403, 500])
def test_each_failed_request_is_a_failure(live_audit, http, path, status):
    http.get(f'{NOVA}/servers', json={'servers': []})
    http.get(f'{NOVA}/servers/detail', json={'servers': []})
    assert live_audit('--servers').code == 0
    http.get(
        re.compile(rf'//[^?]*/{path}(\?|$)'),
        status_code=status,
        json={'error': {'message': 'not for you'}},
    )
    result = live_audit('--servers')
    assert (result.code, result.out) == (1, '')
    assert 'not for you' in result.err
