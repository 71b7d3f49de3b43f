# SPDX-License-Identifier: Apache-2.0
"""The pool of hosts for reservations, and pools of other programs."""

from placement_rows import custom
import pytest
from reservation_world import PROJECT, uuid

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors, names
from isolate_aggregates_tools import errors as tools_errors


@pytest.fixture(autouse=True)
def hosts(world, one_host):
    """Add a host that is not for reservations to the one that is."""
    world.add_host('h2', enable=False)


def test_a_pool_without_hosts_can_be_deleted(world):
    assert names.TRAIT in custom('traits')
    reservations.disable_host(world.store, 'h1')
    assert names.TRAIT in custom('traits')
    reservations.delete_pool(world.store)
    assert world.nova.aggregates == {}
    assert names.TRAIT not in custom('traits')
    # Repeating it does no harm.
    reservations.delete_pool(world.store)
    assert reservations.enable_host(world.store, 'h2').is_enabled


@pytest.mark.parametrize(
    'key',
    [
        names.CLEANING_KEY,
        names.HISTORY_KEY,
        names.LIMIT_KEY,
        f'{names.LIMIT_KEY}:{PROJECT}',
    ],
)
def test_our_own_metadata_does_not_keep_a_pool(world, key):
    reservations.disable_host(world.store, 'h1')
    world.nova.aggregates[1]['metadata'][key] = '10'
    reservations.delete_pool(world.store)
    assert world.nova.aggregates == {}


def test_a_pool_of_blazar_is_left_alone(world):
    pool = world.nova.aggregates[1]
    pool['metadata'].clear()
    before = world.picture()
    with pytest.raises(errors.ReservationHostError) as caught:
        reservations.enable_host(world.store, 'h2')
    assert 'aggregate_freepool_name' in str(caught.value)
    assert world.picture() == before
    # It works if an operator marks the aggregate, or if it is empty.
    pool['metadata'][names.POOL_KEY] = 'true'
    assert reservations.enable_host(world.store, 'h2').is_enabled
    pool.update(hosts=[], metadata={})
    assert reservations.enable_host(world.store, 'h2').is_enabled
    assert pool['metadata'] == names.POOL_METADATA


def blazars(world, host, provider):
    """Make a host one of Blazar's."""
    pool = world.set_pool()
    pool['metadata'].clear()
    pool['hosts'].append(host)
    world.direct.send(
        'POST',
        '/resource_providers',
        {
            'name': names.provider(host),
            'uuid': provider,
            'parent_provider_uuid': uuid(1, host),
        },
    )


@pytest.mark.parametrize(
    'provider',
    [uuid(5, 'h2'), names.provider_uuid(uuid(1, 'h2'))],
    ids=["by Blazar's plugins", 'by ours for Blazar'],
)
def test_a_host_of_blazar_stays_in_its_pool(world, provider):
    """Ordinary servers would use the hosts, unknown to Blazar."""
    blazars(world, 'h2', provider)
    before = world.picture()
    for act in (reservations.to_disable, reservations.disable_host):
        with pytest.raises(errors.ReservationHostError) as caught:
            act(world.store, 'h2')
        assert names.POOL_KEY in str(caught.value)
    assert world.picture() == before
    # Hosts enabled by this package have a reservation provider.
    reservations.disable_host(world.store, 'h1')
    pool = world.nova.aggregates[1]
    assert pool['hosts'] == ['h2']
    # An operator marks the aggregate.
    pool['metadata'][names.POOL_KEY] = 'true'
    reservations.disable_host(world.store, 'h2')
    assert pool['hosts'] == []


def test_a_host_of_blazar_outside_the_pool_keeps_its_provider(world):
    provider = uuid(5, 'h2')
    world.direct.send(
        'POST',
        '/resource_providers',
        {
            'name': names.provider('h2'),
            'uuid': provider,
            'parent_provider_uuid': uuid(1, 'h2'),
        },
    )
    before = world.picture()
    for act in (reservations.to_disable, reservations.disable_host):
        with pytest.raises(errors.ReservationHostError, match='of Blazar'):
            act(world.store, 'h2')
    for act in (reservations.to_enable, reservations.enable_host):
        with pytest.raises(errors.ReservationHostError, match=provider):
            act(world.store, 'h2')
    assert world.picture() == before


def test_nodes_leave_the_pool_with_the_last_node_of_their_service(world):
    world.nova.nodes[uuid(1, 'h2')]['service'] = {'host': 'h1'}
    assert reservations.enable_host(world.store, 'h2').is_enabled
    assert reservations.to_delete_pool(world.store, ['h2', 'h1'])
    with pytest.raises(tools_errors.InvalidRequest, match='it has hosts: h1'):
        reservations.to_delete_pool(world.store, ['h2'])
    reservations.disable_host(world.store, 'h2')
    assert world.nova.aggregates[1]['hosts'] == ['h1']
    assert not reservations.to_disable(world.store, 'h2')
    hosts = reservations.list_hosts(world.store)
    assert {host.name: host.is_enabled for host in hosts} == {
        'h1': True,
        'h2': False,
    }
    reservations.disable_host(world.store, 'h1')
    assert world.nova.aggregates[1]['hosts'] == []
