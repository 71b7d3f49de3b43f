# SPDX-License-Identifier: Apache-2.0
"""No repair that ``audit`` prints opens anything without saying so.

Each printed repair is carried out on a copy of the cloud. Whoever may use a
host then, and could not before, is named beside the repair.
"""

import dataclasses
import re
import uuid

from cloud_copy import STRANGER, CloudCopy, gained
import os_traits
from oslo_config import cfg
import pytest
from test_findings_page import kinds_in_code

from isolate_aggregates import options as tools_options
from isolate_aggregates.aggregates import rollups
from isolate_aggregates_tools.cloud.file import cloud_file

PROJECTS = (STRANGER, 'p1')

# Findings that a cloud file cannot have: they are about servers and about the
# versions of services, or need lists that only a live cloud has. Their
# repairs move servers, or delete what no host has.
LIVE = {
    'marks-left',
    'nova-too-old',
    'placement-too-old',
    'reservation-class-left',
    'server-changed',
    'server-misplaced',
    'server-not-evaluated',
    'servers-hints-unknown',
    'servers-image-unknown',
    'servers-out-of-reach',
    'service-down',
    # Reservations; isolate-aggregates-reservations/tests/functional has them.
    'reservation-closed',
    'reservation-not-reconciled',
    'reservation-oversold',
    'reservation-not-ended',
    'reservation-stale',
    'reservation-unreadable',
    'reservation-without-slots',
    'reservation-host',
}

DOMAIN = 'filter_tenant_id:domain:acme'
PROJECTS_OF_ACME = 'domains:\n- {id: acme, projects: [p1]}\n'
SETTINGS = """
settings:
  scheduler:
    enable_isolated_aggregate_filtering: true
    placement_req_required_member_prefix: ['reservation:']
    placement_req_default_forbidden_member_prefix: ['reservation:']
  isolate_aggregates:
    request_filters: [isolate_aggregates, reservation_prefix, isolate_tenants,
                      aggregate_instance_extra_specs]
"""
HOST_FILTERS = '  filter_scheduler: {{enabled_filters: [{}]}}\n'
FLAVORS = """
flavors:
- {name: plain, vcpus: 1, ram: 1024, disk: 1}
- {name: other, vcpus: 2, ram: 1024, disk: 1}
"""
KEYED = """
- {name: keyed, vcpus: 1, ram: 1024, disk: 1,
   extra_specs: {'trait:CUSTOM_GPU_POOL': required}}
"""
IMAGES = """
images:
- {name: debian}
"""
# A locked host with the trait, and another one.
HOSTS = """
providers:
- {name: ada, inventories: {VCPU: 8, MEMORY_MB: 8192, DISK_GB: 99},
   traits: [CUSTOM_GPU_POOL]}
- {name: bob, inventories: {VCPU: 8, MEMORY_MB: 8192, DISK_GB: 99}}
"""
LOCKED = """
aggregates:
- {name: gpu-hosts, id: 7, hosts: [ada],
   metadata: {'trait:CUSTOM_GPU_POOL': required}}
"""


def flavor(key, value='required', name='gpu.small'):
    return (
        f'- {{name: {name}, vcpus: 1, ram: 1024, disk: 1, '
        f"extra_specs: {{'{key}': '{value}'}}}}\n"
    )


def image(key, value, more=''):
    return f"- {{name: mine, properties: {{'{key}': '{value}'}}{more}}}\n"


def tagged(*tags, hosts='ada'):
    joined = ', '.join(f"'{tag}': '{value}'" for tag, value in map(_tag, tags))
    return (
        f'aggregates:\n- {{name: gpu-hosts, id: 7, hosts: [{hosts}], '
        f'metadata: {{{joined}}}}}\n'
    )


def _tag(text):
    key, _, value = text.partition('=')
    return key, value


def cloud(
    aggregates=LOCKED,
    hosts=HOSTS,
    flavors=FLAVORS + KEYED,
    images=IMAGES,
    settings=SETTINGS,
):
    return settings + aggregates + hosts + flavors + images


