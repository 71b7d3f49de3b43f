# SPDX-License-Identifier: Apache-2.0
"""Which servers have nowhere to go if hosts fail."""

import dataclasses
import itertools
import pathlib
import random

from audit_clouds import configuration
from cases import cases
import jsonschema
import pytest
import room_clouds
from room_clouds import cloud, group, server

from isolate_aggregates_tools.answers.requests import Likeness
from isolate_aggregates_tools.compute.servers import (
    ComputeService,
    Port,
    Servers,
)
from isolate_aggregates_tools.documents import content
from isolate_aggregates_tools.room import documents, program, shown
from isolate_aggregates_tools.room.kinds import Kind
from isolate_aggregates_tools.room.remembered import Remaining
from isolate_aggregates_tools.room.survival import survival
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_provider,
    make_snapshot,
    make_tree,
)

CONF = configuration()
EXAMPLES = pathlib.Path(__file__).parents[3] / 'examples'


def stranded(snapshot, **more):
    """Return the names of the servers that each failure strands."""
    result = survival(snapshot, CONF, **more)
    return {
        case.hosts: [each.server.name for each in case.stranded]
        for case in result.cases
        if case.servers
    }


def test_all_find_room():
    servers = [server('a', 'h1'), server('b', 'h2')]
    snapshot = cloud({'h1': 1, 'h2': 2}, servers)
    assert stranded(snapshot) == {('h1',): [], ('h2',): ['b']}


def test_a_lock_makes_a_small_cloud_of_a_large_one():
    servers = [server('a', 'w1', 'keyed'), server('b', 'h1')]
    snapshot = cloud({'w1': 4, 'h1': 4, 'h2': 4}, servers, locked=['w1'])
    result = survival(snapshot, CONF)
    assert stranded(snapshot) == {('h1',): [], ('w1',): ['a']}
    assert dict(result.locks) == {
        'no lock': 0,
        'trait:CUSTOM_LICENSED': 1,
    }
    [worst, *_] = result.cases
    assert [each.reason for each in worst.stranded] == [
        'no other host may be used'
    ]
    assert not result.is_survived
    [margin, *_] = result.margins
    assert (margin.flavor, margin.needed, margin.free) == ('keyed', 1, 0)
    assert margin.hosts_short == 1


def test_room_is_counted_as_far_as_it_matters():
    snapshot = cloud({'h1': 4, 'h2': 400}, [server('a', 'h1')])
    [margin] = survival(snapshot, CONF).margins
    assert (margin.needed, margin.free) == (1, 110)


def test_the_worst_comes_first():
    servers = [server(f'a{n}', 'h1') for n in range(3)]
    servers += [server('b', 'h2')]
    snapshot = cloud({'h1': 3, 'h2': 2}, servers)
    assert [*stranded(snapshot)] == [('h1',), ('h2',)]


@pytest.mark.parametrize(
    ('most', 'named', 'more'),
    [
        (None, 2, []),
        (2, 2, []),
        (1, 1, ['  and 1 more, which -f json shows']),
    ],
)
def test_only_some_servers_and_rows_are_shown(most, named, more):
    servers = [server('a', 'h1'), server('b', 'h1', 'big')]
    servers += [server('c', 'h2'), server('d', 'h3')]
    result = survival(cloud({'h1': 3, 'h2': 1, 'h3': 1}, servers), CONF)
    assert list(shown.stranded_lines(result, most)) == [
        '',
        'Without a host if h1 fails:',
        *(
            f'  server {name} (id-of-{name}) of project demo on h1: {why}'
            for name, why in (
                ('a', 'there is no room on the 2 other hosts'),
                ('b', 'no other host may be used'),
            )[:named]
        ),
        *more,
    ]
    assert list(shown.margin_lines(result, most)) == [
        '',
        'Room on the other hosts, in the worst case of each:',
        *(
            f'  no lock, flavor {name}: 1 needed, 0 free, 1 host short'
            for name in ('big', 'small')[:named]
        ),
        *more,
    ]
    first, *_ = shown.survival_lines(result)
    assert first == (
        'If a host fails, 2 servers may have nowhere to go: with h1. That is '
        'so in 3 of 3 cases.'
    )
    assert shown.survival_rows(result) == [
        ('h1', 2, 2, 'no lock'),
        ('h2', 1, 1, 'no lock'),
        ('h3', 1, 1, 'no lock'),
    ]


