# SPDX-License-Identifier: Apache-2.0
"""Image properties as Nova stores them."""

from cases import cases
import pytest

from isolate_aggregates_tools.mirrored import nova_image

ADAPTER = 'vmware_adaptertype'


@cases(
    ('properties', 'bus', 'model'),
    {
        'IDE': ({ADAPTER: 'ide'}, 'ide', None),
        'another adapter': ({ADAPTER: 'paraVirtual'}, 'scsi', 'vmpvscsi'),
        'an empty adapter': ({ADAPTER: ''}, None, None),
        'no adapter': ({}, None, None),
        'the new properties, too': (
            {
                ADAPTER: 'ide',
                'hw_disk_bus': 'virtio',
                'hw_scsi_model': 'virtio-scsi',
            },
            'virtio',
            'virtio-scsi',
        ),
    },
)
def test_the_adapter_of_vmware_is_disk_bus_and_scsi_model(
    properties, bus, model
):
    assert nova_image.kept(properties, 'hw_disk_bus') == bus
    assert nova_image.kept(properties, 'hw_scsi_model') == model
    assert nova_image.kept(properties, 'hw_video_model') is None


def test_the_operating_system_is_stored_in_lower_case():
    assert nova_image.kept({'os_type': 'Windows'}, 'os_type') == 'windows'


@pytest.mark.parametrize(
    ('properties', 'mode'),
    [
        ({'vm_mode': 'xen'}, 'xen'),
        ({'hw_vm_mode': 'hvm'}, 'hvm'),
        ({'hw_vm_mode': 'hvm', 'vm_mode': 'xen'}, 'hvm'),
    ],
)
def test_the_new_name_of_a_property_takes_precedence(properties, mode):
    assert nova_image.kept(properties, 'hw_vm_mode') == mode


@pytest.mark.parametrize(('nova', 'model'), [(31, None), (32, 'usbnet')])
def test_a_property_is_stored_from_its_release_on(nova, model):
    properties = {'hw_usb_model': 'usbnet'}
    assert nova_image.kept(properties, 'hw_usb_model', nova) == model
