# SPDX-License-Identifier: Apache-2.0
"""What Nova itself does with a request, in the answers of commands."""

import json

from cases import cases
from explained import rows
import os_traits
import pytest

QUERY = ('candidate', 'list', '--query', '--flavor', 'plain')
CLOUD = """\
version: 1
settings:
  filter_scheduler:
    enabled_filters:
    - ComputeFilter
    - AggregateInstanceExtraSpecsFilter
    - NUMATopologyFilter
aggregates:
- {name: az1, availability_zone: az1, hosts: [cn1, cn2]}
- {name: ssd, metadata: {ssd: 'true'}, hosts: [cn1, cn3]}
providers:
- {name: cn1.example.org, host: cn1, inventories: {VCPU: 8}}
- {name: cn2.example.org, host: cn2, inventories: {VCPU: 8}}
- {name: m1, host: metal, inventories: {VCPU: 1}}
- {name: m2, host: metal, inventories: {VCPU: 1}}
- name: cn3
  inventories: {VCPU: 8}
  children:
  - name: nic
    inventories: {NET_BW_EGR_KILOBIT_PER_SEC: 5000}
    traits: [CUSTOM_PHYSNET_X]
flavors:
- {name: plain, vcpus: 1}
- name: fast
  vcpus: 1
  extra_specs: {'aggregate_instance_extra_specs:ssd': 'true'}
- {name: pinned, vcpus: 1, extra_specs: {hw:cpu_policy: dedicated}}
- name: devices
  vcpus: 1
  extra_specs:
    pci_passthrough:alias: 'a1:2'
    accel:device_profile: fpga
"""
OTHERS = (
    'which hosts the host filters ComputeFilter, NUMATopologyFilter drop '
    'after Placement'
)


@pytest.fixture
def on_cloud(run, tmp_path):
    """Run a command on the cloud above."""
    path = tmp_path / 'cloud.yaml'
    path.write_text(CLOUD)

    def on(*arguments):
        hosts = ('--hosts',) if arguments[0] == 'explain' else ()
        return run(*arguments, *hosts, '--snapshot', str(path))

    return on


def not_known(result):
    found = json.loads(result.out)['summary']['not_known']
    return found


def test_a_zone_excludes_other_hosts(on_cloud):
    zone = ('--flavor', 'plain', '--availability-zone', 'az1')
    assert rows(on_cloud('explain', *zone)) == {
        'cn1': 'candidate',
        'cn2': 'candidate',
        **dict.fromkeys(
            ('cn3', 'metal (m1)', 'metal (m2)'),
            'not in aggregate az1: availability zone az1 was requested',
        ),
    }


def test_the_default_zone_is_that_of_the_configuration(
    run, on_cloud, tmp_path
):
    path = tmp_path / 'nova.conf'
    path.write_text('[DEFAULT]\ndefault_schedule_zone = az1\n')
    arguments = (
        *('--config-file', str(path), *QUERY),
        *('--snapshot', str(tmp_path / 'cloud.yaml')),
    )
    zone = on_cloud(*QUERY, '--availability-zone', 'az1')
    assert run(*arguments).out == zone.out
    other = run(*arguments, '--availability-zone', 'nova').out
    assert other == on_cloud(*QUERY).out


def test_the_default_zone_can_be_in_the_cloud_file(run, on_cloud, tmp_path):
    zone = on_cloud(*QUERY, '--availability-zone', 'az1')
    path = tmp_path / 'cloud.yaml'
    group = 'DEFAULT: {default_schedule_zone: az1}'
    path.write_text(CLOUD.replace('settings:', f'settings:\n  {group}'))
    result = run(*QUERY, '--snapshot', str(path))
    assert (result.out, result.err) == (zone.out, '')


def test_hosts_that_a_host_filter_drops_are_no_candidates(on_cloud):
    result = on_cloud('explain', '--flavor', 'fast')
    assert rows(result)['cn2'] == (
        'dropped after Placement by AggregateInstanceExtraSpecsFilter: in no '
        'aggregate with ssd=true'
    )
    matrix = on_cloud('matrix', 'list', '-f', 'value').out.splitlines()
    assert 'fast yes no yes no no' in matrix
    fitting = on_cloud('capacity', 'list', '--flavor', 'fast', '-f', 'value')
    assert fitting.out.splitlines() == ['cn1 8', 'cn3 8']
    fitting = on_cloud('capacity', 'list', '--flavor', 'fast', '-f', 'json')
    assert json.loads(fitting.out)['not_known'] == [OTHERS]


