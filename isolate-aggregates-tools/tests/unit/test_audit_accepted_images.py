# SPDX-License-Identifier: Apache-2.0
"""The audit of flavors that nova-api accepts only with some images."""

from audit_clouds import configuration, findings, kinds
import pytest

from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
)

HOST_FILTER = 'AggregateImagePropertiesIsolation'
ISOLATED = configuration(enabled_filters=[HOST_FILTER])
ENCRYPTED = make_flavor('secret', {'hw:mem_encryption': 'true'}, disk=0)
SEV = 'HW_CPU_X86_AMD_SEV'
H1 = make_compute_node(
    'h1',
    inventories={'VCPU': 8, 'MEMORY_MB': 4096, 'MEM_ENCRYPTION_CONTEXT': 8},
    traits=[SEV],
)
H2 = make_compute_node('h2', traits=['CUSTOM_X'])
EFI = {'hw_firmware_type': 'uefi', 'hw_machine_type': 'q35'}
PLAIN = make_image('plain')
PC = make_aggregate('pc', {'hw_machine_type': 'pc'}, ['h1'])


def of_flavor(*cloud, **more):
    """Return the finding about the flavor."""
    found = findings(*cloud, **more)
    [finding] = [each for each in found if each.subject == 'flavor secret']
    return finding


def test_a_host_filter_drops_every_host_for_the_only_image_of_a_flavor():
    images = [make_image('efi', EFI), PLAIN]
    finding = of_flavor([PC], [H1, H2], [ENCRYPTED], images, conf=ISOLATED)
    assert (finding.kind, finding.subject) == ('no-host', 'flavor secret')
    assert finding.problem == (
        'is accepted by nova-api only with image efi, and no host takes both; '
        'AggregateImagePropertiesIsolation drops h1: in aggregates with '
        'hw_machine_type=pc, but the image has hw_machine_type=q35'
    )
    assert not finding.repairs


def test_the_only_image_of_a_flavor_requires_what_other_hosts_have():
    efi = make_image('efi', {**EFI, 'trait:CUSTOM_X': 'required'})
    finding = of_flavor([], [H1, H2], [ENCRYPTED], [efi])
    assert finding.problem == (
        'is accepted by nova-api only with image efi, and no host takes both'
    )


@pytest.mark.parametrize(
    'images',
    [
        pytest.param([], id='no image is known'),
        pytest.param([PLAIN], id='none of those that are known'),
        # The filters ask about one of those that are alike for them.
        pytest.param(
            [
                make_image('bios', {'hw_machine_type': 'pc'}),
                make_image('efi', {**EFI, 'hw_machine_type': 'q35'}),
                make_image('also efi', {'hw_firmware_type': 'uefi'}),
            ],
            id='one of several has a host',
        ),
    ],
)
def test_an_image_may_exist_with_which_a_flavor_has_a_host(images):
    found = kinds([PC], [H1, H2], [ENCRYPTED], images, conf=ISOLATED)
    assert 'no-host' not in found


def test_locks_keep_out_whom_they_are_for():
    """That a flavor has no key to any host is what locks are for."""
    lock = make_aggregate('x', {'trait:CUSTOM_X': 'required'}, ['h1', 'h2'])
    efi = make_image('efi', EFI)
    opening = make_flavor('x', {'trait:CUSTOM_X': 'required'})
    found = kinds([lock], [H1, H2], [ENCRYPTED, opening], [efi])
    assert 'no-host' not in found