def test_if_all_survive_no_server_is_shown():
    result = survival(cloud({'h1': 1, 'h2': 1}, [server('a', 'h1')]), CONF)
    assert list(shown.stranded_lines(result, None)) == []
    assert list(shown.survival_lines(result)) == [
        'If a host fails, every server has somewhere to go.'
    ]
    assert list(shown.margin_lines(result, 1))[2:] == [
        '  no lock, flavor small: 1 needed, 1 free'
    ]
    empty = survival(cloud({'h1': 1}, []), CONF)
    assert list(shown.margin_lines(empty, None)) == []


@cases(
    ('least', 'has_solver', 'said'),
    {
        'proven': (2, False, []),
        'without the solver': (
            1,
            False,
            [
                'Other placements leave at least 1 of them without a host; to '
                'find the best one, install the solver HiGHS, which is '
                'missing: isolate-aggregates-tools[room].'
            ],
        ),
        'with it, but not in time': (
            0,
            True,
            [
                'Other placements may have a host for each of them; the '
                'solver has not found the best one in time.'
            ],
        ),
    },
)
def test_a_bound_is_said_if_it_is_lower(monkeypatch, least, has_solver, said):
    monkeypatch.setattr(shown.program, 'is_available', lambda: has_solver)
    servers = [server('a', 'h1'), server('b', 'h1')]
    result = survival(cloud({'h1': 2}, servers), CONF)
    [case] = result.cases
    result = dataclasses.replace(
        result, cases=(dataclasses.replace(case, least=least),)
    )
    _, *more = shown.survival_lines(result)
    assert more == said


def test_hosts_that_are_out_are_not_among_those_that_remain():
    kind, looked_at = Kind(frozenset({'h1', 'h2'}), ()), set()
    rest = Remaining(kind, ['h1', 'h2'], {'h1', 'h4'}, looked_at)
    assert ([*rest], len(rest)) == (['h2'], 1)
    assert looked_at == {'h1', 'h2'}
    assert [host in rest for host in ('h1', 'h2', 'h3')] == [
        *(False, True, False)
    ]


def test_several_failures():
    servers = [server(f'a{n}', f'h{n}') for n in range(3)]
    snapshot = cloud({'h0': 2, 'h1': 2, 'h2': 1}, servers)
    numbers = {
        hosts: len(names)
        for hosts, names in stranded(snapshot, failures=2).items()
    }
    assert numbers == {('h0', 'h1'): 2, ('h0', 'h2'): 1, ('h1', 'h2'): 1}


def test_only_some_hosts_fail():
    servers = [server('a', 'h1'), server('b', 'h2')]
    snapshot = cloud({'h1': 1, 'h2': 1}, servers)
    assert [*stranded(snapshot, among=['h1'])] == [('h1',)]


@pytest.mark.parametrize(
    ('policy', 'names'),
    [
        ('anti-affinity', ['a']),
        ('affinity', ['a']),
        ('soft-anti-affinity', []),
    ],
)
def test_server_groups(policy, names):
    a, b = server('a', 'h1'), server('b', 'h2')
    snapshot = cloud(
        {'h1': 4, 'h2': 4}, [a, b], groups=[group('g', policy, a, b)]
    )
    if policy == 'affinity':
        # Each may go where the other is.
        names = []
    assert stranded(snapshot)[('h1',)] == names


def test_an_affine_group_on_one_host_cannot_be_evacuated():
    a, b = server('a', 'h1'), server('b', 'h1')
    snapshot = cloud(
        {'h1': 4, 'h2': 4}, [a, b], groups=[group('g', 'affinity', a, b)]
    )
    [case, _] = survival(snapshot, CONF).cases
    assert {each.reason for each in case.stranded} == {
        'its server group is bound to other hosts'
    }


