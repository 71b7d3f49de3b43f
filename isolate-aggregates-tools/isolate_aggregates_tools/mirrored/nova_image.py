# SPDX-License-Identifier: Apache-2.0
"""The image properties that Nova passes to its scheduler, and their format.

Nova supports the properties in ``nova.objects.ImageMetaProps``, and older
names for some of them. It drops all other properties.
"""

from collections.abc import Mapping
import contextlib
import itertools
import types

from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_tools.request import implied

_BOOLEANS = frozenset({
    'hw_boot_menu', 'hw_ephemeral_encryption', 'hw_firmware_stateless',
    'hw_ipxe_boot', 'hw_locked_memory', 'hw_mem_encryption', 'hw_pmu',
    'hw_qemu_guest_agent', 'hw_time_hpet', 'hw_vif_multiqueue_enabled',
    'hw_virtio_packed_ring', 'img_bdm_v2', 'img_bittorrent',
    'img_cache_in_nova', 'img_hide_hypervisor_id', 'img_linked_clone',
    'img_use_agent', 'os_require_quiesce',
    'os_skip_agent_inject_files_at_boot', 'os_skip_agent_inject_ssh',
})  # fmt: skip

# Properties that Nova converts to lower case.
_LOWER = frozenset({
    'hw_architecture', 'hw_emulation_architecture', 'hw_scsi_model',
    'hw_vif_model', 'hw_vm_mode', 'img_hv_type', 'os_type',
})  # fmt: skip

INTEGERS = frozenset({
    'hw_cpu_cores', 'hw_cpu_max_cores', 'hw_cpu_max_sockets',
    'hw_cpu_max_threads', 'hw_cpu_sockets', 'hw_cpu_threads', 'hw_device_id',
    'hw_maxphysaddr_bits', 'hw_numa_nodes', 'hw_redirected_usb_ports',
    'hw_serial_port_count', 'hw_video_ram', 'img_compression_level',
    'img_version',
})  # fmt: skip

_TRAITS = 'traits_required'
_NODES = frozenset({'hw_numa_cpus', 'hw_numa_mem'})
# Properties that Nova builds from several of an image.
LISTS = frozenset({_TRAITS, *_NODES})
_MOST_NODES = 128

# All supported properties, except those that are lists in Nova.
KNOWN = _BOOLEANS | INTEGERS | _LOWER | {
    'hw_auto_disk_config', 'hw_cdrom_bus', 'hw_cpu_policy',
    'hw_cpu_realtime_mask', 'hw_cpu_thread_policy', 'hw_disk_bus',
    'hw_disk_type', 'hw_ephemeral_encryption_format',
    'hw_ephemeral_encryption_secret_uuid', 'hw_firmware_type',
    'hw_floppy_bus', 'hw_input_bus', 'hw_machine_type',
    'hw_maxphysaddr_mode', 'hw_mem_encryption_model', 'hw_mem_page_size',
    'hw_pci_numa_affinity_policy', 'hw_pointer_model', 'hw_rescue_bus',
    'hw_rescue_device', 'hw_rng_model', 'hw_sound_model', 'hw_tpm_model',
    'hw_tpm_version', 'hw_usb_model', 'hw_video_model', 'hw_viommu_model',
    'hw_watchdog_action', 'img_config_drive', 'img_hv_requested_version',
    'img_owner_id', 'img_root_device_name', 'img_signature',
    'img_signature_certificate_uuid', 'img_signature_hash_method',
    'img_signature_key_type', 'os_admin_user', 'os_command_line',
    'os_distro', 'os_secure_boot',
}  # fmt: skip

# The releases of Nova that introduced properties.
_SINCE = types.MappingProxyType({
    'hw_mem_encryption_model': 32,
    'hw_redirected_usb_ports': 32,
    'hw_sound_model': 32,
    'hw_usb_model': 32,
})  # fmt: skip

_OLD_NAMES = types.MappingProxyType({
    'hw_architecture': 'architecture',
    'hw_auto_disk_config': 'auto_disk_config',
    'hw_device_id': 'xenapi_device_id',
    'hw_disk_type': 'vmware_disktype',
    'hw_ipxe_boot': 'ipxe_boot',
    'hw_vm_mode': 'vm_mode',
    'img_bdm_v2': 'bdm_v2',
    'img_bittorrent': 'bittorrent',
    'img_cache_in_nova': 'cache_in_nova',
    'img_compression_level': 'xenapi_image_compression_level',
    'img_hv_requested_version': 'hypervisor_version_requires',
    'img_hv_type': 'hypervisor_type',
    'img_linked_clone': 'vmware_linked_clone',
    'img_owner_id': 'owner_id',
    'img_root_device_name': 'root_device_name',
    'img_use_agent': 'xenapi_use_agent',
    'img_version': 'vmware_image_version',
    'os_distro': 'vmware_ostype',
    'os_skip_agent_inject_files_at_boot':
        'xenapi_skip_agent_inject_files_at_boot',
    'os_skip_agent_inject_ssh': 'xenapi_skip_agent_inject_ssh',
})  # fmt: skip

