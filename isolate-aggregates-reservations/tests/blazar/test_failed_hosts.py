# SPDX-License-Identifier: Apache-2.0
"""Slots leave hosts that fail, as far as they fit elsewhere."""

from blazar.db import api as db_api
from blazar.manager import exceptions as manager_exceptions
from live import OWNER
import pytest

from isolate_aggregates_reservations.blazar import rows


@pytest.mark.parametrize('affinity', [None, True, False])
def test_slots_move_to_other_hosts(blazar, cloud, affinity):
    lease, reservation = blazar.reserve(amount=2, vcpus=2, affinity=affinity)
    blazar.pass_time()
    server = cloud.boot(OWNER, reservation)
    failed = server['OS-EXT-SRV-ATTR:host']
    before = cloud.slots(reservation)[failed][0]

    cloud.force_down(failed)
    blazar.look_at_hosts()

    slots = cloud.slots(reservation)
    # No further server gets in there, and the slot in use is not lost.
    assert slots.pop(failed) == (before, before)
    # It counts, and so do the slots that all others have now.
    assert {failed: 1} | {
        host: total for host, (total, _) in slots.items()
    } == (blazar.slots(reservation))
    assert {reserved for _, reserved in slots.values()} == {0}
    assert sum(total for total, _ in slots.values()) == 2
    found = blazar.reservation(reservation)
    assert found['resources_changed']
    assert not found['missing_resources']
    cloud.force_down(failed, down=False)
    blazar.end(lease)
    assert cloud.left() == []


def test_only_slots_that_fit_elsewhere_move_and_the_rest_are_reported(
    blazar, cloud
):
    lease, reservation = blazar.reserve(amount=5, vcpus=5)
    blazar.pass_time()
    assert cloud.slots(reservation)['host1'] == (2, 0)

    cloud.force_down('host1')
    blazar.look_at_hosts()

    assert cloud.slots(reservation) == {'host2': (2, 0), 'host3': (2, 0)}
    assert blazar.reservation(reservation)['missing_resources']
    assert db_api.lease_get(lease)['degraded']
    cloud.force_down('host1', down=False)
    blazar.end(lease)


@pytest.mark.parametrize('affinity', [None, True])
def test_a_lease_that_has_not_started_moves_as_well(blazar, cloud, affinity):
    lease, reservation = blazar.reserve(2, affinity=affinity, start=10)
    assert blazar.slots(reservation) == {'host1': 2}

    cloud.force_down('host1')
    blazar.look_at_hosts()
    assert blazar.slots(reservation) == {'host2': 2}
    blazar.pass_time(10)

    assert cloud.slots(reservation) == {'host2': (2, 0)}
    cloud.force_down('host1', down=False)
    blazar.end(lease)


@pytest.fixture
def recovered(blazar, cloud):
    """Return a lease that was moved, while its server stayed on a host.

    The host has recovered. A slot takes half of it.
    """
    lease, reservation = blazar.reserve(amount=2, vcpus=5, affinity=True)
    blazar.pass_time()
    server = cloud.boot(OWNER, reservation)
    assert server['OS-EXT-SRV-ATTR:host'] == 'host1'
    cloud.force_down('host1')
    blazar.look_at_hosts()
    cloud.force_down('host1', down=False)
    blazar.look_at_hosts()
    assert blazar.slots(reservation) == {'host1': 1, 'host2': 2}
    yield lease, reservation, server
    blazar.end(lease)
    assert blazar.slots(reservation) == {}


def test_servers_left_on_a_recovered_host_count(blazar, cloud, recovered):
    _, _, server = recovered
    with pytest.raises(manager_exceptions.NotEnoughHostsAvailable):
        blazar.reserve(amount=4, vcpus=5)
    other, reservation = blazar.reserve(amount=3, vcpus=5)
    assert blazar.slots(reservation) == {'host1': 1, 'host3': 2}
    with pytest.raises(manager_exceptions.NotEnoughHostsAvailable):
        blazar.reserve(amount=1, vcpus=5)

    cloud.delete(server)
    cloud.wait_until_gone()
    blazar.complete()

    another, _ = blazar.reserve(amount=1, vcpus=5)
    blazar.end(another)
    blazar.end(other)


def test_a_host_with_servers_that_stayed_is_not_reserved_whole(
    blazar, recovered
):
    with pytest.raises(manager_exceptions.NotEnoughHostsAvailable):
        blazar.reserve_hosts(2)


@pytest.mark.parametrize(
    ('affinity', 'amount', 'most'), [(None, 2, 6), (False, 1, 3)]
)
def test_servers_left_on_a_host_use_new_slots_of_their_lease(
    blazar, cloud, affinity, amount, most
):
    lease, reservation = blazar.reserve(amount, vcpus=5, affinity=affinity)
    blazar.pass_time()
    for _ in range(amount):
        cloud.boot(OWNER, reservation)
    cloud.force_down('host1')
    blazar.look_at_hosts()
    cloud.force_down('host1', down=False)
    blazar.look_at_hosts()
    assert cloud.slots(reservation)['host1'] == (amount, amount)

    grown = [{'id': reservation, 'amount': most + 1}]
    with pytest.raises(manager_exceptions.NotEnoughHostsAvailable):
        blazar.update(lease, reservations=grown)
    grown = [{'id': reservation, 'amount': most}]
    blazar.update(lease, reservations=grown)

    assert cloud.slots(reservation) == dict.fromkeys(
        ('host1', 'host2', 'host3'), (amount, 0)
    )
    assert sum(blazar.slots(reservation).values()) == most
    blazar.end(lease)


def test_servers_that_stayed_are_found_after_a_restart(
    blazar, cloud, recovered
):
    """They stayed before this was written down."""
    _, reservation, _ = recovered
    rows.leave_behind(reservation, rows.by_host({'host1': 0}))
    assert blazar.slots(reservation) == {'host2': 2}

    type(blazar.plugin)().complete()

    assert blazar.slots(reservation) == {'host1': 1, 'host2': 2}


def test_a_host_that_gets_its_slots_back_has_no_servers_left_over(
    blazar, cloud, recovered
):
    _, reservation, _ = recovered
    for host in ('host2', 'host3'):
        cloud.force_down(host)
    blazar.look_at_hosts()
    for host in ('host2', 'host3'):
        cloud.force_down(host, down=False)
    blazar.look_at_hosts()
    blazar.complete()
    assert blazar.slots(reservation) == {'host1': 2}
    assert cloud.slots(reservation) == {'host1': (2, 0)}