def test_hosts_that_are_down_take_nothing():
    services = [ComputeService('h1'), ComputeService('h2', is_up=False)]
    snapshot = cloud(
        {'h1': 4, 'h2': 4}, [server('a', 'h1')], services=services
    )
    assert stranded(snapshot) == {('h1',): ['a']}


@pytest.mark.parametrize(
    ('more', 'reason'),
    [
        ({'status': 'PAUSED'}, 'it is PAUSED'),
        ({'status': 'SUSPENDED'}, 'it is SUSPENDED'),
        ({'status': 'RESCUE'}, 'it is RESCUE'),
        ({'status': 'VERIFY_RESIZE'}, 'it is VERIFY_RESIZE'),
        (
            {'image_properties': {'hw_tpm_version': '2.0'}},
            'it has a virtual TPM',
        ),
        ({'has_shares': True}, 'it has a Manila share'),
        (
            {'ports': (Port('p', 'n', accelerator=True),)},
            'it has a port with an accelerator',
        ),
    ],
)
def test_servers_that_nova_does_not_evacuate_have_nowhere_to_go(more, reason):
    servers = [server('a', 'h1', **more), server('b', 'h1')]
    [case, _] = survival(cloud({'h1': 4, 'h2': 4}, servers), CONF).cases
    [stranded] = case.stranded
    assert stranded.server.name == 'a'
    assert stranded.reason == f'Nova does not evacuate it: {reason}'
    assert case.least == 1


def test_the_order_of_servers_does_not_matter():
    zones = [
        make_aggregate(zone, hosts=[host], availability_zone=zone)
        for host, zone in (('h1', 'a'), ('h2', 'b'))
    ]
    servers = [
        server('a', 'h0', availability_zone='a'),
        server('b', 'h0', availability_zone='b'),
    ]
    both = [
        survival(
            cloud({'h0': 4, 'h1': 4, 'h2': 1}, some, aggregates=zones), CONF
        )
        for some in (servers, servers[::-1])
    ]
    assert both[0].margins == both[1].margins
    # Of the two zones, the one with less room.
    [margin] = both[0].margins
    assert (margin.needed, margin.free) == (1, 1)


@pytest.mark.parametrize(
    ('trait', 'unknown'),
    [('COMPUTE_MEM_BACKING_FILE', True), ('CUSTOM_A', False)],
)
def test_shares_matter_where_nova_attaches_them(trait, unknown):
    snapshot = cloud({'h1': 4, 'h2': 4}, [server('a', 'h1')])
    snapshot = dataclasses.replace(
        snapshot,
        providers=tuple(
            dataclasses.replace(
                node, traits={'COMPUTE_STORAGE_VIRTIO_FS', trait}
            )
            for node in snapshot.providers
        ),
    )
    told = 'which servers have shares of Manila'
    assert (told in survival(snapshot, CONF).not_known) == unknown


def test_what_is_not_counted_is_said_with_the_number_of_servers():
    pinned = {'hw_cpu_policy': 'dedicated'}
    servers = [
        server('a', 'h1', image_properties=pinned),
        server('b', 'h2', image_properties=pinned),
        server('c', 'h2'),
        # In a cell that is down.
        dataclasses.replace(
            server('d', 'h2', image_properties=pinned), flavor=None
        ),
    ]
    result = survival(cloud({'h1': 4, 'h2': 4}, servers), CONF)
    assert result.not_known == (
        'whether hosts have pinned CPUs for 3 servers',
    )
    assert result.not_evaluated == 1


