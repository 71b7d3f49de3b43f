# SPDX-License-Identifier: Apache-2.0
"""What settings of flavors and images ask of Placement without naming it.

That Nova comes to the same is tested where Nova is.
"""

from cases import cases
import pytest

from isolate_aggregates_tools import errors
from isolate_aggregates_tools.request import implied

MIXED = {'hw:cpu_policy': 'mixed'}
REALTIME = MIXED | {'hw:cpu_realtime': 'true'}
SHARED_THREADS = {'hw:emulator_threads_policy': 'share'}
OWN_THREADS = {'hw:emulator_threads_policy': 'isolate'}


def ask(flavor, image=None):
    """Translate the settings of a flavor with four CPUs, and an image."""
    settings = (
        {
            key: value
            for key, value in (given or {}).items()
            if value is not None
        }
        for given in (flavor, image)
    )
    return implied.translate(*settings, 4)


def test_without_settings_nothing_is_implied():
    assert ask({}) == implied.Translation()


@pytest.mark.parametrize(
    ('flavor', 'image', 'amounts'),
    [
        ('shared', None, {}),
        ('shared', 'shared', {}),
        (None, 'shared', {}),
        ('dedicated', None, {'PCPU': 4}),
        (None, 'dedicated', {'PCPU': 4}),
        ('dedicated', 'dedicated', {'PCPU': 4}),
        # What the flavor pins, the image cannot unpin.
        ('dedicated', 'shared', {'PCPU': 4}),
        ('dedicated', 'mixed', {'PCPU': 4}),
        ('mixed', None, {'VCPU': 3, 'PCPU': 1}),
        ('mixed', 'shared', {'VCPU': 3, 'PCPU': 1}),
        (None, 'mixed', {'VCPU': 3, 'PCPU': 1}),
    ],
)
def test_the_policy_of_the_flavor_says_which_cpus_are_pinned(
    flavor, image, amounts
):
    implications = ask(
        {'hw:cpu_policy': flavor, 'hw:cpu_dedicated_mask': '0'},
        {'hw_cpu_policy': image},
    )
    assert implications.resources == amounts


@pytest.mark.parametrize(
    ('flavor', 'image'),
    [('shared', 'dedicated'), ('shared', 'mixed'), ('mixed', 'dedicated')],
)
def test_an_image_does_not_pin_what_the_flavor_shares(flavor, image):
    with pytest.raises(errors.InvalidRequest):
        ask({'hw:cpu_policy': flavor}, {'hw_cpu_policy': image})


@cases(
    ('flavor', 'image', 'pinned'),
    {
        'one more for the emulator': (OWN_THREADS, {}, 5),
        'shared': (SHARED_THREADS, {}, 4),
        'images are ignored': (
            {},
            {'hw_emulator_threads_policy': 'isolate'},
            4,
        ),
    },
)
def test_threads_of_the_emulator_may_need_a_cpu(flavor, image, pinned):
    implications = ask({'hw:cpu_policy': 'dedicated', **flavor}, image)
    assert implications.resources == {'PCPU': pinned}


@pytest.mark.parametrize(
    ('mask', 'pinned'),
    [
        (None, 0),
        ('0', 1),
        ('2-3', 2),
        ('0,2-3', 3),
        ('0-2,^1', 2),
        # Exclusions alone leave all other CPUs.
        ('^0', 3),
        (' ^0-1', 2),
        ('0, ,1,', 2),
    ],
)
def test_a_mask_names_the_cpus_that_are_pinned(mask, pinned):
    implications = ask(MIXED | {'hw:cpu_dedicated_mask': mask})
    assert implications.resources == {'VCPU': 4 - pinned, 'PCPU': pinned}


@pytest.mark.parametrize(
    'mask', ['0-3', '^0-3', '3-2', '4', '0-4', '0-x', '-1', 'all']
)
def test_a_mask_must_name_some_cpus_but_not_all(mask):
    with pytest.raises(errors.InvalidRequest):
        ask(MIXED | {'hw:cpu_dedicated_mask': mask})


@cases(
    ('flavor', 'image', 'pinned'),
    {
        'flavor': ({'hw:cpu_realtime_mask': '0-2'}, None, 3),
        'the image takes precedence': (
            {'hw:cpu_realtime_mask': '0-2'},
            {'hw_cpu_realtime_mask': '^0-1'},
            2,
        ),
        'the dedicated mask takes precedence': (
            {'hw:cpu_realtime_mask': '0', 'hw:cpu_dedicated_mask': '0-2'},
            None,
            3,
        ),
        'no realtime': (
            {'hw:cpu_realtime_mask': '0-2', 'hw:cpu_realtime': 'no'},
            None,
            0,
        ),
        'all, without a mask': (SHARED_THREADS, None, 4),
        'all by a mask': (
            SHARED_THREADS | {'hw:cpu_realtime_mask': '0-3'},
            None,
            4,
        ),
    },
)
def test_cpus_for_realtime_are_pinned(flavor, image, pinned):
    implications = ask(REALTIME | flavor, image)
    assert implications.resources == {'VCPU': 4 - pinned, 'PCPU': pinned}


@pytest.mark.parametrize('mask', [None, '0-3', '^0-3', '4', '0-4'])
def test_for_realtime_the_emulator_needs_another_cpu(mask):
    with pytest.raises(errors.InvalidRequest):
        ask(REALTIME | {'hw:cpu_realtime_mask': mask})


@pytest.mark.parametrize('mask', ['^0-3', '0-4'])
def test_a_mask_for_realtime_names_cpus_of_the_flavor(mask):
    with pytest.raises(errors.InvalidRequest):
        ask(REALTIME | SHARED_THREADS | {'hw:cpu_realtime_mask': mask})