LOST = HOSTS.replace('traits: [CUSTOM_GPU_POOL]', 'traits: []')
LEFT = HOSTS.replace(
    'DISK_GB: 99}}\n',
    'DISK_GB: 99},\n   traits: [CUSTOM_GPU_POOL]}\n',
)
CLOUDS = {
    'the flavor lost its key': cloud(flavors=FLAVORS),
    'the flavor lost its key, and its name says so': cloud(
        flavors=FLAVORS + flavor('hw:cpu_policy', 'shared')
    ),
    'an aggregate has the default zone': cloud(
        aggregates=LOCKED
        + '- {name: zoned, id: 8, hosts: [bob], availability_zone: nova}\n'
    ),
    'a host is mapped to no cell': cloud(
        hosts=HOSTS + '- {name: eve, host: null, inventories: {VCPU: 8}}\n'
        'compute_services: [{host: ada}, {host: bob}, {host: eve}]\n'
    ),
    'a host is up and offers nothing': cloud(
        hosts=HOSTS + '- {name: eve, inventories: {}}\n'
        'compute_services: [{host: ada}, {host: bob}, {host: eve}]\n'
    ),
    'only a child is meant to share': cloud(
        hosts='placement_aggregates: [{name: nfs}]'
        + HOSTS
        + '- {name: eve, inventories: {VCPU: 8}, children: ['
        '{name: eve-0, inventories: {VGPU: 1}, aggregates: [nfs]}]}\n'
        '- {name: nfs, host: null, inventories: {DISK_GB: 99},\n'
        '   traits: [MISC_SHARES_VIA_AGGREGATE], aggregates: [nfs]}\n'
    ),
    'a multiplier of a weight is no number': cloud(
        aggregates=LOCKED + '- {name: weighed, id: 8, hosts: [bob], '
        'metadata: {ram_weight_multiplier: high}}\n'
    ),
    'servers use more than there is': cloud(
        hosts=HOSTS.replace(
            'DISK_GB: 99}}', 'DISK_GB: 99}, usages: {VCPU: 9}}'
        )
    ),
    'the value is misspelled': cloud(
        flavors=FLAVORS + flavor('trait:CUSTOM_GPU_POOL', 'require')
    ),
    'the value is something else': cloud(
        flavors=FLAVORS + flavor('trait:CUSTOM_GPU_POOL', 'yes')
    ),
    'the prefix is misspelled': cloud(
        flavors=FLAVORS + flavor('traits:CUSTOM_GPU_POOL')
    ),
    'the prefix has capitals': cloud(
        flavors=FLAVORS + flavor('Trait:CUSTOM_GPU_POOL')
    ),
    'the trait is misspelled': cloud(
        flavors=FLAVORS + flavor('trait:CUSTOM_GPU_POL')
    ),
    'the trait has lowercase letters': cloud(
        flavors=FLAVORS + flavor('trait:custom_gpu_pool')
    ),
    'only an image has the key': cloud(
        flavors=FLAVORS,
        images=IMAGES + image('trait:CUSTOM_GPU_POOL', 'required'),
        settings=SETTINGS + '    trait_sources: [flavor]\n',
    ),
    'an image with a misspelled value': cloud(
        flavors=FLAVORS,
        images=IMAGES + image('trait:CUSTOM_GPU_POOL', 'require'),
    ),
    'an image of a tenant': cloud(
        images=IMAGES
        + image(
            'trait:CUSTOM_GPU_POOL',
            'required',
            ', owner: p1, visibility: private',
        ),
    ),
    'two locks that no flavor opens together': cloud(
        LOCKED + '- {name: win-hosts, id: 8, hosts: [ada, bob],\n'
        "   metadata: {'trait:CUSTOM_WIN': required}}\n",
        LEFT.replace('[CUSTOM_GPU_POOL]', '[CUSTOM_GPU_POOL, CUSTOM_WIN]'),
        FLAVORS + KEYED + flavor('trait:CUSTOM_WIN', name='win.small'),
    ),
    'two traits on one aggregate': cloud(
        tagged(
            'trait:CUSTOM_GPU_POOL=required', 'trait:CUSTOM_LICENSE=required'
        )
    ),
    'a host lacks the trait': cloud(hosts=LOST),
    'a host lacks the trait, and nobody has the key': cloud(
        hosts=LOST, flavors=FLAVORS
    ),
    'a host lacks a trait of its processor': cloud(
        tagged('trait:HW_CPU_X86_AVX512F=required', hosts='ada, bob'),
        HOSTS.replace('CUSTOM_GPU_POOL', 'HW_CPU_X86_AVX512F'),
        FLAVORS + flavor('trait:HW_CPU_X86_AVX512F'),
    ),
    'a host of reservations lacks its trait': cloud(
        tagged('trait:CUSTOM_RESERVATION_HOST=required')
    ),
    'a host outside has the trait': cloud(hosts=LEFT),
    'a host outside has a standard trait': cloud(
        tagged('trait:HW_CPU_X86_AVX=required'),
        LEFT.replace('CUSTOM_GPU_POOL', 'HW_CPU_X86_AVX'),
        FLAVORS + flavor('trait:HW_CPU_X86_AVX'),
    ),
    'sync left a trait': cloud(
        tagged(),
        HOSTS.replace(
            '[CUSTOM_GPU_POOL]',
            '[CUSTOM_GPU_POOL, CUSTOM_ISOLATE_SYNC_CUSTOM_GPU_POOL]',
        ),
        FLAVORS + flavor('trait:CUSTOM_GPU_POOL', 'forbidden'),
    ),
    'the trait is on a child': cloud(
        hosts=LOST.replace(
            'traits: []',
            'children:\n'
            '   [{name: gpu0, inventories: {VGPU: 4},\n'
            '     traits: [CUSTOM_GPU_POOL]}]',
        )
    ),
    'a tag with a misspelled prefix': cloud(
        tagged('traits:CUSTOM_GPU_POOL=required')
    ),
    'a tag that is no lock': cloud(tagged('trait:CUSTOM_GPU_POOL=preferred')),
    'a tag with lowercase letters': cloud(
        tagged('trait:custom_gpu_pool=required')
    ),
    'a tag with a misspelled value': cloud(
        tagged('trait:CUSTOM_GPU_POOL=Required')
    ),
    'a tag that no trait can have': cloud(tagged('trait:HW_NO_SUCH=required')),
    'a tag with a capital prefix': cloud(
        tagged('Trait:CUSTOM_GPU_POOL=required')
    ),
    'a reservation with capitals': cloud(
        tagged('Reservation:1=x'),
        flavors=FLAVORS + flavor('reservation:1', 'x'),
    ),
    'a project key with capitals': cloud(tagged('Filter_tenant_id=p1')),
    'an ended reservation': cloud(
        flavors=FLAVORS + KEYED + flavor('reservation:9', 'x', 'reserved'),
        images=IMAGES + image('reservation:9', 'x'),
    ),
    'an image with the reservation of another project': cloud(
        tagged('reservation:1=x', 'blazar:owner=p1'),
        images=IMAGES
        + image('reservation:1', 'x', ', owner: p2, visibility: private'),
    ),
    'a trait that no host has': cloud(
        flavors=FLAVORS + KEYED + flavor('trait:CUSTOM_NOWHERE'),
        images=IMAGES + image('trait:CUSTOM_NOWHERE', 'required'),
    ),
    'a forbidden trait that does not exist': cloud(
        flavors=FLAVORS + KEYED + flavor('trait:CUSTOM_NOWHERE', 'forbidden')
    ),
    'a resource class that no host has': cloud(
        flavors=FLAVORS
        + KEYED
        + flavor('resources:CUSTOM_FPGA', '1')
        + flavor('resources:CUSTOM_RESERVATION_1', '1', 'ended')
    ),
    'metadata that no host has': cloud(
        flavors=FLAVORS
        + KEYED
        + flavor('aggregate_instance_extra_specs:ssd', 'true')
    ),
    'metadata behind a lock': cloud(
        tagged('trait:CUSTOM_GPU_POOL=required', 'ssd=true'),
        flavors=FLAVORS
        + KEYED
        + flavor('aggregate_instance_extra_specs:ssd', 'true'),
    ),
    'metadata that is no number': cloud(
        tagged('gpus=many'),
        flavors=FLAVORS
        + flavor('aggregate_instance_extra_specs:gpus', '>= 2'),
    ),
    'an extra spec that is no number': cloud(
        tagged('gpus=4'),
        flavors=FLAVORS
        + flavor('aggregate_instance_extra_specs:gpus', '>= many'),
    ),
    'settings that Nova refuses': cloud(
        flavors=FLAVORS + KEYED + flavor('hw:cpu_policy', 'perhaps'),
        images=IMAGES + image('hw_cpu_policy', 'perhaps'),
    ),
    'settings that Nova refuses together': cloud(
        flavors=FLAVORS + KEYED + flavor('hw:mem_encryption', 'true'),
        images=IMAGES + image('hw_mem_page_size', 'any'),
    ),
    'a host without compute node': cloud(
        tagged('trait:CUSTOM_GPU_POOL=required', hosts='ada, cid'),
        settings=f'mirror_host_aggregates: false\n{SETTINGS}',
        hosts=HOSTS.replace(
            'traits: [C', 'aggregates: [gpu-hosts], traits: [C'
        ),
    ),
    'a provider that is left': cloud(
        hosts=HOSTS + '- {name: blazar_cid, host: null, inventories: {}}\n'
    ),
    'no compute nodes': cloud(tagged(hosts=''), hosts='providers: []\n'),
    'no flavors': cloud(flavors=''),
    'isolation is off': cloud(
        settings=SETTINGS.replace('filtering: true', 'filtering: false')
    ),
    'no host in the zone of servers that request none': cloud(
        settings=SETTINGS + '  DEFAULT: {default_schedule_zone: nowhere}\n'
    ),
    'a prefix in one list': cloud(
        settings=SETTINGS.replace(
            "required_member_prefix: ['reservation:']",
            'required_member_prefix: []',
        )
    ),
    'a project of the domain has no tag': cloud(
        tagged(f'{DOMAIN}=acme') + PROJECTS_OF_ACME
    ),
    'a project is not in the domain': cloud(
        tagged(f'{DOMAIN}=acme', f'{DOMAIN}:p1=p1', f'{DOMAIN}:old=old')
        + PROJECTS_OF_ACME
    ),
    'the domain does not exist': cloud(
        tagged(f'{DOMAIN}=acme') + PROJECTS_OF_ACME.replace('[p1]', 'null')
    ),
    'the tag of the domain is missing': cloud(
        tagged(f'{DOMAIN}:p1=p1') + PROJECTS_OF_ACME
    ),
    'a host with another name': cloud(
        LOCKED.replace('[ada]', '[ada.old]'),
        settings=f'mirror_host_aggregates: false\n{SETTINGS}',
    ),
    'tags that no filter reads': cloud(
        tagged('filter_tenant_id=p1'),
        settings=SETTINGS.replace(', isolate_tenants', '')
        + HOST_FILTERS.format('ComputeFilter'),
    ),
    'images that are not kept apart': cloud(
        tagged('os_distro=windows'),
        settings=SETTINGS
        + HOST_FILTERS.format('AggregateImagePropertiesIsolation'),
        images=IMAGES + image('os_distro', 'windows'),
    ),
    'two zones of one host': cloud(
        'aggregates:\n'
        '- {name: one, availability_zone: az1, hosts: [ada]}\n'
        '- {name: two, availability_zone: az2, hosts: [ada]}\n'
    ),
    'a disabled host': cloud(
        hosts=HOSTS.replace(
            '[CUSTOM_GPU_POOL]', '[CUSTOM_GPU_POOL, COMPUTE_STATUS_DISABLED]'
        )
    ),
}


