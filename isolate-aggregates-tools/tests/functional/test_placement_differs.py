# SPDX-License-Identifier: Apache-2.0
"""Commands show where Placement's answer differs from the documented one.

The hosts that Placement leaves out depend on the order of Python sets. Nova
gets the same response as ``candidate list``.
"""

import json
import sys

from cases import cases
from live_example import Live
from placement.conf import workarounds
import pytest

SHARED_DISK = """
    placement_aggregates: [{name: shared}]
    providers:
    - name: storage
      inventories: {DISK_GB: 1000}
      traits: [MISC_SHARES_VIA_AGGREGATE]
      aggregates: [shared]
    - name: cn-1
      inventories: {VCPU: 16, MEMORY_MB: 65536}
      aggregates: [shared]
    - name: cn-2
      inventories: {VCPU: 16, MEMORY_MB: 65536}
      aggregates: [shared]
    - name: cn-3
      inventories: {VCPU: 16, MEMORY_MB: 65536}
      aggregates: [shared]
    - name: full
      inventories: {VCPU: 16, MEMORY_MB: 65536}
      usages: {VCPU: 16}
      aggregates: [shared]
    flavors:
    - {name: plain, vcpus: 2, ram: 2048, disk: 20}
    - name: grouped
      vcpus: 2
      ram: 2048
      disk: 20
      extra_specs: {resources1:VCPU: 2, resources1:MEMORY_MB: 2048}
    - name: otherwise
      vcpus: 2
      ram: 2048
      disk: 20
      extra_specs: {resources:VCPU: 2, resources:MEMORY_MB: 2048}
"""
HOSTS = ['cn-1', 'cn-2', 'cn-3']

TWO_NUMA_NODES = """
    providers:
    - name: host
      inventories: {MEMORY_MB: 8}
      children:
      - {name: numa-1, inventories: {VCPU: 40}}
      - {name: numa-2, inventories: {VCPU: 40}}
    flavors:
    - name: grouped
      ram: 1
      extra_specs: {resources:VCPU: 1, resources1:VCPU: 2}
    - name: otherwise
      ram: 1
      extra_specs: {resources:VCPU: 1, resources1:VCPU: 2, group_policy: none}
"""

# One of the two on each NUMA node is free: a server fits, with one from each.
USED = TWO_NUMA_NODES.replace(
    '{VCPU: 40}', '{VCPU: 2}, usages: {VCPU: 1}'
).replace('resources1:VCPU: 2', 'resources1:VCPU: 1')

SHARING_CHILD = """
    placement_aggregates: [{name: shared}]
    providers:
    - name: rack
      host: null
      children:
      - name: storage
        uuid: 5a5a5a5a-5a5a-4a5a-8a5a-5a5a5a5a5a5a
        inventories: {DISK_GB: 1000}
        traits: [MISC_SHARES_VIA_AGGREGATE]
        aggregates: [shared]
    - name: cn-1
      inventories: {VCPU: 16, MEMORY_MB: 65536}
      aggregates: [shared]
    flavors:
    - {name: plain, vcpus: 2, ram: 2048, disk: 20}
"""
SEE = (
    'See "Known Placement bugs" in the documentation. If the cloud has '
    'changed meanwhile, run the command again.'
)


@pytest.fixture
def run_json(run):
    """Run a command over a file and return its document."""

    def tell(command, path, flavor):
        arguments = ('--snapshot', str(path), '--flavor', flavor, '-f', 'json')
        result = run(*command.split(), *arguments)
        assert (result.code, result.err) == (0, '')
        return json.loads(result.out)

    return tell


def lost(document):
    """Return the hosts that are reported as left out; check the rest."""
    assert document['error'] is None
    assert (document['adds'], document['other_amounts']) == ([], [])
    # Only one anchor is kept, which may be the storage.
    assert len(document['leaves_out']) >= 2
    return document['leaves_out']


def test_hosts_that_placement_leaves_out_are_named(run_json, write_cloud):
    path = write_cloud(SHARED_DISK)

    document = run_json('candidate list', path, 'grouped')
    offered = [host['name'] for host in document['hosts']]
    assert sorted([*offered, *lost(document['placement_differs'])]) == HOSTS

    document = run_json('explain', path, 'grouped')
    left_out = lost(document['summary']['placement_differs'])
    reasons = {host['name']: host['reasons'] for host in document['hosts']}
    assert [host for host, said in reasons.items() if not said] == sorted(
        set(HOSTS) - set(left_out)
    )
    assert {said[0] for host, said in reasons.items() if host in left_out} == {
        'not offered by Placement, although it should be'
    }
    assert document['summary']['candidates'] == len(HOSTS) - len(left_out)

    document = run_json('capacity list', path, 'grouped')
    assert lost(document['placement_differs'])
    assert document['total'] == 24


def test_the_flavor_that_the_page_suggests_is_served(run_json, write_cloud):
    path = write_cloud(SHARED_DISK)
    for flavor in ('otherwise', 'plain'):
        document = run_json('candidate list', path, flavor)
        assert [host['name'] for host in document['hosts']] == HOSTS
        assert document['placement_differs'] is None