@pytest.mark.parametrize('tag', ['true', 'false'])
def test_reserved_hosts_of_instance_ha_count(tag):
    ha = make_aggregate('ha', {'evacuable': tag}, hosts=['h1', 'h2'])
    services = [
        ComputeService('h1'),
        ComputeService('h2', is_enabled=False, reason='reserved'),
    ]
    snapshot = cloud(
        {'h1': 4, 'h2': 4},
        [server('a', 'h1')],
        services=services,
        aggregates=[ha],
    )
    expected = [] if tag == 'true' else ['a']
    assert stranded(snapshot) == {('h1',): expected}


def test_a_hint_of_one_server_is_not_that_of_another():
    """Equal but for the lease, each may use the hosts of its own alone."""
    pools = [
        make_aggregate(
            name,
            {'blazar:owner': 'demo'},
            hosts=hosts,
            availability_zone=f'blazar_{name}',
        )
        for name, hosts in (('one', ['h1', 'h2']), ('two', ['h3']))
    ]
    servers = [
        server(name, host, scheduler_hints={'reservation': (pool,)})
        for name, host, pool in (('a', 'h1', 'one'), ('b', 'h3', 'two'))
    ]
    snapshot = cloud(
        dict.fromkeys(('h1', 'h2', 'h3'), 2), servers, aggregates=pools
    )
    result = survival(
        snapshot, configuration(request_filters=['blazar_reservation'])
    )
    assert {
        case.hosts: [each.server.name for each in case.stranded]
        for case in result.cases
    } == {('h1',): [], ('h2',): [], ('h3',): ['b']}


def test_unknown_facts_are_named():
    snapshot = cloud({'h1': 4}, [server('a', 'h1')])
    assert survival(snapshot, CONF).not_known == ()


@pytest.mark.parametrize('properties', [None, {}])
def test_images_without_properties(properties):
    one = server('a', 'h1', image_properties=properties)
    assert stranded(cloud({'h1': 4}, [one])) == {('h1',): ['a']}


@pytest.mark.parametrize('told', [None, {'hw_cpu_policy': 'dedicated'}])
def test_what_the_image_requests_is_named_also_if_nova_does_not_tell(told):
    image = make_image('i', {'hw_cpu_policy': 'dedicated'})
    one = server('a', 'h1', image_id=image.id, image_properties=told)
    snapshot = dataclasses.replace(cloud({'h1': 4}, [one]), images=(image,))
    assert 'pinned CPUs' in ' '.join(survival(snapshot, CONF).not_known)


@pytest.mark.parametrize('number', range(200))
def test_no_placement_is_better(number):
    chance = random.Random(number)
    facts = room_clouds.random_facts(chance)
    result = survival(facts.cloud, CONF)
    for case in result.cases:
        best = room_clouds.least_stranded(facts, case.hosts)
        assert case.least <= best <= len(case.stranded)
        if program.is_available():
            assert len(case.stranded) == best


def test_the_document_has_its_schema():
    servers = [server('a', 'w1', 'keyed'), server('b', 'h1')]
    snapshot = cloud({'w1': 4, 'h1': 4, 'h2': 4}, servers, locked=['w1'])
    document = content(shown.survival_document(survival(snapshot, CONF)))
    jsonschema.validate(document, documents.SURVIVAL)
    assert [case['hosts'] for case in document['cases']] == [['w1']]


def test_the_exit_status_tells_whether_all_survive(run):
    snapshot = str(EXAMPLES / 'full-rack.yaml')
    result = run('survival', 'list', '--snapshot', snapshot)
    assert result.code == 4
    result = run(
        'survival', 'list', '--snapshot', snapshot, '--aggregate', 'windows'
    )
    assert 'lin-1' not in result.out
    lock = 'trait:CUSTOM_LICENSED_WINDOWS'
    assert (
        run('survival', 'list', '--snapshot', snapshot, '--lock', lock).code
        == 4
    )


def test_an_unknown_lock_is_named(run):
    snapshot = str(EXAMPLES / 'full-rack.yaml')
    result = run(
        'survival',
        'list',
        '--snapshot',
        snapshot,
        '--lock',
        'CUSTOM_LICENSED_WINDOW',
    )
    assert result.code == 1
    assert 'lock' in result.err
    assert 'trait:CUSTOM_LICENSED_WINDOWS' in result.err


