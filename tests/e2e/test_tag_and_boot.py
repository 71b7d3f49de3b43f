# SPDX-License-Identifier: Apache-2.0
"""A tag counts for the very next server, and so does its removal."""

from clients import host_of
from control_plane.settings import HOSTS
import pytest

TAG = {'trait:CUSTOM_TAG_AND_BOOT': 'required'}
NO_TAG = dict.fromkeys(TAG)

ROUNDS = 3


@pytest.fixture
def aggregates(cloud):
    """An aggregate for each host, all of them closed."""
    return {
        host: cloud.aggregate(f'of-{host}', (host,), TAG) for host in HOSTS
    }


def test_a_server_goes_to_the_host_unlocked_last(cloud, aggregates):
    flavor, image = cloud.flavor('plain'), cloud.image('image')
    before = None
    for host in ROUNDS * HOSTS:
        if before:
            aggregates[before].set_metadata(TAG)
        aggregates[host].set_metadata(NO_TAG)
        # Without a pause.
        server = cloud.boot('server', flavor, image)
        assert host_of(cloud.settle(server)) == host
        before = host


def test_no_server_boots_after_the_last_host_is_locked(cloud):
    flavor, image = cloud.flavor('plain'), cloud.image('image')
    everything = cloud.aggregate('everything', HOSTS)
    for _ in range(ROUNDS):
        everything.set_metadata(TAG)
        closed = cloud.boot('closed', flavor, image)
        assert host_of(cloud.settle(closed)) is None
        everything.set_metadata(NO_TAG)
        opened = cloud.boot('opened', flavor, image)
        assert host_of(cloud.settle(opened)) in HOSTS
