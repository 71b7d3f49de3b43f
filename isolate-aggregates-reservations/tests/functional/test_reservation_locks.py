# SPDX-License-Identifier: Apache-2.0
"""Hosts that another lock closes to the servers of a reservation."""

import json

from agreement import agreed
from function_filter import FunctionFilter
import pytest
import reservation_world
from reservation_world import NOW, PROJECT

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.constraints import Forbid
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations.locks import Locks
from isolate_aggregates_tools.placement import edits

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
GPU = 'trait:CUSTOM_GPU_POOL'
CREATE = (
    *('create', '--project', PROJECT, '--vcpus', '4', '--ram', '64'),
    *('--id', ID),
)
REASON = (
    'aggregate gpu-hosts: locked by trait CUSTOM_GPU_POOL, which flavor '
    f'reservation:{ID} does not require'
)

pytestmark = pytest.mark.usefixtures('two_hosts', 'operated')


@pytest.fixture
def command(world, run, tmp_path):
    """Run a command with --yes, in a cloud that isolates."""
    path = tmp_path / 'nova.conf'
    path.write_text(
        '[scheduler]\nenable_isolated_aggregate_filtering = true\n'
    )
    return lambda *arguments: reservation_world.typed(
        run, '--config-file', str(path), *agreed(('reservation', *arguments))
    )


@pytest.fixture
def lock(world):
    """Lock a host."""

    def run_it(host, metadata):
        world.nova.create_aggregate({}, {'aggregate': {'name': 'gpu-hosts'}})
        number = max(world.nova.aggregates)
        world.nova.aggregates[number].update(
            hosts=[host], metadata=dict(metadata)
        )

    return run_it


def test_a_closed_host_has_no_room(command, lock):
    lock('h1', {GPU: 'required'})
    created = command(*CREATE, '--amount', '2', '-f', 'json')
    assert (created.code, created.err) == (0, '')
    assert json.loads(created.out)['hosts'].keys() == {'h2'}
    refused = command('set', ID, '--amount', '3')
    assert refused.code == 1
    assert f'h1 (closed to its servers: {REASON})' in refused.err
    assert command('repair', ID, '--from', 'h2').code == 1
    found = command(
        *('create', '--project', PROJECT, '--vcpus', '4', '--ram', '64'),
        *('--amount', '3', '--dry-run', '--earliest'),
    )
    assert found.code == 1
    assert 'locked by trait CUSTOM_GPU_POOL' in found.err


def test_a_reservation_with_the_key_has_room_there(command, lock, world):
    world.direct.send('PUT', '/traits/CUSTOM_GPU_POOL')
    for root in world.nova.nodes:
        edits.change_traits(
            world.store.placement, root, lambda _: {'CUSTOM_GPU_POOL'}
        )
    lock('h1', {GPU: 'required'})
    created = command(
        *CREATE, '--amount', '4', '--property', f'{GPU}=required'
    )
    assert (created.code, created.err) == (0, '')


def test_hosts_of_one_project_are_closed_to_another(command, lock, run):
    lock('h1', {'filter_tenant_id': 'b' * 32})
    created = command(*CREATE, '--amount', '3')
    # No filter for tenants runs in this cloud.
    assert (created.code, created.err) == (0, '')


def test_a_lock_that_comes_later_is_a_problem_that_repair_mends(
    command, lock, world
):
    assert command(*CREATE, '--amount', '2').code == 0
    before = world.slots()
    [host] = {name.removeprefix('blazar_') for name, _ in before}
    lock(host, {GPU: 'required'})
    problem = (
        f'Reservation {ID}: host {host} is closed to its servers: {REASON}: '
        f'2 slots there; unlock it, or run reservation repair {ID}.\n'
    )
    assert command('list').err == problem
    assert command('reconcile').err == problem
    assert world.slots() == before
    repaired = command('repair')
    assert (repaired.code, repaired.err) == (0, '')
    assert before.keys().isdisjoint(world.slots())
    assert command('list').err == ''


def test_enabling_a_closed_host_names_the_lock(command, lock, world):
    world.add_host('h3', enable=False)
    lock('h3', {GPU: 'required'})
    enabled = command('host', 'set', '--enable', 'h3')
    assert enabled.code == 0
    assert enabled.err == (
        'Host h3 is closed to its servers: aggregate gpu-hosts: locked by '
        'trait CUSTOM_GPU_POOL, which flavor of a reservation does not '
        'require. Only reservations whose flavors open it get slots there.\n'
    )


def test_without_the_filters_of_nova_scheduler_nothing_is_closed(
    run, lock, world
):
    lock('h1', {GPU: 'required'})
    created = run('reservation', *CREATE, '--amount', '3', '--yes')
    assert (created.code, created.err) == (0, '')


def test_a_filter_may_decide_by_the_size_of_a_slot(world):
    """As one of another package does; decisions are kept for equal slots."""

    def forbid_large(request, aggregates):
        if request.flavor.vcpus > 4:
            yield Forbid(tuple(aggregates), 'is for small servers')

    pool = Aggregate('uuid', 'pool', hosts=frozenset({'h1'}))
    locks = Locks([pool], Pipeline({'mine': FunctionFilter(forbid_large)}))
    closed = [
        locks.closed(
            reservations.new(PROJECT, 1, reservations.Shape(vcpus, 64), NOW),
            {'h1': 'h1', 'h2': 'h2'},
        )
        for vcpus in (4, 8, 4)
    ]
    assert [set(hosts) for hosts in closed] == [set(), {'h1'}, set()]
