# SPDX-License-Identifier: Apache-2.0
"""``candidate list`` leaves out what Nova drops after Placement."""

import json

CLOUD = """\
version: 1
settings:
  filter_scheduler:
    enabled_filters: [AggregateInstanceExtraSpecsFilter, RamFilter]
aggregates:
- {name: ssd, metadata: {ssd: 'true'}, hosts: [cn1]}
providers:
- {name: cn1.example.org, host: cn1, inventories: {VCPU: 8}}
- {name: cn2.example.org, host: cn2, inventories: {VCPU: 8}}
flavors:
- name: fast
  vcpus: 1
  extra_specs: {'aggregate_instance_extra_specs:ssd': 'true'}
"""


def test_hosts_dropped_by_nova_are_listed_separately(run, tmp_path):
    path = tmp_path / 'cloud.yaml'
    path.write_text(CLOUD)
    arguments = (
        'candidate',
        'list',
        '--snapshot',
        str(path),
        '--flavor',
        'fast',
    )
    document = json.loads(run(*arguments, '-f', 'json').out)
    assert [host['name'] for host in document['hosts']] == ['cn1.example.org']
    assert document['dropped'] == [
        {
            'name': 'cn2.example.org',
            'reasons': ['in no aggregate with ssd=true'],
        }
    ]
    assert document['not_known'] == [
        'which hosts the host filters RamFilter drop after Placement'
    ]
    assert (
        '1 host may be used.\n'
        '\n'
        'Dropped by Nova, after Placement:\n'
        '  cn2.example.org: in no aggregate with ssd=true\n'
        '\n'
        'Not known here:\n'
        '  which hosts the host filters RamFilter drop after Placement\n'
    ) in run(*arguments).out


def filtering(folder, more=''):
    """Write the cloud with the request filter switched on."""
    path = folder / 'cloud.yaml'
    path.write_text(
        CLOUD.replace(
            'settings:\n',
            'settings:\n'
            '  isolate_aggregates:\n'
            '    request_filters: [aggregate_instance_extra_specs]\n' + more,
        )
    )
    return path


def test_reasons_of_a_request_filter_are_not_repeated(run, tmp_path):
    path = filtering(tmp_path)
    arguments = ('--snapshot', str(path), '--flavor', 'fast')
    document = json.loads(
        run('candidate', 'list', *arguments, '-f', 'json').out
    )
    assert [host['name'] for host in document['hosts']] == ['cn1.example.org']
    assert document['dropped'] == []
    assert {
        'filter': 'aggregate_instance_extra_specs',
        'kind': 'required-metadata',
        'reason': 'aggregate ssd: flavor fast requires ssd=true',
    } in document['constraints']
    named = {each['filter'] for each in document['constraints']}
    assert 'AggregateInstanceExtraSpecsFilter' not in named
    snapshot = ('--snapshot', str(path))
    [row] = json.loads(run('matrix', 'list', *snapshot, '-f', 'json').out)[
        'rows'
    ]
    told = [
        (row['verdicts'], reason['filter'], reason['reason'])
        for reason in row['reasons']
    ]
    assert told == [
        (
            ['yes', 'no'],
            'aggregate_instance_extra_specs',
            'aggregate ssd: flavor fast requires ssd=true',
        )
    ]
    capacity = run('capacity', 'list', *arguments, '-f', 'value')
    assert capacity.out.splitlines() == ['cn1 8']


def test_requirements_left_to_a_host_filter_are_reported(run, tmp_path):
    """Placement offers all hosts, and Nova drops those without."""
    path = filtering(tmp_path, '    max_query_length: 80\n')
    arguments = ('--snapshot', str(path), '--flavor', 'fast')
    document = json.loads(
        run('candidate', 'list', *arguments, '-f', 'json').out
    )
    assert 'member_of' not in document['query']
    assert [host['name'] for host in document['hosts']] == ['cn1.example.org']
    assert [host['name'] for host in document['dropped']] == [
        'cn2.example.org'
    ]
    left = {
        'filter': 'aggregate_instance_extra_specs',
        'kind': 'required-metadata',
        'reason': 'aggregate ssd: flavor fast requires ssd=true',
        'host_filter': 'IsolatedAggregatesFilter',
    }
    assert document['left_to_host_filters'] == [left]
    explained = json.loads(run('explain', *arguments, '-f', 'json').out)
    assert explained['summary']['left_to_host_filters'] == [left]
    said = (
        'Left to host filters because the query would be too long:\n'
        '  to IsolatedAggregatesFilter: '
        'aggregate_instance_extra_specs: aggregate ssd: flavor fast requires '
        'ssd=true\n'
    )
    for command in (('candidate', 'list'), ('explain',)):
        assert said in run(*command, *arguments).out
    capacity = run('capacity', 'list', *arguments, '-f', 'value')
    assert capacity.out.splitlines() == ['cn1 8']
