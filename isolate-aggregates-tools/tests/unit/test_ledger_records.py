# SPDX-License-Identifier: Apache-2.0
"""Stays are those that Nova's records allow, and what they lack is said."""

import dataclasses
import types

import pytest

from isolate_aggregates import exception
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.compute.past import (
    Event,
    InstanceAction,
    Migration,
    PastServer,
    Processors,
)
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.ledger import ledger, nova_records, reading
from isolate_aggregates_tools.ledger.ledger import Subject
from isolate_aggregates_tools.ledger.state import HostState, Placement, State
from isolate_aggregates_tools.ledger.stays import Span, Stay
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_provider,
)

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
        InstanceAction(name, f'req-{number}', start): some
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
    move = ('live-migration', 20, done(LIVE, 'c', 25, 30))
    assert stays(records(past('c'), [create, move])) == [
        ('a', 12, None, None, 25),
        ('c', 25, None, None, None),
    ]


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
    names = [InstanceAction(n, n, t) for n, t, *_ in (CREATE, shelve, other)]
    assert list(nova_records.moving(names)) == names


def test_a_server_that_was_offloaded_without_a_record_left_after_its_move():
    move = ('live-migration', 20, done(LIVE, 'b', 25, 30))
    gone = past(None, 'SHELVED_OFFLOADED')
    assert stays(records(gone, [CREATE, move])) == [
        ('a', 12, None, None, 25),
        ('b', 25, None, 25, 50),
    ]


def test_the_actions_that_may_have_moved_a_server_end_with_the_unshelving():
    names = ['create', 'lock', 'shelve', 'reboot', 'unshelve', 'stop']
    moving = nova_records.moving([InstanceAction(n, n, 10) for n in names])
    assert [action.name for action in moving] == [
        *('create', 'shelve', 'reboot', 'unshelve')
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
    actions = [InstanceAction(name, name, 10) for name in names]
    assert nova_records.is_plain(actions, migrations) is expected


def test_a_move_without_a_record_is_a_gap():
    result = records(past('c'), [CREATE])
    assert stays(result) == [
        ('a', 12, None, 12, NOW),
        ('c', 12, NOW, None, None),
    ]
    assert result.gaps == [
        'server s: Nova keeps no record of how it came from host a to host c '
        'between 1970-01-01T00:00:12Z and 1970-01-01T00:16:40Z'
    ]
    shelve = ('shelve', 20, done('compute_shelve_offload_instance', 'a', 20))
    [gap] = records(past('c', terminated=60), [CREATE, shelve]).gaps
    assert gap == (
        'server s: Nova keeps no record of how it came from being shelved to '
        'host c between 1970-01-01T00:00:21Z and 1970-01-01T00:01:00Z'
    )


def test_of_builds_that_start_together_the_one_that_ends_last_counts():
    builds = done(BUILD, 'a', 11, 13), done(BUILD, 'b', 11, 12)
    result = records(past(), [('create', 10, *builds)])
    assert stays(result) == [('a', 12, None, None, None)]


def test_a_server_that_was_deleted_was_where_it_was_last():
    gone = past(None, 'DELETED', terminated=60, is_deleted=True)
    assert stays(records(gone, [CREATE])) == [('a', 12, None, None, 60)]


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


def test_a_move_to_the_same_host_is_no_new_stay():
    move = ('migrate', 20, done('compute_finish_resize', 'a', 22, 24))
    result = records(past(launched=23), [CREATE, move])
    assert stays(result) == [('a', 13, None, None, None)]
    # With another flavor, it is one.
    resize = ('resize', 20, *move[2:])
    result = records(past(launched=23), [CREATE, resize], [resized()])
    assert stays(result) == [
        ('a', 13, None, None, 23),
        ('a', 23, None, None, None),
    ]


def test_what_is_rebuilt_where_it_was_stays_there():
    """Also if Nova goes on with it in the same action."""
    rebuild = 'compute_rebuild_instance'
    events = done(rebuild, 'a', 20, 22), done(rebuild, 'b', 30, 32)
    result = records(past('b'), [CREATE, ('rebuild', 20, *events)])
    assert stays(result) == [
        ('a', 12, None, None, 32),
        ('b', 32, None, None, None),
    ]


def test_an_event_without_an_end_or_a_host_moves_nothing():
    events = (
        Event(LIVE, 'c', 20, None, True),
        done(LIVE, None, 21),
        done('compute_pre_live_migration', 'c', 22),
    )
    move = ('live-migration', 20, *events, done(LIVE, 'b', 25, 30))
    assert stays(records(past('b'), [CREATE, move])) == [
        ('a', 12, None, None, 25),
        ('b', 25, None, None, None),
    ]


def test_a_cold_migration_keeps_the_flavor():
    move = ('migrate', 20, done('compute_finish_resize', 'b', 22, 24))
    result = records(past('b', launched=23), [CREATE, move])
    assert [stay.flavor for stay in result.stays] == ['large', 'large']


def test_the_flavor_of_a_resize_that_was_reverted():
    event = done('compute_finish_revert_resize', 'a', 40)
    back = ('revertResize', 40, event)
    server, migrations = past(launched=23), [resized('reverted')]
    others = [
        (past(), []),
        (past(), [dataclasses.replace(resized(), kind='x')]),
    ]
    flavors = nova_records.flavors_of([*others, (server, migrations)])
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
    ('host', 'migrations', 'expected'),
    [('a', [], True), (None, [], False), (None, [resized()], True)],
)
def test_actions_are_read_of_what_has_a_host_but_was_never_launched(
    host, migrations, expected
):
    server = past(host, launched=None, updated=49)
    assert nova_records.needs_actions(server, migrations, 50) is expected


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
    ('end', 'end_from', 'clipped'),
    [
        (200, 150, (200, 150)),
        (180, None, (180, None)),
        (201, 150, (None, 150)),
        (None, 199, (None, 199)),
        (300, 200, (None, None)),
        (300, 250, (None, None)),
        (None, None, (None, None)),
    ],
)
def test_an_end_after_a_period_is_none(end, end_from, clipped):
    stay = Stay(1, end, 's', 'a', end_from=end_from)
    found = ledger._clipped(stay, 100, 200)
    assert (found.end, found.end_from) == clipped


