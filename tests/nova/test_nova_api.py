# SPDX-License-Identifier: Apache-2.0
"""Commands refuse the flavors and images that Nova refuses, and no others.

Random flavors and images, skewed to odd values, are given to Nova's own
validation in nova-api and to its translation into resources and traits. tox
runs the tests with each release of Nova.

``RANDOM_FLAVORS`` is the number of combinations, ``RANDOM_SEED`` selects them.
"""

import collections
import copy
import dataclasses
from importlib import metadata
import logging
import os
import random
import types

from nova import exception as nova_exception
from nova import objects
from nova.compute import api as compute_api
import nova.conf
from nova.objects.image_meta import ImageMetaProps
from nova.scheduler import request_filter
from nova.scheduler import utils as nova_utils
from nova.virt import hardware
from oslo_versionedobjects import fields
import pytest

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.mirrored import (
    acceptance,
    mirror,
    nova_api,
    nova_image,
    traits,
)
from isolate_aggregates_tools.mirrored.nova_api import image as image_rules
from isolate_aggregates_tools.request import Request, resources

RELEASE = int(metadata.version('nova').partition('.')[0])
FLAVORS = int(os.environ.get('RANDOM_FLAVORS', '6000'))
SEED = int(os.environ.get('RANDOM_SEED', '28'))
ID = 'a0000000-0000-4000-8000-000000000001'

POLICIES = ['dedicated', 'dedicated', 'shared', 'mixed', 'mixed', 'odd', '']
THREADS = ['prefer', 'isolate', 'require', 'odd', '']
SWITCH = ['true', 'True', 'yes', 'false', 'no', '0', '', 'odd']
NUMBER = ['1', '2', '4', '3', '0', '-1', 'x', '', '04', '1.5', ' 2']
MASKS = ['^0', '0', '1-3', '0-3', '^0-1', '^0-7', '9', '1-', '3-1', 'x', '']
PAGES = ['any', 'large', 'small', '4', '2048', '1GB', '0', '2M', 'odd', '']
MODELS = ['amd-sev', 'amd-sev-es', 'amd-sev-snp', 'intel-tdx', 'odd', '']
NODES = ['0', '1', '0-1', '2-3', '0,2', '', '7', 'x']
SIZES = ['1024', '512', '2048', '0', '-1', 'x']

