# SPDX-License-Identifier: Apache-2.0
"""The plugin works together with Blazar's own plugins."""

from blazar.db import api as db_api
from blazar.manager import exceptions as manager_exceptions
from live import OWNER, STRANGER, Blazar
import pytest

BEFORE = ('physical.host.plugin', 'virtual.instance.plugin')


@pytest.mark.parametrize(
    ('affinity', 'end'), [(None, 'end'), (False, 'delete')]
)
def test_old_reservations_end_with_the_old_plugin(
    start, make_manager, cloud, affinity, end
):
    old = start(plugins=BEFORE)
    lease, reservation = old.reserve(2, affinity=affinity, end=30)
    later, waiting = old.reserve(1, affinity=affinity, start=20, end=30)
    old.pass_time()
    assert len(cloud.aggregates()) == 2
    assert len(cloud.groups()) == (0 if affinity is None else 2)

    new = Blazar(make_manager(), cloud)
    new.now = old.now
    new.complete()
    fresh, _ = new.reserve(amount=1, end=30)
    new.pass_time(20)
    assert new.status(later) == 'ACTIVE'
    assert new.status(fresh) == 'ACTIVE'
    assert sorted(cloud.aggregates()) == sorted([reservation, waiting])
    if end == 'end':
        new.pass_time(10)
        assert new.status(lease) == 'TERMINATED'
    else:
        for known in (lease, later, fresh):
            new.delete(known)

    new.complete_all()
    assert cloud.left() == []


def test_old_reservations_change_with_the_old_plugin(
    start, make_manager, cloud
):
    old = start(plugins=BEFORE)
    lease, reservation = old.reserve(amount=1)
    later, waiting = old.reserve(amount=1, start=20)
    old.pass_time()

    new = Blazar(make_manager(), cloud)
    new.now = old.now
    new.update(lease, reservations=[{'id': reservation, 'amount': 3}])
    new.update(later, reservations=[{'id': waiting, 'vcpus': 2}])

    slots = cloud.slots(reservation)
    assert sum(total for total, _ in slots.values()) == 3
    pools = cloud.call('GET', 'compute/os-aggregates')['aggregates']
    [hosts] = [one['hosts'] for one in pools if one['name'] == reservation]
    assert sorted(hosts) == sorted(slots)
    flavor = cloud.call('GET', f'compute/flavors/{waiting}')['flavor']
    assert flavor['vcpus'] == 2
    key = 'aggregate_instance_extra_specs:reservation'
    assert flavor['extra_specs'][key] == waiting
    new.end(lease)
    new.end(later)


def test_old_slots_leave_failed_hosts(start, make_manager, cloud):
    old = start(plugins=BEFORE)
    lease, reservation = old.reserve(amount=1)
    old.pass_time()
    assert cloud.slots(reservation) == {'host1': (1, 0)}

    new = Blazar(make_manager(), cloud)
    cloud.force_down('host1')
    new.look_at_hosts()

    assert cloud.slots(reservation) == {'host2': (1, 0)}
    cloud.force_down('host1', down=False)
    new.end(lease)


def test_a_flavor_can_be_reserved(blazar, cloud):
    name = cloud.plain_flavor(vcpus=5)
    lease, reservation = blazar.reserve(
        amount=3, resource_type='flavor:instance', flavor_id=name, end=30
    )
    blazar.pass_time()

    assert blazar.status(lease) == 'ACTIVE'
    assert cloud.aggregates() == []
    assert sum(total for total, _ in cloud.slots(reservation).values()) == 3
    server = cloud.boot(OWNER, reservation)
    assert server['flavor']['vcpus'] == 5
    assert server['flavor']['ram'] == 64
    assert cloud.is_refused(STRANGER, reservation)

    blazar.pass_time(30)
    blazar.complete_all()
    assert blazar.status(lease) == 'TERMINATED'


def test_flavor_and_instance_reservations_share_hosts(blazar, cloud):
    name = cloud.plain_flavor(vcpus=5)
    # For flavors Blazar counts with allocation ratios: all are on host1.
    first, _ = blazar.reserve(
        amount=6, resource_type='flavor:instance', flavor_id=name
    )
    with pytest.raises(manager_exceptions.NotEnoughHostsAvailable):
        blazar.reserve(amount=5, vcpus=5)
    second, _ = blazar.reserve(amount=4, vcpus=5)
    blazar.end(first)
    blazar.end(second)


def test_hosts_can_be_reserved_with_the_filter_alone(blazar, cloud):
    plain = cloud.plain_flavor()
    lease, reservation = blazar.reserve_hosts(1)
    blazar.pass_time()
    [row] = db_api.host_allocation_get_all_by_values(
        reservation_id=reservation
    )
    host = db_api.host_get(row['compute_host_id'])['service_name']

    server = cloud.boot(OWNER, plain, hint=reservation)
    assert server['OS-EXT-SRV-ATTR:host'] == host
    cloud.boot(OWNER, plain, 'ERROR')
    cloud.boot(STRANGER, plain, 'ERROR', hint=reservation)

    cloud.delete(server)
    blazar.delete(lease)