@pytest.mark.parametrize(
    ('nova', 'kept'),
    [
        (Stay(10, 20, 's', 'a'), False),
        (Stay(10, 20, 's', 'b'), True),
        (Stay(10, 15, 's', 'a'), True),
        (Stay(16, 20, 's', 'a'), True),
        (Stay(10, 16, 's', 'a'), False),
        (Stay(15, 20, 's', 'a'), False),
    ],
)
@pytest.mark.parametrize(
    'times',
    [
        # Of what starts and ends at one look, only a second is certain.
        (13, 17, 15, 15),
        (15, 15, None, None),
        (15, 16, None, None),
    ],
)
def test_what_nova_does_not_know_is_taken_from_the_file(nova, kept, times):
    start, end, start_by, end_from = times
    recorded = Stay(start, end, 's', 'a', start_by=start_by, end_from=end_from)
    file = types.SimpleNamespace(
        stays=[Stay(1, 2, 'early', 'a'), recorded, Stay(5, None, 't', 'b')]
    )
    stays, gaps = ledger.from_file(file, {'s': [nova]}, 10, 20)
    assert [stay.server for stay in stays] == ['s'] * kept + ['t']
    assert (
        gaps
        == [
            'server s: the ledger file saw it on host a at '
            '1970-01-01T00:00:15Z, of which Nova keeps no record'
        ]
        * kept
    )


@pytest.mark.parametrize(('start', 'is_known'), [(17, True), (18, False)])
@pytest.mark.parametrize('end', [18, None])
def test_what_nova_knows_of_the_end_of_a_stay_is_known(start, is_known, end):
    recorded = Stay(12 if end else 17, end, 's', 'a')
    nova = Stay(start, 20, 's', 'a')
    assert ledger._covers(nova, recorded) is is_known


