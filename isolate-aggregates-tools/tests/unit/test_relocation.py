# SPDX-License-Identifier: Apache-2.0
"""Plans of migrations: few moves, in an order in which each fits."""

import dataclasses
import json
import pathlib
import random
import shlex
import sys
import types

from audit_clouds import LOCK, configuration
import jsonschema
from published_schemas import schema_of
import pytest
import room_clouds
from room_clouds import FLAVORS, IMAGE, cloud, group, server

from isolate_aggregates_tools.compute.servers import (
    ComputeService,
    Port,
    Servers,
)
from isolate_aggregates_tools.documents import content
from isolate_aggregates_tools.placement.provider import Inventory
from isolate_aggregates_tools.room import (
    documents,
    ejection,
    exact,
    formats,
    order,
    packing,
    program,
    shown,
)
from isolate_aggregates_tools.room.kinds import Kinds
from isolate_aggregates_tools.room.occupancy import Occupancy
from isolate_aggregates_tools.room.packing import Homeless
from isolate_aggregates_tools.room.plan import Planner
from isolate_aggregates_tools.room.task import Move, Task
from isolate_aggregates_tools.testing import (
    make_compute_node,
    make_flavor,
    make_provider,
    make_snapshot,
    make_tree,
)

CONF = configuration()
ROOT = pathlib.Path(__file__).parents[3]
ALL = frozenset({'pinned', 'devices'})

needs_solver = pytest.mark.skipif(
    not program.is_available(), reason='needs highspy'
)


def emptying(*hosts, **more):
    """Return the task of emptying hosts."""
    return Task(frozenset(hosts), **more)


def plan(snapshot, task, **more):
    """Return the plan of a task."""
    return Planner(snapshot, CONF).plan(task, **more)


def is_complete(relocation):
    """Return whether a plan does all that was asked for."""
    return not relocation.left and not relocation.missing


def moves(relocation):
    """Return the moves of a plan, by name of the server."""
    return {
        move.server.name: (move.source, move.target)
        for move in relocation.moves
    }


def test_a_host_is_emptied():
    snapshot = cloud({'h1': 4, 'h2': 4}, [server('a', 'h1')])
    relocation = plan(snapshot, emptying('h1'))
    assert moves(relocation) == {'a': ('h1', 'h2')}
    assert is_complete(relocation)
    assert relocation.least == 1
    assert relocation.emptied == {'h1'}
    [node, other] = relocation.after.providers
    assert (node.usages['VCPU'], other.usages['VCPU']) == (0, 1)
    assert [s.host for s in relocation.after.servers.placed] == ['h2']


def test_locks_hold():
    servers = [server('a', 'h1'), server('w', 'h1', 'keyed')]
    snapshot = cloud({'h1': 4, 'w1': 4, 'h2': 4}, servers, locked=['w1'])
    relocation = plan(snapshot, emptying('h1'))
    assert moves(relocation) == {'a': ('h1', 'h2'), 'w': ('h1', 'w1')}


@needs_solver
def test_servers_come_home():
    servers = [server('a', 'w1'), server('w', 'h1', 'keyed')]
    snapshot = cloud({'h1': 1, 'w1': 1, 'h2': 1}, servers, locked=['w1'])
    planner = Planner(snapshot, CONF)
    task = Task(homecoming=planner.misplaced)
    relocation = planner.plan(task)
    assert moves(relocation) == {'a': ('w1', 'h2'), 'w': ('h1', 'w1')}
    assert [[m.server.name for m in r] for r in relocation.rounds] == [
        ['a'],
        ['w'],
    ]


@needs_solver
def test_others_make_room():
    servers = [
        server('big', 'h1', 'big'),
        server('b', 'h2'),
        server('c', 'h3'),
    ]
    snapshot = cloud({'h1': 2, 'h2': 2, 'h3': 2}, servers)
    relocation = plan(snapshot, emptying('h1'))
    assert is_complete(relocation)
    assert len(relocation.moves) == relocation.least == 2
    assert len(relocation.rounds) == 2
    document = shown.plan_document(relocation)
    assert {move.round for move in document.moves} == {1, 2}


def test_others_make_room_without_the_solver(without_solver, monkeypatch):
    servers = [
        server('big', 'h1', 'big'),
        server('b', 'h2'),
        server('c', 'h3'),
    ]
    snapshot = cloud({'h1': 2, 'h2': 2, 'h3': 2}, servers)
    relocation = plan(snapshot, emptying('h1'))
    assert is_complete(relocation)
    assert len(relocation.moves) == 2
    assert relocation.least == 0
    monkeypatch.setattr(program, 'is_available', lambda: False)
    assert 'isolate-aggregates-tools[room]' in ' '.join(
        shown.plan_lines([relocation], (), None)
    )