def _unmirrored(snapshot):
    """Take all memberships out of Placement."""
    return _with_members(snapshot, frozenset())


def _with_members(snapshot, uuids):
    return dataclasses.replace(
        snapshot,
        providers=tuple(
            dataclasses.replace(p, aggregates=uuids)
            for p in snapshot.providers
        ),
    )


def _everywhere(snapshot):
    """Make all hosts members of all aggregates, in Placement alone."""
    uuids = frozenset(a.uuid for a in snapshot.aggregates)
    return _with_members(snapshot, uuids)


def _wrong_rollup(snapshot):
    """Put into a rollup only the host that must not be in it."""
    rollup = rollups.uuid_of('trait:CUSTOM_GPU_POOL')
    ada, bob = snapshot.providers
    [locked] = snapshot.aggregates
    other = dataclasses.replace(
        locked, uuid=str(uuid.uuid4()), name='other', id=8, hosts=frozenset()
    )
    members = bob.aggregates | {rollup}
    return dataclasses.replace(
        snapshot,
        aggregates=(locked, other),
        providers=(ada, dataclasses.replace(bob, aggregates=members)),
        placement_aggregates={rollup: 'rollup'},
    )


def _storage_in_a_rollup(snapshot):
    """Add storage that is in the rollup of two locked aggregates."""
    wrong = _wrong_rollup(snapshot)
    ada, bob = wrong.providers
    storage = dataclasses.replace(
        bob,
        uuid=str(uuid.uuid4()),
        name='nfs',
        host=None,
        traits=frozenset({os_traits.MISC_SHARES_VIA_AGGREGATE}),
    )
    return dataclasses.replace(wrong, providers=(ada, bob, storage))


