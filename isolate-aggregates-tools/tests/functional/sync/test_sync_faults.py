# SPDX-License-Identifier: Apache-2.0
"""After a failed sync, the next run completes it.

The calls of a run fail in turn, in three ways: before the call has an effect,
after it with the response lost, or with a closed connection. By default every
fourth call fails; with ``THOROUGH=1`` each one does.
"""

import pytest
from sync_world import GOLD, LICENSED, uuid
from thorough import every

from isolate_aggregates import exception

STEP = every(4)


def refused(number):
    """One call is refused."""
    return lambda call: 'refused' if call == number else None


def lost(number):
    """One call is done, but its answer is lost."""
    return lambda call: 'lost' if call == number else None


def cut(number):
    """From one call on, all connections fail."""
    return lambda call: 'cut' if call >= number else None


def cut_behind(number):
    """One call is done, its answer is lost, and later connections fail."""
    return lambda call: lost(number)(call) or cut(number)(call)


def untouched(world):
    """Three hosts of which one has a trait and an aggregate of others."""
    world.reset()
    world.add_host('h1', traits=['HW_NIC_SRIOV'])
    world.add_host('h2', traits=[GOLD], aggregates=[uuid(9, 'others')])
    # It has no inventory, so it is in no candidate that has its traits.
    world.add_host('h3', vcpus=0)
    world.require('a', ['h1', 'h2'], LICENSED, GOLD)
    world.require('b', ['h2', 'h3'], LICENSED)


def synced_and_untagged(world):
    """The same after sync, and after all locks were removed."""
    untouched(world)
    world.sync()
    world.require('a', ['h1', 'h2'])
    world.require('b', ['h2', 'h3'])


def synced_and_changed(world):
    """The same after sync, and after hosts and tags were changed."""
    untouched(world)
    world.sync()
    world.require('a', ['h1'], LICENSED)
    world.require('b', ['h2', 'h1'], GOLD)
    world.require('c', ['h3'], GOLD, 'CUSTOM_NEW')


@pytest.mark.parametrize(
    ('begin', 'fault'),
    [
        (synced_and_changed, refused),
        *(
            pytest.param(synced_and_changed, fault, marks=pytest.mark.slow)
            for fault in (lost, cut_behind)
        ),
        pytest.param(synced_and_untagged, cut, marks=pytest.mark.slow),
    ],
)
def test_a_run_after_an_interrupted_one_reaches_the_same_state(
    world, begin, fault
):
    begin(world)
    before = world.keep()
    world.wire.calls.clear()
    assert world.sync().is_complete
    calls = list(world.wire.calls)
    expected = world.picture()
    assert len(calls) > 15

    for number, call in list(enumerate(calls, 1))[::STEP]:
        world.put_back(before)
        world.wire.fault = fault(number)
        try:
            complete = world.sync().is_complete
        except exception.IsolateAggregatesError:
            complete = False
        world.wire.fault = None
        # It must not count as a success.
        assert not complete or world.picture() == expected, call
        assert world.sync().is_complete, call
        assert world.picture() == expected, call


def test_a_provider_that_fails_does_not_stop_the_others(world):
    untouched(world)
    target = f'/resource_providers/{uuid(1, "h2")}/traits'
    world.wire.fault = lambda _: (
        'refused'
        if world.wire.calls[-1][0] == 'PUT'
        and world.wire.calls[-1][1].endswith(target)
        else None
    )
    result = world.sync()
    assert [f.partition(':')[0] for f in result.failures] == [
        'resource provider h2'
    ]
    world.wire.fault = None
    assert {todo.partition(':')[0] for todo in world.todo()} == {'h2'}


def test_a_provider_deleted_during_the_run_is_skipped(world):
    untouched(world)
    gone = f'/resource_providers/{uuid(1, "h2")}'

    def meddle(method, url):
        if method == 'PUT' and uuid(1, 'h1') in url:
            world.wire.meddle = None
            world.direct.send('DELETE', gone)

    world.wire.meddle = meddle
    result = world.sync()
    assert result.skipped == ['h2']
    assert result.is_complete
    assert LICENSED in world.of('h3', 'traits')


def test_after_many_failures_in_a_row_the_rest_is_not_tried(world):
    world.reset()
    hosts = [f'h{number:02d}' for number in range(15)]
    for host in hosts:
        world.add_host(host)
    world.require('a', hosts, LICENSED)
    plan = world.plan()
    world.wire.fault = lambda call: (
        'cut' if 'resource_providers' in world.wire.calls[-1][1] else None
    )
    result = world.carry_out(plan)
    assert (len(result.failures), result.untried) == (10, 5)
    assert not result.is_complete