@pytest.mark.parametrize(('most', 'fits'), [(1, False), (2, True)])
def test_each_server_of_a_group_counts_once(most, fits):
    servers = [server('a', 'h1'), server('b', 'h2')]
    snapshot = cloud(
        {'h1': 2, 'h2': 2},
        servers,
        groups=[group('group', 'anti-affinity', *servers, most=most)],
    )
    occupancy = Occupancy(snapshot, Kinds(snapshot, CONF))
    assert (not occupancy.group_objection(servers[1], 'h1')) is fits


def test_the_fewest_moves_for_one_server_are_known_without_the_solver(
    without_solver,
):
    servers = [server(f's{n}', f'h{n}') for n in range(2)]
    planner = Planner(cloud({'h0': 2, 'h1': 2}, servers), CONF)
    kind = planner.kind_of(FLAVORS['big'], IMAGE, 'demo')
    relocation = planner.plan(Task(wanted=(kind, 1)))
    assert len(relocation.moves) == relocation.least == 1


def test_room_is_won_from_fragmentation():
    servers = [server(f's{n}', f'h{n}') for n in range(4)]
    snapshot = cloud({f'h{n}': 2 for n in range(4)}, servers)
    planner = Planner(snapshot, CONF)
    kind = planner.kind_of(FLAVORS['big'], IMAGE, 'demo')
    relocation = planner.plan(Task(wanted=(kind, 2)))
    assert (relocation.wanted, relocation.missing) == (2, 0)
    assert len(relocation.moves) == 2
    assert content(shown.plan_document(relocation))['room'] == {
        'wanted': 2,
        'missing': 0,
    }
    assert shown.plan_document(planner.plan(Task())).room is None
    more = planner.plan(Task(wanted=(kind, 3)))
    assert more.missing == 1
    assert 'Afterwards there is room for 2 of 3 servers.' in [
        *shown.plan_lines([more], (), None)
    ]


@needs_solver
def test_a_cycle_is_broken_by_a_third_host():
    servers = [
        server('a', 'w1'),
        server('w', 'h1', 'keyed'),
        server('x', 'h2'),
    ]
    snapshot = cloud(
        {'h1': 1, 'w1': 1, 'h2': 1, 'w2': 1}, servers, locked=['w1', 'w2']
    )
    planner = Planner(snapshot, CONF)
    relocation = planner.plan(Task(homecoming=planner.misplaced))
    assert is_complete(relocation)
    assert moves(relocation)['a'] == ('w1', 'h1')


def test_a_cycle_without_a_third_host_is_named():
    servers = [server('a', 'w1'), server('w', 'h1', 'keyed')]
    snapshot = cloud({'h1': 1, 'w1': 1}, servers, locked=['w1'])
    planner = Planner(snapshot, CONF)
    relocation = planner.plan(Task(homecoming=planner.misplaced))
    assert not relocation.moves
    assert {each.server.name for each in relocation.left} == {'a', 'w'}


def test_parallel_moves_fit_together():
    servers = [server(f's{n}', 'h1') for n in range(4)]
    snapshot = cloud({'h1': 4, 'h2': 2, 'h3': 2}, servers)
    relocation = plan(snapshot, emptying('h1'), parallel=3)
    assert [len(moves) for moves in relocation.rounds] == [3, 1]


@pytest.mark.parametrize(
    ('one', 'reason'),
    [
        (server('a', 'h1', status='ERROR'), 'it is ERROR'),
        (server('a', 'h1', status='SUSPENDED'), 'it is SUSPENDED'),
        (
            server('a', 'h1', image_properties={'hw_tpm_version': '2.0'}),
            'the secret of its virtual TPM is not kept by its host '
            '(hw:tpm_secret_security=host); --cold moves it',
        ),
        (
            server('a', 'h1', has_shares=True),
            'it has a Manila share; --cold moves it',
        ),
        (
            server(
                'a',
                'h1',
                image_properties={'hw_cpu_policy': 'dedicated'},
            ),
            'it has pinned CPUs, which is not counted here; --include pinned '
            'moves it',
        ),
    ],
)
def test_what_is_left_alone_is_named(one, reason):
    snapshot = cloud({'h1': 4, 'h2': 4}, [one])
    relocation = plan(snapshot, emptying('h1'))
    assert not relocation.moves
    assert [each.reason for each in relocation.left] == [reason]
    if 'pinned' in reason:
        assert is_complete(plan(snapshot, emptying('h1', include=ALL)))


