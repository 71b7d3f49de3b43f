# SPDX-License-Identifier: Apache-2.0
"""What of a host is counted for reservations, on a real Placement."""

import pytest
from reservation_world import HOUR, NOW, PROJECT, told

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors
from isolate_aggregates_tools import errors as tools_errors

TYPE = 'CUSTOM_NVIDIA_11'


@pytest.fixture(autouse=True)
def gpus(world, two_hosts):
    """Add two GPUs to one of two hosts."""
    world.gpus = [
        world.add_device('h1', f'gpu{n}', [TYPE], VGPU=4) for n in range(2)
    ]


def wanted(amount, *, allow_uncounted=False, **extra_specs):
    """Return a reservation of small servers with extra specs."""
    named = {key.replace('__', ':'): v for key, v in extra_specs.items()}
    return reservations.new(
        PROJECT,
        amount,
        reservations.Shape(1, 64, extra_specs=named),
        NOW,
        allow_uncounted=allow_uncounted,
    )


def create(world, reservation):
    """Create it; return how many slots it has by host."""
    status = reservations.create(world.store, reservation, NOW)
    return {name: on.total for name, on in status.hosts.items()}


def refused(world, reservation):
    """Create it in vain, and return why."""
    with pytest.raises(errors.ReservationError) as caught:
        create(world, reservation)
    return str(caught.value)


def test_resources_of_a_gpu_below_a_host_count(world):
    assert create(world, wanted(5, resources__VGPU='1')) == {'h1': 5}
    assert 'room for 3 on h1' in refused(world, wanted(4, resources__VGPU='1'))


def test_a_slot_uses_a_single_gpu(world):
    # Six of eight are there, and three of four on each.
    assert 'room for 2 on h1' in refused(world, wanted(3, resources__VGPU='3'))
    assert 'for none' in refused(world, wanted(1, resources__VGPU='5'))


def test_small_slots_may_leave_no_gpu_whole(world):
    create(world, wanted(2, resources__VGPU='1'))
    # One per GPU; which one is not known before they boot.
    assert 'for none' in refused(world, wanted(1, resources__VGPU='4'))
    # Or both on one of them, and three on the other.
    assert 'room for 1 on h1' in refused(world, wanted(2, resources__VGPU='3'))


def test_gpu_usage_of_ordinary_servers_counts(world):
    assert world.boot('s', 'h1', devices=[(world.gpus[0], {'VGPU': 3})])
    assert 'room for 1 on h1' in refused(world, wanted(2, resources__VGPU='3'))


def test_gpu_usage_of_servers_in_slots_counts_once(world):
    found = wanted(2, resources__VGPU='2')
    create(world, found)
    gpu = (world.gpus[0], {'VGPU': 2})
    assert world.boot('s1', 'h1', found.id, devices=[gpu])
    # It takes less of the host than its slot has, as after a resize.
    less = {'VCPU': 1, 'MEMORY_MB': 32}
    assert world.boot('s2', 'h1', found.id, less, devices=[gpu])
    assert 'room for 2 on h1' in refused(world, wanted(3, resources__VGPU='2'))


def test_a_gpu_of_a_full_host_is_counted(world):
    assert world.boot('s', 'h1', flavor_needs={'VCPU': 10})
    world.set_vcpus('h2', 20)
    shape = reservations.Shape(0, 64, extra_specs={'resources:VGPU': '2'})
    reservation = reservations.new(PROJECT, 4, shape, NOW)
    assert create(world, reservation) == {'h1': 4}


