# SPDX-License-Identifier: Apache-2.0
"""The openstack client runs in a rehearsal as it does in a cloud.

Each of its commands for aggregates, flavors and Placement is a line here, and
each option of ``image set``. What it changes is what it then shows itself.
"""

import json
import pathlib

from operator_tools import PROGRAMS

from isolate_aggregates_tools.testing import make_compute_node

RUNNER = pathlib.Path(__file__).with_name('openstack_lines.py')
PROJECT = 'a' * 32
AGGREGATE = '9aa6b1ee-8b0c-4b7f-9c3e-0a3a8d0f1c11'
PROVIDER = '0c7a1d0e-4d6f-4a55-9d1c-7f9a1f4f5b10'
HOST = make_compute_node('c2').uuid
LOCK = {'trait:CUSTOM_GPU': 'required'}

# What is shown, for lines that end with -f json. Of a dictionary a part.
Shown = dict[str, object] | list[dict[str, object]] | None


def names(*some):
    return [{'name': name} for name in some]


LINES: dict[str, Shown] = {
    'aggregate create --zone az1 --property a=b new': None,
    'aggregate create other': None,
    'aggregate add host new c2': None,
    'aggregate show new -f json': {
        'name': 'new',
        'availability_zone': 'az1',
        'hosts': ['c2'],
        'properties': {'a': 'b'},
    },
    'aggregate set --name newer --zone az2 --property k=v new': None,
    'aggregate show newer -f json': {
        'availability_zone': 'az2',
        'properties': {'a': 'b', 'k': 'v'},
    },
    'aggregate set --no-property --property z=1 newer': None,
    'aggregate list -f json --long': [
        {
            'Name': 'gpu',
            'Availability Zone': None,
            'Properties': {'pinned': 'false', **LOCK},
            'Hosts': ['g1'],
        },
        {'Name': 'rack', 'Availability Zone': 'az1', 'Hosts': ['c1']},
        {
            'Name': 'newer',
            'Availability Zone': 'az2',
            'Properties': {'z': '1'},
            'Hosts': ['c2'],
        },
        {
            'Name': 'other',
            'Availability Zone': None,
            'Properties': {},
            'Hosts': [],
        },
    ],
    'availability zone list --compute -f json': [
        {'Zone Name': 'az1', 'Zone Status': 'available'},
        {'Zone Name': 'az2', 'Zone Status': 'available'},
        {'Zone Name': 'nova', 'Zone Status': 'available'},
    ],
    'aggregate unset --property z newer': None,
    'aggregate remove host newer c2': None,
    'aggregate show newer --format json': {'properties': {}, 'hosts': []},
    'aggregate delete newer other': None,
    'aggregate list -f json': [
        {'Name': 'gpu', 'Availability Zone': None},
        {'Name': 'rack', 'Availability Zone': 'az1'},
    ],
    'flavor create --id f2 --ram 128 --disk 2 --ephemeral 1 --swap 64 '
    '--vcpus 2 --private --property a=b --description text big': None,
    f'flavor set --project {PROJECT} --property c=d f2': None,
    'flavor show big -f json': {
        'id': 'f2',
        'name': 'big',
        'ram': 128,
        'vcpus': 2,
        'disk': 2,
        'OS-FLV-EXT-DATA:ephemeral': 1,
        'swap': 64,
        'os-flavor-access:is_public': False,
        'access_project_ids': [PROJECT],
        'properties': {'a': 'b', 'c': 'd'},
        'description': 'text',
    },
    'flavor set --no-property --property x=y --description new big': None,
    'flavor show f2 -f json': {
        'properties': {'x': 'y'},
        'description': 'new',
    },
    f'flavor unset --project {PROJECT} --property x f2': None,
    'flavor show f2 --format json': {
        'properties': {},
        'access_project_ids': [],
    },
    'flavor list --private -f json': [{'ID': 'f2'}, {'ID': 'own-1'}],
    'flavor list --all --long -f json': [
        {'ID': 'f2'},
        {
            'ID': 'gpu-1',
            'Properties': {
                **LOCK,
                'aggregate_instance_extra_specs:pinned': 'false',
            },
        },
        {'ID': 'm1', 'VCPUs': 1, 'RAM': 64, 'Disk': 1, 'Is Public': True},
        {'ID': 'own-1', 'Is Public': False},
    ],
    'flavor delete big': None,
    'flavor list -f json': [{'Name': 'gpu.small'}, {'Name': 'm1'}],
    'image set --name deb --min-disk 2 --min-ram 64 --disk-format raw '
    '--property trait:CUSTOM_GPU=required --os-version 12 '
    '--architecture x86_64 --os-distro ubuntu --private debian': None,
    f'image set --project {PROJECT} deb': None,
    'image show deb -f json': {
        'name': 'deb',
        'min_disk': 2,
        'min_ram': 64,
        'disk_format': 'raw',
        'visibility': 'private',
        'owner': PROJECT,
        'properties': {
            'trait:CUSTOM_GPU': 'required',
            'os_version': '12',
            'os_distro': 'ubuntu',
            'architecture': 'x86_64',
        },
    },
    'image unset --property os_version deb': None,
    'image set --shared deb': None,
    'image set --public deb': None,
    'image list --long -f json': [{'Name': 'deb', 'Visibility': 'public'}],
    'compute service set --disable --disable-reason why c2 nova-compute': None,
    'compute service list --long -f json': [
        {'Host': 'c1', 'Status': 'enabled', 'Disabled Reason': None},
        {'Host': 'c2', 'Status': 'disabled', 'Disabled Reason': 'why'},
        {'Host': 'g1', 'Status': 'enabled', 'Disabled Reason': None},
    ],
    f'resource provider trait list -f json {HOST}': names(
        'COMPUTE_STATUS_DISABLED'
    ),
    'compute service set --enable c2 nova-compute': None,
    'hypervisor list -f json': [
        {'Hypervisor Hostname': 'g1'},
        {'Hypervisor Hostname': 'c1'},
        {'Hypervisor Hostname': 'c2'},
    ],
    'hypervisor show c2 -f json': {'id': HOST, 'service_host': 'c2'},
    'server list --all-projects -f json': [
        {'Name': 'web', 'Status': 'ACTIVE', 'Flavor': 'm1', 'Image': 'deb'}
    ],
    'resource class create CUSTOM_X': None,
    'resource class set CUSTOM_Y': None,
    'resource class show CUSTOM_X -f json': {'name': 'CUSTOM_X'},
    'resource class delete CUSTOM_X': None,
    'resource class list -f value': None,
    'trait create CUSTOM_T': None,
    'trait show CUSTOM_T -f json': {'name': 'CUSTOM_T'},
    'trait list --name startswith:CUSTOM_ -f json': names(
        'CUSTOM_GPU', 'CUSTOM_T'
    ),
    f'resource provider create --uuid {PROVIDER} --parent-provider {HOST} '
    'child': None,
    f'resource provider set --name kid {PROVIDER}': None,
    f'resource provider show -f json {PROVIDER}': {
        'name': 'kid',
        'root_provider_uuid': HOST,
    },
    f'resource provider inventory set {HOST} --resource VCPU=16 '
    '--resource VCPU:reserved=2 --resource DISK_GB=50': None,
    f'resource provider inventory class set {HOST} DISK_GB --total 60': None,
    f'resource provider inventory list -f json {HOST}': [
        {'resource_class': 'VCPU', 'total': 16, 'reserved': 2},
        {'resource_class': 'DISK_GB', 'total': 60},
    ],
    f'resource provider inventory delete --resource-class DISK_GB {HOST}': (
        None
    ),
    f'resource provider inventory show -f json {HOST} VCPU': {'total': 16},
    f'resource provider usage show -f json {HOST}': [
        {'resource_class': 'VCPU', 'usage': 0}
    ],
    f'resource provider trait set --trait CUSTOM_T {HOST}': None,
    f'resource provider trait list {HOST} -f json': names('CUSTOM_T'),
    'allocation candidate list --resource VCPU=1 --required CUSTOM_T '
    '-f json': [{'resource provider': HOST}],
    f'resource provider trait delete {HOST}': None,
    'trait delete CUSTOM_T': None,
    f'resource provider aggregate set --generation 0 {PROVIDER} '
    f'--aggregate {AGGREGATE}': None,
    f'resource provider aggregate list -f json {PROVIDER}': [
        {'uuid': AGGREGATE}
    ],
    f'resource provider list --member-of {AGGREGATE} -f json': names('kid'),
    f'resource provider delete {PROVIDER}': None,
    'resource provider list -f json': names(*['g1', 'c1', 'c2']),
}