@pytest.mark.parametrize(
    ('most', 'named', 'more'),
    [(2, 2, ['and 1 more, which -f json shows.']), (3, 3, []), (None, 3, [])],
)
def test_a_screen_names_only_some_of_many(most, named, more):
    servers = [server(name, 'h1', status='ERROR') for name in 'abc']
    relocation = plan(cloud({'h1': 4}, servers), emptying('h1'))
    _, *lines = shown.plan_lines([relocation], relocation.left, most)
    assert all(line.startswith('Left: ') for line in lines[:named])
    assert lines[named:] == more


@pytest.mark.parametrize(
    ('known', 'sentences'),
    [
        ({}, []),
        ({'groups': None}, ['which servers are in server groups']),
        ({'services': None}, ['which compute services are down']),
    ],
)
def test_what_is_not_known_is_named(known, sentences):
    snapshot = cloud({'h1': 4}, [])
    if 'groups' in known:
        known = {'servers': dataclasses.replace(snapshot.servers, **known)}
    snapshot = dataclasses.replace(snapshot, **known)
    assert [*Planner(snapshot, CONF).not_known] == sentences


def test_a_placement_of_the_solver_is_taken_as_far_as_there_is_room():
    snapshot = cloud(
        {'h1': 1, 'h2': 4}, [server('a', 'h2'), server('b', 'h2')]
    )
    kinds = Kinds(snapshot, CONF)
    some = [
        Homeless(kinds.of_server(each), each)
        for each in snapshot.servers.placed
    ]
    occupancy = Occupancy(snapshot, kinds)
    packed = exact._carried_out([(some, {'h1': 2})], occupancy)
    assert packed.placed == ((some[0], 'h1'),)
    assert packed.left == (some[1],)


def test_servers_are_packed_tight_only_if_that_places_more():
    snapshot = cloud(
        {'h1': 4, 'h2': 1, 'h3': 4},
        [server('small', 'h1'), server('big', 'h1', 'big')],
    )
    kinds = Kinds(snapshot, CONF)
    small, big = [
        Homeless(kinds.of_server(each), each)
        for each in snapshot.servers.placed
    ]
    packed = packing.pack(
        [small, big],
        Occupancy(snapshot, kinds),
        {small.kind: ['h3', 'h2'], big.kind: ['h2']},
    )
    assert packed.placed == ((small, 'h3'),)
    assert packed.left == (big,)


def test_a_server_of_a_group_takes_the_host_with_the_most_room():
    one = server('a', 'h1')
    snapshot = cloud(
        {'h1': 4, 'h2': 2, 'h3': 4},
        [one],
        groups=[group('g', 'anti-affinity', one)],
    )
    kinds = Kinds(snapshot, CONF)
    homeless = Homeless(kinds.of_server(one), one)
    packed = packing.pack(
        [homeless],
        Occupancy(snapshot, kinds),
        {homeless.kind: ['h2', 'h3']},
    )
    assert packed.placed == ((homeless, 'h3'),)


def test_what_a_server_uses_is_free_when_it_has_left():
    snapshot = cloud({'h1': 4}, [server('a', 'h1')])
    kinds = Kinds(snapshot, CONF)
    [gone] = snapshot.servers.placed
    kind = kinds.of_server(gone)
    occupancy = Occupancy(snapshot, kinds)
    before = occupancy.free['h1']
    occupancy.remove(kind, gone, 'h1')
    assert kind.amounts['VCPU'] == 1
    assert occupancy.free['h1'] == {
        name: free + kind.amounts.get(name, 0) for name, free in before.items()
    }


@pytest.mark.parametrize(
    ('filters', 'said'),
    [
        (['SameHostFilter'], 'its scheduler hint same_host names other'),
        (['DifferentHostFilter'], ''),
    ],
)
def test_a_hint_ties_a_server_only_if_its_host_filter_runs(filters, said):
    one = server('a', 'h1', scheduler_hints={'same_host': ('other',)})
    kinds = Kinds(
        cloud({'h1': 4}, [one]), configuration(enabled_filters=filters)
    )
    assert kinds.tied(one).removesuffix(' servers') == said


@pytest.mark.parametrize(
    ('specs', 'properties', 'said'),
    [
        ({'hw:numa_nodes': '2'}, {}, ('pinned CPUs',)),
        ({}, {'hw_cpu_policy': 'dedicated'}, ('pinned CPUs',)),
        ({'pci_passthrough:alias': 'gpu:1'}, {}, ('devices',)),
        ({'accel:device_profile': 'gpu'}, {}, ('devices',)),
        ({'hw:cpu_sockets': '2'}, {'hw_disk_bus': 'scsi'}, ()),
    ],
)
def test_what_ties_a_server_to_parts_of_a_host_is_not_counted(
    specs, properties, said
):
    flavor = make_flavor('f', specs)
    one = server('a', 'h1', image_properties=properties)
    kinds = Kinds(cloud({'h1': 4}, [one]), CONF)
    assert kinds.unmodelled(dataclasses.replace(one, flavor=flavor)) == said


