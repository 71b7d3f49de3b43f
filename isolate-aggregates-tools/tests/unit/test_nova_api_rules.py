# SPDX-License-Identifier: Apache-2.0
"""Each kind of refusal by nova-api has a reason and says what to change.

``tests/nova/test_nova_api.py`` compares the rules with Nova's.
"""

import json

import pytest

from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.mirrored import nova_api
from isolate_aggregates_tools.request import Request

FLAVOR, IMAGE, EITHER = nova_api.Source

PIN = 'requires pinned CPUs; set hw:cpu_policy=dedicated in the flavor'


def refusals(extra_specs, properties, release=34, aliases=None, **image):
    request = Request(
        Flavor('f', vcpus=4, ram=1024, disk=1, extra_specs=extra_specs),
        Image('i', properties=properties, **image),
        nova_release=release,
        pci_aliases=aliases,
    )
    return [(each.source, each.text) for each in nova_api.refusals(request)]


@pytest.mark.parametrize('aliases', [None, frozenset({'a100', 'nic'})])
def test_known_and_unread_pci_aliases_are_accepted(aliases):
    specs = {'pci_passthrough:alias': 'a100:2, nic:1'}
    assert refusals(specs, {}, aliases=aliases) == []


def test_an_alias_that_nova_api_does_not_have_is_refused():
    specs = {'pci_passthrough:alias': 'a10:1,nic:1'}
    assert refusals(specs, {}, aliases=frozenset({'a100', 'nic'})) == [
        (
            FLAVOR,
            'pci_passthrough:alias names a10, and [pci] alias of nova-api has '
            'only a100, nic',
        )
    ]
    [(_, text)] = refusals(specs, {}, aliases=frozenset())
    assert text.endswith('a10, nic, and [pci] alias of nova-api has none')


