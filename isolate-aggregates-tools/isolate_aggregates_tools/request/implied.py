# SPDX-License-Identifier: Apache-2.0
"""Resources and traits that settings of flavors and images imply.

For example, ``hw:cpu_policy=dedicated`` requests PCPU, and
``os:secure_boot=required`` requires a trait. Nova translates such settings
before it queries Placement (the ``_translate_*`` methods of
``nova.scheduler.utils.ResourceRequest``, which read them with
``nova.virt.hardware``). Without one of them, hosts would be offered that
cannot run the server. So all of them are here, each as a small rule. For their
meaning see the `extra specs reference
<https://docs.openstack.org/nova/latest/configuration/extra-specs.html>`_.
"""

from collections.abc import Iterable, Mapping
import dataclasses

import os_resource_classes as orc
import os_traits

from isolate_aggregates.options import NEWEST_NOVA as NEWEST_NOVA
from isolate_aggregates.options import OLDEST_NOVA as OLDEST_NOVA
from isolate_aggregates.text import quoted
from isolate_aggregates_tools import errors

# Earlier releases do not require the traits.
_ENCRYPTION_TRAITS = 32


# No flavor has so many; a longer range would only fill the memory.
_MOST_CPUS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Translation:
    """The resources and traits of the unsuffixed group that settings imply."""

    resources: Mapping[str, int] = dataclasses.field(default_factory=dict)
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of one flavor and image, and how the two combine."""

    extra_specs: Mapping[str, str]
    properties: Mapping[str, object]

    def flavor(self, name: str) -> str | None:
        """Return the value of one extra spec."""
        return self.extra_specs.get(name) or None

    def image(self, name: str) -> str | None:
        """Return the value of the image property of an extra spec's name."""
        value = self.properties.get(name.replace(':', '_'))
        return None if value in (None, '') else str(value)

    def either(self, name: str, allowed: Iterable[str]) -> str | None:
        """Return the value of flavor or image; they must not contradict."""
        flavor, image = self.checked(name, allowed)
        if flavor and image and flavor != image:
            raise errors.RequestUnacceptable(
                f'The flavor has {name}={flavor} but the image has '
                f'{name.replace(":", "_")}={image}; set both to the same '
                'value.'
            )
        return flavor or image

    def checked(
        self, name: str, allowed: Iterable[str]
    ) -> tuple[str | None, str | None]:
        """Return the values of flavor and image, after checking each."""
        values = self.flavor(name), self.image(name)
        for value in values:
            if value and value not in allowed:
                raise errors.RequestUnacceptable(
                    f'{name} is {value!r} in the flavor or the image; it '
                    f'must be one of {", ".join(allowed)}.'
                )
        return values


def translate(
    extra_specs: Mapping[str, str],
    properties: Mapping[str, object],
    vcpus: int,
    nova: int = NEWEST_NOVA,
    pinning: bool = True,
) -> Translation:
    """Return the resources and traits that settings imply.

    :param pinning: Whether to translate the policies of pinned CPUs, which
        Nova leaves out of its fallback query.
    """
    settings = Settings(extra_specs, properties)
    resources = _persistent_memory(settings)
    required = required_traits(extra_specs, properties, nova)
    if pinning:
        resources |= _cpus(settings, vcpus)
    else:
        required -= {os_traits.HW_CPU_HYPERTHREADING}
    if _memory_encryption(settings):
        resources[orc.MEM_ENCRYPTION_CONTEXT] = 1
    forbidden = set()
    if pinning and _thread_policy(settings) == 'isolate':
        forbidden.add(os_traits.HW_CPU_HYPERTHREADING)
    return Translation(resources, required, frozenset(forbidden))


def is_pinned(
    extra_specs: Mapping[str, str], properties: Mapping[str, object]
) -> bool:
    """Return whether all CPUs are pinned, so that Nova has a fallback."""
    settings = Settings(extra_specs, properties)
    name = 'hw:cpu_policy'
    return (settings.flavor(name) or settings.image(name)) == 'dedicated'


