# SPDX-License-Identifier: Apache-2.0
"""Leases end, whether or not their servers are in a hurry."""

from blazar.db import api as db_api
from blazar.manager import exceptions as manager_exceptions
from live import OWNER, SECONDS
import pytest

from isolate_aggregates_reservations.blazar.instance_plugin import (
    PlacementInstancePlugin,
)


def test_a_server_that_is_slow_to_delete_does_not_block_other_leases(
    blazar, cloud
):
    slow, reservation = blazar.reserve(amount=6, vcpus=5, end=30)
    blazar.pass_time()
    server = cloud.boot(OWNER, reservation)
    host = server['OS-EXT-SRV-ATTR:host']
    cloud.hold_deletions(True)

    blazar.pass_time(30)

    assert blazar.status(slow) == 'TERMINATED'
    # Nobody gets in, and what is still in use is still counted.
    assert cloud.slots(reservation)[host] == (2, 2)
    assert cloud.is_refused(OWNER, reservation)
    with pytest.raises(manager_exceptions.NotEnoughHostsAvailable):
        blazar.reserve(amount=1)
    later, _ = blazar.reserve(amount=1, start=1)
    blazar.delete(later)
    blazar.complete()
    assert cloud.servers() == [server['id']]
    assert cloud.flavors() == [reservation]

    cloud.hold_deletions(False)
    cloud.wait_until_gone()
    blazar.complete()

    assert cloud.left() == []
    assert blazar.slots(reservation) == {}
    now, _ = blazar.reserve(amount=6, vcpus=5)
    blazar.delete(now)


def test_a_deleted_lease_is_ended_though_blazar_forgets_it(blazar, cloud):
    lease, reservation = blazar.reserve(amount=2)
    blazar.pass_time()
    cloud.boot(OWNER, reservation)
    cloud.hold_deletions(True)

    blazar.delete(lease)

    assert blazar.reservation(reservation) is None
    assert [reserved for _, reserved in cloud.slots(reservation).values()] == [
        2
    ]
    cloud.hold_deletions(False)
    cloud.wait_until_gone()
    # Another process may have to complete it.
    PlacementInstancePlugin().complete()
    assert cloud.left() == []


def test_allocations_left_in_the_database_are_deleted_after_a_restart(blazar):
    """An end stopped when nothing else was left."""
    _, reservation = blazar.reserve(amount=1, end=30)
    [row] = db_api.host_allocation_get_all_by_values(
        reservation_id=reservation
    )
    blazar.pass_time(30)
    blazar.complete_all()
    db_api.host_allocation_create(
        {
            'compute_host_id': row['compute_host_id'],
            'reservation_id': reservation,
        }
    )

    PlacementInstancePlugin().complete()

    assert blazar.slots(reservation) == {}


def test_reservations_of_another_keeper_are_left_alone(blazar, cloud):
    """Reservations that are kept without Blazar have such flavors too."""
    foreign = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
    body = {'name': f'reservation:{foreign}', 'id': foreign, 'ram': 64}
    cloud.call(
        'POST',
        'compute/flavors',
        {
            'flavor': {
                **body,
                'vcpus': 1,
                'disk': 1,
                'description': 'something else',
                'os-flavor-access:is_public': False,
            }
        },
    )

    blazar.complete()

    assert cloud.flavors() == [foreign]
    cloud.call('DELETE', f'compute/flavors/{foreign}')


def test_the_end_waits_a_while_for_servers(start, cloud):
    blazar = start(server_deletion_wait=SECONDS)
    _, reservation = blazar.reserve(amount=1, end=30)
    blazar.pass_time()
    cloud.boot(OWNER, reservation)

    blazar.pass_time(30)

    assert cloud.left() == []