# Each is named as what is not known.
UNKNOWN = {
    'aggregate cache image gpu deb': 'POST nova /os-aggregates/1/images',
    **{
        f'image set {option} deb': f'a change of {field} of an image'
        for option, field in (
            ('--container-format ovf', 'container_format'),
            ('--protected', 'protected'),
            ('--hidden', 'os_hidden'),
            ('--tag x', 'tags'),
        )
    },
    'image set --deactivate deb': 'POST glance /v2/images/cccc',
    f'resource usage show {PROJECT}': 'GET placement /usages',
    f'resource provider allocation show {HOST}': 'allocations',
    f'resource provider allocation set {HOST} --allocation '
    f'rp={HOST},VCPU=1 --project-id {PROJECT} --user-id {PROJECT}': (
        'allocations'
    ),
    f'resource provider allocation unset {HOST}': 'allocations',
    f'resource provider allocation delete {HOST}': 'allocations',
    'server list --all-projects --name web': 'servers by name',
    'network list': 'GET neutron',
}


def run(rehearsal, lines, folder):
    """Run lines; return what came of each, and the commands there are."""
    script = f'{PROGRAMS}/python {RUNNER} < lines > {folder}/answers'
    (pathlib.Path() / 'lines').write_text('\n'.join(lines))
    ended = rehearsal.run(['sh', '-c', script])
    assert ended.status == 0
    commands, *answers = (folder / 'answers').read_text().splitlines()
    return json.loads(commands), [json.loads(answer) for answer in answers]


