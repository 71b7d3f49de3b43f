# SPDX-License-Identifier: Apache-2.0
"""No command counts on hosts whose compute service is down or disabled."""

import pytest

NODE = """
    - name: {0}
      host: {0}
      inventories: {{VCPU: 4, MEMORY_MB: 4096, DISK_GB: 100}}
      traits: [CUSTOM_WIN]
"""
CLOUD = f"""
    settings:
      scheduler: {{enable_isolated_aggregate_filtering: true}}
      filter_scheduler: {{enabled_filters: [ComputeFilter]}}
    aggregates:
    - name: win
      metadata: {{'trait:CUSTOM_WIN': required}}
      hosts: [disabled, down, up]
    providers:
{''.join(NODE.format(name) for name in ('disabled', 'down', 'up'))}
    flavors:
    - name: m1
      vcpus: 1
      ram: 1
      extra_specs: {{'trait:CUSTOM_WIN': required}}
    servers:
    - {{id: s1, name: s1, host: up, flavor: m1, project: demo,
       status: ACTIVE}}
    compute_services:
    - {{host: up}}
    - {{host: down, state: down}}
    - {{host: disabled, status: disabled}}
"""
EXPECTED = """
version: 1
expectations:
- {name: no other, flavor: m1, exactly: {host: up}}
- {name: room, flavor: m1, min_room: 4}
- {name: too much room, flavor: m1, min_room: 5}
"""
WITHOUT_FILTER = CLOUD.replace('[ComputeFilter]', '[SameHostFilter]')
ASKED = '--flavor', 'm1'


def of_hosts(document):
    return [host['name'] for host in document['hosts']]


def test_explain_says_why(ask):
    answer = ask(CLOUD, 'explain', *ASKED)
    dropped = 'dropped after Placement by ComputeFilter: its compute service'
    assert {host['name']: host['reasons'] for host in answer['hosts']} == {
        'disabled': [f'{dropped} is disabled'],
        'down': [f'{dropped} is down'],
        'up': [],
    }
    kinds = {
        each['kind']: each['excludes']
        for each in answer['summary']['constraints']
        if each['excludes']
    }
    assert kinds == {'service-down': 1, 'service-disabled': 1}


def test_explain_of_a_server_says_why(ask):
    answer = ask(CLOUD, 'explain', '--server', 's1')
    assert [h['name'] for h in answer['hosts'] if not h['reasons']] == ['up']


def test_candidates_and_capacity_leave_them_out(ask):
    answer = ask(CLOUD, 'candidate', 'list', *ASKED)
    assert of_hosts(answer) == ['up']
    assert {each['name']: each['reasons'] for each in answer['dropped']} == {
        'disabled': ['its compute service is disabled'],
        'down': ['its compute service is down'],
    }
    assert of_hosts(ask(CLOUD, 'capacity', 'list', *ASKED)) == ['up']


def test_nova_without_the_filter_uses_them(ask):
    answer = ask(WITHOUT_FILTER, 'candidate', 'list', *ASKED)
    assert of_hosts(answer) == ['disabled', 'down', 'up']


def test_the_matrix_says_why(ask):
    [row] = ask(CLOUD, 'matrix', 'list')['rows']
    assert row['verdicts'] == ['no', 'yes']
    assert {each['kind']: each['groups'] for each in row['reasons']} == {
        'service-disabled': [0],
        'service-down': [1],
    }


def test_lists_count_nothing_as_free_there(ask):
    [lock] = ask(CLOUD, 'lock', 'list')['locks']
    assert lock['unusable_hosts'] == ['disabled', 'down']
    assert lock['capacity']['VCPU']['free'] == 4
    shown = ask(CLOUD, 'lock', 'show', 'down')
    assert shown['capacity']['VCPU']['free'] == 0
    assert shown['problems'] == ['the compute service of host down is down']
    shown = ask(CLOUD, 'lock', 'show', 'win')
    assert shown['unusable_hosts'] == ['disabled', 'down']


def test_the_audit_finds_them(ask):
    found = ask(CLOUD, 'audit', status=4)['findings']
    assert {(each['kind'], each['subject']) for each in found} >= {
        ('service-down', 'host down'),
        ('service-disabled', 'host disabled'),
    }


@pytest.mark.parametrize('reason', ['reserved', 'masakari reserved'])
def test_no_spare_is_to_be_enabled(ask, reason):
    def commands(cloud):
        found = ask(cloud, 'audit', status=4)['findings']
        full = cloud.replace('vcpus: 1', 'vcpus: 5')
        explained = ask(full, 'explain', *ASKED)
        return f'{found} {explained}'

    # The one that somebody disabled for another reason is.
    enable = 'compute service set --enable'
    assert enable in commands(CLOUD)
    spare = CLOUD.replace(
        'status: disabled', f'status: disabled, disabled_reason: {reason}'
    )
    assert spare != CLOUD
    assert enable not in commands(spare)
    without_up = spare.replace('{host: up}', '{host: up, state: down}')
    assert enable not in str(ask(without_up, 'explain', *ASKED))
    without_up = CLOUD.replace('{host: up}', '{host: up, state: down}')
    assert enable in str(ask(without_up, 'explain', *ASKED))


def test_the_exporter_counts_no_slots_there(run, write_cloud, tmp_path):
    path, file = str(write_cloud(CLOUD)), tmp_path / 'metrics.prom'
    run('exporter', '--snapshot', path, '--output', str(file))
    text = file.read_text()
    assert 'isolate_aggregates_lock_free_slots{flavor_id="' in text
    slots = {
        line.rsplit(' ', 1)[1]
        for line in text.splitlines()
        if line.startswith('isolate_aggregates_lock_free_slots{')
    }
    assert slots == {'4.0'}


def test_expectations_leave_them_out(ask, tmp_path):
    expectations = tmp_path / 'expectations.yaml'
    expectations.write_text(EXPECTED)
    answer = ask(CLOUD, 'test', str(expectations), status=4)
    results = [each['result'] for each in answer['expectations']]
    assert results == ['passed', 'passed', 'failed']


def test_an_effect_does_not_count_them(ask):
    answer = ask(CLOUD, 'effect', 'show', '--unset', 'win', 'trait:CUSTOM_WIN')
    assert [each['gained'] for each in answer['flavors']] == [['up']]
    assert [each['slots']['after'] for each in answer['flavors']] == [4]


def test_servers_can_only_move_to_the_others(ask):
    survived = ask(CLOUD, 'survival', 'list', status=4)
    [case] = [case for case in survived['cases'] if case['without_host']]
    assert case['hosts'] == ['up']