SPECS = {
    'hw:cpu_policy': POLICIES,
    'hw:cpu_thread_policy': THREADS,
    'hw:emulator_threads_policy': ['isolate', 'share', 'odd', ''],
    'hw:cpu_realtime': SWITCH,
    'hw:cpu_realtime_mask': MASKS,
    'hw:cpu_dedicated_mask': MASKS,
    'hw:cpu_max_sockets': NUMBER,
    'hw:cpu_sockets': NUMBER,
    'hw:cpu_max_threads': NUMBER,
    'hw:cpu_threads': NUMBER,
    'hw:cpu_cores': NUMBER,
    'hw:numa_nodes': NUMBER,
    'hw:numa_cpus.0': NODES,
    'hw:numa_cpus.1': NODES,
    'hw:numa_mem.0': SIZES,
    'hw:numa_mem.1': SIZES,
    'hw:mem_page_size': PAGES,
    'hw:locked_memory': SWITCH,
    'hw:mem_encryption': SWITCH,
    'hw:mem_encryption_model': MODELS,
    'hw:pmem': ['4GB', ',', '', '4GB,16GB'],
    'hw:pmu': SWITCH,
    'hw:serial_port_count': NUMBER,
    'hw:vif_multiqueue_enabled': SWITCH,
    'hw:virtio_packed_ring': SWITCH,
    'hw:ephemeral_encryption': SWITCH,
    'hw:ephemeral_encryption_format': ['luks', 'plain', 'odd', ''],
    'hw:tpm_version': ['1.2', '2.0', 'odd', ''],
    'hw:tpm_model': ['tpm-tis', 'tpm-crb', 'odd', ''],
    'hw:sound_model': ['virtio', 'ich9', 'odd', ''],
    'hw:pci_numa_affinity_policy': ['socket', 'required', 'odd', ''],
    'hw:maxphysaddr_mode': ['emulate', 'odd', ''],
    'os:secure_boot': ['required', 'optional', 'odd', ''],
    'resources:VCPU': NUMBER,
    'resources:PCPU': NUMBER,
    'resources2:PCPU': NUMBER,
    'trait:HW_CPU_HYPERTHREADING': ['required', 'forbidden', 'odd'],
    'trait1:HW_CPU_HYPERTHREADING': ['required', 'forbidden'],
}
PROPERTIES = {
    'hw_cpu_policy': POLICIES,
    'hw_cpu_thread_policy': THREADS,
    'hw_cpu_realtime_mask': MASKS,
    'hw_cpu_max_sockets': NUMBER,
    'hw_cpu_sockets': NUMBER,
    'hw_cpu_threads': NUMBER,
    'hw_cpu_cores': NUMBER,
    'hw_numa_nodes': NUMBER,
    'hw_numa_cpus.0': NODES,
    'hw_numa_cpus.1': NODES,
    'hw_numa_mem.0': SIZES,
    'hw_numa_mem.1': SIZES,
    'hw_mem_page_size': PAGES,
    'hw_locked_memory': SWITCH,
    'hw_mem_encryption': SWITCH,
    'hw_mem_encryption_model': MODELS,
    'hw_firmware_type': ['uefi', 'uefi', 'bios', 'odd'],
    'hw_firmware_stateless': SWITCH,
    'hw_machine_type': ['q35', 'pc-q35-2.11', 'pc', ''],
    'hw_video_model': ['none', 'qxl', 'odd'],
    'hw_pmu': SWITCH,
    'hw_serial_port_count': NUMBER,
    'hw_vif_multiqueue_enabled': SWITCH,
    'hw_virtio_packed_ring': SWITCH,
    'hw_ephemeral_encryption': SWITCH,
    'hw_ephemeral_encryption_format': ['luks', 'plain', 'odd'],
    'hw_tpm_version': ['1.2', '2.0', 'odd'],
    'hw_sound_model': ['virtio', 'ich9', 'odd'],
    'hw_pci_numa_affinity_policy': ['socket', 'required', 'odd'],
    'os_secure_boot': ['required', 'optional', 'odd'],
    'img_config_drive': ['mandatory', 'optional', 'odd'],
    'os_type': ['linux', 'Windows', 'odd', ''],
    'architecture': ['amd64', 'odd', 'i386'],
    'hw_architecture': ['aarch64', 'X86_64', 'odd'],
    'vmware_adaptertype': ['ide', 'lsiLogic', 'odd', ''],
    'hw_scsi_model': ['paraVirtual', 'virtio-scsi', 'odd'],
    'hw_disk_bus': ['virtio', 'odd'],
    'hw_vif_model': ['VirtualE1000', 'virtio', 'odd'],
    'vm_mode': ['hv', 'HVM', 'odd'],
    'hypervisor_type': ['xapi', 'QEMU', 'odd'],
    'hypervisor_version_requires': ['>=2.6', '>=2.6,<3', '2.6', 'odd', ''],
    'hw_video_ram': NUMBER,
    'trait:HW_CPU_HYPERTHREADING': ['required', 'forbidden'],
    'unknown': ['odd'],
}
# Settings that have to do with each other.
THEMES = [
    [name for name in (*SPECS, *PROPERTIES) if any(p in name for p in parts)]
    for parts in (
        ('cpu_policy', 'thread', 'HYPERTHREADING', 'PU', 'emulator'),
        ('mask', 'realtime', 'cpu_policy', 'emulator', 'dedicated'),
        ('numa', 'page', 'pmem'),
        ('page', 'locked'),
        ('encryption', 'firmware', 'machine', 'video_model', 'locked'),
        ('sockets', 'cores', 'threads', 'serial'),
    )
]


def settings(chance, choices, names):
    return {
        name: chance.choice(choices[name]) for name in names if name in choices
    }


def combination(chance):
    """Return a random flavor and image, mostly of one theme."""
    if chance.random() < 0.7:
        theme = chance.choice(THEMES)
        names = chance.sample(theme, min(len(theme), chance.randint(1, 6)))
        names += chance.sample([*SPECS, *PROPERTIES], chance.randint(0, 1))
    else:
        names = chance.sample([*SPECS, *PROPERTIES], chance.randint(0, 4))
    flavor = Flavor(
        'f',
        vcpus=chance.choice([1, 2, 4, 4, 8]),
        ram=chance.choice([512, 1024, 2048, 4096]),
        disk=chance.choice([0, 1, 10]),
        extra_specs=settings(chance, SPECS, names),
    )
    image = Image(
        'i',
        ID,
        properties=settings(chance, PROPERTIES, names),
        min_ram=chance.choice([0, 0, 0, 0, 0, 600]),
        min_disk=chance.choice([0, 0, 0, 0, 0, 2]),
        size=chance.choice([0, 0, 0, 0, 1 << 30, (1 << 30) + 1]),
    )
    return Request(
        flavor,
        image,
        boot_from_volume=chance.random() < 0.2,
        nova_release=RELEASE,
    )


@pytest.fixture(scope='module', autouse=True)
def nova_conf():
    nova.conf.CONF([], default_config_files=[], project='nova')
    objects.register_all()
    loggers = [logging.getLogger(n) for n in ('nova', 'isolate_aggregates')]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def nova_flavor(flavor):
    return objects.Flavor(
        id=1,
        flavorid='1',
        name=flavor.name,
        vcpus=flavor.vcpus,
        memory_mb=flavor.ram,
        root_gb=flavor.disk,
        ephemeral_gb=0,
        swap=0,
        extra_specs=dict(flavor.extra_specs),
        disabled=False,
        is_public=True,
    )


