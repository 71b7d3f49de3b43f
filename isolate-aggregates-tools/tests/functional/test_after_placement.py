# SPDX-License-Identifier: Apache-2.0
"""What nova-scheduler does with the answers of Placement, in all commands.

``tests/nova_functional/test_answers.py`` shows that Nova does so.
"""

import sys

import pytest

NODE = 'VCPU: 4, MEMORY_MB: 4096, DISK_GB: 100'
PINNED = "{'hw:cpu_policy': dedicated, 'hw:cpu_thread_policy': require}"

# The whole request comes from a child or from shared storage.
ELSEWHERE = """
    providers:
    - name: cn1
      host: cn1
      inventories: {VCPU: 4, MEMORY_MB: 4096, DISK_GB: 100}
      children:
      - {name: gpu, inventories: {VGPU: 4}}
    - name: cn2
      host: cn2
      inventories: {VGPU: 4}
    flavors:
    - name: only-gpu
      extra_specs: {'resources:VGPU': '1', 'resources:VCPU': '0',
                    'resources:MEMORY_MB': '0', 'resources:DISK_GB': '0'}
    - {name: gpu, vcpus: 1, ram: 1, extra_specs: {'resources:VGPU': '1'}}
"""


def names(document):
    return [host['name'] for host in document['hosts']]


def test_a_host_is_skipped_if_its_compute_node_gives_nothing(ask):
    asked = ('--flavor', 'only-gpu')
    answer = ask(ELSEWHERE, 'candidate', 'list', *asked)
    assert names(answer) == ['cn2']
    [dropped] = answer['dropped']
    assert dropped['name'] == 'cn1'
    assert dropped['reasons'] == [
        'Nova skips it: all resources would come from other providers, and '
        'none from the compute node itself'
    ]
    explained = ask(ELSEWHERE, 'explain', *asked)
    assert explained['summary']['candidates'] == 1
    reasons = {host['name']: host['reasons'] for host in explained['hosts']}
    assert reasons == {'cn1': dropped['reasons'], 'cn2': []}
    assert [
        c['excludes']
        for c in explained['summary']['constraints']
        if c['kind'] == 'compute-node'
    ] == [1]
    assert names(ask(ELSEWHERE, 'capacity', 'list', *asked)) == ['cn2']


def test_a_host_is_used_if_its_compute_node_gives_something(ask):
    explained = ask(ELSEWHERE, 'explain', '--flavor', 'gpu', '--candidates')
    assert names(explained) == ['cn1']
    assert 'compute-node' not in {
        c['kind'] for c in explained['summary']['constraints']
    }
    assert names(ask(ELSEWHERE, 'candidate', 'list', '--flavor', 'gpu')) == [
        'cn1'
    ]


def test_no_command_advises_to_drop_what_nova_relies_on(run, write_cloud):
    cloud = ELSEWHERE.replace('inventories: {VGPU: 4}\n    fl', 'fl')
    path = write_cloud(
        cloud.replace('    - name: cn2\n      host: cn2\n      ', '    ')
    )
    result = run('explain', '--snapshot', str(path), '--flavor', 'only-gpu')
    assert (result.code, result.err) == (0, '')
    assert '0 of 1 host may be used.' in result.out
    assert 'Dropping any one' not in result.out


def many(count, limit):
    hosts = '\n'.join(
        f'    - {{name: cn{number}, inventories: {{{NODE}}}}}'
        for number in range(count)
    )
    return f"""
    settings:
      scheduler: {{max_placement_results: {limit}}}
    providers:
{hosts}
    flavors:
    - {{name: f, vcpus: 1, ram: 1024, disk: 10}}
"""


@pytest.mark.parametrize(
    'command', ['explain', 'candidate list', 'capacity list']
)
def test_more_candidates_than_nova_receives_are_named(
    ask, run, write_cloud, command
):
    for limit in (7, 8):
        answer = ask(many(7, limit), *command.split(), '--flavor', 'f')
        assert answer.get('summary', answer)['limited'] is None
    answer = ask(many(7, 6), *command.split(), '--flavor', 'f')
    assert answer.get('summary', answer)['limited'] == {
        'candidates': 7,
        'hosts': 7,
        'max_placement_results': 6,
    }
    result = run(
        *command.split(),
        '--snapshot',
        str(write_cloud(many(7, 6))),
        '--flavor',
        'f',
    )
    assert (
        'Of 7 allocation candidates on 7 hosts Nova sees 6, and not always '
        'the same. If host filters drop their hosts, Nova finds no host, '
        'although others would do. Increase [scheduler] max_placement_results '
        'to 7 or more.'
    ) in ' '.join(result.out.split())