def test_an_amount_counts_if_all_queries_agree_on_it():
    """Nova asks for pinned CPUs, and if there are none for others."""
    flavor = make_flavor('f', {'hw:cpu_policy': 'dedicated'}, disk=0)
    one = dataclasses.replace(server('a', 'h1'), flavor=flavor)
    kind = Kinds(cloud({'h1': 4}, [one]), CONF).of_server(one)
    assert [sorted(demand) for demand in kind.demands] == [
        ['MEMORY_MB', 'PCPU'],
        ['MEMORY_MB', 'VCPU'],
    ]
    assert kind.amounts == {'MEMORY_MB': 2048}


@pytest.mark.parametrize(
    ('inventories', 'used', 'times'),
    [
        ({'VCPU': 4, 'MEMORY_MB': 4096}, 1, 2),
        ({'VCPU': 4, 'MEMORY_MB': 9000}, 1, 3),
        ({'VCPU': 4, 'MEMORY_MB': 9000}, 4, 0),
        ({'VCPU': 4, 'MEMORY_MB': 9000}, 5, 0),
        ({'VCPU': 4}, 0, 0),
    ],
)
def test_how_often_a_server_fits(inventories, used, times):
    fits = make_compute_node('h2', inventories={'VCPU': 9, 'MEMORY_MB': 9000})
    node = make_compute_node(
        'h1', inventories=inventories, usages={'VCPU': used}
    )
    snapshot = dataclasses.replace(
        cloud({'h1': 4}, []), providers=(node, fits)
    )
    kinds = Kinds(snapshot, CONF)
    request = kinds.requests.new(make_flavor('f', disk=0), IMAGE, 'demo')
    occupancy, kind = Occupancy(snapshot, kinds), kinds.of_request(request)
    assert occupancy.times(kind, 'h1') == times
    assert occupancy.fits(kind, 'h1') is (times > 0)


def test_what_a_server_does_not_use_stays_as_it_is():
    one = server('a', 'h1')
    node = make_compute_node(
        'h1', inventories={'VCPU': 4, 'CUSTOM_GOLD': 8}, usages={'VCPU': 1}
    )
    snapshot = dataclasses.replace(cloud({'h1': 4}, [one]), providers=(node,))
    kinds = Kinds(snapshot, CONF)
    occupancy = Occupancy(snapshot, kinds)
    kind = kinds.of_server(one)
    occupancy.add(kind, None, 'h1')
    assert occupancy.free['h1'] == {'VCPU': 2, 'CUSTOM_GOLD': 8}
    occupancy.remove(kind, one, 'h1')
    assert occupancy.free['h1'] == {'VCPU': 3, 'CUSTOM_GOLD': 8}


@pytest.mark.parametrize(
    ('policy', 'most', 'limits'),
    [
        ('anti-affinity', 1, (0, 0, 1)),
        ('anti-affinity', 3, (1, 2, 3)),
        ('affinity', 1, (None, None, 0)),
        ('soft-affinity', 1, (None, None, None)),
    ],
)
def test_how_many_servers_of_a_group_a_host_may_have(policy, most, limits):
    servers = [server('a', 'h1'), server('b', 'h1'), server('c', 'h2')]
    snapshot = cloud(
        {'h1': 4, 'h2': 4, 'h3': 4},
        servers,
        groups=[group('g', policy, *servers, most=most)],
    )
    occupancy = Occupancy(snapshot, Kinds(snapshot, CONF))
    hosts = ('h1', 'h2', 'h3')
    assert (
        tuple(occupancy.group_limit(servers[0], host) for host in hosts)
        == limits
    )
    if policy == 'anti-affinity':
        assert occupancy.group_limit(servers[0], 'h1', 2) == most
    assert occupancy.group_limit(server('d', 'h1'), 'h1') is None


def test_nobody_else_is_moved_if_there_is_room(monkeypatch):
    monkeypatch.setattr(ejection, 'ejecting', None)
    snapshot = cloud({'h1': 4, 'h2': 4}, [server('a', 'h1')])
    relocation = plan(snapshot, emptying('h1'))
    assert is_complete(relocation)
    lines = list(shown.plan_lines([relocation], (), None))
    assert lines[0] == '1 move, least possible.'
    both = list(shown.plan_lines([relocation, relocation], (), None))
    assert both[0] == '2 moves, at least 1.'
    unproven = dataclasses.replace(relocation, least=0)
    first, *_ = shown.plan_lines([unproven], (), None)
    assert first == '1 move, at least 0.'


