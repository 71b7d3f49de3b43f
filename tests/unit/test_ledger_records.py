# SPDX-License-Identifier: Apache-2.0
"""Stays are those that Nova's records allow, and what they lack is said."""

import dataclasses
import types

import pytest

from isolate_aggregates.request import Flavor
from isolate_aggregates.tools.compute.past import (
    Action,
    Event,
    Migration,
    PastServer,
)
from isolate_aggregates.tools.compute.servers import Server
from isolate_aggregates.tools.ledger import ledger, nova_records, reading
from isolate_aggregates.tools.ledger.ledger import Subject
from isolate_aggregates.tools.ledger.stays import Stay

BUILD = 'compute__do_build_and_run_instance'
LIVE = 'compute_post_live_migration_at_destination'
NOW = 1000
LARGE, SMALL = Flavor('large', vcpus=8), Flavor('small', vcpus=2)
NO_KEYS = frozenset()


def past(host='a', status='ACTIVE', launched=12, **times):
    server = Server('s', 'name', 'project', status, host, LARGE)
    fields = {'terminated': None, 'updated': 50, 'is_deleted': False, **times}
    return PastServer(server, 10, launched, **fields)


def done(name, host, start, finish=None, is_success=True):
    return Event(name, host, start, finish or start + 1, is_success)


def records(server, events, migrations=(), flavors=None):
    actions = {
        Action(name, f'req-{number}', start): some
        for number, (name, start, *some) in enumerate(events)
    }
    return nova_records.of_moved(
        server,
        actions,
        migrations,
        flavors or {},
        lambda flavor: NO_KEYS if flavor else None,
        NOW,
    )


def stays(result):
    return [
        (stay.host, stay.start, stay.start_by, stay.end_from, stay.end)
        for stay in result.stays
    ]


CREATE = ('create', 10, done(BUILD, 'a', 11, 13))


def test_a_server_that_was_scheduled_again_ran_only_on_the_last_host():
    """Nova calls a build that it gives up for another host a success."""
    create = ('create', 10, done(BUILD, 'b', 10), done(BUILD, 'a', 11, 13))
    result = records(past(), [create])
    assert (stays(result), result.gaps) == ([('a', 12, None, None, None)], [])


def test_a_server_that_was_never_launched_ran_nowhere():
    result = records(past(None, 'ERROR', launched=None), [CREATE])
    assert stays(result) == []


def test_a_live_migration_ends_where_the_guest_goes_on():
    move = ('live-migration', 20, done(LIVE, 'b', 25, 30))
    assert stays(records(past('b'), [CREATE, move])) == [
        ('a', 12, None, None, 25),
        ('b', 25, None, None, None),
    ]


def test_a_migration_that_failed_moves_nothing():
    move = ('live-migration', 20, done(LIVE, 'b', 25, 30, is_success=False))
    assert stays(records(past(), [CREATE, move])) == [
        ('a', 12, None, None, None)
    ]


def test_a_server_that_is_offloaded_at_once_leaves_as_it_is_shelved():
    shelve = ('shelve', 20, done('compute_shelve_instance', 'a', 20, 22))
    back = ('unshelve', 40, done('compute_unshelve_instance', 'a', 41, 43))
    assert stays(records(past(launched=42), [CREATE, shelve, back])) == [
        ('a', 13, None, None, 22),
        ('a', 42, None, None, None),
    ]
    gone = past(None, 'SHELVED_OFFLOADED')
    assert stays(records(gone, [CREATE, shelve])) == [
        ('a', 12, None, None, 22)
    ]


def test_a_server_that_is_offloaded_later_leaves_then():
    """By a periodic task, whose event is part of the last action."""
    shelve = ('shelve', 20, done('compute_shelve_instance', 'a', 20, 22))
    other = ('lock', 30, done('compute_shelve_offload_instance', 'a', 34))
    gone = past(None, 'SHELVED_OFFLOADED')
    assert stays(records(gone, [CREATE, shelve, other])) == [
        ('a', 12, None, None, 35)
    ]
    names = [Action(n, n, t) for n, t, *_ in (CREATE, shelve, other)]
    assert list(nova_records.moving(names)) == names


def test_a_server_that_was_offloaded_without_a_record_left_after_its_move():
    move = ('live-migration', 20, done(LIVE, 'b', 25, 30))
    gone = past(None, 'SHELVED_OFFLOADED')
    assert stays(records(gone, [CREATE, move])) == [
        ('a', 12, None, None, 25),
        ('b', 25, None, 25, 50),
    ]


@pytest.mark.parametrize(
    ('names', 'migrations', 'expected'),
    [
        (['create', 'stop'], [], True),
        (['create', 'migrate'], [], False),
        (['create'], ['one'], False),
        (['stop'], [], False),
    ],
)
def test_a_server_that_never_moved_has_one_creation_and_no_move(
    names, migrations, expected
):
    actions = [Action(name, name, 10) for name in names]
    assert nova_records.is_plain(actions, migrations) is expected


