# SPDX-License-Identifier: Apache-2.0
"""Commands ask about the same request, so their answers agree."""

import json

from cases import cases
import pytest

HOSTS = """
    providers:
    - {name: h1, inventories: &room {VCPU: 4, MEMORY_MB: 4096, DISK_GB: 100}}
    - {name: h2, inventories: *room}
"""

# Nova requires the trait for encrypted memory from release 32 on, and only an
# inventory before.
ENCRYPTED = """
    settings: {isolate_aggregates: {nova_release: 31}}
    providers:
    - {name: h1, inventories: {VCPU: 4, MEMORY_MB: 4096, DISK_GB: 100},
       traits: [HW_CPU_X86_AMD_SEV]}
    - name: h2
      inventories: {VCPU: 4, MEMORY_MB: 4096, DISK_GB: 100,
                    MEM_ENCRYPTION_CONTEXT: 9}
    flavors:
    - {name: m1, vcpus: 1, ram: 1, extra_specs: {'hw:mem_encryption': 'true'}}
    images:
    - {name: efi, properties: {hw_firmware_type: uefi, hw_machine_type: q35}}
"""

ZONES = (
    """
    settings: {DEFAULT: {default_schedule_zone: west}}
    aggregates:
    - {name: west, availability_zone: west, hosts: [h1],
       metadata: {availability_zone: west}}
"""
    + HOSTS
    + """
    flavors:
    - {name: m1, vcpus: 1, ram: 1}
"""
)

TENANTS = (
    """
    settings:
      scheduler: {limit_tenants_to_placement_aggregate: true,
                  placement_aggregate_required_for_tenants: true}
"""
    + HOSTS
    + """
    flavors:
    - {name: m1, vcpus: 1, ram: 1}
"""
)


LARGE = """
    providers:
    - {name: h1, inventories: {VCPU: 4, MEMORY_MB: 4096, DISK_GB: 100}}
    - {name: h2, inventories: {VCPU: 8, MEMORY_MB: 4096, DISK_GB: 100}}
    flavors:
    - {name: m1, vcpus: 6, ram: 1}
"""

# Placement does not know that h1 is in the aggregate.
UNMIRRORED = (
    """
    settings: {scheduler: {enable_isolated_aggregate_filtering: true}}
    mirror_host_aggregates: false
    aggregates:
    - {name: win, metadata: {'trait:CUSTOM_WIN': required}, hosts: [h1],
       uuid: 5b8f7a0e-3d5e-4f0f-8a43-6a1d6c1b7f52}
"""
    + HOSTS
    + """
    flavors:
    - {name: m1, vcpus: 1, ram: 1}
"""
)
# Nova does not know any more.
LEFT = UNMIRRORED.replace(', hosts: [h1]', '').replace(
    'DISK_GB: 100}}\n',
    'DISK_GB: 100}, aggregates: [win]}\n',
    1,
)
# ComputeFilter drops both of them, after Placement has offered them.
DOWN = (
    """
    compute_services:
    - {host: h1, state: down}
    - {host: h2, status: disabled}
    - {host: h3}
"""
    + HOSTS
    + """
    - {name: h3, inventories: *room}
    flavors:
    - {name: m1, vcpus: 1, ram: 1}
"""
)
# The filter of locks does not run.
OFF = UNMIRRORED.replace('filtering: true', 'filtering: false')


@pytest.fixture
def hosts(run, write_cloud, tmp_path):
    """Return the hosts that a flavor may use, by the command that is asked."""

    def ask(cloud, *image):
        path = str(write_cloud(cloud))

        def document(*command):
            finished = run(*command, '--snapshot', path, '-f', 'json')
            return json.loads(finished.out) if finished.out else {}

        asked = ('--flavor', 'm1', *image)
        explained = document('explain', *asked)
        capacity = document('capacity', 'list', *asked)
        table = document('matrix', 'list', *image)
        [row] = table['rows']
        expectations = tmp_path / 'expectations.yaml'
        expected = {'name': 'all', 'flavor': 'm1', 'never': {'host': '*'}}
        if image:
            expected['image'] = image[1]
        expectations.write_text(
            json.dumps({'version': 1, 'expectations': [expected]})
        )
        tested = document('test', str(expectations))
        return {
            'explain': {
                host['name']
                for host in explained.get('hosts', ())
                if not host['reasons']
            },
            'capacity': {host['name'] for host in capacity.get('hosts', ())},
            'matrix': {
                host
                for column, verdict in zip(
                    table['columns'], row['verdicts'], strict=True
                )
                if verdict == 'yes'
                for host in column['hosts']
            },
            'test': {
                host
                for each in tested['expectations']
                for problem in each['problems']
                for host in problem['extra_hosts']
            },
        }

    return ask


@cases(
    ('cloud', 'image', 'expected'),
    {
        'what Nova 31 requires': (ENCRYPTED, ['--image', 'efi'], {'h2'}),
        'the default zone': (ZONES, [], {'h1'}),
        'a default zone without hosts': (
            ZONES.replace('_zone: west}', '_zone: typo}', 1),
            [],
            set(),
        ),
        'no project, and one is required': (TENANTS, [], set()),
        'larger than a host': (LARGE, [], {'h2'}),
        'not in Placement': (UNMIRRORED, [], {'h1', 'h2'}),
        'left in Placement': (LEFT, [], {'h2'}),
        'down or disabled': (DOWN, [], {'h3'}),
        'the filter is off': (OFF, [], {'h1', 'h2'}),
    },
)
def test_each_command_names_the_same_hosts(hosts, cloud, image, expected):
    assert hosts(cloud, *image) == dict.fromkeys(
        ('explain', 'capacity', 'matrix', 'test'), expected
    )