def wide(hosts):
    """Return a cloud in which each host can serve a flavor in twelve ways."""
    trees = '\n'.join(
        f"""
    - name: cn{number}
      inventories: {{{NODE}}}
      children:
      - {{name: a{number}, inventories: {{CUSTOM_PCI: 1}}}}
      - {{name: b{number}, inventories: {{CUSTOM_PCI: 1}}}}
      - {{name: c{number}, inventories: {{CUSTOM_PCI: 1}}}}
      - {{name: d{number}, inventories: {{CUSTOM_PCI: 1}}}}"""
        for number in range(hosts)
    )
    return f"""
    settings:
      scheduler: {{max_placement_results: 10}}
    providers:
{trees}
    flavors:
    - name: f
      vcpus: 1
      ram: 1024
      disk: 10
      extra_specs:
        resources1:CUSTOM_PCI: 1
        resources2:CUSTOM_PCI: 1
        group_policy: isolate
"""


@pytest.mark.parametrize(
    'command', ['explain', 'candidate list', 'capacity list']
)
@pytest.mark.parametrize(
    ('hosts', 'said'),
    [
        (
            3,
            'set [placement] allocation_candidates_generation_strategy to '
            'breadth-first in its configuration',
        ),
        (
            1,
            'Placement computes 12 allocation candidates for one host, as '
            'several of its child providers can serve the same request group.',
        ),
    ],
)
def test_more_results_do_not_help_with_wide_trees(
    run, write_cloud, command, hosts, said
):
    result = run(
        *command.split(),
        '--snapshot',
        str(write_cloud(wide(hosts))),
        '--flavor',
        'f',
    )
    text = ' '.join(result.out.split())
    assert said in text
    assert 'Increase [scheduler]' not in text


def pinned(fallback):
    return f"""
    settings:
      workarounds: {{disable_fallback_pcpu_query: {fallback}}}
    providers:
    - {{name: new, inventories: {{PCPU: 4, MEMORY_MB: 4096}},
       traits: [HW_CPU_HYPERTHREADING]}}
    - {{name: old, inventories: {{VCPU: 4, MEMORY_MB: 4096}}}}
    - {{name: both, inventories: {{PCPU: 2, VCPU: 4, MEMORY_MB: 4096}},
       traits: [HW_CPU_HYPERTHREADING]}}
    - {{name: full, inventories: {{VCPU: 1, MEMORY_MB: 4096}}}}
    flavors:
    - {{name: f, vcpus: 2, ram: 1024, extra_specs: {PINNED}}}
"""


def test_pinned_cpus_are_also_requested_as_vcpu(ask):
    cloud, asked = pinned('false'), ('--flavor', 'f')
    answer = ask(cloud, 'candidate', 'list', *asked)
    assert {host['name']: host['candidates'] for host in answer['hosts']} == {
        'both': 2,
        'new': 1,
        'old': 1,
    }
    assert 'PCPU%3A2' in answer['query']
    assert 'VCPU%3A2' in answer['fallback_query']
    assert 'HYPERTHREADING' not in answer['fallback_query']
    explained = ask(cloud, 'explain', *asked)
    assert explained['summary']['candidates'] == 3
    reasons = {host['name']: host['reasons'] for host in explained['hosts']}
    assert reasons['both'] == reasons['new'] == []
    assert reasons['old'] == [
        "offered for Nova's fallback query, which requests VCPU instead of "
        'PCPU'
    ]
    assert reasons['full'] == [
        'has no trait HW_CPU_HYPERTHREADING',
        'PCPU: has none',
        'VCPU: requested 2, free 1 (1 total x 1.0 - 0 used)',
    ]
    capacity = ask(cloud, 'capacity', 'list', *asked)
    assert {host['name']: host['servers'] for host in capacity['hosts']} == {
        'both': 3,
        'new': 2,
        'old': 2,
    }