def required_traits(
    extra_specs: Mapping[str, str],
    properties: Mapping[str, object],
    nova: int = NEWEST_NOVA,
) -> frozenset[str]:
    """Return the traits that settings imply.

    Settings that imply only resources are not checked: without the properties
    of its image, a valid request may have invalid ones.
    """
    settings = Settings(extra_specs, properties)
    required = {
        *_secure_boot(settings),
        *tpm(settings),
        *_pci_numa_affinity(settings),
        *_physical_address_bits(settings),
        *_stateless_firmware(settings),
    }
    encryption = _memory_encryption(settings)
    if encryption and nova >= _ENCRYPTION_TRAITS:
        required.add(encryption)
    if _thread_policy(settings) == 'require':
        required.add(os_traits.HW_CPU_HYPERTHREADING)
    return frozenset(required)


def _cpus(settings: Settings, vcpus: int) -> dict[str, int]:
    flavor, image = settings.checked(
        'hw:cpu_policy', ('shared', 'dedicated', 'mixed')
    )
    pinning_forbidden = (flavor == 'mixed' and image == 'dedicated') or (
        flavor == 'shared' and image in ('mixed', 'dedicated')
    )
    if pinning_forbidden:
        raise errors.RequestUnacceptable(
            f'The image has hw_cpu_policy={image}, which the flavor forbids '
            f'with hw:cpu_policy={flavor}.'
        )
    policy = flavor or image
    if policy == 'dedicated':
        amounts = {orc.PCPU: vcpus}
    elif policy == 'mixed':
        pinned_cpus = _pinned_cpus(settings, vcpus)
        amounts = {orc.VCPU: vcpus - pinned_cpus, orc.PCPU: pinned_cpus}
    else:
        return {}
    if _emulator_threads(settings) == 'isolate':
        amounts[orc.PCPU] += 1
    return amounts


def _emulator_threads(settings: Settings) -> str | None:
    # Only flavors can set it.
    return Settings(settings.extra_specs, {}).either(
        'hw:emulator_threads_policy', ('isolate', 'share')
    )


def _pinned_cpus(settings: Settings, vcpus: int) -> int:
    """Return the number of pinned CPUs with the CPU policy ``mixed``."""
    everything = set(range(vcpus))
    dedicated_cpus = masked_cpus(
        settings.flavor('hw:cpu_dedicated_mask'), vcpus
    )
    if dedicated_cpus is not None and not set() < dedicated_cpus < everything:
        raise errors.RequestUnacceptable(
            'hw:cpu_dedicated_mask must name some, but not all, of the '
            f"flavor's {vcpus} CPUs."
        )
    realtime = None
    if is_true(settings.flavor('hw:cpu_realtime')):
        mask = settings.image('hw:cpu_realtime_mask') or settings.flavor(
            'hw:cpu_realtime_mask'
        )
        realtime = masked_cpus(mask, vcpus) if mask else everything
        # All CPUs can be realtime only if emulator threads run elsewhere.
        spare = realtime != everything or _emulator_threads(settings)
        if not realtime or not realtime <= everything or not spare:
            raise errors.RequestUnacceptable(
                'hw:cpu_realtime_mask must name some, but not all, of the '
                f"flavor's {vcpus} CPUs."
            )
    return len(dedicated_cpus or realtime or ())


def masked_cpus(mask: str | None, vcpus: int) -> set[int] | None:
    """Return the CPUs of a mask; one that begins with ``^`` excludes some."""
    if not mask:
        return None
    mask = mask.strip()
    return cpu_set(f'0-{vcpus - 1},{mask}' if mask.startswith('^') else mask)


def cpu_set(spec: str) -> set[int]:
    """Parse a list of CPUs, as ``nova.virt.hardware.parse_cpu_spec`` does."""
    cpus: set[int] = set()
    exclusions: set[int] = set()
    for rule in filter(None, map(str.strip, spec.split(','))):
        into = exclusions if rule.startswith('^') else cpus
        first, dash, last = rule.removeprefix('^').partition('-')
        try:
            numbers = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            numbers = range(0)
        if not 0 < len(numbers) <= _MOST_CPUS:
            raise errors.RequestUnacceptable(
                f'The CPU mask {spec!r} contains {rule!r}; a mask must be a '
                'list of numbers, ranges such as 0-3, and exclusions such as '
                '^0.'
            )
        into.update(numbers)
    return cpus - exclusions