_ARCHITECTURES = types.MappingProxyType({
    **dict.fromkeys(('i386', 'i486', 'i586', 'x86_32', 'x86_32p'), 'i686'),
    'amd64': 'x86_64',
})  # fmt: skip
_VIF_MODELS = types.MappingProxyType({
    'virtuale1000': 'e1000',
    'virtuale1000e': 'e1000e',
    'virtualpcnet32': 'pcnet',
    'virtualsriovethernetcard': 'sriov',
    'virtualvmxnet': 'vmxnet',
    'virtualvmxnet3': 'vmxnet3',
})  # fmt: skip
_OTHERS = types.MappingProxyType({
    'hw_architecture': _ARCHITECTURES,
    'hw_emulation_architecture': _ARCHITECTURES,
    # For values of vmware_adaptertype.
    'hw_scsi_model': {'lsilogicsas': 'lsisas1068', 'paravirtual': 'vmpvscsi'},
    'hw_vif_model': _VIF_MODELS,
    'hw_vm_mode': {'pv': 'xen', 'hv': 'hvm', 'baremetal': 'hvm'},
    'img_hv_type': {'xapi': 'xen'},
})  # fmt: skip


_NAMES: Mapping[str, tuple[str, ...]] = types.MappingProxyType({
    **{name: (name,) for name in KNOWN},
    **{old: (name,) for name, old in _OLD_NAMES.items()},
    'vmware_adaptertype': ('hw_disk_bus', 'hw_scsi_model'),
})  # fmt: skip

# All names of properties that Nova stores and returns with a server.
TOLD = KNOWN | frozenset(_OLD_NAMES.values()) | {'vmware_adaptertype'}


def kept(
    properties: Mapping[str, object],
    name: str,
    nova: int = implied.NEWEST_NOVA,
) -> str | None:
    """Return a property as Nova stores it; None if Nova drops it."""
    if name in LISTS:
        return _listed(properties, name)
    if name not in KNOWN or nova < _SINCE.get(name, implied.OLDEST_NOVA):
        return None
    value = properties.get(name)
    adapter = properties.get('vmware_adaptertype')
    if value is None and adapter and name == 'hw_disk_bus':
        value = 'ide' if adapter == 'ide' else 'scsi'
    elif value is None and adapter and name == 'hw_scsi_model':
        value = None if adapter == 'ide' else adapter
    elif value is None and name in _OLD_NAMES:
        value = properties.get(_OLD_NAMES[name])
    if value is None:
        return None
    text = str(value)
    if name in _BOOLEANS:
        return str(implied.is_true(text))
    if name in _LOWER:
        text = text.lower()
        return _OTHERS.get(name, {}).get(text, text)
    if name in INTEGERS:
        # Nova refuses an image with another text.
        with contextlib.suppress(ValueError):
            return str(int(text))
    return text


def is_false(name: str, value: str) -> bool:
    """Return whether a property is false or zero in Nova.

    :param value: Its value as :func:`kept` returns it.
    """
    return (name in _BOOLEANS and value == 'False') or (
        name in INTEGERS and value == '0'
    )


def _listed(properties: Mapping[str, object], name: str) -> str | None:
    """Return a list as the text that Nova's host filters compare."""
    values: list[object]
    if name == _TRAITS:
        values = [
            key.removeprefix(xs.TRAIT_PREFIX)
            for key, value in properties.items()
            if key.startswith(xs.TRAIT_PREFIX) and str(value) == xs.REQUIRED
        ]
    else:
        nodes = itertools.takewhile(
            lambda key: key in properties,
            (f'{name}.{number}' for number in range(_MOST_NODES)),
        )
        values = [properties[key] for key in nodes]
    if name == 'hw_numa_mem':
        with contextlib.suppress(ValueError):
            values = [int(str(value)) for value in values]
    return str(values) if values else None


def names_of(own_name: str) -> tuple[str, ...]:
    """Return the properties that Nova stores for a property of an image."""
    return _NAMES.get(own_name, ())