@pytest.mark.parametrize(
    ('specs', 'properties', 'source', 'reason'),
    [
        ({'hw:cpu_thread_policy': 'isolate'}, {}, EITHER, PIN),
        (
            {'hw:cpu_thread_policy': 'isolate', 'hw:cpu_policy': 'shared'},
            {},
            FLAVOR,
            PIN,
        ),
        (
            {},
            {'hw_cpu_thread_policy': 'prefer'},
            EITHER,
            'of an image require',
        ),
        ({'trait:HW_CPU_HYPERTHREADING': 'required'}, {}, EITHER, PIN),
        (
            {
                'hw:cpu_policy': 'dedicated',
                'hw:cpu_thread_policy': 'isolate',
                'trait:HW_CPU_HYPERTHREADING': 'forbidden',
            },
            {},
            FLAVOR,
            'cannot be combined with hw:cpu_thread_policy',
        ),
        (
            {'hw:cpu_policy': 'dedicated', 'hw:cpu_thread_policy': 'isolate'},
            {'hw_cpu_thread_policy': 'require'},
            EITHER,
            'set both to the same value',
        ),
        ({'hw:cpu_policy': 'odd'}, {}, FLAVOR, "is 'odd', but must be one of"),
        ({'hw:emulator_threads_policy': 'isolate'}, {}, EITHER, PIN),
        ({'hw:cpu_policy': 'mixed'}, {}, FLAVOR, 'requires either hw:cpu_ded'),
        (
            {'hw:cpu_policy': 'dedicated', 'hw:cpu_dedicated_mask': '0'},
            {},
            FLAVOR,
            'hw:cpu_dedicated_mask requires hw:cpu_policy=mixed',
        ),
        (
            {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '0-3'},
            {},
            FLAVOR,
            'must name some, but not all, of the 4 CPUs of the flavor',
        ),
        (
            {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '3-1'},
            {},
            FLAVOR,
            "The CPU mask '3-1' contains '3-1'; a mask must be",
        ),
        (
            {'hw:cpu_policy': 'dedicated', 'hw:cpu_realtime': 'yes'},
            {},
            EITHER,
            'hw:cpu_realtime requires hw:cpu_realtime_mask in the flavor or',
        ),
        (
            {'hw:cpu_realtime': 'yes', 'hw:cpu_realtime_mask': '^0'},
            {},
            EITHER,
            PIN,
        ),
        (
            {'resources:PCPU': '4', 'hw:cpu_policy': 'dedicated'},
            {},
            FLAVOR,
            'cannot be combined with hw:cpu_policy',
        ),
        (
            {'resources:PCPU': '4', 'resources:VCPU': '1'},
            {},
            FLAVOR,
            'resources:VCPU and resources:PCPU cannot be combined',
        ),
        (
            {'resources:PCPU': '3'},
            {},
            FLAVOR,
            'resources:PCPU is 3, but must be 4: the number of VCPUs',
        ),
        (
            {'resources:PCPU': '4', 'hw:emulator_threads_policy': 'isolate'},
            {},
            FLAVOR,
            'must be 5: the number of VCPUs of the flavor, and one more for',
        ),
        ({'hw:cpu_sockets': 'two'}, {}, FLAVOR, 'must be a whole number'),
        (
            {'hw:cpu_max_sockets': '1'},
            {'hw_cpu_max_sockets': '2'},
            EITHER,
            'but the flavor allows 1 with hw:cpu_max_sockets',
        ),
        (
            {},
            {'hw_cpu_max_cores': '1', 'hw_cpu_cores': '2'},
            IMAGE,
            'the image has hw_cpu_cores=2, but at most 1 are allowed',
        ),
        ({'hw:numa_nodes': '0'}, {}, FLAVOR, 'must be at least 1'),
        ({}, {'hw_numa_nodes': '-1'}, IMAGE, 'must be at least 1'),
        (
            {'hw:numa_nodes': '8'},
            {},
            EITHER,
            'cannot be divided equally among 8 NUMA nodes',
        ),
        (
            {'hw:numa_nodes': '2'},
            {'hw_numa_nodes': '2'},
            EITHER,
            'exclude each other; remove one of them',
        ),
        (
            {'hw:numa_nodes': '2', 'hw:numa_cpus.0': '0-3'},
            {},
            EITHER,
            'must be set for each of the 2 NUMA nodes',
        ),
        (
            {
                'hw:numa_nodes': '1',
                'hw:numa_cpus.0': '0-2',
                'hw:numa_mem.0': '1024',
            },
            {},
            EITHER,
            'must name each of the 4 CPUs of the flavor once',
        ),
        (
            {
                'hw:numa_nodes': '1',
                'hw:numa_cpus.0': '0-3',
                'hw:numa_mem.0': '512',
            },
            {},
            EITHER,
            'add up to 512 MiB, but the flavor has 1024',
        ),
        (
            {'hw:mem_page_size': 'odd'},
            {},
            FLAVOR,
            'which is not a size',
        ),
        (
            {},
            {'hw_mem_page_size': '2048'},
            EITHER,
            'which a flavor without hw:mem_page_size does not allow',
        ),
        (
            {'hw:locked_memory': 'true'},
            {},
            FLAVOR,
            'requires hw:mem_page_size',
        ),
        (
            {'hw:mem_encryption': 'true'},
            {},
            EITHER,
            'requires an image with hw_firmware_type=uefi',
        ),
        (
            {'hw:mem_encryption': 'true'},
            {'hw_firmware_type': 'uefi', 'hw_machine_type': 'pc'},
            EITHER,
            'requires an image with hw_machine_type=q35',
        ),
        (
            {
                'hw:mem_encryption': 'true',
                'hw:mem_encryption_model': 'intel-tdx',
            },
            {'hw_firmware_type': 'uefi', 'hw_firmware_stateless': 'true'},
            EITHER,
            'requires an image with hw_video_model=none',
        ),
        (
            {'hw:pmu': 'true'},
            {'hw_pmu': 'false'},
            EITHER,
            'set both to the same value',
        ),
        (
            {'hw:serial_port_count': '1'},
            {'hw_serial_port_count': '2'},
            EITHER,
            'but the flavor allows 1 with hw:serial_port_count',
        ),
        ({}, {'hw_disk_bus': 'odd'}, IMAGE, "hw_disk_bus is 'odd', but must"),
        ({}, {'hw_video_ram': 'much'}, IMAGE, "'much', but must be a whole"),
        ({}, {'architecture': 'odd'}, IMAGE, 'image property architecture is'),
        ({}, {'hw_numa_cpus.0': 'x'}, IMAGE, 'image property hw_numa_cpus.0'),
    ],
)
def test_a_refusal_has_a_source_and_a_reason(
    specs, properties, source, reason
):
    [(found_source, text), *_] = refusals(specs, properties)
    assert found_source is source
    assert reason in text
    assert not text.endswith('.')


@pytest.mark.parametrize(
    ('image', 'reason'),
    [
        ({'min_ram': 1025}, 'requires 1025 MiB of memory (min_ram), but the'),
        ({'min_disk': 2}, 'requires a disk of 2 GiB, but the flavor has 1'),
        ({'size': (1 << 30) + 1}, 'requires a disk of 2 GiB'),
    ],
)
def test_an_image_must_fit_into_the_flavor(image, reason):
    [(source, text)] = refusals({}, {}, **image)
    assert source is EITHER
    assert reason in text


def test_a_release_is_asked_for_its_own_rules():
    properties = {'hw_firmware_stateless': 'true'}
    assert refusals({}, properties, release=34) == []
    [(source, text)] = refusals({}, properties, release=33)
    assert source is IMAGE
    assert text.startswith('hw_firmware_stateless requires')