@pytest.mark.parametrize(
    ('port', 'said'),
    [
        (Port('p', 'n', device_profile='gpu'), ('devices',)),
        (Port('p', 'n', remote_managed=True), ('devices',)),
        (Port('p', 'n'), ()),
    ],
)
def test_a_port_with_a_device_is_not_counted(port, said):
    one = server('a', 'h1', ports=(port,))
    assert Kinds(cloud({'h1': 4}, [one]), CONF).unmodelled(one) == said


@pytest.mark.parametrize(
    ('free', 'leavers'), [(-1, 2), (0, 2), (1, 1), (2, 0)]
)
def test_as_many_servers_leave_as_room_is_lacking(free, leavers):
    servers = [server(name, 'h1') for name in 'abc']
    other = server('d', 'h2', 'big')
    kinds = Kinds(cloud({'h1': 4, 'h2': 4}, [*servers, other]), CONF)
    big = kinds.of_server(other)
    movables = types.SimpleNamespace(
        kinds={each.id: kinds.of_server(each) for each in servers}
    )
    room = {'VCPU': free}
    assert ejection._leavers(big, 1, room, servers, movables) == leavers


@pytest.mark.parametrize(('number', 'least'), [(2, 0), (3, 1), (4, 2)])
def test_nobody_has_to_leave_where_there_is_room(number, least):
    servers = [server('a', 'h1'), server('b', 'h2')]
    snapshot = cloud({'h1': 2, 'h2': 2}, servers)
    kinds = Kinds(snapshot, CONF)
    movables = types.SimpleNamespace(
        kinds={each.id: kinds.of_server(each) for each in servers},
        optional=servers,
    )
    occupancy = Occupancy(snapshot, kinds)
    small = kinds.of_server(servers[0])
    told = ejection.least_moves(movables, occupancy, (), small, number)
    assert told == least


def test_those_that_fit_make_room_for_the_rest(without_solver):
    servers = [server('a', 'h1'), server('b', 'h2')]
    planner = Planner(cloud({'h0': 2, 'h1': 2, 'h2': 2}, servers), CONF)
    kind = planner.kind_of(FLAVORS['big'], IMAGE, 'demo')
    relocation = planner.plan(Task(wanted=(kind, 2)))
    assert (relocation.missing, len(relocation.moves)) == (0, 1)
    assert relocation.least == 1


@needs_solver
def test_others_make_room_for_a_server_of_a_group():
    a, b, c = server('a', 'h1'), server('b', 'h3'), server('c', 'h3')
    snapshot = cloud(
        {'h1': 1, 'h2': 1, 'h3': 2},
        [a, b, c],
        groups=[group('g', 'affinity', a, b)],
    )
    relocation = plan(snapshot, emptying('h1'))
    assert moves(relocation) == {'a': ('h1', 'h3'), 'c': ('h3', 'h2')}
    assert relocation.least == 2


def in_tree(*slots, used=1):
    """Return a server of a reservation on a host with slots, and its room."""
    flavor = make_flavor(
        'reserved', {'resources:CUSTOM_RESERVATION_A': '1'}, ram=0, disk=0
    )
    one = dataclasses.replace(server('a', 'h1'), flavor=flavor)
    node = make_compute_node(
        'h1', inventories={'VCPU': 4}, usages={'VCPU': used}
    )
    children = [
        make_provider(
            f'slots-{number}',
            inventories={'CUSTOM_RESERVATION_A': most},
            usages={'CUSTOM_RESERVATION_A': taken},
        )
        for number, (most, taken) in enumerate(slots)
    ]
    snapshot = make_snapshot(
        [], [make_tree(node, *children)], flavors=[flavor]
    )
    snapshot = dataclasses.replace(
        snapshot, servers=Servers((one,), {}, True, ())
    )
    kinds = Kinds(snapshot, CONF)
    return one, kinds.of_server(one), Occupancy(snapshot, kinds)


@pytest.mark.parametrize(
    ('slots', 'used', 'before', 'after'),
    [
        ([(2, 1)], 1, (3, 1), (4, 2)),
        # From which of two the server came is not certain.
        ([(2, 1), (2, 0)], 1, (3, 3), (4, 3)),
        # More may be in use than there is.
        ([(1, 3)], 6, (0, 0), (0, 0)),
    ],
)
def test_what_is_certain_is_free_when_a_server_leaves_a_tree(
    slots, used, before, after
):
    one, kind, occupancy = in_tree(*slots, used=used)

    def room():
        free = occupancy.room('h1')
        return free['VCPU'], free['CUSTOM_RESERVATION_A']

    assert room() == before
    with occupancy.trial():
        occupancy.remove(kind, one, 'h1')
        assert room() == after
    assert room() == before