def test_the_table_shows_a_difference_in_sentences(run, write_cloud):
    path = str(write_cloud(SHARED_DISK))
    said = run(
        'capacity', 'list', '--snapshot', path, '--flavor', 'grouped'
    ).out
    assert said.startswith(
        '24 more servers of this flavor fit according to '
        "Placement's documentation.\n"
    )
    lines = said.splitlines()
    assert lines[2].endswith(
        'of 3 hosts that it should offer according to its documentation: '
        'cn-[1-3].'
    ) or lines[2].startswith('Placement leaves out 2 of 3 hosts that')
    assert lines[3] == SEE


def test_added_amounts_are_reported(run_json, write_cloud):
    path = write_cloud(TWO_NUMA_NODES)
    document = run_json('candidate list', path, 'grouped')['placement_differs']
    assert document['other_amounts'] == ['host']
    assert (document['leaves_out'], document['adds']) == ([], [])
    assert run_json('explain', path, 'grouped')['summary']['candidates'] == 1
    document = run_json('candidate list', path, 'otherwise')
    assert document['placement_differs'] is None


def test_a_failure_of_placement_is_shown_with_the_hosts_it_loses(
    run, run_json, write_cloud
):
    path = write_cloud(SHARING_CHILD)
    arguments = ('--snapshot', str(path), '--flavor', 'plain')
    result = run('candidate', 'list', *arguments)
    assert (result.code, result.out) == (1, '')
    assert ' with 500: ' in result.err

    result = run('explain', *arguments)
    assert result.code == 0
    assert result.out.startswith('0 of 1 host may be used.\n')
    assert SEE in result.out.splitlines()
    document = run_json('explain', path, 'plain')['summary'][
        'placement_differs'
    ]
    assert document['leaves_out'] == ['cn-1']
    assert ' with 500: ' in document['error']


@pytest.fixture
def run_live(run):
    """Run a command over the live cloud and return its document."""

    def tell(command, flavor):
        result = run(*command.split(), '--flavor', flavor, '-f', 'json')
        assert (result.code, result.err) == (0, '')
        return json.loads(result.out)

    return tell


@pytest.fixture
def live(http, write_cloud, in_environment):
    """Serve a cloud file as a live cloud."""
    clouds = []

    def start(text):
        clouds.append(Live(http, write_cloud(text)))
        return clouds[0]

    yield start
    for cloud in clouds:
        cloud.stop()


def test_a_live_cloud_is_compared_with_its_providers(run, live):
    live(SHARED_DISK)
    result = run('candidate', 'list', '--flavor', 'grouped', '-f', 'json')
    document = json.loads(result.out)
    offered = [host['name'] for host in document['hosts']]
    assert sorted([*offered, *lost(document['placement_differs'])]) == HOSTS


@pytest.fixture
def wide(monkeypatch):
    """Placement looks first for what does not fit into wide trees."""
    [option] = [
        each
        for each in workarounds.workaround_opts
        if each.name == 'optimize_for_wide_provider_trees'
    ]
    monkeypatch.setattr(option, 'default', True)


def test_offers_that_are_taken_are_reported(run, run_live, wide, live):
    live(USED)
    for command, part in (
        ('candidate list', ()),
        ('capacity list', ()),
        ('explain', ('summary',)),
    ):
        document = run_live(command, 'otherwise')
        for name in part:
            document = document[name]
        assert document['placement_differs'] == {
            'leaves_out': [],
            'adds': [],
            'other_amounts': ['host'],
            'error': None,
        }
    said = run('candidate', 'list', '--flavor', 'otherwise').out
    assert (
        'Placement offers amounts that were not requested, or are not free, '
        f'on host.\n{SEE}'
    ) in said


def test_a_host_whose_offers_are_all_taken_is_reported(run_live, wide, live):
    live(USED.replace('VCPU: 1}}\n    flavors', 'VCPU: 2}}\n    flavors'))
    document = run_live('candidate list', 'otherwise')
    assert document['placement_differs']['adds'] == ['host']


def test_without_the_option_nothing_that_is_taken_is_offered(run_live, live):
    live(USED)
    document = run_live('candidate list', 'otherwise')
    assert document['placement_differs'] is None


@cases(
    ('cloud', 'flavor', 'is_read'),
    {
        'one group': (SHARED_DISK, 'plain', False),
        'shared': (SHARED_DISK, 'grouped', True),
        'nothing shared': (
            SHARED_DISK.replace('[MISC_SHARES_VIA_AGGREGATE]', '[]'),
            'grouped',
            False,
        ),
    },
)
def test_all_providers_are_only_read_if_the_answers_may_differ(
    run, live, http, cloud, flavor, is_read
):
    live(cloud)
    assert run('candidate', 'list', '--flavor', flavor).code == 0
    read = [
        request
        for request in http.request_history
        if request.method == 'GET' and request.url.endswith('/inventories')
    ]
    assert bool(read) is is_read


def test_without_an_embedded_placement_its_answer_is_unknown(
    run, write_cloud, monkeypatch
):
    monkeypatch.setitem(sys.modules, 'wsgi_intercept', None)
    path = str(write_cloud(SHARED_DISK))
    result = run('explain', '--snapshot', path, '--flavor', 'grouped')
    assert result.code == 0
    assert result.out.startswith('3 of 4 hosts may be used.\n')
    assert result.out.splitlines()[2].startswith(
        'Placement itself gives no answer: The embedded Placement is not '
        'installed'
    )
    plain = run('explain', '--snapshot', path, '--flavor', 'plain')
    assert 'Placement' not in plain.out
