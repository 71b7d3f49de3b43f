# SPDX-License-Identifier: Apache-2.0
"""Refusals of images for the values of their properties, and for their size.

The values are those of ``nova.objects.ImageMetaProps``.
"""

from collections.abc import Iterator, Mapping
import re
import types

from isolate_aggregates_tools import errors
from isolate_aggregates_tools.mirrored import nova_image
from isolate_aggregates_tools.mirrored.nova_api.combination import (
    Combination,
    of_either,
    of_image,
)
from isolate_aggregates_tools.request import implied

_ARCHITECTURES = (
    'alpha', 'armv6', 'armv7l', 'armv7b', 'aarch64', 'cris', 'i686', 'ia64',
    'lm32', 'm68k', 'microblaze', 'microblazeel', 'mips', 'mipsel', 'mips64',
    'mips64el', 'openrisc', 'parisc', 'parisc64', 'ppc', 'ppcle', 'ppc64',
    'ppc64le', 'ppcemb', 's390', 's390x', 'sh4', 'sh4eb', 'sparc', 'sparc64',
    'unicore32', 'x86_64', 'xtensa', 'xtensaeb',
)  # fmt: skip
_BUSES = (
    'fdc', 'ide', 'sata', 'scsi', 'usb', 'virtio', 'xen', 'lxc', 'uml'
)  # fmt: skip
_MODELS = 'hw_mem_encryption_model'

VALUES: Mapping[str, tuple[str, ...]] = types.MappingProxyType({
    'hw_architecture': _ARCHITECTURES,
    'hw_cdrom_bus': _BUSES,
    'hw_cpu_policy': ('dedicated', 'shared', 'mixed'),
    'hw_cpu_thread_policy': ('prefer', 'isolate', 'require'),
    'hw_disk_bus': _BUSES,
    'hw_emulation_architecture': _ARCHITECTURES,
    'hw_ephemeral_encryption_format': ('plain', 'luks', 'luksv2'),
    'hw_firmware_type': ('uefi', 'bios'),
    'hw_floppy_bus': _BUSES,
    'hw_input_bus': ('usb', 'virtio'),
    'hw_maxphysaddr_mode': ('passthrough', 'emulate'),
    _MODELS: ('amd-sev', 'amd-sev-es', 'amd-sev-snp', 'intel-tdx'),
    'hw_pci_numa_affinity_policy': (
        'required', 'legacy', 'preferred', 'socket'
    ),
    'hw_pointer_model': ('usbtablet',),
    'hw_rescue_bus': _BUSES,
    'hw_rescue_device': ('cdrom', 'disk', 'floppy', 'fs', 'lun'),
    'hw_rng_model': ('virtio',),
    'hw_scsi_model': (
        'buslogic', 'ibmvscsi', 'lsilogic', 'lsisas1068', 'lsisas1078',
        'virtio-scsi', 'vmpvscsi',
    ),
    'hw_sound_model': (
        'sb16', 'es1370', 'pcspk', 'ac97', 'ich6', 'ich9', 'usb', 'virtio'
    ),
    'hw_tpm_model': ('tpm-tis', 'tpm-crb'),
    'hw_tpm_version': ('1.2', '2.0'),
    'hw_usb_model': ('none', 'nec-xhci', 'qemu-xhci'),
    'hw_video_model': (
        'cirrus', 'qxl', 'vga', 'vmvga', 'xen', 'virtio', 'gop', 'none',
        'bochs',
    ),
    'hw_vif_model': (
        'virtio', 'ne2k_pci', 'pcnet', 'rtl8139', 'e1000', 'e1000e',
        'netfront', 'spapr-vlan', 'lan9118', 'sriov', 'vmxnet', 'vmxnet3',
        'igb',
    ),
    'hw_viommu_model': ('intel', 'smmuv3', 'virtio', 'auto'),
    'hw_vm_mode': ('hvm', 'xen', 'uml', 'exe'),
    'hw_watchdog_action': ('none', 'pause', 'poweroff', 'reset', 'disabled'),
    'img_config_drive': ('optional', 'mandatory'),
    'img_hv_type': (
        'baremetal', 'bhyve', 'docker', 'fake', 'hyperv', 'ironic', 'kqemu',
        'kvm', 'lxc', 'lxd', 'openvz', 'parallels', 'phyp', 'qemu', 'test',
        'uml', 'vbox', 'vz', 'vmware', 'xen', 'zvm', 'prsm',
    ),
    'img_signature_hash_method': ('SHA-224', 'SHA-256', 'SHA-384', 'SHA-512'),
    'img_signature_key_type': (
        'DSA', 'ECC_SECP384R1', 'ECC_SECP521R1', 'ECC_SECT409K1',
        'ECC_SECT409R1', 'ECC_SECT571K1', 'ECC_SECT571R1', 'RSA-PSS',
    ),
    'os_secure_boot': ('required', 'disabled', 'optional'),
    'os_type': ('linux', 'windows'),
})  # fmt: skip
# Releases before this one know only the first two models.
_MORE_MODELS = 34

