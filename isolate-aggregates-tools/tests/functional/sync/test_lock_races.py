# SPDX-License-Identifier: Apache-2.0
"""``lock create``, ``lock delete`` and ``sync`` run concurrently.

Before each call of one command, another command runs completely. In the end,
the metadata of the aggregates and the traits of their hosts are consistent, or
the command has reported that they may not be.
"""

import pytest
from sync_world import AGGREGATES, LICENSED, uuid
from thorough import every

from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.operate import lock, plan, unlock

# Interleave at every fourth call; with THOROUGH=1 at each.
EVERY = every(4)

TAG = f'trait:{LICENSED}'
MARK = marks.of_trait(LICENSED)
HOSTS = ('h1', 'h2')


def locks(name):
    def run(world):
        def planned(previous=None):
            return lock.plan(world.fresh(), name, [LICENSED])

        return plan.carry_out(planned(), planned).error

    run.__name__ = f'lock_{name}'
    return run


def unlocks(name):
    def run(world):
        def again(done):
            return unlock.plan(world.fresh(), name, done.traits, again=True)

        first = unlock.plan(world.fresh(), name, [LICENSED])
        return plan.carry_out(first, again).error

    run.__name__ = f'unlock_{name}'
    return run


def sync(world):
    result = world.sync()
    return None if result.is_complete else result.failures


def unlocked(world):
    """Two hosts without locks; one of them is also in a separate aggregate."""
    world.reset()
    for host in HOSTS:
        world.add_host(host)
    world.require('a', HOSTS)
    world.require('b', ['h1'])
    sync(world)


def locked(world):
    unlocked(world)
    assert locks('a')(world) is None


def tagged(world):
    """Tagged by hand, so that sync has something to do."""
    unlocked(world)
    world.require('a', HOSTS, LICENSED)


def untagged(world):
    locked(world)
    world.require('a', HOSTS)


def disagreements(world):
    """Return the hosts whose traits do not match the metadata."""
    found = []
    for host in HOSTS:
        required = any(
            TAG in a.metadata and host in a.hosts
            for a in world.groups.values()
        )
        traits = world.of(host, 'traits') & {LICENSED, MARK}
        if traits != ({LICENSED, MARK} if required else set()):
            found.append(host)
    return found


def interleaved(world, other, at):
    """Let another command run before one call of a command."""
    calls = 0

    def meddle(method, url):
        nonlocal calls
        calls += 1
        if calls == at:
            world.wire.meddle, before = None, world.wire.meddle
            assert other(world) is None
            world.wire.meddle = before

    world.wire.meddle = meddle
    return lambda: calls


@pytest.mark.parametrize(
    ('begin', 'one', 'other'),
    [
        pytest.param(
            begin,
            one,
            other,
            id=f'{one.__name__}-{other.__name__}',
            marks=marks,
        )
        for marks, begin, one, other in (
            ((), unlocked, locks('a'), unlocks('a')),
            (pytest.mark.slow, unlocked, locks('a'), sync),
            (pytest.mark.slow, unlocked, locks('a'), locks('b')),
            (pytest.mark.slow, locked, locks('b'), unlocks('a')),
            ((), locked, unlocks('a'), locks('a')),
            (pytest.mark.slow, locked, unlocks('a'), sync),
            (pytest.mark.slow, locked, unlocks('a'), locks('b')),
            (pytest.mark.slow, tagged, sync, unlocks('a')),
            (pytest.mark.slow, untagged, sync, locks('a')),
            (pytest.mark.slow, untagged, sync, locks('b')),
            ((), untagged, sync, sync),
        )
    ],
)
def test_concurrent_lock_and_unlock_end_in_a_consistent_state(
    world, begin, one, other
):
    begin(world)
    before = world.keep()
    at = 1
    while True:
        world.put_back(before)
        calls = interleaved(world, other, at)
        error = one(world)
        world.wire.meddle = None
        if calls() < at:
            break
        assert error is None, (at, error)
        assert disagreements(world) == [], at
        at += EVERY
    # The command makes several calls.
    assert at > 5


@pytest.mark.parametrize(
    ('begin', 'one', 'other'),
    [(unlocked, locks('a'), unlocks('a')), (locked, unlocks('a'), locks('a'))],
    ids=['lock', 'unlock'],
)
def test_a_command_that_is_always_undone_reports_it(world, begin, one, other):
    """The others undo each change before it is read back."""
    begin(world)

    def undo(*call):
        if call == AGGREGATES:
            world.wire.meddle, before = None, world.wire.meddle
            assert other(world) is None
            world.wire.meddle = before

    world.wire.meddle = undo
    error = one(world)
    world.wire.meddle = None
    assert isinstance(error, tools_errors.ChangedMeanwhile)
    assert error.steps


def test_a_trait_deleted_during_the_run_is_created_again(world):
    """An unlock deletes a mark that is on no host any more."""
    unlocked(world)
    first = lock.plan(world.fresh(), 'a', [LICENSED])

    def delete(method, url):
        if method == 'PUT' and url.endswith(f'{uuid(1, "h1")}/traits'):
            world.wire.meddle = None
            world.direct.send('DELETE', f'/traits/{MARK}')

    world.wire.meddle = delete
    assert plan.carry_out(first).error is None
    assert disagreements(world) == []


def test_a_host_that_leaves_a_lock_loses_the_trait_first(world):
    locked(world)
    seen = []

    def see(method, url):
        if url.endswith('/action'):
            seen.append(world.of('h1', 'traits'))

    world.wire.meddle = see

    def again(done):
        return unlock.plan(
            world.fresh(), 'a', done.traits, again=True, leaving=['h1']
        )

    first = unlock.plan(world.fresh(), 'a', (), leaving=['h1'])
    assert plan.carry_out(first, again).error is None
    assert seen == [set()]
    assert world.groups['a'].hosts == {'h2'}
    assert disagreements(world) == []


def test_a_host_that_has_left_a_lock_loses_the_trait(world):
    locked(world)
    world.require('a', ['h2'], LICENSED)
    left = unlock.plan(world.fresh(), 'a', (), leaving=['h1'])
    assert plan.carry_out(left).error is None
    assert disagreements(world) == []


def test_a_host_keeps_the_trait_that_another_aggregate_requires(world):
    locked(world)
    world.require('a', ['h2'], LICENSED)
    world.require('b', ['h1'], LICENSED)
    left = unlock.plan(world.fresh(), 'a', (), leaving=['h1'])
    assert left.steps == ()
    assert left.notes == (
        f'host h1 keeps trait {LICENSED}, which aggregate b requires',
    )


def test_hosts_that_keep_a_trait_are_told_in_one_sentence(world):
    locked(world)
    world.require('a', ['h2'], LICENSED)
    world.require('b', ['h1', 'h2'], LICENSED)
    left = unlock.plan(world.fresh(), 'a', (), leaving=['h1', 'h2'])
    assert left.notes == (
        f'2 hosts (h1, h2) keep trait {LICENSED}, which aggregate b requires',
    )