def test_without_the_fallback_pinned_cpus_are_pcpu(ask):
    cloud, asked = pinned('true'), ('--flavor', 'f')
    answer = ask(cloud, 'candidate', 'list', *asked)
    assert names(answer) == ['both', 'new']
    assert answer['fallback_query'] is None
    assert names(ask(cloud, 'explain', *asked, '--candidates')) == [
        'both',
        'new',
    ]
    capacity = ask(cloud, 'capacity', 'list', *asked)
    assert {host['name']: host['servers'] for host in capacity['hosts']} == {
        'both': 1,
        'new': 2,
    }


SHARING = """
    placement_aggregates:
    - {name: shared}
    providers:
    - name: sharing
      host: sharing
      inventories: {VCPU: 4, MEMORY_MB: 4096, DISK_GB: 100}
      usages: {VCPU: 4}
      traits: [MISC_SHARES_VIA_AGGREGATE]
      aggregates: [shared]
    - name: anchor
      inventories: {VCPU: 4, MEMORY_MB: 4096}
      aggregates: [shared]
    flavors:
    - {name: f, vcpus: 1, ram: 1024, disk: 10}
"""


@pytest.mark.parametrize(
    'command', ['explain', 'candidate list', 'capacity list']
)
def test_a_host_that_may_get_resources_of_another_is_named(
    ask, run, write_cloud, command
):
    asked = (*command.split(), '--flavor', 'f')
    answer = ask(SHARING, *asked)
    assert answer.get('summary', answer)['nova_mixes_hosts'] == ['sharing']
    without = SHARING.replace('[MISC_SHARES_VIA_AGGREGATE]', '[]')
    answer = ask(without, *asked)
    assert answer.get('summary', answer)['nova_mixes_hosts'] == []
    result = run(
        *command.split(),
        '--snapshot',
        str(write_cloud(SHARING)),
        '--flavor',
        'f',
    )
    assert (
        'Nova may start it with resources of another host on sharing, which '
        'shares its inventory.'
    ) in ' '.join(result.out.split())


def test_capacity_says_where_it_depends_on_the_candidates(
    ask, run, write_cloud
):
    cloud = """
    providers:
    - name: cn1
      host: cn1
      inventories: {VCPU: 8, MEMORY_MB: 4096}
      children:
      - {name: a, inventories: {VGPU: 1}}
      - {name: b, inventories: {VGPU: 1}}
    - {name: cn2, inventories: {VCPU: 8, MEMORY_MB: 4096, VGPU: 1}}
    flavors:
    - {name: f, vcpus: 1, ram: 1, extra_specs: {'resources:VGPU': '1'}}
"""
    answer = ask(cloud, 'capacity', 'list', '--flavor', 'f')
    assert [
        (host['servers'], host['depends_on_candidates'])
        for host in answer['hosts']
    ] == [(2, True), (1, False)]
    result = run(
        'capacity',
        'list',
        '--snapshot',
        str(write_cloud(cloud)),
        '--flavor',
        'f',
    )
    assert (
        'On 1 host Nova may take other candidates than those counted; then '
        'more or fewer servers may fit. Servers of a single request all get '
        'the same candidate, so fewer may fit.'
    ) in ' '.join(result.out.split())


def test_without_the_embedded_placement_the_simulator_answers(
    ask, run, write_cloud, monkeypatch
):
    cloud, asked = pinned('false'), ('candidate', 'list', '--flavor', 'f')
    embedded = ask(cloud, *asked)
    assert embedded.pop('answered_by') == 'placement'
    # Makes the import fail as if the package were not installed.
    monkeypatch.setitem(sys.modules, 'wsgi_intercept', None)
    simulated = ask(cloud, *asked)
    assert simulated.pop('answered_by') == 'simulator'
    assert simulated == embedded
    result = run(*asked, '--snapshot', str(write_cloud(cloud)))
    assert 'The simulator has answered' in result.out
    shared = ask(SHARING, *asked)
    assert shared['nova_mixes_hosts'] == ['sharing']


def test_the_simulator_rejects_what_placement_rejects(ask, monkeypatch):
    cloud = """
    providers: [{name: cn1, inventories: {VCPU: 8}}]
    flavors: [{name: f, vcpus: 1, extra_specs: {'trait:CUSTOM_NEW': required}}]
"""
    monkeypatch.setitem(sys.modules, 'wsgi_intercept', None)
    answer = ask(cloud, 'candidate', 'list', '--flavor', 'f', status=4)
    assert answer['hosts'] == []
    assert 'CUSTOM_NEW' in answer['rejected']