# Clouds that differ between Nova and Placement.
DIFFERING = {
    'memberships that Placement lacks': _unmirrored,
    'memberships that Nova lacks': _everywhere,
    'memberships in a rollup': _wrong_rollup,
    'storage in a rollup': _storage_in_a_rollup,
}

_REPAIR = re.compile(r'( \* |   | or: )(?!the repair of)(\S.*)')


@dataclasses.dataclass
class Printed:
    """A printed repair.

    :param line: The commands.
    :param said: What is said about it.
    """

    line: str
    said: str
    is_safe: bool = False


def printed(output):
    """Yield the repairs in the output of the audit."""
    repair = None
    for line in output.splitlines():
        match = _REPAIR.fullmatch(line)
        if match:
            if repair:
                yield repair
            command, said = match[2], ''
            if re.search(r'\b(AGGREGATE|FLAVOR|TRAIT)\b', command):
                # Something has to be filled in; what follows is a sentence.
                command, _, said = command.partition(', ')
            repair = Printed(command, said, '*' in match[1])
        elif repair and line.startswith('      '):
            repair.said += line.strip() + ' '
    if repair:
        yield repair


def check_said(opened_hosts, sentence):
    """Check that a sentence names what is opened, and to whom."""
    if not opened_hosts:
        return
    flavors = {name for name, _, _ in opened_hosts}
    hosts = frozenset().union(*opened_hosts.values())
    assert re.search('opens|lets', sentence), (opened_hosts, sentence)
    if 'an aggregate of the hosts that have it' in sentence:
        # Which hosts and flavors it is about is for the operator to fill in.
        return
    for host in hosts:
        assert re.search(rf'\b{host}\b', sentence), (host, sentence)
    if 'lets them use' in sentence:
        return
    counted = re.search(r'(\d+) of \d+ flavors', sentence)
    assert (counted and int(counted[1]) >= len(flavors)) or all(
        name in sentence for name in flavors
    ), (flavors, sentence)