@pytest.mark.parametrize(('most', 'number'), [(1, 1), (2, 2), (5, 2)])
def test_servers_are_placed_one_by_one_where_they_cannot_be_counted(
    most, number
):
    _, kind, occupancy = in_tree((2, 0))
    assert packing.slots(kind, occupancy, ['h1'], most) == number
    assert packing.slots(kind, occupancy, ['h1', 'h1'], 3) == 3


@pytest.mark.parametrize(
    ('closed', 'rounds', 'stuck'),
    [
        (
            [],
            [
                [('a', 'h1', 'h3')],
                [('b', 'h2', 'h1')],
                [('a', 'h3', 'h2')],
            ],
            [],
        ),
        (['h3'], [], ['a', 'b']),
    ],
)
def test_of_two_that_change_places_one_goes_around(closed, rounds, stuck):
    servers = [server('a', 'h1'), server('b', 'h2')]
    snapshot = cloud({'h1': 1, 'h2': 1, 'h3': 1}, servers)
    kinds = Kinds(snapshot, CONF)
    found = order.ordered(
        zip(servers, ['h2', 'h1'], strict=True),
        {each.id: kinds.of_server(each) for each in servers},
        Occupancy(snapshot, kinds),
        closed,
        1,
    )
    assert [
        [(step.server.name, step.source, step.target) for step in steps]
        for steps in found.rounds
    ] == rounds
    assert [step.server.name for step in found.stuck] == stuck


@pytest.mark.parametrize(
    ('present', 'is_available'), [(None, False), (types, True)]
)
def test_the_solver_is_available_if_its_package_is(
    monkeypatch, present, is_available
):
    monkeypatch.setitem(sys.modules, 'highspy', present)
    assert program.is_available() is is_available


@pytest.mark.parametrize(('live', 'how'), [(True, 'live'), (False, 'cold')])
def test_a_move_is_confirmed_with_how_it_is_made(live, how):
    move = Move(server('a', 'h1'), 'h1', 'h2', live)
    assert formats.sentence(move) == (
        f'{how}-migrate server a (id-of-a) from h1 to h2'
    )


def test_rounds_are_counted_from_one():
    plan_ = documents.RELOCATION['properties']['batches']['items']
    [move] = [plan_['properties']['moves']['items']]
    assert move['properties']['round']['minimum'] == 1
    snapshot = cloud({'h1': 4, 'h2': 4}, [server('a', 'h1')])
    relocation = plan(snapshot, emptying('h1'))
    [row] = shown.move_rows(relocation, 3)
    assert row == (*(3, 'a', 'id-of-a', 'demo', 'small', 'h1', 'h2', 'live'),)
    [made] = shown.plan_document(relocation).moves
    assert made.round == 1


def test_servers_that_are_off_are_migrated_cold():
    servers = [server('a', 'h1'), server('b', 'h1', status='SHUTOFF')]
    snapshot = cloud({'h1': 4, 'h2': 4}, servers)
    relocation = plan(snapshot, emptying('h1'))
    assert {m.server.name: m.live for m in relocation.moves} == {
        'a': True,
        'b': False,
    }
    relocation = plan(snapshot, emptying('h1', cold=True))
    assert not any(move.live for move in relocation.moves)


def test_hosts_that_are_down_or_disabled_take_nothing():
    services = [
        ComputeService('h1'),
        ComputeService('h2', is_up=False),
        ComputeService('h3', is_enabled=False),
    ]
    snapshot = cloud(
        dict.fromkeys(('h1', 'h2', 'h3'), 4),
        [server('a', 'h1')],
        services=services,
    )
    [left] = plan(snapshot, emptying('h1')).left
    assert left.reason == 'no other host may be used'


def test_servers_on_a_host_that_is_down_are_to_be_evacuated():
    services = [ComputeService('h1', is_up=False), ComputeService('h2')]
    snapshot = cloud(
        {'h1': 4, 'h2': 4}, [server('a', 'h1')], services=services
    )
    [left] = plan(snapshot, emptying('h1')).left
    assert left.reason == (
        'the compute service of its host is down, so evacuate it'
    )


def test_a_server_with_a_local_disk_is_moved():
    flavor = make_flavor('disk', vcpus=1, ram=0, disk=1)
    snapshot = cloud(
        {'h1': 4, 'h2': 4},
        [dataclasses.replace(server('a', 'h1'), flavor=flavor)],
    )
    assert not plan(snapshot, emptying('h1')).moves
    roomy = dataclasses.replace(
        snapshot,
        providers=tuple(
            dataclasses.replace(
                node,
                inventories={**node.inventories, 'DISK_GB': Inventory(1)},
            )
            for node in snapshot.providers
        ),
    )
    assert moves(plan(roomy, emptying('h1'))) == {'a': ('h1', 'h2')}