def _thread_policy(settings: Settings) -> str | None:
    flavor, image = settings.checked(
        'hw:cpu_thread_policy', ('prefer', 'isolate', 'require')
    )
    if flavor in (None, 'prefer'):
        # With "prefer" in the flavor, the image cannot change it.
        return flavor or image
    if image and image != flavor:
        raise errors.RequestUnacceptable(
            f'The image has hw_cpu_thread_policy={image}, which the flavor '
            f'forbids with hw:cpu_thread_policy={flavor}.'
        )
    return flavor


def _persistent_memory(settings: Settings) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for label in (settings.flavor('hw:pmem') or '').split(','):
        if label.strip():
            name = orc.normalize_name(f'PMEM_NAMESPACE_{label.strip()}')
            amounts[name] = amounts.get(name, 0) + 1
    return amounts


def is_true(value: str | None) -> bool:
    """Return whether a setting is true, as Nova reads it."""
    if not value:
        return False
    # Imported late: the import is slow, and few requests need it.
    from oslo_utils import strutils

    return bool(strutils.bool_from_string(value))


def _memory_encryption(settings: Settings) -> str | None:
    flavor = settings.flavor('hw:mem_encryption')
    image = settings.image('hw:mem_encryption')
    values = [is_true(value) for value in (flavor, image) if value is not None]
    if not any(values):
        return None
    if not all(values):
        raise errors.RequestUnacceptable(
            f'The flavor has hw:mem_encryption={flavor} but the image has '
            f'hw_mem_encryption={quoted(str(image))}; set both to the same '
            'value.'
        )
    models = {
        'amd-sev': os_traits.HW_CPU_X86_AMD_SEV,
        'amd-sev-es': os_traits.HW_CPU_X86_AMD_SEV_ES,
        # Older os-traits lack the constants of these two.
        'amd-sev-snp': 'HW_CPU_X86_AMD_SEV_SNP',
        'intel-tdx': 'HW_CPU_X86_INTEL_TDX',
    }
    model = settings.either('hw:mem_encryption_model', models) or 'amd-sev'
    return str(models[model])


def _secure_boot(settings: Settings) -> list[str]:
    policy = settings.either(
        'os:secure_boot', ('required', 'disabled', 'optional')
    )
    if policy == 'required':
        return [os_traits.COMPUTE_SECURITY_UEFI_SECURE_BOOT]
    return []


def tpm(settings: Settings) -> list[str]:
    """Return the required traits for a virtual TPM, if one is requested."""
    versions = {
        '1.2': os_traits.COMPUTE_SECURITY_TPM_1_2,
        '2.0': os_traits.COMPUTE_SECURITY_TPM_2_0,
    }
    models = {
        'tpm-tis': os_traits.COMPUTE_SECURITY_TPM_TIS,
        'tpm-crb': os_traits.COMPUTE_SECURITY_TPM_CRB,
    }
    version = settings.either('hw:tpm_version', versions)
    if not version:
        return []
    model = settings.either('hw:tpm_model', models) or 'tpm-tis'
    if (model, version) == ('tpm-crb', '1.2'):
        raise errors.RequestUnacceptable(
            'hw:tpm_model is tpm-crb, which requires hw:tpm_version 2.0.'
        )
    return [models[model], versions[version]]


def _pci_numa_affinity(settings: Settings) -> list[str]:
    policy = settings.either(
        'hw:pci_numa_affinity_policy',
        ('required', 'legacy', 'preferred', 'socket'),
    )
    if policy == 'socket':
        return [os_traits.COMPUTE_SOCKET_PCI_NUMA_AFFINITY]
    return []


def _physical_address_bits(settings: Settings) -> list[str]:
    modes = {
        'passthrough': os_traits.COMPUTE_ADDRESS_SPACE_PASSTHROUGH,
        'emulate': os_traits.COMPUTE_ADDRESS_SPACE_EMULATED,
    }
    mode = settings.either('hw:maxphysaddr_mode', modes)
    return [modes[mode]] if mode else []


def _stateless_firmware(settings: Settings) -> list[str]:
    stateless = settings.image('hw:firmware_stateless')
    uefi = settings.image('hw:firmware_type') == 'uefi'
    if uefi and is_true(stateless):
        return [os_traits.COMPUTE_SECURITY_STATELESS_FIRMWARE]
    return []
