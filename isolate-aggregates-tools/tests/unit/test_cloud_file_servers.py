# SPDX-License-Identifier: Apache-2.0
"""Servers in cloud files."""

import json

import pytest

from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cloud import diff
from isolate_aggregates_tools.cloud.file import cloud_file

CLOUD = """
    settings: {scheduler: {enable_isolated_aggregate_filtering: true}}
    aggregates:
    - name: win
      metadata: {trait:CUSTOM_WIN: required}
      hosts: [win-1]
    providers:
    - name: win-1
      inventories: {VCPU: 8, MEMORY_MB: 8192}
      traits: [CUSTOM_WIN]
    - {name: lin-1, inventories: {VCPU: 8, MEMORY_MB: 8192}}
    flavors:
    - {name: small, vcpus: 1, ram: 512}
    - name: win.small
      vcpus: 1
      ram: 512
      extra_specs: {trait:CUSTOM_WIN: required}
    images:
    - {name: plain, id: i1}
    servers:
"""
WRONG = """\
    - {id: s1, name: lost, project: p1, host: win-1, flavor: small, image: i1}
    - {id: s2, name: keyed, project: p1, host: win-1, flavor: win.small}
    - id: s3
      project: p2
      host: lin-1
      flavor: {name: small, vcpus: 2}
      scheduler_hints: {group: [a]}
      availability_zone: az-1
      image_properties: {os_distro: debian}
    - {id: s4, project: p2, flavor: null, host: null}
"""


@pytest.fixture
def path(write_cloud):
    """A cloud file with a server that is out of place."""
    return str(write_cloud(CLOUD + WRONG))


def test_a_server_has_the_flavor_that_it_was_booted_with(path):
    placed = cloud_file.load(path).servers.placed
    assert [s.flavor and s.flavor.vcpus for s in placed] == [1, 1, 2, None]
    assert placed[2].scheduler_hints == {'group': ('a',)}
    assert (placed[2].availability_zone, placed[2].zone_known) == (
        'az-1',
        True,
    )


def test_audit_names_servers_of_a_file_that_are_out_of_place(run, path):
    result = run('audit', '--snapshot', path, '--servers', '-f', 'json')
    findings = json.loads(result.out)['findings']
    assert [
        (each['kind'], each['subject'])
        for each in findings
        if each['kind'].startswith('server-')
    ] == [('server-misplaced', 'server lost (s1)')]


def test_explain_takes_a_server_of_a_file_by_name_or_id(run, path):
    for name in ('keyed', 's2'):
        result = run(
            'explain', '--snapshot', path, '--server', name, '-f', 'json'
        )
        document = json.loads(result.out)
        assert {
            each['name']: each['verdict'] for each in document['hosts']
        } == {'win-1': 'candidate', 'lin-1': 'excluded'}
        assert (
            'what the ports of server s2 request, which are not in the cloud '
            'file; specify it with --port-request'
        ) in document['summary']['not_known']


def test_explain_needs_the_flavor_of_a_server(run, path):
    result = run('explain', '--snapshot', path, '--server', 's4')
    assert (result.code, result.err) == (
        1,
        'The flavor of server s4 is unknown, because its cell was down.\n',
    )


def test_a_server_that_is_not_in_the_file_is_named(run, path):
    result = run('explain', '--snapshot', path, '--server', 'keye')
    assert result.err == (
        "There is no server with the name or id 'keye' in "
        f'{path} (did you mean keyed?).\n'
    )


@pytest.mark.parametrize(
    ('servers', 'problem'),
    [
        (
            '[{id: s, project: p, flavor: smal}]',
            "server number 1, flavor (line 21): names 'smal', which is not a "
            'flavor of this file (did you mean small?)',
        ),
        (
            '[{id: s, project: p, flavor: small}, '
            '{id: s, name: b, project: p, flavor: small}]',
            "server b (line 21): another one also has the id 's'; each must "
            'have its own',
        ),
        (
            '[{id: s, flavor: small}]',
            "server number 1 (line 21): has no 'project'",
        ),
        (
            '[{id: s, project: p, flavor: 7}]',
            'server number 1, flavor (line 21): must be text or null, not 7',
        ),
    ],
)
def test_what_is_wrong_with_a_server_is_said(write_cloud, servers, problem):
    text = CLOUD.replace('    servers:\n', f'    servers: {servers}\n')
    with pytest.raises(tools_errors.CloudFileError) as caught:
        cloud_file.load(write_cloud(text))
    assert caught.value.problems == (problem,)


def test_a_file_without_servers_says_so_to_those_who_ask(run, write_cloud):
    path = str(write_cloud(CLOUD.replace('    servers:\n', '')))
    result = run('audit', '--snapshot', path, '--servers')
    assert (result.code, result.err) == (
        1,
        f'{path} has no servers; save it again without --no-servers.\n',
    )
    assert run('audit', '--snapshot', path).code in (0, 4)


def test_servers_that_moved_are_a_difference(path, write_cloud):
    before = cloud_file.load(path)
    moved = (CLOUD + WRONG).replace(
        'host: win-1, flavor: small', 'host: lin-1, flavor: small'
    )
    after = cloud_file.load(write_cloud(moved))
    [change] = diff.changes(before, after)
    assert (change.kind, change.name, change.what) == (
        'server',
        'lost',
        'host',
    )
    assert (change.before, change.after) == ('win-1', 'lin-1')


def test_a_file_without_servers_differs_in_none(path, write_cloud):
    text = CLOUD.replace('    servers:\n', '')
    before = cloud_file.load(path)
    assert list(diff.changes(before, cloud_file.load(write_cloud(text)))) == []


GROUPS = """
    server_groups:
    - {id: g1, policy: anti-affinity, max_server_per_host: 2, members: [s2]}
    - {id: g2, policy: soft-affinity}
    compute_services:
    - {host: win-1, state: down}
    - {host: lin-1, status: disabled, disabled_reason: reserved, cell: old}
"""


def test_groups_and_services_are_kept(write_cloud, tmp_path):
    snapshot = cloud_file.load(str(write_cloud(CLOUD + WRONG + GROUPS)))
    first, second = snapshot.servers.groups
    assert (first.policy, first.max_per_host) == ('anti-affinity', 2)
    assert first.members == {'s2'}
    assert (second.max_per_host, second.members) == (1, frozenset())
    down, disabled = snapshot.services
    assert (down.is_up, down.is_enabled) == (False, True)
    assert (disabled.is_enabled, disabled.reason) == (False, 'reserved')
    assert snapshot.cells == {'lin-1': 'old'}
    again = tmp_path / 'again.yaml'
    cloud_file.save(snapshot, str(again))
    assert cloud_file.load(str(again)).servers == snapshot.servers
    assert cloud_file.load(str(again)).services == snapshot.services


def test_unknown_groups_and_services_stay_unknown(path, tmp_path):
    snapshot = cloud_file.load(path)
    assert snapshot.servers.groups is None
    assert snapshot.services is None
    again = tmp_path / 'again.yaml'
    cloud_file.save(snapshot, str(again))
    assert cloud_file.load(str(again)).servers == snapshot.servers


def test_a_wrong_group_is_named_with_its_line(write_cloud):
    wrong = '    server_groups:\n    - {id: g1, members: [s1, s1]}\n'
    with pytest.raises(tools_errors.CloudFileError) as error:
        cloud_file.load(str(write_cloud(CLOUD + WRONG + wrong)))
    assert 'server group' in str(error.value)
    assert "'policy'" in str(error.value)