def part_of(found, wanted):
    """Return the part of a shown document that is wanted."""
    if isinstance(wanted, list):
        assert len(found) == len(wanted)
        return [part_of(*each) for each in zip(found, wanted, strict=True)]
    if isinstance(wanted, dict):
        return {key: part_of(found[key], each) for key, each in wanted.items()}
    return found


def test_each_command_does_what_it_says(rehearsal, tmp_path):
    _, answers = run(rehearsal, LINES, tmp_path)
    for answer, shown in zip(answers, LINES.values(), strict=True):
        assert answer['status'] == 0, answer
        if shown is not None:
            found = json.loads(answer['out'])
            assert part_of(found, shown) == shown, answer['line']
    assert rehearsal.world.unknown == []
    assert rehearsal.world.refused == []
    assert rehearsal.world.snapshot.aggregates == (
        rehearsal.world.before.aggregates
    )


def test_what_is_not_known_is_named(rehearsal, tmp_path):
    lines = ['image set --name deb debian', *UNKNOWN]
    _, answers = run(rehearsal, lines, tmp_path)
    # The client itself says nothing of the last one.
    assert [answer['line'] for answer in answers if not answer['status']] == [
        lines[0],
        'image set --deactivate deb',
    ]
    said = rehearsal.world.unknown
    for line, part in UNKNOWN.items():
        assert any(part in each for each in said), (line, said)
    assert len(rehearsal.world.steps) == 1


def test_each_command_is_tried(rehearsal, tmp_path):
    commands, _ = run(rehearsal, [], tmp_path)
    assert len(commands) > 40
    assert [
        command
        for command in commands
        if not any(
            line.startswith(f'{command} ') for line in (*LINES, *UNKNOWN)
        )
    ] == []