def test_all_nodes_of_a_requested_service_are_candidates(on_cloud):
    arguments = ('--flavor', 'plain', '--host', 'metal')
    assert (
        'limit' not in on_cloud('candidate', 'list', '--query', *arguments).out
    )
    table = rows(on_cloud('explain', *arguments))
    assert table['metal (m1)'] == table['metal (m2)'] == 'candidate'
    assert table['cn1'] == (
        'dropped after Placement by requested_host: host metal was requested'
    )


@pytest.mark.parametrize('forced', ['az1:cn2', 'az1::cn2.example.org'])
def test_host_filters_do_not_run_for_a_forced_host(on_cloud, forced):
    arguments = ('explain', '--flavor', 'fast')
    table = rows(on_cloud(*arguments, '--availability-zone', forced))
    assert table['cn2'] == 'candidate'
    assert table['cn1'].startswith("not in the requested host's tree")
    table = rows(on_cloud(*arguments, '--host', 'cn2'))
    assert table['cn2'].startswith('dropped after Placement')
    result = on_cloud(*arguments, '--availability-zone', 'a:b:c:d')
    assert result.code == 2


@cases(
    ('zone', 'asks_for_az1', 'ignored'),
    {
        'the zone of the host': ('az1:cn1', True, ''),
        'another zone': (
            'az1:cn3',
            False,
            'forced host cn3 is not in availability zone az1, so Nova ignores '
            'the zone',
        ),
        'the default zone': (
            ':cn3',
            False,
            'forced host cn3 is not in availability zone az1, so Nova ignores '
            'the zone',
        ),
        'the default zone of the host': (':cn1', True, ''),
        'no host': ('az1:', True, ''),
        'the zone of hosts in none': (
            'nova:cn1',
            False,
            'forced host cn1 is not in availability zone nova, so Nova '
            'ignores the zone',
        ),
        'a node': (
            'az1::cn1.example.org',
            False,
            'Nova ignores availability zone az1, because a compute node is '
            'forced',
        ),
        'host and node': ('az1:cn1:cn1.example.org', True, ''),
    },
)
def test_nova_ignores_the_zone_of_a_request_if_it_is_not_the_forced_hosts(
    run, on_cloud, tmp_path, zone, asks_for_az1, ignored
):
    """As in a real Nova, where test_from_the_api.py boots such servers."""
    path = tmp_path / 'cloud.yaml'
    group = 'DEFAULT: {default_schedule_zone: az1}'
    path.write_text(CLOUD.replace('settings:', f'settings:\n  {group}'))
    arguments = ('--flavor', 'plain', '--availability-zone', zone)
    assert (
        'member_of' in on_cloud('candidate', 'list', '--query', *arguments).out
    ) == asks_for_az1
    facts = not_known(on_cloud('explain', *arguments, '-f', 'json'))
    assert [fact for fact in facts if 'ignores' in fact] == (
        [ignored] if ignored else []
    )
    # A host that is requested in another way has to be in the zone.
    arguments = (*arguments[:3], 'az1', '--host', 'cn3')
    assert 'candidate' not in rows(on_cloud('explain', *arguments)).values()


@cases(
    'zone',
    {
        'a node as a host': 'az1:cn1.example.org',
        'a host as a node': 'az1::cn1',
        'a node of another host': 'az1:cn1:cn2.example.org',
    },
)
def test_nova_finds_a_forced_host_and_a_forced_node_by_their_own_names(
    on_cloud, zone
):
    arguments = ('--flavor', 'plain', '--availability-zone', zone)
    result = on_cloud('explain', *arguments)
    name = zone.removeprefix('az1:')
    assert (result.code, result.out) == (1, '')
    assert f'no compute host named {name} (write <zone>:<host>' in result.err


def test_a_host_is_not_requested_in_two_ways(on_cloud):
    result = on_cloud(
        *(*QUERY, '--host', 'cn1'),
        *('--availability-zone', 'az1:cn1'),
    )
    assert result.code != 0
    assert result.err.endswith(
        '--host and a host in --availability-zone exclude each other in Nova; '
        'specify one of them.\n'
    )


