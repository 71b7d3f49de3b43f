# SPDX-License-Identifier: Apache-2.0
"""What a flavor and an image ask of Placement."""

import logging

from cases import cases
import pytest

from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.request import Request, ResourceGroup, resources

SIZE = {'vcpus': 2, 'ram': 512, 'disk': 10}


def asked(extra_specs=None, properties=None, **fields):
    sizes = {**SIZE, **{k: v for k, v in fields.items() if k != 'volume'}}
    return resources.resource_request(
        Request(
            Flavor('f', extra_specs=extra_specs or {}, **sizes),
            Image('i', properties=properties or {}),
            boot_from_volume=fields.get('volume', False),
        )
    )


@cases(
    ('fields', 'amounts'),
    {
        'plain': ({}, {'VCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 10}),
        'a MiB of swap is a GiB of disk': (
            {'swap': 1, 'ephemeral': 3},
            {'VCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 14},
        ),
        'a GiB of swap is a GiB of disk': (
            {'swap': 1024},
            {'VCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 11},
        ),
        'a part of a GiB counts as one': (
            {'swap': 1025},
            {'VCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 12},
        ),
        'a volume takes no root disk': (
            {'volume': True, 'ephemeral': 3},
            {'VCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 3},
        ),
        'nothing on the host, no disk at all': (
            {'volume': True},
            {'VCPU': 2, 'MEMORY_MB': 512},
        ),
    },
)
def test_the_size_of_a_flavor_becomes_resources(fields, amounts):
    assert asked(**fields).group().resources == amounts


def test_a_flavor_without_a_size_asks_for_nothing():
    request = Request(Flavor('f'))
    assert resources.resource_request(request).groups == {}
    assert request.num_instances == 1


def test_without_a_volume_the_root_disk_is_on_the_host():
    request = resources.resource_request(Request(Flavor('f', disk=5)))
    assert request.group().resources == {'DISK_GB': 5}


@pytest.mark.parametrize(
    ('extra_specs', 'amounts'),
    [
        (
            {'resources:PCPU': '2'},
            {'PCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 10},
        ),
        (
            {'resources:CUSTOM_GPU': '1', 'resources:DISK_GB': '1'},
            {'CUSTOM_GPU': 1, 'VCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 1},
        ),
    ],
)
def test_a_resource_class_in_an_extra_spec_is_requested(extra_specs, amounts):
    assert asked(extra_specs).group().resources == amounts


def test_resources_implied_by_settings_are_requested():
    group = asked(
        {
            'hw:cpu_policy': 'dedicated',
            'os:secure_boot': 'required',
            'hw:cpu_thread_policy': 'isolate',
        }
    ).group()
    assert group.resources == {'PCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 10}
    assert group.required_traits == {'COMPUTE_SECURITY_UEFI_SECURE_BOOT'}
    assert group.forbidden_traits == {'HW_CPU_HYPERTHREADING'}


def test_traits_of_ports_and_device_profiles_are_required():
    request = Request(Flavor('f'), derived_traits=frozenset({'CUSTOM_PORT'}))
    group = resources.resource_request(request).group()
    assert group.required_traits == {'CUSTOM_PORT'}


@pytest.mark.parametrize('policy', ['none', 'isolate', None])
def test_a_group_policy_is_that_of_the_flavor(caplog, policy):
    with caplog.at_level(logging.WARNING):
        request = asked({'group_policy': policy} if policy else {})
    assert request.group_policy == policy
    assert caplog.text == ''


def test_an_extra_spec_overrides_the_size_and_zero_drops_the_class():
    request = asked({'resources:VCPU': '0', 'resources:MEMORY_MB': '64'})
    assert request.group().resources == {'MEMORY_MB': 64, 'DISK_GB': 10}


def test_a_class_in_a_suffixed_group_is_requested_once():
    request = asked({'resources1:VCPU': '4'})
    assert 'VCPU' not in request.group().resources
    assert request.group('1').resources == {'VCPU': 4}


def test_traits_of_the_image_go_to_the_unsuffixed_group():
    request = asked(
        {
            'resources_NET:CUSTOM_NIC': '1',
            'trait_NET:CUSTOM_FAST': 'required',
            'trait_NET:CUSTOM_OLD': 'forbidden',
            'trait:CUSTOM_A': 'required',
        },
        {'trait:CUSTOM_B': 'required', 'trait:CUSTOM_C': 'forbidden'},
    )
    assert request.group('_NET').required_traits == {'CUSTOM_FAST'}
    assert request.group('_NET').forbidden_traits == {'CUSTOM_OLD'}
    assert request.group().required_traits == {'CUSTOM_A', 'CUSTOM_B'}
    assert request.group().forbidden_traits == set()


@pytest.mark.parametrize(
    ('key', 'value', 'said'),
    [
        (
            'resources:VCPU',
            'many',
            'resources:VCPU=many is not a resource class',
        ),
        ('resources1:NOPE', '1', 'resources1:NOPE=1 is not a resource class'),
        ('trait:X', 'Required', 'trait:X is neither'),
        ('group_policy', 'any', 'group_policy is neither'),
    ],
)
def test_extra_specs_that_nova_ignores_are_warned_about(
    caplog, key, value, said
):
    with caplog.at_level(logging.WARNING):
        request = asked({key: value})
    assert request == asked()
    assert said in caplog.text


@pytest.mark.parametrize(
    ('extra_specs', 'properties', 'said'),
    [
        (
            {'hw:cpu_policy': 'shared'},
            {'hw_cpu_policy': 'dedicated'},
            'The image has hw_cpu_policy=dedicated, which the flavor forbids '
            'with hw:cpu_policy=shared.',
        ),
        (
            {'hw:tpm_version': '1.2', 'hw:tpm_model': 'tpm-crb'},
            {},
            'hw:tpm_model is tpm-crb, which requires hw:tpm_version 2.0.',
        ),
        (
            {'os:secure_boot': 'required'},
            {'os_secure_boot': 'disabled'},
            'The flavor has os:secure_boot=required but the image has '
            'os_secure_boot=disabled; set both to the same value.',
        ),
        (
            {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '0-x'},
            {},
            "The CPU mask '0-x' contains '0-x'; a mask must be a list of "
            'numbers, ranges such as 0-3, and exclusions such as ^0.',
        ),
        (
            {'hw:maxphysaddr_mode': 'wide'},
            {},
            "hw:maxphysaddr_mode is 'wide' in the flavor or the image; it "
            'must be one of passthrough, emulate.',
        ),
    ],
)
def test_invalid_settings_are_refused(extra_specs, properties, said):
    with pytest.raises(errors.InvalidRequest) as caught:
        asked(extra_specs, properties)
    assert str(caught.value) == said


@cases(
    ('flavor', 'image', 'forbidden'),
    {
        'the image alone': (None, 'isolate', True),
        'the flavor takes precedence': ('prefer', 'isolate', False),
        'the flavor alone': ('isolate', None, True),
    },
)
def test_a_thread_policy_of_the_image_counts_only_if_the_flavor_has_none(
    flavor, image, forbidden
):
    group = asked(
        {'hw:cpu_thread_policy': flavor} if flavor else {},
        {'hw_cpu_thread_policy': image} if image else {},
    ).group()
    assert ('HW_CPU_HYPERTHREADING' in group.forbidden_traits) is forbidden


def test_each_port_and_device_profile_has_its_own_group():
    groups = (
        ResourceGroup('_port', {'NET_BW_EGR_KILOBIT_PER_SEC': 5}),
        ResourceGroup(
            '_device', {'FPGA': 1}, frozenset({'T'}), frozenset({'U'})
        ),
    )
    flavor = Flavor('f', **SIZE)
    request = resources.resource_request(
        Request(flavor, resource_groups=groups)
    )
    port, device = request.group('_port'), request.group('_device')
    assert port.resources == {'NET_BW_EGR_KILOBIT_PER_SEC': 5}
    assert device.resources == {'FPGA': 1}
    assert (device.required_traits, device.forbidden_traits) == ({'T'}, {'U'})


def test_groups_of_flavor_and_port_must_have_different_names():
    flavor = Flavor('f', extra_specs={'resources_port:FPGA': '1'}, **SIZE)
    with pytest.raises(errors.InvalidRequest) as caught:
        resources.resource_request(
            Request(flavor, resource_groups=(ResourceGroup('_port'),))
        )
    assert str(caught.value) == (
        "Two request groups have the suffix '_port'; rename that of the "
        'flavor.'
    )