@pytest.mark.parametrize(
    ('release', 'models'),
    [
        (33, 'amd-sev, amd-sev-es'),
        (34, 'amd-sev, amd-sev-es, amd-sev-snp, intel-tdx'),
    ],
)
def test_a_release_is_asked_for_the_models_that_it_has(release, models):
    refused = refusals({}, {'hw_mem_encryption_model': 'odd'}, release)
    assert (
        IMAGE,
        "image property hw_mem_encryption_model is 'odd', but must be one of "
        f'{models}',
    ) in refused


CLOUD = """\
version: 1
providers:
- {name: cn1, inventories: {VCPU: 8, MEMORY_MB: 8192, PCPU: 8}}
flavors:
- name: locked
  vcpus: 2
  ram: 512
  extra_specs: {hw:locked_memory: 'true'}
- {name: threads, vcpus: 2, extra_specs: {hw:cpu_thread_policy: isolate}}
- {name: plain, vcpus: 1, ram: 512}
images:
- {name: pinned, properties: {hw_cpu_policy: dedicated}}
- {name: pages, properties: {hw_mem_page_size: large}}
- {name: odd, properties: {hw_disk_bus: odd}}
- {name: large, min_ram: 1024}
"""
LOCKED = (
    'hw:locked_memory requires hw:mem_page_size; set both in the flavor, or '
    'remove the setting'
)


@pytest.fixture
def on_cloud(run, tmp_path):
    """Run a command on the cloud above, without some of its lines."""

    def on(*arguments, without='nothing'):
        path = tmp_path / 'cloud.yaml'
        lines = CLOUD.splitlines()
        path.write_text(
            '\n'.join(line for line in lines if without not in line)
        )
        return run(*arguments, '--snapshot', str(path))

    return on


@pytest.mark.parametrize(
    'command',
    [
        'explain',
        'candidate list',
        'capacity list',
        'candidate list --query',
    ],
)
def test_no_command_calls_a_refused_flavor_possible(on_cloud, command):
    finished = on_cloud(*command.split(), '--flavor', 'locked')
    assert finished.code == 4
    assert finished.out == ''
    assert finished.err == f'nova-api refuses flavor locked: {LOCKED}.\n'
    finished = on_cloud(
        *command.split(), '--flavor', 'plain', '--image', 'pages'
    )
    assert finished.err.startswith(
        'nova-api refuses flavor plain with image pages: the image has '
    )


def test_what_an_image_can_avoid_is_not_known_without_one(on_cloud):
    arguments = ('explain', '--flavor', 'threads', '-f', 'json')
    summary = json.loads(on_cloud(*arguments).out)['summary']
    assert summary['not_known'][0] == (
        'whether nova-api accepts flavor threads with the image, which is not '
        'known: hw:cpu_thread_policy=isolate requires pinned CPUs; set '
        'hw:cpu_policy=dedicated in the flavor, or remove the setting; '
        'specify the image with --image'
    )
    pinned = on_cloud(*arguments, '--image', 'pinned')
    assert 'nova-api' not in pinned.out
    assert json.loads(pinned.out)['summary']['candidates'] == 1


def test_a_matrix_has_no_host_for_a_refused_flavor(on_cloud):
    rows = json.loads(on_cloud('matrix', 'list', '-f', 'json').out)['rows']
    assert {row['flavor']: row['verdicts'] for row in rows} == {
        'locked': ['no'],
        'threads': ['yes'],
        'plain': ['yes'],
    }
    [reason] = rows[0]['reasons']
    assert reason['reason'] == f'nova-api refuses flavor locked: {LOCKED}'


def findings(result):
    return {
        (each['kind'], each['subject'].split(' (')[0]): each['problem']
        for each in json.loads(result.out)['findings']
    }


def test_an_audit_finds_what_nova_refuses_in_every_combination(on_cloud):
    found = findings(on_cloud('audit', '-f', 'json'))
    assert found.pop(('flavor-invalid', 'flavor locked')) == LOCKED
    assert found.pop(('image-invalid', 'image odd')).startswith(
        "image property hw_disk_bus is 'odd', but must be one of fdc, "
    )
    assert found.pop(('image-without-flavor', 'image pages')).startswith(
        'Nova accepts it with no flavor of the cloud: the image has '
    )
    assert found.pop(('image-without-flavor', 'image large')) == (
        'Nova accepts it with no flavor of the cloud: the image requires 1024 '
        'MiB of memory (min_ram), but the flavor has 512; use a larger flavor'
    )
    assert found == {}
    found = findings(on_cloud('audit', '-f', 'json', without='pinned'))
    assert found['flavor-without-image', 'flavor threads'].startswith(
        'Nova accepts it with no image of the cloud: hw:cpu_thread_policy'
    )