def test_unknown_facts_are_listed(on_cloud):
    result = on_cloud('explain', '--flavor', 'plain')
    assert f'\nNot known here:\n  {OTHERS}\n' in result.out
    document = on_cloud('explain', '--flavor', 'pinned', '-f', 'json')
    assert not_known(document) == [OTHERS]
    document = on_cloud('explain', '--flavor', 'devices', '-f', 'json')
    profile, devices, _ = not_known(document)
    assert profile.startswith('what device profile fpga requests: ')
    assert devices == (
        'which PCI devices pci_passthrough:alias=a1:2 requests from Placement '
        'if [filter_scheduler] pci_in_placement is true'
    )


def test_an_unknown_zone_is_named(on_cloud):
    document = on_cloud(
        *('explain', '--flavor', 'plain', '-f', 'json'),
        *('--availability-zone', 'nova'),
    )
    assert not_known(document)[0].startswith(
        'no aggregate has availability zone nova'
    )
    # It constrains nothing.
    assert 'availability zone' not in str(
        json.loads(document.out)['summary']['constraints']
    )


def test_the_zone_of_internal_services_constrains_nothing(on_cloud):
    """nova-api accepts it, and no aggregate has it."""
    plain = on_cloud(*QUERY)
    result = on_cloud(*QUERY, '--availability-zone', 'internal')
    assert (result.code, result.out) == (plain.code, plain.out)


def test_a_zone_without_hosts_is_refused_as_by_nova(on_cloud):
    arguments = (*QUERY, '--availability-zone')
    result = on_cloud(*arguments, 'az2')
    assert result.code == 4
    assert result.err == (
        'nova-api refuses availability zone az2, as no host is in it; specify '
        'one of az1, nova.\n'
    )
    # Here Nova ignores the zone.
    assert on_cloud(*arguments, 'az2::cn1.example.org').code == 0


@pytest.mark.parametrize(
    'cloud',
    [
        f'{CLOUD}compute_services:\n'
        '- {host: cn1, status: disabled}\n'
        '- {host: cn2, status: disabled, state: down}\n'
        '- {host: cn3}\n',
        CLOUD.replace('VCPU: 8}}', 'VCPU: 8}, traits: [%s]}')
        % ((os_traits.COMPUTE_STATUS_DISABLED,) * 2),
    ],
    ids=['by the services', 'by what they have reported to Placement'],
)
def test_a_zone_whose_hosts_are_disabled_is_refused_as_by_nova(
    cloud, run, tmp_path
):
    path = tmp_path / 'cloud.yaml'
    asked = (*QUERY, '--snapshot', str(path), '--availability-zone', 'az1')
    path.write_text(cloud)
    result = run(*asked)
    assert (result.code, result.err) == (
        4,
        'nova-api refuses availability zone az1, as the compute services of '
        'all hosts in it are disabled; specify one of nova.\n',
    )
    # A service that is down counts, and what it has reported may be late.
    services = '' if 'compute_services' in cloud else 'compute_services:\n'
    path.write_text(
        cloud.replace('- {host: cn2, status: disabled, state: down}\n', '')
        + f'{services}- {{host: cn2, state: down}}\n'
    )
    assert run(*asked).code == 0


def test_a_port_can_request_resources(on_cloud):
    text = 'NET_BW_EGR_KILOBIT_PER_SEC=1000,CUSTOM_PHYSNET_X'
    result = on_cloud('explain', '--flavor', 'plain', '--port-request', text)
    table = rows(result)
    assert table['cn3'] == 'candidate'
    assert 'group _port_1: ' in table['cn1']
    query = on_cloud(
        *QUERY, *('--port-request', text, '--port-request', 'VGPU=2')
    ).out
    assert 'group_policy=none' in query
    assert 'resources_port_2=VGPU%3A2' in query


def test_a_port_can_be_remote_managed(on_cloud):
    asked = (*QUERY, '--port-request')
    trait = 'root_required=COMPUTE_REMOTE_MANAGED_PORTS'
    alone = on_cloud(*asked, 'remote-managed').out
    assert trait in alone
    assert '_port_' not in alone
    query = on_cloud(*asked, 'VGPU=2,remote-managed,CUSTOM_PHYSNET_X').out
    assert trait in query
    assert 'resources_port_1=VGPU%3A2' in query
    assert 'required_port_1=CUSTOM_PHYSNET_X' in query
    assert trait not in on_cloud(*asked, 'VGPU=2').out


@pytest.mark.parametrize(
    'text',
    ['CUSTOM_A', 'CUSTOM_A,remote-managed', 'VCPU=', 'VCPU=x', '=1', ''],
)
def test_a_port_that_asks_for_nothing_is_refused(on_cloud, text):
    result = on_cloud(*QUERY, '--port-request', text)
    assert result.code == 2