@pytest.fixture
def audited(run, write_cloud, monkeypatch):
    """Audit a cloud; return it, and the output."""
    monkeypatch.setenv('COLUMNS', '9999')

    def audit(name):
        path = write_cloud(CLOUDS.get(name) or cloud())
        snapshot = cloud_file.load(path)
        if name in DIFFERING:
            snapshot = DIFFERING[name](snapshot)
            # Files of others are not replaced.
            path.unlink()
            cloud_file.save(snapshot, path)
        result = run('audit', '--snapshot', str(path), '--fail-on', 'info')
        assert result.code == 4, result.err
        return snapshot, result.out

    return audit


def fresh():
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    return conf


@pytest.mark.parametrize('name', [*CLOUDS, *DIFFERING])
def test_no_repair_opens_anything_unsaid(audited, name):
    snapshot, output = audited(name)
    original = CloudCopy(snapshot, fresh())
    before = original.access(PROJECTS)
    for repair in printed(output):
        if not repair.line.startswith(('openstack ', 'isolate-aggregates ')):
            # A sentence on what to configure.
            continue
        for filled in _filled(repair.line, snapshot):
            copy = CloudCopy(snapshot, fresh())

            def check(copy=copy, repair=repair):
                more = gained(before, copy.access(PROJECTS))
                check_said(more, repair.said)
                if repair.is_safe:
                    assert all(
                        original.permits(asked, host)
                        for asked, hosts in more.items()
                        for host in hosts
                    )

            # Also while the commands are carried out.
            copy.paste(filled, check)


def _filled(line, snapshot):
    """Yield a line for each object that it may be about."""
    line = re.sub(r'\bTRAIT\b', 'CUSTOM_OTHER', line)
    for aggregate in snapshot.aggregates if 'AGGREGATE' in line else ():
        yield line.replace('AGGREGATE', aggregate.name)
    for flavor in snapshot.flavors if 'FLAVOR' in line else ():
        yield line.replace('FLAVOR', flavor.name)
    if not re.search(r'\b(AGGREGATE|FLAVOR)\b', line):
        yield line


def test_the_clouds_have_all_kinds_of_findings(audited):
    shown = {
        kind
        for name in (*CLOUDS, *DIFFERING)
        for kind in re.findall(
            r'[a-z]+(?:-[a-z]+)+',
            audited(name)[1].rpartition('for each kind: ')[2],
        )
    }
    assert shown == set(kinds_in_code()) - LIVE