@pytest.mark.parametrize(
    ('kind', 'servers'),
    [('project', ['a', 'b']), ('lock', ['a', 'b']), ('aggregate', ['a'])],
)
def test_of_an_aggregate_only_stays_on_its_hosts_count(kind, servers):
    made = ledger.make(
        Subject(kind, 'x', 'x'),
        (10, 20),
        [Stay(12, 13, 'b', 'b'), Stay(11, 12, 'a', 'a'), Stay(1, 9, 'c', 'a')],
        {'a': [Span(1, 11)], 'old': [Span(1, 9)]},
        [Span(10, 20)],
        *({}, (), (), True),
    )
    assert [stay.server for stay in made.stays] == servers
    assert made.could == {'a': [Span(1, 11)]}


@pytest.mark.parametrize(
    ('kind', 'name', 'project', 'keys', 'counts'),
    [
        ('project', 'x', 'x', (), True),
        ('project', 'x', 'y', ('x',), False),
        ('aggregate', 'x', 'y', (), True),
        ('lock', 'x', 'x', ('x', 'y'), True),
        ('lock', 'x', 'x', ('y',), False),
        ('lock', 'x', 'x', None, True),
    ],
)
def test_the_servers_of_a_subject(kind, name, project, keys, counts):
    subject = Subject(kind, name, name)
    placement = Placement('a', project, None, None, keys, None)
    assert subject.counts(placement) is counts
    stay = Stay(
        1,
        2,
        's',
        'a',
        project,
        keys=None if keys is None else frozenset(keys),
    )
    assert subject.counts_stay(stay) is counts


@pytest.fixture
def read_stays(monkeypatch):
    """Read the stays of some servers after second 100."""

    def read(pasts, of=lambda *_: NO_KEYS, has_locks=False, recorded=()):
        keys = types.SimpleNamespace(has_locks=has_locks, of=of)
        monkeypatch.setattr(reading.nova_past, 'migrations', lambda *_: [])
        monkeypatch.setattr(reading.nova_past, 'servers', lambda *_: pasts)
        monkeypatch.setattr(reading, 'out_of_reach', lambda *_: ())
        nova = types.SimpleNamespace(direct=None, for_servers=None)
        found = reading.NovaStays(nova, keys, 100, lambda _: True, recorded)
        found.read(NOW)
        return found

    return read


@pytest.mark.parametrize(
    ('terminated', 'in_period'), [(None, True), (101, True), (100, False)]
)
@pytest.mark.parametrize('recorded', [(), {'s'}])
def test_stays_in_the_period_count_and_those_on_file_are_known(
    read_stays, terminated, in_period, recorded
):
    server = past(terminated=terminated, is_deleted=terminated is not None)
    found = read_stays([server], recorded=recorded)
    assert [stay.host for stay in found.stays] == ['a'] * in_period
    assert found.known.keys() == set(recorded)


@pytest.mark.parametrize(
    ('has_locks', 'keys', 'gaps'),
    [
        (True, None, ['whether 2 servers had the key, all of which count: ']),
        (True, NO_KEYS, []),
        (False, None, []),
    ],
)
def test_servers_whose_key_is_not_known_are_counted(
    read_stays, has_locks, keys, gaps
):
    pasts = [
        dataclasses.replace(
            each, server=dataclasses.replace(each.server, id=i)
        )
        for i, each in (('s', past()), ('t', past()), ('u', past(None)))
    ]
    found = read_stays(pasts, lambda *_: keys, has_locks)
    assert [
        gap[: len(said)] for gap, said in zip(found.gaps, gaps, strict=True)
    ] == gaps