def test_a_move_without_a_record_is_a_gap():
    result = records(past('c'), [CREATE])
    assert stays(result) == [
        ('a', 12, None, 12, NOW),
        ('c', 12, NOW, None, None),
    ]
    [gap] = result.gaps
    assert 'how it came from host a to host c' in gap


def test_purged_actions_are_a_gap():
    result = records(past('a'), [])
    assert stays(result) == [('a', 12, None, None, None)]
    [gap] = result.gaps
    assert 'Nova keeps no record of its creation' in gap


def resized(status='confirmed', old=1, new=2):
    return Migration('s', 'resize', status, 'a', 'b', 20, 30, (old, new))


RESIZE = ('resize', 20, done('compute_finish_resize', 'b', 22, 24))


def test_the_flavor_before_a_resize_is_found_or_unknown():
    server = past('b', launched=23)
    known = records(server, [CREATE, RESIZE], [resized()], {1: SMALL})
    assert [stay.flavor for stay in known.stays] == ['small', 'large']
    assert known.gaps == []
    unknown = records(server, [CREATE, RESIZE], [resized()])
    assert [stay.flavor for stay in unknown.stays] == [None, 'large']
    assert [stay.keys for stay in unknown.stays] == [None, NO_KEYS]
    [gap] = unknown.gaps
    assert 'the flavor that it had on host a' in gap
    lost = records(server, [CREATE, RESIZE])
    assert [stay.flavor for stay in lost.stays] == [None, 'large']
    # The migration is recorded in the second in which the server arrives.
    at_once = dataclasses.replace(resized(), created=23)
    result = records(server, [CREATE, RESIZE], [at_once], {1: SMALL})
    assert [stay.flavor for stay in result.stays] == ['small', 'large']


def test_a_cold_migration_keeps_the_flavor():
    move = ('migrate', 20, done('compute_finish_resize', 'b', 22, 24))
    result = records(past('b', launched=23), [CREATE, move])
    assert [stay.flavor for stay in result.stays] == ['large', 'large']


def test_the_flavor_of_a_resize_that_was_reverted():
    event = done('compute_finish_revert_resize', 'a', 40)
    back = ('revertResize', 40, event)
    server, migrations = past(launched=23), [resized('reverted')]
    flavors = nova_records.flavors_of([(server, migrations)])
    assert flavors == {1: LARGE}
    result = records(
        server, [CREATE, RESIZE, back], migrations, {**flavors, 2: SMALL}
    )
    assert [(stay.host, stay.flavor) for stay in result.stays] == [
        ('a', 'large'),
        ('b', 'small'),
        ('a', 'large'),
    ]


@pytest.mark.parametrize(
    ('launched', 'updated', 'expected'),
    [(49, 49, False), (50, 49, True), (49, 50, True)],
)
def test_actions_are_read_of_what_changed_in_the_period(
    launched, updated, expected
):
    server = past(launched=launched, updated=updated)
    assert nova_records.needs_actions(server, [], 50) is expected


@pytest.mark.parametrize(
    ('keys', 'expected'), [(None, True), ({'x', 'y'}, True), ({'y'}, False)]
)
def test_a_server_whose_keys_are_unknown_may_have_used_a_lock(keys, expected):
    subject = Subject('lock', 'x', 'x')
    assert subject.counts_stay(Stay(1, 2, 's', 'a', keys=keys)) is expected


@pytest.mark.parametrize(
    ('since', 'start', 'start_by'), [(50, 100, 110), (105, 105, 110)]
)
def test_a_start_that_is_not_known_to_the_second_stays_so_in_a_period(
    since, start, start_by
):
    stay = Stay(100, None, 's', 'a', start_by=110)
    clipped = ledger._clipped(stay, since, 200)
    assert (clipped.start, clipped.start_by) == (start, start_by)
    # What began before it begins with it.
    assert ledger._clipped(stay, 110, 200).start_by is None


@pytest.mark.parametrize(
    ('terminated', 'in_period'), [(None, True), (101, True), (100, False)]
)
@pytest.mark.parametrize('recorded', [(), {'s'}])
def test_stays_in_the_period_count_and_those_on_file_are_known(
    monkeypatch, terminated, in_period, recorded
):
    server = past(terminated=terminated, is_deleted=terminated is not None)
    keys = types.SimpleNamespace(has_locks=False, of=lambda *_: NO_KEYS)
    monkeypatch.setattr(reading.nova_past, 'migrations', lambda *_: [])
    monkeypatch.setattr(reading.nova_past, 'servers', lambda *_: [server])
    monkeypatch.setattr(reading, 'out_of_reach', lambda *_: ())
    nova = types.SimpleNamespace(direct=None, for_servers=None)
    found = reading.NovaStays(nova, keys, 100, lambda _: True, recorded)
    found.read(NOW)
    assert [stay.host for stay in found.stays] == ['a'] * in_period
    assert found.known.keys() == set(recorded)