def glance_document(image):
    return {
        'id': image.id,
        'name': image.name,
        'status': 'active',
        'min_ram': image.min_ram,
        'min_disk': image.min_disk,
        'size': image.size,
        'properties': dict(image.properties),
    }


# What every user may do.
CONTEXT = types.SimpleNamespace(can=lambda *args, **kwargs: True)


def refusal_of_nova(request):
    """Return why Nova refuses a request; None if it does not.

    As ``API._create_instance`` and nova-scheduler do, without what needs other
    services.
    """
    flavor = nova_flavor(request.flavor)
    document = glance_document(request.image)
    root = types.SimpleNamespace(
        is_volume=request.boot_from_volume, volume_size=None
    )
    try:
        image = compute_api._get_image_meta_obj(copy.deepcopy(document))
        topology = hardware.numa_get_constraints(flavor, image)
        hardware.get_pci_numa_policy_constraint(flavor, image)
        compute_api.API._validate_flavor_image_nostatus(
            CONTEXT, copy.deepcopy(document), flavor, root, False
        )
        if RELEASE >= 32:
            hardware.get_sound_model(flavor, image)
        spec = objects.RequestSpec(
            flavor=flavor,
            image=image,
            is_bfv=request.boot_from_volume,
            numa_topology=topology,
            requested_resources=[],
            request_level_params=objects.RequestLevelParams(),
        )
        for name in (
            'packed_virtqueue_filter',
            'ephemeral_encryption_filter',
            'virtio_sound_filter',
        ):
            if hasattr(request_filter, name):
                getattr(request_filter, name)(None, spec)
        nova_utils.ResourceRequest.from_request_spec(spec)
    except (nova_exception.NovaException, ValueError) as exc:
        return f'{type(exc).__name__}: {exc}'
    return None


SETTINGS = {
    ('DEFAULT', 'default_availability_zone'): 'nova',
    ('DEFAULT', 'internal_service_availability_zone'): 'internal',
}


def our_refusal(request):
    """Return why a command refuses a request; None if it does not."""
    index = AggregateIndex([])
    try:
        for each in (*acceptance.MIRRORS, *traits.MIRRORS):
            if each.name in ('image_type_support', 'image_metadata'):
                continue
            list(mirror.MirroringFilter(each, SETTINGS)(request, index))
        resources.resource_request(request)
    except errors.InvalidRequest as exc:
        return str(exc)
    return None


def shown(request):
    return (
        request.flavor.vcpus,
        request.flavor.ram,
        request.flavor.disk,
        request.flavor.extra_specs,
        request.image,
    )


def test_commands_refuse_what_nova_refuses():
    chance = random.Random(SEED)
    differences, refusals = [], 0
    for _ in range(FLAVORS):
        request = combination(chance)
        theirs, ours = refusal_of_nova(request), our_refusal(request)
        refusals += theirs is not None
        if (theirs is None) != (ours is None):
            differences.append((theirs, ours, shown(request)))
    assert not differences, (len(differences), differences[:5])
    # Neither answer is the usual one.
    assert 0.2 < refusals / FLAVORS < 0.8


def test_a_fault_of_a_flavor_or_an_image_has_no_cure_in_the_other():
    """Whatever it is combined with, Nova refuses it."""
    chance = random.Random(SEED)
    tried = collections.Counter()
    for _ in range(FLAVORS // 4):
        request = combination(chance)
        sources = {each.source for each in nova_api.refusals(request)}
        for source, part in (
            (nova_api.Source.FLAVOR, 'image'),
            (nova_api.Source.IMAGE, 'flavor'),
        ):
            if source not in sources:
                continue
            for _ in range(4):
                other = getattr(combination(chance), part)
                changed = dataclasses.replace(request, **{part: other})
                assert refusal_of_nova(changed), shown(changed)
                tried[part] += 1
    assert min(tried['image'], tried['flavor']) > FLAVORS // 20


def test_the_values_of_properties_are_those_of_nova():
    enumerations, numbers = {}, set()
    for name, field in ImageMetaProps.fields.items():
        kind = type(field._type)
        if issubclass(kind, fields.Enum):
            enumerations[name] = set(field._type._valid_values)
        elif issubclass(kind, fields.Integer):
            numbers.add(name)
    ours = {
        name: set(allowed)
        for name, allowed in image_rules.VALUES.items()
        if name in enumerations
    }
    if RELEASE < 34 and 'hw_mem_encryption_model' in ours:
        ours['hw_mem_encryption_model'] -= {'amd-sev-snp', 'intel-tdx'}
    assert ours == enumerations
    assert nova_image.INTEGERS & ImageMetaProps.fields.keys() == numbers
    if RELEASE == 34:
        assert image_rules.VALUES.keys() == enumerations.keys()
        assert numbers == nova_image.INTEGERS