@pytest.mark.parametrize(
    ('names', 'moved'),
    [(['create', 'stop'], False), (['create', 'resize'], True), (None, True)],
)
def test_the_events_of_a_server_that_may_have_moved_are_read(
    read_stays, monkeypatch, names, moved
):
    def actions(nova, server):
        if names is None:
            raise exception.ServiceNotFound('Nova', None, 'answered 404.')
        return [InstanceAction(name, name, 10) for name in names]

    asked = []
    monkeypatch.setattr(reading.nova_past, 'actions', actions)
    monkeypatch.setattr(
        reading.nova_past,
        'events',
        lambda nova, server, action: asked.append(action.name) or [],
    )
    found = read_stays([past(updated=100)])
    assert [stay.start for stay in found.stays] == [12]
    assert asked == (names or []) * moved
    # What was archived meanwhile is said.
    assert bool(found.gaps) is (names is None)


def test_the_stays_of_many_servers_are_read_in_batches(
    read_stays, monkeypatch
):
    monkeypatch.setattr(reading, '_TOGETHER', 2)
    monkeypatch.setattr(reading.nova_past, 'actions', lambda *_: [])
    pasts = [
        dataclasses.replace(
            past(updated=updated),
            server=Server(str(n), 's', 'p', 'ACTIVE', 'a'),
        )
        for n, updated in enumerate([1, 100] * 3)
    ]
    found = read_stays(pasts)
    assert sorted(stay.server for stay in found.stays) == [*'012345']


@pytest.fixture
def live(monkeypatch):
    """A live cloud, as far as a look at it asks."""
    direct = types.SimpleNamespace(endpoint='http://nova')
    nova = types.SimpleNamespace(direct=direct, for_servers='2.1')
    names = {'s': {'y', 'x'}, 't': None}
    keys = types.SimpleNamespace(of=lambda server, flavor: names[server.id])
    monkeypatch.setattr(reading, 'Keys', lambda *_: keys)
    monkeypatch.setattr(reading, 'live_state', lambda _: State())
    monkeypatch.setattr(reading, 'out_of_reach', lambda *_: ())
    return types.SimpleNamespace(nova=nova, glance=None)


def test_a_look_records_each_server_that_has_a_host(live, monkeypatch):
    unknown = Server('t', 'name', 'project', 'ACTIVE', 'b')
    pasts = [past(None), past(), dataclasses.replace(past(), server=unknown)]
    monkeypatch.setattr(reading.nova_past, 'living', lambda _: pasts)
    assert reading.look(live, None).servers == {
        's': Placement('a', 'project', 'large', 8, ('x', 'y'), 12),
        't': Placement('b', 'project', None, None, None, 12),
    }


def test_without_some_cells_nothing_is_recorded(live, monkeypatch):
    monkeypatch.setattr(reading, 'out_of_reach', lambda *_: ('s',))
    with pytest.raises(exception.ServiceError, match='show 1 server of cells'):
        reading.look(live, None)


def test_a_host_is_recorded_with_its_size_and_the_traits_of_locks(monkeypatch):
    """Nova and Placement may not know the same hosts."""
    monkeypatch.setattr(
        reading.nova_past,
        'processors',
        lambda _: [Processors('a', 2, 32), Processors('c', 1, None)],
    )
    lock = make_aggregate('win', {'trait:CUSTOM_X': 'required'})
    roots = [
        make_provider('storage', traits=['CUSTOM_X']),
        make_compute_node('b', traits=['CUSTOM_X', 'CUSTOM_Y']),
        make_compute_node('a', traits=['CUSTOM_Y']),
        make_compute_node('a', traits=['CUSTOM_X']),
        make_compute_node('a', traits=[]),
    ]
    assert reading._hosts(None, [lock], roots) == {
        'a': HostState(2, 32, ('CUSTOM_X',)),
        'b': HostState(None, None, ('CUSTOM_X',)),
        'c': HostState(1, None, ()),
    }


def test_an_image_is_looked_for_in_a_list_that_is_read_once():
    old, new = Image('old', '1'), Image('new', '2')
    lists = []
    glance = types.SimpleNamespace(
        images=lambda: lists.append(1) or [old], image=lambda number: new
    )
    image = reading.images_of(types.SimpleNamespace(glance=glance))
    assert [image('1'), image('2'), image('1')] == [old, new, old]
    assert lists == [1]