def test_a_cloud_file_without_servers_is_named(run):
    snapshot = str(EXAMPLES / 'gpu-hosts.yaml')
    result = run('survival', 'list', '--snapshot', snapshot)
    assert result.code == 1
    assert 'has no servers' in result.err


def test_the_exporter_exports_them(run, tmp_path):
    path = tmp_path / 'metrics.prom'
    snapshot = str(EXAMPLES / 'full-rack.yaml')
    arguments = ('exporter', '--output', str(path), '--snapshot', snapshot)
    assert run(*arguments, '--servers').code == 0
    name = 'isolate_aggregates_survival_servers_without_host'
    lines = [
        line
        for line in path.read_text('utf-8').splitlines()
        if line.startswith(name)
    ]
    assert lines == [
        f'{name}{{lock="no lock"}} 0.0',
        f'{name}{{lock="trait:CUSTOM_LICENSED_WINDOWS"}} 1.0',
    ]
    assert run(*arguments).code == 0
    assert name not in path.read_text('utf-8')


# Reserved hosts.


@pytest.mark.parametrize(
    ('filters', 'traits', 'nowhere'),
    [
        (['ComputeFilter'], set(), ['a']),
        ([], {'COMPUTE_STATUS_DISABLED'}, ['a']),
        # Nova sends servers there, disabled or not.
        ([], set(), []),
    ],
)
def test_a_reserved_host_waits_to_be_enabled(filters, traits, nowhere):
    snapshot = cloud({'h1': 1, 'h2': 1}, [server('a', 'h1')])
    spare = ComputeService('h2', is_enabled=False, reason='reserved')
    snapshot = dataclasses.replace(
        snapshot,
        services=(ComputeService('h1'), spare),
        providers=tuple(
            dataclasses.replace(each, traits=each.traits | traits)
            if each.host == 'h2'
            else each
            for each in snapshot.providers
        ),
    )
    conf = configuration(enabled_filters=filters)
    [case] = [c for c in survival(snapshot, conf).cases if c.servers]
    assert [each.server.name for each in case.stranded] == nowhere


# Cells.


def in_cells(**cells):
    """Return a cloud with a full host and a large empty one."""
    snapshot = cloud({'old-1': 1, 'new-1': 9}, [server('a', 'old-1')])
    return dataclasses.replace(
        snapshot,
        services=tuple(
            ComputeService(host.replace('_', '-'), cell=cell)
            for host, cell in cells.items()
        ),
    )


def test_servers_do_not_leave_their_cell():
    result = survival(in_cells(old_1='old', new_1='new'), CONF)
    [[one]] = [case.stranded for case in result.cases if case.servers]
    assert one.reason == 'no other host of its cell old may be used'
    assert result.not_known == ()
    margin = result.margins[0]
    assert (margin.free, margin.hosts_short) == (0, 1)


@pytest.mark.parametrize(
    ('cells', 'times'),
    [
        ({}, 1),
        ({'old_1': 'old', 'new_1': ''}, 1),
        ({'old_1': '', 'new_1': 'new'}, 1),
        ({'old_1': 'old', 'new_1': 'old'}, 0),
    ],
)
def test_unknown_cells_are_named_where_a_way_out_depends_on_them(cells, times):
    result = survival(in_cells(**cells), CONF)
    assert result.is_survived
    told = 'which hosts are in which cells, which servers do not leave'
    assert result.not_known == (told,) * times
    [first, *_] = shown.survival_lines(result)
    assert first.endswith('as far as is known.') == bool(times)


def test_unknown_cells_do_not_matter_to_servers_without_a_way_out():
    snapshot = cloud({'h1': 4, 'w1': 4}, [server('a', 'h1')], locked=['w1'])
    snapshot = dataclasses.replace(
        snapshot, services=(ComputeService('h1'), ComputeService('w1'))
    )
    result = survival(snapshot, CONF)
    assert not result.is_survived
    assert result.not_known == ()