@pytest.mark.parametrize(
    ('flavor', 'image', 'required', 'forbidden'),
    [
        ('prefer', None, False, False),
        ('prefer', 'require', False, False),
        ('require', None, True, False),
        ('require', 'require', True, False),
        ('isolate', None, False, True),
        (None, 'prefer', False, False),
        (None, 'require', True, False),
        (None, 'isolate', False, True),
        ('', 'isolate', False, True),
    ],
)
def test_a_thread_policy_is_a_trait(flavor, image, required, forbidden):
    implications = ask(
        {'hw:cpu_thread_policy': flavor}, {'hw_cpu_thread_policy': image}
    )
    trait = 'HW_CPU_HYPERTHREADING'
    assert implications.required_traits == ({trait} if required else set())
    assert implications.forbidden_traits == ({trait} if forbidden else set())


@pytest.mark.parametrize('image', ['prefer', 'isolate'])
def test_an_image_cannot_loosen_a_thread_policy(image):
    with pytest.raises(errors.InvalidRequest):
        ask(
            {'hw:cpu_thread_policy': 'require'},
            {'hw_cpu_thread_policy': image},
        )


def test_persistent_memory_is_a_resource_for_each_label():
    implications = ask({'hw:pmem': '6GB , 6GB,ssd, ,'})
    assert implications.resources == {
        'CUSTOM_PMEM_NAMESPACE_6GB': 2,
        'CUSTOM_PMEM_NAMESPACE_SSD': 1,
    }


@pytest.mark.parametrize(
    ('flavor', 'image', 'encrypted'),
    [
        ('true', None, True),
        (None, 'true', True),
        ('true', 'true', True),
        ('true', '', True),
        ('', 'true', True),
        ('false', None, False),
        (None, 'false', False),
        ('false', 'false', False),
    ],
)
def test_encrypted_memory_is_a_resource_and_a_trait(flavor, image, encrypted):
    implications = ask(
        {'hw:mem_encryption': flavor}, {'hw_mem_encryption': image}
    )
    if encrypted:
        assert implications.resources == {'MEM_ENCRYPTION_CONTEXT': 1}
        assert implications.required_traits == {'HW_CPU_X86_AMD_SEV'}
    else:
        assert implications == implied.Translation()


@pytest.mark.parametrize(
    ('flavor', 'image'), [('true', 'false'), ('false', 'true')]
)
def test_flavor_and_image_must_agree_on_encryption(flavor, image):
    with pytest.raises(errors.InvalidRequest):
        ask({'hw:mem_encryption': flavor}, {'hw_mem_encryption': image})


TPM_2 = 'COMPUTE_SECURITY_TPM_2_0'


@pytest.mark.parametrize(
    ('settings', 'traits'),
    [
        (
            {
                'hw:mem_encryption': 'yes',
                'hw:mem_encryption_model': 'intel-tdx',
            },
            {'HW_CPU_X86_INTEL_TDX'},
        ),
        (
            {'os:secure_boot': 'required'},
            {'COMPUTE_SECURITY_UEFI_SECURE_BOOT'},
        ),
        ({'os:secure_boot': 'optional'}, set()),
        ({'hw:tpm_version': '2.0'}, {TPM_2, 'COMPUTE_SECURITY_TPM_TIS'}),
        (
            {'hw:tpm_version': '2.0', 'hw:tpm_model': 'tpm-crb'},
            {TPM_2, 'COMPUTE_SECURITY_TPM_CRB'},
        ),
        (
            {'hw:tpm_version': '1.2', 'hw:tpm_model': 'tpm-tis'},
            {'COMPUTE_SECURITY_TPM_1_2', 'COMPUTE_SECURITY_TPM_TIS'},
        ),
        ({'hw:tpm_model': 'tpm-crb'}, set()),
        (
            {'hw:pci_numa_affinity_policy': 'socket'},
            {'COMPUTE_SOCKET_PCI_NUMA_AFFINITY'},
        ),
        ({'hw:pci_numa_affinity_policy': 'required'}, set()),
        (
            {'hw:maxphysaddr_mode': 'emulate'},
            {'COMPUTE_ADDRESS_SPACE_EMULATED'},
        ),
        (
            {'hw:maxphysaddr_mode': 'passthrough'},
            {'COMPUTE_ADDRESS_SPACE_PASSTHROUGH'},
        ),
    ],
)
def test_settings_imply_traits_in_flavors_and_images(settings, traits):
    """In the flavor, in the image, or alike in both."""
    properties = {key.replace(':', '_'): v for key, v in settings.items()}
    for flavor, image in (
        (settings, {}),
        ({}, properties),
        (settings, properties),
    ):
        assert ask(flavor, image).required_traits == traits


@pytest.mark.parametrize(
    ('properties', 'required'),
    [
        ({'hw_firmware_type': 'uefi', 'hw_firmware_stateless': 'yes'}, True),
        ({'hw_firmware_type': 'uefi', 'hw_firmware_stateless': 'no'}, False),
        ({'hw_firmware_type': 'uefi'}, False),
        ({'hw_firmware_type': 'bios', 'hw_firmware_stateless': 'yes'}, False),
        ({'hw_firmware_stateless': 'yes'}, False),
    ],
)
def test_stateless_firmware_is_a_trait_of_images_with_uefi(
    properties, required
):
    trait = 'COMPUTE_SECURITY_STATELESS_FIRMWARE'
    assert (trait in ask({}, properties).required_traits) is required
    in_flavor = {key.replace('_', ':', 1): v for key, v in properties.items()}
    assert ask(in_flavor).required_traits == frozenset()
