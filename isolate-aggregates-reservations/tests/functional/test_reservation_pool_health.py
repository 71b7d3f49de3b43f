# SPDX-License-Identifier: Apache-2.0
"""Each round restores what enabling a host once set."""

import pytest
from reservation_world import HOUR, NOW, PROJECT, uuid

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors, names
from isolate_aggregates_reservations.review import review
from isolate_aggregates_tools.placement import edits, inventories

SHAPE = reservations.Shape(4, 1024, 10)


@pytest.fixture
def reserved(world, two_hosts):
    """Reserve all slots of two hosts."""
    reservation = reservations.new(PROJECT, 4, SHAPE, NOW, NOW + HOUR)
    reservations.create(world.store, reservation, NOW)
    assert not problems(world)
    return reservation.id


def lose_metadata(world):
    del world.nova.aggregates[1]['metadata'][names.TRAIT_KEY]


def lose_membership(world):
    world.nova.aggregates[1]['hosts'].remove('h1')


def lose_mirror(world):
    edits.change_aggregates(world.direct, uuid(1, 'h1'), lambda _: set())


def leave_pool(world):
    """As when the compute service was deleted, and came back."""
    lose_membership(world)
    lose_mirror(world)


def lose_provider(world):
    inventories.write(
        world.direct,
        world.child('h2'),
        inventories.Inventories(
            inventories.read(world.direct, world.child('h2')).generation, {}
        ),
    )
    inventories.delete_provider(world.direct, world.child('h2'))


LOSSES = [
    lose_metadata,
    lose_membership,
    lose_mirror,
    leave_pool,
    lose_provider,
]


def problems(world):
    found = []
    reservations.list_reservations(world.store, NOW, found.append)
    return found


@pytest.mark.parametrize('lose', LOSSES)
def test_what_enabling_set_is_reported_and_restored(world, reserved, lose):
    before = world.picture()
    lose(world)
    found = problems(world)
    assert found
    assert all(
        isinstance(problem, errors.ReservationHostError) for problem in found
    )
    assert review(world.store, NOW).hosts == {
        problem.host: problem.problem for problem in found
    }
    reported = []
    (status,) = reservations.reconcile_all(
        world.store, NOW, on_unreadable=reported.append
    )
    assert not reported
    assert not problems(world)
    assert not status.problems
    after = world.picture()
    for part in ('providers', 'aggregates', 'slots'):
        assert after[part] == before[part]


def lease(world):
    """Let Blazar reserve a host; the aggregate is there before the start."""
    world.nova.create_aggregate({}, {'aggregate': {'name': 'L'}})
    aggregate = world.nova.aggregates[max(world.nova.aggregates)]
    aggregate['metadata']['blazar:owner'] = PROJECT
    return aggregate['hosts']


def take(world):
    """A lease of Blazar starts, and its host leaves the pool."""
    hosts = lease(world)
    leave_pool(world)
    hosts.append('h1')


def take_halfway(world):
    """Blazar has removed the host, and has not added it to the lease yet."""
    lease(world)
    leave_pool(world)


def take_while_mending(world):
    """A lease starts while a round restores something else."""
    lease(world)
    lose_metadata(world)

    def start(method, url):
        if method == 'POST' and url.endswith('aggregates/1/action'):
            world.wire.meddle = None
            leave_pool(world)

    world.wire.meddle = start


@pytest.mark.parametrize(
    'takes', [take, take_halfway, take_while_mending], ids=lambda f: f.__name__
)
def test_a_host_that_blazar_took_is_not_put_back(world, reserved, takes):
    takes(world)
    for _ in range(2):
        found = []
        reservations.reconcile_all(
            world.store, NOW, on_unreadable=found.append
        )
        assert world.nova.aggregates[1]['hosts'] == ['h2']
    assert world.wire.meddle is None
    assert not world.direct.aggregates(uuid(1, 'h1'))
    (problem,) = found
    assert 'Blazar' in problem.problem
    # Once Blazar has given it back, all is well again.
    world.nova.aggregates[1]['hosts'].append('h1')
    del world.nova.aggregates[2]
    reservations.reconcile_all(world.store, NOW)
    assert not problems(world)


def test_nobody_puts_a_host_of_a_lease_back(world, reserved):
    take(world)
    with pytest.raises(errors.ReservationHostError, match='aggregate L'):
        reservations.enable_host(world.store, 'h1')
    assert world.nova.aggregates[1]['hosts'] == ['h2']


@pytest.mark.parametrize('lose', [lose_metadata, lose_membership])
def test_hosts_of_another_pool_are_left_alone(world, reserved, lose):
    lose(world)
    world.nova.create_aggregate({}, {'aggregate': {'name': 'other'}})
    world.nova.aggregates[2]['metadata'] = {names.POOL_KEY: 'true'}
    before = world.picture()
    reported = []
    reservations.reconcile_all(world.store, NOW, on_unreadable=reported.append)
    assert reported
    assert world.picture()['aggregates'] == before['aggregates']


def test_a_wrong_name_of_the_pool_changes_nothing(world, reserved):
    before = world.picture()
    reported = []
    reservations.reconcile_all(
        world.new_store(pool='typo'), NOW, on_unreadable=reported.append
    )
    assert {problem.host for problem in reported} == {'h1', 'h2'}
    assert world.picture() == before


def test_an_ordinary_server_on_a_host_is_a_problem(world, reserved):
    assert world.boot('slot', 'h1', reserved, {'VCPU': 4, 'MEMORY_MB': 1024})
    assert not problems(world)
    assert world.boot('ordinary', 'h1')
    (problem,) = problems(world)
    assert problem.host == 'h1'
    assert uuid(3, 'ordinary') in problem.problem
    assert uuid(3, 'slot') not in problem.problem
    assert review(world.store, NOW).hosts == {'h1': problem.problem}
    reported = []
    reservations.reconcile_all(world.store, NOW, on_unreadable=reported.append)
    assert [p.problem for p in reported] == [problem.problem]


def test_a_pool_without_any_lock_is_reported_and_left(world, reserved):
    """It may be Blazar's, and the lock would keep Blazar's servers out."""
    world.nova.aggregates[1]['metadata'].clear()
    found = []
    reservations.reconcile_all(world.store, NOW, on_unreadable=found.append)
    assert {problem.host for problem in found} == {'h1', 'h2'}
    assert not world.nova.aggregates[1]['metadata']
    # The operator says that no Blazar uses it.
    world.nova.aggregates[1]['metadata'][names.POOL_KEY] = 'true'
    reservations.reconcile_all(world.store, NOW)
    assert not problems(world)
