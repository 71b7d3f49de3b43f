# SPDX-License-Identifier: Apache-2.0
"""The life of leases in a real blazar-manager, Nova and Placement."""

from live import OWNER, STRANGER


def test_a_lease_from_its_creation_to_its_end(blazar, cloud):
    lease, reservation = blazar.reserve(amount=3, vcpus=5, start=10, end=60)

    assert blazar.status(lease) == 'PENDING'
    assert cloud.slots(reservation) == {}
    assert cloud.is_refused(OWNER, reservation)

    blazar.pass_time(10)

    assert blazar.status(lease) == 'ACTIVE'
    assert cloud.slots(reservation) == {'host1': (2, 0), 'host2': (1, 0)}
    assert cloud.aggregates() == []
    assert cloud.groups() == []
    assert cloud.is_refused(STRANGER, reservation)
    servers = [cloud.boot(OWNER, reservation) for _ in range(3)]
    hosts = sorted(s['OS-EXT-SRV-ATTR:host'] for s in servers)
    assert hosts == ['host1', 'host1', 'host2']
    cloud.boot(OWNER, reservation, 'ERROR')

    blazar.pass_time(50)

    assert blazar.status(lease) == 'TERMINATED'
    assert cloud.servers() == []
    assert cloud.left() == []
    assert blazar.slots(reservation) == {}