_VERSION = 'img_hv_requested_version'
_VERSIONS = re.compile(r'\s*(<=|>=|<|>|!=|==)\s*\S+\s*')


def values(combination: Combination) -> None:
    """Refuse values that a property cannot have."""
    for own_name, name, text in _converted(combination):
        allowed = VALUES.get(name)
        if name == _MODELS and allowed and combination.release < _MORE_MODELS:
            allowed = allowed[:2]
        if allowed and text not in allowed:
            raise of_image(
                f'image property {own_name} is {text!r}, but must be one of '
                f'{", ".join(sorted(allowed))}'
            )
        if name in nova_image.INTEGERS:
            _number(own_name, text)
        if name == _VERSION and not all(
            map(_VERSIONS.fullmatch, text.split(','))
        ):
            raise of_image(
                f'image property {own_name} is {text!r}, but must be a list '
                'of versions such as >=2.6'
            )


def _converted(combination: Combination) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each property, its current name, and its value.

    Nova also checks a property of an older name if it has the current one.
    """
    for own_name, own_text in sorted(combination.raw.items()):
        for name in nova_image.names_of(own_name):
            text = nova_image.kept(
                {own_name: own_text}, name, combination.release
            )
            if text is not None:
                yield own_name, name, text


def _number(name: str, text: str) -> None:
    try:
        int(text)
    except ValueError:
        raise of_image(
            f'image property {name} is {text!r}, but must be a whole number'
        ) from None


def nodes(combination: Combination) -> None:
    """Refuse CPUs and memory of NUMA nodes that are no numbers."""
    for number, text in enumerate(combination.image_per_node('hw:numa_mem')):
        _number(f'hw_numa_mem.{number}', text)
    for number, text in enumerate(combination.image_per_node('hw:numa_cpus')):
        try:
            implied.cpu_set(text)
        except errors.InvalidRequest as exc:
            raise of_image(
                f'image property hw_numa_cpus.{number}: {str(exc).rstrip(".")}'
            ) from None


def room(combination: Combination) -> None:
    """Refuse images that do not fit into the flavor."""
    flavor, image = combination.flavor, combination.image
    if image is None:
        return
    if flavor.ram < image.min_ram:
        raise of_either(
            f'the image requires {image.min_ram} MiB of memory (min_ram), but '
            f'the flavor has {flavor.ram}; use a larger flavor'
        )
    # A flavor without a disk has no limit, and a volume has its own size.
    if combination.boot_from_volume or not flavor.disk:
        return
    needed = max(image.min_disk, -(-image.size // _GIB))
    if flavor.disk < needed:
        raise of_either(
            f'the image requires a disk of {needed} GiB, but the flavor has '
            f'{flavor.disk}; use a larger flavor'
        )


_GIB = 1 << 30

RULES = (values, nodes, room)