def test_soft_groups_are_preferred():
    a, b = server('a', 'h1'), server('b', 'h2')
    for policy, target in (
        ('soft-affinity', 'h2'),
        ('soft-anti-affinity', 'h3'),
    ):
        snapshot = cloud(
            {'h1': 4, 'h2': 4, 'h3': 3},
            [a, b],
            groups=[group('g', policy, a, b)],
        )
        relocation = plan(snapshot, emptying('h1'))
        assert moves(relocation) == {'a': ('h1', target)}


def test_rolling_moves_each_server_once():
    servers = [server(f's{n}', f'h{n}') for n in range(4)]
    snapshot = cloud({f'h{n}': 2 for n in range(5)}, servers)
    planner = Planner(snapshot, CONF)
    batches, left = planner.rolling(emptying(*(f'h{n}' for n in range(4))))
    assert not left
    assert [len(batch.hosts) for batch in batches] == [2, 2]
    assert sum(len(batch.plan.moves) for batch in batches) == 4
    assert not any(batch.again for batch in batches)


def test_rolling_through_a_whole_cloud():
    servers = [server(f's{n}', f'h{n}') for n in range(3)]
    snapshot = cloud({f'h{n}': 2 for n in range(3)}, servers)
    batches, left = Planner(snapshot, CONF).rolling(emptying('h0', 'h1', 'h2'))
    assert not left
    assert {h for batch in batches for h in batch.hosts} == {'h0', 'h1', 'h2'}
    assert [batch.again for batch in batches] == [0, 0, 1]
    assert list(shown.batch_lines(batches)) == [
        '1. h0: 1 move',
        '2. h2: 1 move',
        '3. h1: 2 moves, 1 of them again',
    ]


def test_a_host_that_cannot_be_emptied_keeps_no_other_from_it():
    servers = [server('x', 'h1', status='ERROR'), server('y', 'h2')]
    snapshot = cloud({'h1': 1, 'h2': 1, 'h3': 1}, servers)
    batches, left = Planner(snapshot, CONF).rolling(emptying('h1', 'h2'))
    assert [batch.hosts for batch in batches] == [('h2',)]
    assert [each.server.name for each in left] == ['x']
    together, _ = Planner(snapshot, CONF).rolling(emptying('h2'), together=1)
    assert [batch.hosts for batch in together] == [('h2',)]
    # Nor does one whose server finds no room.
    servers[0] = server('x', 'h1', 'big')
    snapshot = cloud({'h1': 2, 'h2': 1, 'h3': 1}, servers)
    batches, left = Planner(snapshot, CONF).rolling(emptying('h1', 'h2'))
    assert [batch.hosts for batch in batches] == [('h2',)]
    assert [each.server.name for each in left] == ['x']


def test_rolling_names_what_cannot_be_emptied():
    snapshot = cloud({'h1': 1}, [server('a', 'h1')])
    batches, [left] = Planner(snapshot, CONF).rolling(emptying('h1'))
    assert not batches
    assert left.reason == 'no other host may be used'


def planned(number):
    """Return a random cloud with the plan of emptying one of its hosts."""
    chance = random.Random(number)
    facts = room_clouds.random_facts(chance, most=6)
    facts = room_clouds.without_affinity(facts)
    emptied = frozenset(chance.sample(sorted(facts.hosts), 1))
    relocation = plan(
        facts.cloud, Task(emptied), parallel=chance.randint(1, 3)
    )
    home = room_clouds.check_moves(facts, relocation.rounds, emptied)
    remaining = sum(host in emptied for host in home.values())
    return relocation, remaining, room_clouds.fewest_moves(facts, emptied)


@needs_solver
@pytest.mark.parametrize('number', range(500))
def test_no_plan_is_better(number):
    relocation, remaining, (left, least) = planned(number)
    if any('only after' in each.reason for each in relocation.left):
        # Others have to move around that have not enough room for it.
        assert remaining > left
        return
    moved = {move.server.id for move in relocation.moves}
    assert (remaining, len(moved)) == (left, least)
    assert relocation.least == least


@pytest.mark.parametrize('number', range(100))
def test_without_the_solver_a_plan_is_possible(number, without_solver):
    relocation, remaining, (left, least) = planned(number)
    assert remaining >= left
    if remaining == left:
        assert relocation.least <= least <= len(relocation.moves)


@pytest.fixture
def without_solver(monkeypatch):
    """The extra is not installed."""
    monkeypatch.setattr(
        'isolate_aggregates_tools.room.fewest.is_available', lambda: False
    )


def test_a_lock_is_what_the_tests_mean():
    assert FLAVORS['keyed'].extra_specs == LOCK


# The command.


