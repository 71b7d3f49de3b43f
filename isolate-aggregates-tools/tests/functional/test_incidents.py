# SPDX-License-Identifier: Apache-2.0
"""Staged incidents: what ``explain`` prints mends each of them.

Whoever reads only the output and pastes the first repair has a host for the
server, after at most two lines. And no suggestion opens anything unsaid.
"""

import dataclasses
import re

from cloud_copy import CloudCopy, PlacedVm, gained
import pytest
from test_advice_of_audit import (
    FLAVORS,
    HOST_FILTERS,
    HOSTS,
    IMAGES,
    KEYED,
    LOST,
    PROJECTS,
    SETTINGS,
    check_said,
    cloud,
    flavor,
    fresh,
    image,
    tagged,
)

from isolate_aggregates_tools.cloud.file import cloud_file

DISABLED = 'COMPUTE_STATUS_DISABLED'
# Only the locked host has what the flavor needs.
VGPU = HOSTS.replace('VCPU: 8', 'VCPU: 8, VGPU: 4', 1)
NEEDS = "'resources:VGPU': '1'"


def gpu(extra=''):
    more = f', {extra}' if extra else ''
    return (
        '- {name: gpu.small, vcpus: 1, ram: 1024, disk: 1,\n'
        f'   extra_specs: {{{NEEDS}{more}}}}}\n'
    )


@dataclasses.dataclass(frozen=True)
class Incident:
    """An incident.

    :param text: The cloud.
    :param asked: What the server asks for.
    :param mended_by: A part of the command that mends it.
    :param servers: The servers on hosts that are full.
    """

    text: str
    asked: str
    mended_by: str
    servers: tuple[PlacedVm, ...] = ()


