# SPDX-License-Identifier: Apache-2.0
"""Groups of device profiles request what Nova requests for them."""

from nova import objects
from nova.accelerator import cyborg as nova_cyborg
import pytest

from isolate_aggregates_tools.cloud.live import cyborg

objects.register_all()

CLASS = 'resources:CUSTOM_FPGA'


@pytest.mark.parametrize(
    'group',
    [
        {CLASS: '1', 'trait:CUSTOM_A': 'required'},
        {CLASS: '0'},
        {CLASS: '1_0'},
        {CLASS: 2},
        {CLASS: 1.9},
        {CLASS: '1.9'},
        {CLASS: True},
        {CLASS: '-1'},
        {CLASS: -0.5},
        {'resources:custom_fpga': '1'},
        {'resources:FPGA': '1'},
        {CLASS: '1', 'trait:CUSTOM_A': 'forbidden', 'accel:x': '1'},
        {CLASS: '1', 'trait:CUSTOM_A': 'Required'},
    ],
    ids=str,
)
def test_a_group_is_read_as_by_nova(group):
    client = object.__new__(nova_cyborg._CyborgClient)
    [of_nova] = client.get_device_request_groups([group], None)
    own = cyborg._group('device_profile_0', group)
    assert own.resources == of_nova.resources
    assert own.required_traits == of_nova.required_traits
    assert own.forbidden_traits == of_nova.forbidden_traits