# Zones, child providers and many hosts.


def test_zones_hold():
    zone = make_aggregate('az-1', hosts=['h1', 'h2'], availability_zone='az-1')
    servers = [server('a', 'h1', availability_zone='az-1')]
    hosts = {'h1': 2, 'h2': 2, 'h3': 2}
    snapshot = cloud(hosts, servers, aggregates=[zone])
    assert stranded(snapshot) == {('h1',): []}
    servers += [
        server(f'b{number}', 'h2', 'small', availability_zone='az-1')
        for number in range(2)
    ]
    # There is room on h3 only, which is in another zone.
    assert stranded(cloud(hosts, servers, aggregates=[zone]))[('h1',)] == ['a']


def slots(host, number, used):
    """Return a host with slots of a reservation on a child provider."""
    return make_tree(
        make_compute_node(
            host, inventories={'VCPU': 4}, usages={'VCPU': used}
        ),
        make_provider(
            f'slots_{host}',
            inventories={'CUSTOM_RESERVATION_A': number},
            usages={'CUSTOM_RESERVATION_A': used},
        ),
    )


@pytest.mark.parametrize(('number', 'names'), [(1, []), (2, ['b'])])
def test_slots_of_reservations_count(number, names):
    """A server of a reservation needs a slot on its new host."""
    flavor = make_flavor(
        'reserved',
        vcpus=1,
        ram=0,
        disk=0,
        extra_specs={'resources:CUSTOM_RESERVATION_A': '1'},
    )
    servers = [
        dataclasses.replace(server(name, 'h1'), flavor=flavor)
        for name in ('a', 'b')[:number]
    ]
    snapshot = make_snapshot(
        [], [slots('h1', 2, number), slots('h2', 1, 0)], flavors=[flavor]
    )
    snapshot = dataclasses.replace(
        snapshot, servers=Servers(tuple(servers), {}, True, ())
    )
    [case, _] = survival(snapshot, CONF).cases
    assert [each.server.name for each in case.stranded] == names
    assert case.least == len(names)


def test_of_too_many_combinations_the_fullest_hosts_are_examined(monkeypatch):
    monkeypatch.setattr('isolate_aggregates_tools.room.survival.MOST', 3)
    servers = [server(f'a{n}', 'h0') for n in range(2)]
    servers += [server(f'b{n}', 'h1') for n in range(2)]
    servers += [server(f'c{n}', f'h{n}') for n in range(2, 6)]
    snapshot = cloud({f'h{n}': 2 for n in range(6)}, servers)
    result = survival(snapshot, CONF, failures=2)
    assert (result.combinations, len(result.cases)) == (15, 3)
    assert ('h0', 'h1') in {case.hosts for case in result.cases}
    document = content(shown.survival_document(result))
    assert (document['examined'], document['combinations']) == (3, 15)
    said = ' '.join(shown.survival_lines(result))
    assert said.startswith('If 2 hosts fail, ')
    assert 'Examined were 3 of 15' in said
    alone = survival(snapshot, CONF, failures=1)
    assert next(shown.survival_lines(alone)).startswith('If a host fails, ')


@pytest.mark.parametrize(('most', 'examined'), [(3, 3), (2, 2)])
def test_as_many_combinations_as_possible_are_examined(
    monkeypatch, most, examined
):
    monkeypatch.setattr('isolate_aggregates_tools.room.survival.MOST', most)
    # Without servers, no host is among the likely worst.
    snapshot = cloud({f'h{n}': 2 for n in range(3)}, [])
    result = survival(snapshot, CONF, failures=2)
    assert len(result.cases) == (examined if most == 3 else 0)


def test_of_too_many_combinations_each_host_has_its_worst(monkeypatch):
    monkeypatch.setattr('isolate_aggregates_tools.room.survival.MOST', 2)
    servers = [server(f'a{n}', f'h{n}') for n in (0, 2, 4)]
    snapshot = cloud({f'h{n}': 1 for n in range(5)}, servers)
    result = survival(snapshot, CONF, 2)
    assert [case.hosts for case in result.cases] == [
        *(('h0', 'h1'), ('h0', 'h2'))
    ]