FULL = HOSTS.replace('99}', '99}, usages: {VCPU: 8, MEMORY_MB: 4096}')
INCIDENTS = {
    'the flavor lost its key': Incident(
        cloud(hosts=VGPU, flavors=FLAVORS + gpu()),
        '--flavor gpu.small',
        'isolate-aggregates key add --flavor=',
    ),
    'the value of the key is misspelled': Incident(
        cloud(
            hosts=VGPU,
            flavors=FLAVORS + gpu("'trait:CUSTOM_GPU_POOL': require"),
        ),
        '--flavor gpu.small',
        'flavor set --property trait:CUSTOM_GPU_POOL=required',
    ),
    'the trait of the key is misspelled': Incident(
        cloud(flavors=FLAVORS + flavor('trait:CUSTOM_GPU_POL')),
        '--flavor gpu.small',
        'flavor set --property trait:CUSTOM_GPU_POOL=required',
    ),
    'the prefix of the key is misspelled': Incident(
        cloud(flavors=FLAVORS + flavor('traits:CUSTOM_GPU_POOL')),
        '--flavor gpu.small',
        'flavor set --property trait:CUSTOM_GPU_POOL=required',
    ),
    'the host lacks the trait': Incident(
        cloud(hosts=LOST), '--flavor keyed', 'isolate-aggregates sync'
    ),
    'the host lacks the trait, and the flavor the key': Incident(
        cloud(
            hosts=VGPU.replace('[CUSTOM_GPU_POOL]', '[]'),
            flavors=FLAVORS + gpu(),
        ),
        '--flavor gpu.small',
        'isolate-aggregates key add --flavor=',
    ),
    'the tag is misspelled': Incident(
        cloud(tagged('trait:custom_gpu_pool=required')),
        '--flavor keyed',
        'aggregate set --property trait:CUSTOM_GPU_POOL=required',
    ),
    'the only host is disabled': Incident(
        cloud(hosts=HOSTS.replace('_POOL]', f'_POOL, {DISABLED}]')),
        '--flavor keyed',
        'compute service set --enable ada nova-compute',
    ),
    'all hosts are disabled': Incident(
        cloud(
            hosts=HOSTS.replace('_POOL]', f'_POOL, {DISABLED}]').replace(
                '99}}\n', f'99}}, traits: [{DISABLED}]}}\n'
            )
        ),
        '--flavor plain',
        'compute service set --enable bob nova-compute',
    ),
    'the reservation of the flavor has ended': Incident(
        cloud(flavors=FLAVORS + flavor('reservation:9', 'x')),
        '--flavor gpu.small',
        'flavor unset --property reservation:9',
    ),
    'the reservation of the image has ended': Incident(
        cloud(images=IMAGES + image('reservation:9', 'x')),
        '--flavor plain --image mine',
        'image unset --property reservation:9',
    ),
    'the instance reservation has ended': Incident(
        cloud(flavors=FLAVORS + flavor('resources:CUSTOM_RESERVATION_9', '1')),
        '--flavor gpu.small',
        'flavor unset --property resources:CUSTOM_RESERVATION_9',
    ),
    'all hosts are reserved': Incident(
        cloud(tagged('reservation:1=x', hosts='ada, bob')),
        '--flavor plain',
        'aggregate unset --property reservation:1',
    ),
    'all hosts are in the pool of reservations': Incident(
        cloud(
            tagged(
                'trait:CUSTOM_RESERVATION_HOST=required',
                'reservation:pool=true',
                hosts='ada, bob',
            ),
        ),
        '--flavor plain',
        'isolate-aggregates reservation host set --disable ada',
    ),
    'all hosts are full': Incident(
        cloud(hosts=FULL),
        '--flavor plain',
        'server list --all-projects --host=bob',
        (
            PlacedVm('one', 'bob', {'VCPU': 4, 'MEMORY_MB': 2048}),
            PlacedVm('two', 'bob', {'VCPU': 4, 'MEMORY_MB': 2048}),
        ),
    ),
    'no host has the resource class': Incident(
        cloud(flavors=FLAVORS + flavor('resources:CUSTOM_FPGA', '1')),
        '--flavor gpu.small',
        'flavor unset --property resources:CUSTOM_FPGA',
    ),
    'no host has the trait': Incident(
        cloud(flavors=FLAVORS + flavor('trait:CUSTOM_NOWHERE')),
        '--flavor gpu.small',
        'flavor unset --property trait:CUSTOM_NOWHERE',
    ),
    'a forbidden trait does not exist': Incident(
        cloud(flavors=FLAVORS + flavor('trait:CUSTOM_NOWHERE', 'forbidden')),
        '--flavor gpu.small',
        'trait create CUSTOM_NOWHERE',
    ),
    'no host has the metadata': Incident(
        cloud(
            flavors=FLAVORS
            + flavor('aggregate_instance_extra_specs:ssd', 'true')
        ),
        '--flavor gpu.small',
        'flavor unset --property aggregate_instance_extra_specs:ssd',
    ),
    'the metadata is behind a lock': Incident(
        cloud(
            tagged('trait:CUSTOM_GPU_POOL=required', 'ssd=true'),
            flavors=FLAVORS
            + flavor('aggregate_instance_extra_specs:ssd', 'true'),
        ),
        '--flavor gpu.small',
        'isolate-aggregates key add --flavor=',
    ),
    'the metadata is no number': Incident(
        cloud(
            tagged('gpus=many')
            + '- {name: others, hosts: [bob], metadata: {gpus: 4}}\n',
            flavors=FLAVORS
            + flavor('aggregate_instance_extra_specs:gpus', '>= 2'),
        ),
        '--flavor gpu.small',
        'aggregate unset --property gpus',
    ),
    'the extra spec is no number': Incident(
        cloud(
            tagged('gpus=4'),
            flavors=FLAVORS
            + flavor('aggregate_instance_extra_specs:gpus', '>= many'),
        ),
        '--flavor gpu.small',
        'flavor unset --property aggregate_instance_extra_specs:gpus',
    ),
    'the project is not among those of the hosts': Incident(
        cloud(tagged('filter_tenant_id=p1', hosts='ada, bob')),
        '--flavor plain --project stranger',
        'aggregate set --property filter_tenant_id=p1,stranger',
    ),
    'the zone is full': Incident(
        cloud(
            'aggregates:\n'
            '- {name: one, availability_zone: az1, hosts: [ada]}\n'
            '- {name: two, availability_zone: az2, hosts: [bob]}\n',
            HOSTS.replace('99}', '99}, usages: {VCPU: 8}', 1),
        ),
        '--flavor plain --availability-zone az1',
        '--availability-zone az2',
    ),
    'the requested host is locked': Incident(
        cloud(), '--flavor keyed --host bob', 'request no host, or one of ada'
    ),
    'Placement has a host in the aggregate, and Nova has not': Incident(
        cloud(
            tagged('trait:CUSTOM_GPU_POOL=required', hosts=''),
            HOSTS.replace(
                'bob, inv', 'bob, aggregates: [gpu-hosts], inv'
            ).replace('_POOL]', f'_POOL, {DISABLED}]'),
            settings=f'mirror_host_aggregates: false\n{cloud.__defaults__[4]}',
        ),
        '--flavor plain',
        'compute service set --enable ada nova-compute',
    ),
}