def test_a_trait_counts_where_each_gpu_has_it(world):
    needs = {'resources__VGPU': '1', f'trait__{TYPE}': 'required'}
    assert create(world, wanted(1, **needs)) == {'h1': 1}
    needs[f'trait__{TYPE}'] = 'forbidden'
    assert 'for none' in refused(world, wanted(1, **needs))
    world.add_device('h1', 'gpu2', VGPU=8)
    # Placement may choose the one without.
    needs[f'trait__{TYPE}'] = 'required'
    assert 'for none' in refused(world, wanted(1, **needs))
    # The traits of a GPU do not apply to a server that does not use it.
    del needs['resources__VGPU']
    assert 'for none' in refused(world, wanted(1, **needs))


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('accel:device_profile', 'fpga'),
        ('hw:cpu_policy', 'dedicated'),
        ('hw:mem_page_size', 'large'),
        ('hw:numa_mem.0', '32'),
        ('hw:numa_nodes', '2'),
        ('pci_passthrough:alias', 'a100:4'),
        ('resources1:VGPU', '1'),
        ('trait_GPU:HW_GPU_API_VULKAN', 'required'),
    ],
)
def test_resources_that_cannot_be_counted_are_refused_by_name(
    world, key, value
):
    before = world.picture()
    specs = {key.replace(':', '__'): value}
    with pytest.raises(tools_errors.InvalidRequest) as caught:
        wanted(1, **specs)
    assert f'{key}={value}' in str(caught.value)
    assert '--allow-uncounted' in str(caught.value)
    assert world.picture() == before
    wanted(1, allow_uncounted=True, **specs)


def test_allow_uncounted_still_counts_everything_else(world):
    alias = wanted(20, allow_uncounted=True, pci_passthrough__alias='a100:4')
    assert create(world, alias) == {'h1': 10, 'h2': 10}
    assert 'for none' in refused(world, wanted(1))


# A host that has less than it had.


def big(world, amount, start=0, end=None):
    """Reserve slots of four VCPUs, with start and end in hours from now."""
    reservation = reservations.new(
        PROJECT,
        amount,
        reservations.Shape(4, 64),
        NOW + start * HOUR,
        None if end is None else NOW + end * HOUR,
    )
    return reservations.create(world.store, reservation, NOW).reservation


def repaired(world):
    """Repair all; return slots by host and problems of each."""
    return [
        ({name: on.total for name, on in found.hosts.items()}, told(found))
        for found in reservations.repair(world.store, NOW)
    ]


SHRUNK = 'host h1 has room for 4 of the 8 VCPU that the slots there need'


@pytest.mark.parametrize('is_full', [False, True])
def test_a_host_that_shrank_is_reported(world, is_full):
    result = big(world, 2)
    if is_full:
        for server in ('s1', 's2'):
            assert world.boot(server, 'h1', result.id, {'VCPU': 4})
    world.set_vcpus('h1', 4)
    [status] = reservations.reconcile_all(world.store, NOW)
    assert told(status) == (SHRUNK,)
    assert status.hosts['h1'].total == 2
    shown = reservations.show(world.store, result.id, NOW)
    listed = reservations.list_reservations(world.store, NOW)
    assert told(shown) == told(listed[0]) == (SHRUNK,)


def test_slots_without_server_leave_a_host_that_shrank(world):
    status = big(world, 2)
    assert world.boot('s1', 'h1', status.id, {'VCPU': 4})
    world.set_vcpus('h1', 4)
    assert repaired(world) == [({'h1': 1, 'h2': 1}, ())]
    assert world.boot('s2', 'h2', status.id, {'VCPU': 4})


def test_only_as_many_slots_leave_as_needed(world):
    world.fail_host('h2')
    for _ in range(2):
        big(world, 1)
    world.fail_host('h2', 'up')
    world.set_vcpus('h1', 4)
    statuses = reservations.reconcile_all(world.store, NOW)
    assert [told(status) for status in statuses] == [(SHRUNK,)] * 2
    assert sorted(list(slots) for slots, _ in repaired(world)) == [
        ['h1'],
        ['h2'],
    ]
    statuses = reservations.reconcile_all(world.store, NOW)
    assert not any(status.problems for status in statuses)


def test_slots_that_fit_nowhere_else_stay_on_a_host_that_shrank(world):
    big(world, 4)
    world.set_vcpus('h1', 4)
    assert repaired(world) == [({'h1': 2, 'h2': 2}, (SHRUNK,))]
    world.add_host('h3')
    assert repaired(world) == [({'h1': 1, 'h2': 2, 'h3': 1}, ())]


def test_consecutive_slots_can_use_the_same_room(world):
    world.fail_host('h2')
    big(world, 1, end=1)
    big(world, 1, start=1)
    world.set_vcpus('h1', 4)
    statuses = reservations.reconcile_all(world.store, NOW)
    assert not any(status.problems for status in statuses)
    assert [list(status.hosts) for status in statuses] == [['h1'], ['h1']]
