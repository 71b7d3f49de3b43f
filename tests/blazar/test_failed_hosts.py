# SPDX-License-Identifier: Apache-2.0
"""Slots leave hosts that fail, as far as they fit elsewhere."""

from blazar.db import api as db_api
from live import OWNER
import pytest


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
    assert {host: total for host, (total, _) in slots.items()} == (
        blazar.slots(reservation)
    )
    assert {reserved for _, reserved in slots.values()} == {0}
    assert sum(total for total, _ in slots.values()) == 2
    found = blazar.reservation(reservation)
    assert found['resources_changed']
    assert not found['missing_resources']
    cloud.force_down(failed, down=False)
    blazar.end(lease)
    assert cloud.left() == []


def test_slots_that_fit_nowhere_are_reported_and_the_others_move(
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


def test_a_lease_that_has_not_started_moves_as_well(blazar, cloud):
    lease, reservation = blazar.reserve(amount=2, start=10)
    assert blazar.slots(reservation) == {'host1': 2}

    cloud.force_down('host1')
    blazar.look_at_hosts()
    assert blazar.slots(reservation) == {'host2': 2}
    blazar.pass_time(10)

    assert cloud.slots(reservation) == {'host2': (2, 0)}
    cloud.force_down('host1', down=False)
    blazar.end(lease)