SSD = 'aggregate_instance_extra_specs:ssd'
FPGA = HOSTS.replace('DISK_GB: 99}', 'DISK_GB: 99, CUSTOM_FPGA: 2}')
LEASE = 'reservation:5a4d5af1-1c0a-4a51-9b3d-ffb8d7fb9b12'
PROJECT = '7d3fd3a4-5f3b-4a39-9a41-0a9d5a0b7c11'
TENANTS = SETTINGS.replace(
    'scheduler:',
    'scheduler:\n    limit_tenants_to_placement_aggregate: true\n'
    '    placement_aggregate_required_for_tenants: true',
)
# A value may have 255 characters.
MANY_PROJECTS = ','.join('a' * 31 + str(number) for number in range(8))[:250]
ZONES = (
    'aggregates:\n'
    '- {name: one, availability_zone: az1, hosts: [ada]}\n'
    '- {name: two, availability_zone: az2, hosts: [bob]}\n'
)


def filtered(name):
    return SETTINGS + HOST_FILTERS.format(name)


# What is misspelled, or too large, or kept by Nova's own filters.
INCIDENTS |= {
    'the prefix of the key is left out': Incident(
        cloud(hosts=VGPU, flavors=FLAVORS + gpu('CUSTOM_GPU_POOL: required')),
        '--flavor gpu.small',
        'flavor set --property trait:CUSTOM_GPU_POOL=required',
    ),
    'the prefix of the key has no colon': Incident(
        cloud(
            hosts=VGPU,
            flavors=FLAVORS + gpu('trait_CUSTOM_GPU_POOL: required'),
        ),
        '--flavor gpu.small',
        'flavor set --property trait:CUSTOM_GPU_POOL=required',
    ),
    'the key has small letters': Incident(
        cloud(
            hosts=VGPU,
            flavors=FLAVORS + gpu("'trait:custom_gpu_pool': required"),
        ),
        '--flavor gpu.small',
        'flavor set --property trait:CUSTOM_GPU_POOL=required',
    ),
    'the value of the key is yes': Incident(
        cloud(
            hosts=VGPU, flavors=FLAVORS + gpu("'trait:CUSTOM_GPU_POOL': 'yes'")
        ),
        '--flavor gpu.small',
        'flavor set --property trait:CUSTOM_GPU_POOL=required',
    ),
    'the trait of an image is misspelled': Incident(
        cloud(images=IMAGES + image('trait:CUSTOM_GPU_POLL', 'required')),
        '--flavor plain --image mine',
        'image set --property trait:CUSTOM_GPU_POOL=required',
    ),
    'the resource class is misspelled': Incident(
        cloud(
            hosts=FPGA, flavors=FLAVORS + flavor('resources:CUSTOM_FPGAS', '1')
        ),
        '--flavor gpu.small',
        'flavor set --property resources:CUSTOM_FPGA=1',
    ),
    'the resource class has another separator': Incident(
        cloud(
            hosts=FPGA.replace('CUSTOM_FPGA', 'CUSTOM_BAREMETAL_GP2SMALL'),
            flavors=FLAVORS
            + flavor('resources:CUSTOM_BAREMETAL_GP2_SMALL', '1'),
        ),
        '--flavor gpu.small',
        'flavor set --property resources:CUSTOM_BAREMETAL_GP2SMALL=1',
    ),
    'more of a resource class than any host has': Incident(
        cloud(
            hosts=FPGA, flavors=FLAVORS + flavor('resources:CUSTOM_FPGA', '3')
        ),
        '--flavor gpu.small',
        'flavor set --property resources:CUSTOM_FPGA=2',
    ),
    'the value of metadata has another case': Incident(
        cloud(tagged('ssd=true'), flavors=FLAVORS + flavor(SSD, 'True')),
        '--flavor gpu.small',
        f'flavor set --property {SSD}=true',
    ),
    'the key of metadata has another separator': Incident(
        cloud(
            tagged('fast_disk=true'),
            flavors=FLAVORS
            + flavor('aggregate_instance_extra_specs:fast-disk', 'true'),
        ),
        '--flavor gpu.small',
        'flavor set --property aggregate_instance_extra_specs:fast_disk=true',
    ),
    'the tag is misspelled beside many flavors': Incident(
        cloud(
            tagged('ssd=True'),
            flavors=FLAVORS
            + flavor(SSD, 'true')
            + flavor(SSD, 'true', 'gpu.big')
            + flavor(SSD, 'true', 'gpu.huge'),
        ),
        '--flavor gpu.small',
        'aggregate set --property ssd=true',
    ),
    'the scope of flavors is on the aggregate': Incident(
        cloud(tagged(f'{SSD}=true'), flavors=FLAVORS + flavor(SSD, 'true')),
        '--flavor gpu.small',
        'aggregate set --property ssd=true',
    ),
    'the lock is misspelled beside many flavors': Incident(
        cloud(
            tagged('trait:CUSTOM_GPU_POLL=required'),
            hosts=LOST,
            flavors=FLAVORS + KEYED + flavor('trait:CUSTOM_GPU_POOL'),
        ),
        '--flavor keyed',
        'aggregate set --property trait:CUSTOM_GPU_POOL=required',
    ),
    'the id of the reservation is misspelled': Incident(
        cloud(
            tagged(f'{LEASE}=x'),
            flavors=FLAVORS + flavor(LEASE[:-1] + '3', 'x'),
        ),
        '--flavor gpu.small',
        f'flavor set --property {LEASE}=x',
    ),
    'the id of the project has no dashes': Incident(
        cloud(
            tagged(
                f'filter_tenant_id={PROJECT.replace("-", "")}',
                hosts='ada, bob',
            )
        ),
        f'--flavor plain --project {PROJECT}',
        f'aggregate set --property filter_tenant_id={PROJECT}',
    ),
    'no more projects fit into the tag': Incident(
        cloud(tagged(f'filter_tenant_id={MANY_PROJECTS}', hosts='ada, bob')),
        '--flavor plain --project stranger',
        'aggregate set --property filter_tenant_id2=stranger',
    ),
    'each project needs an aggregate': Incident(
        cloud(
            tagged('ssd=true'),
            settings=TENANTS.replace(', isolate_tenants', ''),
        ),
        '--flavor plain --project stranger',
        'aggregate set --property filter_tenant_id=stranger',
    ),
    'the requested host is in another zone': Incident(
        cloud(ZONES),
        '--flavor plain --availability-zone az1 --host bob',
        'request it with --availability-zone az2 instead of az1',
    ),
    'a request group has no policy': Incident(
        cloud(
            flavors=FLAVORS
            + '- {name: gpu.small, vcpus: 1, ram: 1024, disk: 1, extra_specs: '
            "{'resources1:VCPU': '1', 'resources2:VCPU': '1'}}\n",
            # It would take the policy for metadata of aggregates.
            settings=SETTINGS.replace(
                ',\n                      aggregate_instance_extra_specs', ''
            ),
        ),
        '--flavor gpu.small',
        'flavor set --property group_policy=none',
    ),
    'one of two keys is missing': Incident(
        cloud(
            tagged(
                'trait:CUSTOM_GPU_POOL=required',
                'trait:CUSTOM_LICENSE=required',
            ),
            hosts=HOSTS.replace('[CUSTOM', '[CUSTOM_LICENSE, CUSTOM'),
        ),
        '--flavor keyed',
        'isolate-aggregates key add --flavor=',
    ),
    'Placement lacks the host of the metadata': Incident(
        cloud(
            tagged('ssd=true'),
            flavors=FLAVORS + flavor(SSD, 'true'),
            settings=f'mirror_host_aggregates: false\n{SETTINGS}',
        ),
        '--flavor gpu.small',
        'isolate-aggregates sync',
    ),
    'the host has another name now': Incident(
        cloud(
            tagged('ssd=true', hosts='ada.old'),
            flavors=FLAVORS + flavor(SSD, 'true'),
            settings=f'mirror_host_aggregates: false\n{SETTINGS}',
        ),
        '--flavor gpu.small',
        'aggregate add host 7 ada',
    ),
    'the image has another distribution': Incident(
        cloud(
            tagged('os_distro=windows', hosts='ada, bob'),
            images=IMAGES + image('os_distro', 'debian'),
            settings=filtered('AggregateImagePropertiesIsolation'),
        ),
        '--flavor plain --image mine',
        'aggregate set --property os_distro=windows,debian',
    ),
    'the hosts are for other flavors': Incident(
        cloud(
            tagged('instance_type=other', hosts='ada, bob'),
            settings=filtered('AggregateTypeAffinityFilter'),
        ),
        '--flavor plain',
        'aggregate set --property instance_type=other,plain',
    ),
    'the host filter reads other projects': Incident(
        cloud(
            tagged('filter_tenant_id=p1', hosts='ada, bob'),
            settings=filtered('AggregateMultiTenancyIsolation'),
        ),
        '--flavor plain --project stranger',
        'aggregate set --property filter_tenant_id=p1,stranger',
    ),
}