SERVER = """
    settings: {{scheduler: {{enable_isolated_aggregate_filtering: {on}}}}}
    aggregates:
    - name: win
      metadata: {{'trait:CUSTOM_WIN': required, availability_zone: west}}
      hosts: [h1]
    - {{name: rest, hosts: [h2]}}
    providers:
    - name: h1
      inventories: {{VCPU: 4, MEMORY_MB: 4096, DISK_GB: 100}}
      traits: [CUSTOM_WIN]
    - {{name: h2, inventories: {{VCPU: 4, MEMORY_MB: 4096, DISK_GB: 100}}}}
    flavors:
    - {{name: m1, vcpus: 1, ram: 1}}
    images:
    - {{name: plain, id: plain}}
    servers:
    - {{id: s1, name: s1, host: h2, project: demo, flavor: m1{server}}}
"""


@pytest.fixture
def document(run, write_cloud):
    """Return the document of a command about a cloud with a server."""

    def ask(*command, on='true', server=', image: plain'):
        path = str(write_cloud(SERVER.format(on=on, server=server)))
        finished = run(*command, '--snapshot', path, '-f', 'json')
        return json.loads(finished.out)

    return ask


def test_the_zone_of_a_server_counts_in_the_audit(document):
    zone = ', image: plain, availability_zone: west'
    findings = document('audit', '--servers', server=zone)['findings']
    assert [each['kind'] for each in findings if 's1' in each['subject']] == [
        'server-misplaced'
    ]
    explained = document('explain', '--server', 's1', server=zone)
    reasons = {host['name']: host['reasons'] for host in explained['hosts']}
    assert reasons['h2']


def test_the_zone_of_a_server_counts_in_survival_and_effects(document):
    zone = ', image: plain, availability_zone: west'
    cases = document('survival', 'list', server=zone)['cases']
    # Its zone has one host, which is locked.
    assert [case['hosts'] for case in cases] == [['h2']]
    assert document('survival', 'list', on='false', server=zone)['cases'] == []
    # It was out of place before.
    locked = '--set', 'rest', 'trait:CUSTOM_WIN=required'
    servers = document('effect', 'show', *locked, server=zone)['servers']
    assert servers['out_of_place'] == []


def test_a_server_from_a_volume_without_the_key_is_told_of(document):
    locked = '--set', 'rest', 'trait:CUSTOM_WIN=required'
    assert document('effect', 'show', *locked, server='')['unknown']
    findings = document('audit', '--servers', server='')['findings']
    assert 'servers-image-unknown' in {each['kind'] for each in findings}


STORAGE_OUTSIDE = """
    mirror_host_aggregates: false
    aggregates:
    - {name: west, availability_zone: west, hosts: [h1]}
    placement_aggregates: [{name: shared}]
    providers:
    - {name: h1, inventories: {VCPU: 4, MEMORY_MB: 4096},
       aggregates: [west, shared]}
    - {name: disks, host: null, inventories: {DISK_GB: 100},
       traits: [MISC_SHARES_VIA_AGGREGATE], aggregates: [shared]}
    flavors:
    - {name: m1, vcpus: 1, ram: 1, disk: 10}
"""


def test_shared_storage_outside_a_zone_has_no_room_in_it(
    run, write_cloud, tmp_path
):
    path = str(write_cloud(STORAGE_OUTSIDE))

    def document(*command):
        finished = run(*command, '--snapshot', path, '-f', 'json')
        return json.loads(finished.out)

    asked = '--flavor', 'm1'
    west = '--availability-zone', 'west'
    assert document('capacity', 'list', *asked)['total'] == 4
    assert document('capacity', 'list', *asked, *west)['total'] == 0
    explained = document('explain', *asked, *west)
    assert [host['name'] for host in explained['hosts'] if host['reasons']]
    metrics = tmp_path / 'metrics.prom'
    run('exporter', '--snapshot', path, '--output', str(metrics))
    [slots] = [
        line
        for line in metrics.read_text().splitlines()
        if 'zone_free_slots{' in line and 'zone="west"' in line
    ]
    assert slots.endswith('} 0.0')


def test_an_effect_names_servers_of_which_it_knows_too_little(document):
    change = '--set', 'rest', 'trait:CUSTOM_WIN=required'
    volume = document('effect', 'show', *change, server='')
    [sentence] = [s for s in volume['unknown'] if 's1' in s]
    assert 'unless the image properties of its volume open it' in sentence
    known = document('effect', 'show', *change)
    assert [each['name'] for each in known['servers']['out_of_place']] == [
        's1'
    ]
    assert [s for s in known['unknown'] if 's1' in s] == []


def test_show_tells_of_the_zone_and_of_a_filter_that_is_off(document):
    shown = document('lock', 'show', 'win')
    assert shown['availability_zone'] == 'west'
    assert shown['problems'] == []
    [problem] = document('lock', 'show', 'win', on='false')['problems']
    assert problem.startswith('aggregate win is locked, but ')