EXAMPLE = str(ROOT / 'examples' / 'full-rack.yaml')


def relocate(run, *arguments):
    """Run the command on the example."""
    return run('relocation', 'create', '--snapshot', EXAMPLE, *arguments)


@pytest.mark.parametrize(
    'arguments',
    [
        ('--host', 'win-1'),
        ('--aggregate', 'windows', '--rolling'),
        ('--room-for', 'win.huge', '--number', '9'),
    ],
)
def test_the_document_has_its_schema(run, arguments):
    result = relocate(run, *arguments, '-f', 'json')
    document = json.loads(result.out)
    jsonschema.validate(document, schema_of('relocation create'))


def test_the_report_shows_a_plan(run, tmp_path):
    plan_file, page = tmp_path / 'plan.json', tmp_path / 'page.html'
    result = relocate(run, '--host', 'win-1', '-f', 'json')
    plan_file.write_text(result.out)
    report = run(
        'report',
        'save',
        *('--output', str(page)),
        *('--snapshot', EXAMPLE, '--plan', str(plan_file), '--servers'),
    )
    assert report.code == 0, report.err
    text = page.read_text('utf-8')
    assert 'Plan of migrations' in text
    assert '2 moves,\n    least possible.' in text
    assert 'Without failover' in text
    plan_file.write_text('{}')
    report = run(
        'report',
        'save',
        '--output',
        str(page),
        '--snapshot',
        EXAMPLE,
        '--plan',
        str(plan_file),
    )
    assert report.code == 1
    assert 'is not a plan of relocation create' in report.err


@pytest.mark.parametrize(
    ('arguments', 'problem'),
    [
        ((), 'is required'),
        (('--rolling', '--room-for', 'small'), '--rolling needs'),
        (('--host', 'win-1', '--number', '2'), 'no effect without'),
        (('--host', 'win-1', '--together', '2'), 'without --rolling'),
        (('--host', 'win-1', '--yes'), '--yes needs a live cloud'),
    ],
)
def test_wrong_arguments_are_named(run, arguments, problem):
    result = relocate(run, *arguments)
    assert result.code == 2
    assert problem in result.err


def test_an_unknown_host_is_named(run):
    result = relocate(run, '--host', 'win-9')
    assert result.code == 1
    assert 'win-9' in result.err


def test_what_is_missing_gives_the_exit_status(run):
    result = relocate(run, '--room-for', 'win.huge', '--number', '9')
    assert result.code == 4
    assert 'Afterwards there is room for' in result.out


def test_watcher_gets_an_audit_for_each_round(run):
    result = relocate(
        run, '--host', 'win-1', '--as', 'watcher', '--parallel', '2'
    )
    # The moves are left to do.
    assert result.code == 3
    *words, actions = shlex.split(result.out)
    assert words == [
        *('openstack', 'optimize', 'audit', 'create'),
        *('--goal=unclassified', '--strategy=actuator'),
    ]
    _, _, text = actions.partition('actions=')
    assert [
        (each['action_type'], each['input_parameters']['destination_node'])
        for each in json.loads(text)
    ] == [('migrate', 'win-3'), ('migrate', 'win-2')]


def test_commands_of_cold_migrations_confirm_them(run):
    result = relocate(run, '--host', 'win-1', '--as', 'commands', '--cold')
    first, second = result.out.splitlines()
    assert '--live-migration' not in first
    assert ' && openstack server migration confirm ' in second


def test_what_is_left_is_said_beside_commands(run):
    result = relocate(
        run, '--host', 'lin-1', '--host', 'lin-2', '--as', 'commands'
    )
    assert (result.code, result.out) == (4, '')
    assert 'no other host may be used' in result.err


def test_why_there_cannot_be_room_is_said(run, tmp_path):
    text = pathlib.Path(EXAMPLE).read_text('utf-8')
    path = tmp_path / 'cloud.yaml'
    path.write_text(
        text.replace(
            'flavors:\n',
            'flavors:\n- {name: odd, vcpus: 1, ram: 1, '
            "extra_specs: {'hw:locked_memory': 'true'}}\n",
        )
    )
    result = run(
        'relocation', 'create', '--snapshot', str(path), '--room-for', 'odd'
    )
    assert result.code == 4
    assert result.err.startswith('There cannot be room for these servers: ')
    assert 'hw:locked_memory' in result.err


@pytest.mark.parametrize(
    ('number', 'least', 'said'),
    [
        (0, 0, 'Nothing to move.'),
        (1, 1, '1 move, least possible.'),
        (3, 2, '3 moves, at least 2.'),
    ],
)
def test_a_plan_is_the_least_possible_if_it_reaches_the_bound(
    number, least, said
):
    assert shown.moves_summary(number, least) == said