def test_of_the_only_host_with_servers_as_many_are_examined_as_may_be(
    monkeypatch,
):
    monkeypatch.setattr('isolate_aggregates_tools.room.survival.MOST', 4)
    snapshot = cloud({f'h{n}': 1 for n in range(6)}, [server('a', 'h0')])
    result = survival(snapshot, CONF, 2)
    assert [case.hosts for case in result.cases] == [
        ('h0', f'h{n}') for n in range(1, 5)
    ]


def test_without_the_solver_the_answer_is_a_bound(monkeypatch):
    monkeypatch.setattr(
        'isolate_aggregates_tools.room.exact.is_available', lambda: False
    )
    for number in range(50):
        facts = room_clouds.random_facts(random.Random(number))
        for case in survival(facts.cloud, CONF).cases:
            best = room_clouds.least_stranded(facts, case.hosts)
            assert case.least <= best <= len(case.stranded)


# Several hosts, of which some have no servers.


@pytest.mark.parametrize('number', range(15))
def test_each_failure_is_as_if_no_other_had_been_examined(number):
    facts = room_clouds.random_facts(random.Random(number), 8, 16)
    for case in survival(facts.cloud, CONF).cases:
        [alone] = survival(facts.cloud, CONF, among=case.hosts).cases
        assert alone == case


@pytest.mark.parametrize(
    'more', [{'segments': ('s2',)}, {'remote_managed': True}]
)
def test_servers_with_ports_of_other_kinds_are_told_apart(more):
    port = Port('p', 'network', segments=('s1',))
    servers = [
        server('a', 'h1', ports=(port,)),
        server('b', 'h1', ports=(dataclasses.replace(port, **more),)),
    ]
    likeness = Likeness()
    assert len({likeness.key(each, each.flavor) for each in servers}) == 2


def test_a_host_without_servers_can_fail_with_another():
    snapshot = cloud({'h1': 1, 'h2': 1, 'h3': 1}, [server('a', 'h1')])
    assert survival(snapshot, CONF).is_survived
    result = survival(snapshot, CONF, failures=2)
    assert result.is_survived
    snapshot = cloud({'h1': 1, 'h2': 1}, [server('a', 'h1')])
    assert not survival(snapshot, CONF, failures=2).is_survived


def test_more_hosts_than_there_are_cannot_fail(run):
    snapshot = str(EXAMPLES / 'full-rack.yaml')
    result = run('survival', 'list', '--snapshot', snapshot, '--failures', '6')
    assert result.code == 1
    assert result.err == (
        '6 hosts cannot fail at the same time: there are only 5.\n'
    )


@pytest.mark.parametrize('number', range(40))
def test_each_combination_is_examined(number):
    facts = room_clouds.random_facts(random.Random(number))
    if len(facts.hosts) < 3:
        return
    result = survival(facts.cloud, CONF, failures=2)
    cases = {case.hosts: case for case in result.cases}
    assert {*cases} == {*itertools.combinations(sorted(facts.hosts), 2)}
    for hosts, case in cases.items():
        best = room_clouds.least_stranded(facts, hosts)
        assert case.least <= best <= len(case.stranded)


def test_of_too_many_combinations_the_only_spare_is_examined(monkeypatch):
    monkeypatch.setattr('isolate_aggregates_tools.room.survival.MOST', 2)
    servers = [server('a', 'w1', 'keyed')]
    servers += [server(f's{n}', f'h{n}') for n in range(4)]
    hosts = {'w1': 1, 'w2': 1, **{f'h{n}': 4 for n in range(4)}}
    snapshot = cloud(hosts, servers, locked=['w1', 'w2'])
    result = survival(snapshot, CONF, 2, among=['w1', 'w2', 'h0'])
    assert result.cases[0].hosts == ('w1', 'w2')
    assert result.worst == 1