@pytest.fixture
def ask(run, tmp_path, monkeypatch):
    """Explain a request in a copy of a cloud; return the output."""
    monkeypatch.setenv('COLUMNS', '9999')

    def explain(copy, question):
        path = tmp_path / 'copy.yaml'
        cloud_file.save(copy.snapshot, path)
        result = run('explain', '--snapshot', str(path), *question.split())
        # Placement refuses some queries.
        assert result.code in (0, 4) or '(400)' in result.err, result.err
        return str(result.out)

    return explain


def suggested(output):
    """Return the suggestions, each with what is said about it."""
    text = output.partition('Any one of these gives it a host:\n')[2]
    found = []
    for line in text.partition('\n\n')[0].splitlines():
        if line.startswith('      '):
            found[-1] = (found[-1][0], line.strip())
        else:
            found.append((line.strip(), ''))
    return found


def opened(write_cloud, incident):
    snapshot = cloud_file.load(write_cloud(incident.text))
    return CloudCopy(snapshot, fresh(), incident.servers)


@pytest.mark.parametrize('incident', INCIDENTS.values(), ids=INCIDENTS)
def test_an_incident_is_mended_by_the_first_suggestion(
    write_cloud, ask, incident
):
    copy = opened(write_cloud, incident)
    output = ask(copy, incident.asked)
    assert not output.startswith(('1 of', '2 of'))
    (line, _), *_ = suggested(output)
    assert incident.mended_by in line
    asked = incident.asked
    if line.startswith('request'):
        # Something else is to be asked for.
        zone = re.search(r'--availability-zone (\S+)', line)
        asked = re.sub(r'--host \S+', '', asked)
        if zone:
            asked = re.sub('az1', zone[1], asked)
    elif 'SERVER' in line:
        first, _, second = line.partition(' for ')[0].partition(', then ')
        copy.paste(first)
        copy.paste(second.replace('SERVER', incident.servers[0].id))
    else:
        copy.paste(line)
    assert ask(copy, asked).startswith(('1 of 2', '2 of 2'))


@pytest.mark.parametrize('incident', INCIDENTS.values(), ids=INCIDENTS)
def test_no_suggestion_opens_anything_unsaid(write_cloud, ask, incident):
    original = opened(write_cloud, incident)
    before = original.access(PROJECTS)
    for line, said in suggested(ask(original, incident.asked)):
        if not line.startswith(('openstack ', 'isolate-')) or 'SERVER' in line:
            continue
        copy = opened(write_cloud, incident)

        def check(copy=copy, said=said):
            check_said(gained(before, copy.access(PROJECTS)), said)

        copy.paste(line, check)


def test_fifty_incidents_are_staged():
    assert len(INCIDENTS) >= 50
