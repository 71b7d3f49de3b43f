# SPDX-License-Identifier: Apache-2.0
"""Which request may go to which host, and why not."""

import weakref

from audit_clouds import configuration
from cases import cases
from function_filter import FunctionFilter
from mirrors import mirrored
import pytest

from isolate_aggregates.aggregates import Lock
from isolate_aggregates.filters.constraints import Refuse, Require
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.filters.reservation_prefix import ReservationPrefix
from isolate_aggregates_tools.answers.exclusions import HostSets
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.matrix import columns
from isolate_aggregates_tools.matrix.columns import Access, Column
from isolate_aggregates_tools.matrix.matrix import (
    Objection,
    matrix,
    requests,
)
from isolate_aggregates_tools.request.constraints import (
    ForbidRootTrait,
    InTree,
)
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_provider,
    make_snapshot,
    make_tree,
)

WINDOWS = {'trait:CUSTOM_WINDOWS': 'required'}
REQUESTS = Requests(SnapshotCloud(make_snapshot()), configuration())
PLAIN = make_flavor('plain')
KEYED = make_flavor('keyed', WINDOWS)
FILTERS = {
    'isolate_aggregates': IsolateAggregates(),
    'reservation_prefix': ReservationPrefix(
        ('reservation:',), ('reservation:',)
    ),
    **mirrored('compute_status'),
    'isolate_tenants': IsolateTenants(),
}


def verdicts(table):
    """Return the verdict of each flavor on each host."""
    return {
        row.request.flavor.name: {
            column.name: columns.access(row, column).value
            for column in columns.by_host(table)
        }
        for row in table.rows
    }


def objections_on(table, host):
    """Return the objections to the only request for a host."""
    [row] = table.rows
    [place] = [n for n, g in enumerate(table.groups) if host in g.hosts]
    return list(row.objections[place])


def judged(
    snapshot, *flavors, filters=FILTERS, images=(), project=None, locks=()
):
    request = requests(REQUESTS, flavors, images, project)
    return matrix(snapshot, Pipeline(filters), request, locks)


@pytest.fixture
def snapshot():
    """A licensed host, one on lease, one of a project, an open one."""
    return make_snapshot(
        [
            make_aggregate('windows', WINDOWS, ['win']),
            make_aggregate('lease', {'reservation:1': 'yes'}, ['leased']),
            make_aggregate('project', {'filter_tenant_id': 'ours'}, ['own']),
        ],
        [
            make_compute_node('win', traits=['CUSTOM_WINDOWS']),
            make_compute_node('leased'),
            make_compute_node('own'),
            make_compute_node('open'),
        ],
    )


def test_locked_hosts_are_for_requests_with_the_key(snapshot):
    lease = make_flavor('lease', {'reservation:1': 'yes'})
    assert verdicts(judged(snapshot, PLAIN, KEYED, lease)) == {
        'plain': {'leased': 'no', 'open': 'yes', 'own': 'no', 'win': 'no'},
        'keyed': {'leased': 'no', 'open': 'no', 'own': 'no', 'win': 'yes'},
        'lease': {'leased': 'yes', 'open': 'no', 'own': 'no', 'win': 'no'},
    }


def test_the_project_of_the_request_counts(snapshot):
    findings = judged(snapshot, PLAIN, project='ours')
    assert verdicts(findings)['plain']['own'] == 'yes'


def test_an_image_can_have_the_key(snapshot):
    images = [make_image('windows', WINDOWS), make_image('debian')]
    findings = judged(snapshot, PLAIN, images=images)
    on_win = [
        (row.request.image.name, columns.access(row, column))
        for row in findings.rows
        for column in columns.by_host(findings)
        if column.name == 'win'
    ]
    assert on_win == [('windows', Access.YES), ('debian', Access.NO)]


def test_each_objection_is_a_filters_and_has_its_reason(snapshot):
    [request] = requests(REQUESTS, [PLAIN])
    [locked] = IsolateAggregates()(request, snapshot.index)
    [objection] = objections_on(judged(snapshot, PLAIN), 'win')
    assert objection.filter_name == 'isolate_aggregates'
    assert objection.kind == 'missing-traits'
    assert objection.text == locked.reason


def test_rows_that_are_alike_differ_only_in_the_name_of_the_flavor(snapshot):
    flavors = [PLAIN, make_flavor('other'), KEYED]
    images = [make_image('debian'), make_image('flavor other')]
    alike = {}
    for row in judged(snapshot, *flavors, images=images).rows:
        reasons = [
            (each.kind, tuple(each.cause.split(row.flavor)), places)
            for each, places in row.terms
        ]
        alike.setdefault(row.likeness, []).append((row, reasons))
    assert [[row.flavor for row, _ in rows] for rows in alike.values()] == [
        ['flavor plain', 'flavor other'],
        ['flavor plain'],
        ['flavor other'],
        ['flavor keyed'],
        ['flavor keyed'],
    ]
    [(_, one), (_, other)] = next(iter(alike.values()))
    assert one == other != []


def test_only_the_aggregates_of_the_hosts_are_named():
    snapshot = make_snapshot(
        [make_aggregate(name, WINDOWS, [name]) for name in ('a', 'b', 'c')],
        [
            make_compute_node(name, traits=traits)
            for name, traits in (
                ('a', ['CUSTOM_WINDOWS']),
                ('b', []),
                ('c', ['CUSTOM_WINDOWS']),
            )
        ],
    )
    # The trait of the hosts counts only if a flavor requires it.
    rows = judged(snapshot, PLAIN, KEYED)
    [plain, _] = rows.rows
    assert [group.hosts for group in rows.groups] == [('a', 'c'), ('b',)]
    assert [
        objection.text.partition(':')[0] for [objection] in plain.objections
    ] == ['aggregates a, c', 'aggregate b']


def test_a_host_behind_two_locks_has_two_reasons():
    snapshot = make_snapshot(
        [
            make_aggregate('windows', WINDOWS, ['both']),
            make_aggregate('gpus', {'trait:CUSTOM_GPU': 'required'}, ['both']),
        ],
        [make_compute_node('both')],
    )
    texts = [r.text for r in objections_on(judged(snapshot, PLAIN), 'both')]
    assert [text.partition(':')[0] for text in texts] == [
        'aggregate windows',
        'aggregate gpus',
    ]


def test_a_disabled_host_takes_no_servers():
    node = make_compute_node('off', traits=['COMPUTE_STATUS_DISABLED'])
    findings = judged(make_snapshot([], [node]), PLAIN)
    [objection] = objections_on(findings, 'off')
    assert objection.filter_name == 'compute_status'


def test_a_required_trait_must_be_present():
    snapshot = make_snapshot([], [make_compute_node('bare')])
    assert objections_on(judged(snapshot, KEYED), 'bare') == [
        Objection(
            None,
            'required-trait',
            'has no trait CUSTOM_WINDOWS, which the request requires',
        )
    ]


def test_a_required_trait_may_be_on_any_provider_of_the_tree():
    tree = make_tree(
        make_compute_node('host'),
        make_provider(
            'card', traits=['CUSTOM_WINDOWS'], inventories={'VGPU': 1}
        ),
    )
    flavor = make_flavor('keyed', {**WINDOWS, 'resources:VGPU': '1'})
    assert (
        objections_on(judged(make_snapshot([], [tree]), flavor), 'host') == []
    )


def test_a_required_trait_can_be_on_a_sharing_provider():
    together = make_aggregate('together')
    pool = make_provider(
        'pool',
        traits=['CUSTOM_WINDOWS', 'MISC_SHARES_VIA_AGGREGATE'],
        aggregates=[together],
        inventories={'VGPU': 1},
    )
    flavor = make_flavor('keyed', {**WINDOWS, 'resources:VGPU': '1'})
    nodes = [
        make_compute_node('near', aggregates=[together]),
        make_compute_node('far'),
    ]
    findings = judged(make_snapshot([], [*nodes, pool]), flavor)
    assert verdicts(findings)['keyed'] == {'near': 'yes', 'far': 'no'}


@cases(
    ('key', 'outcome'),
    {
        'of the compute node': ('trait:CUSTOM_WINDOWS', 'no'),
        'of another group': ('trait1:CUSTOM_WINDOWS', 'yes'),
    },
)
def test_a_forbidden_trait_must_be_absent(key, outcome):
    tree = make_tree(
        make_compute_node('host', traits=['CUSTOM_WINDOWS']),
        make_provider('card', inventories={'VGPU': 1}),
    )
    flavor = make_flavor('f', {key: 'forbidden', 'resources1:VGPU': '1'})
    findings = judged(make_snapshot([], [tree]), flavor)
    assert verdicts(findings)['f']['host'] == outcome


def test_free_capacity_is_ignored():
    full = make_compute_node('full', usages={'VCPU': 16})
    assert verdicts(judged(make_snapshot([], [full]), PLAIN)) == {
        'plain': {'full': 'yes'}
    }


def test_an_invalid_request_has_no_hosts(snapshot):
    broken = make_flavor('broken', {'hw:cpu_policy': 'nonsense'})
    findings = judged(snapshot, broken, PLAIN)
    assert set(verdicts(findings)['broken'].values()) == {'no'}
    assert verdicts(findings)['plain']['open'] == 'yes'
    [objection] = findings.rows[0].objections[0]
    assert objection.filter_name is None
    assert 'nonsense' in objection.text


@cases(
    ('constraint', 'expected'),
    {
        'refuse': (Refuse('closed'), []),
        'trait': (ForbidRootTrait('CUSTOM_X', 'no X'), ['b']),
        'tree': (InTree(make_provider('card').uuid, 'tree'), ['b']),
        'unknown tree': (InTree('unknown', 'tree'), []),
        'require': (Require((make_aggregate('rack'),), 'rack'), ['a']),
        'require nothing': (Require((), 'rack'), []),
    },
)
def test_constraints_of_any_filter_count(constraint, expected):
    snapshot = make_snapshot(
        [make_aggregate('rack', {}, ['a'])],
        [
            make_compute_node('a', traits=['CUSTOM_X']),
            make_tree(make_compute_node('b'), make_provider('card')),
        ],
    )
    findings = judged(
        snapshot,
        PLAIN,
        filters={'own': FunctionFilter(lambda *_: [constraint])},
    )
    allowed = [
        h for h, may in verdicts(findings)['plain'].items() if may == 'yes'
    ]
    assert allowed == expected
    [text] = {r.text for h in 'ab' for r in objections_on(findings, h)}
    assert text == constraint.reason


def test_grouped_verdicts_equal_those_of_each_host(snapshot):
    flavors = [PLAIN, KEYED, make_flavor('l', {'reservation:1': 'yes'})]
    pipeline = Pipeline({**FILTERS})
    findings = judged(snapshot, *flavors)
    for row in findings.rows:
        destination = pipeline.evaluate(row.request, snapshot.index)
        for group, held in zip(findings.groups, row.objections, strict=True):
            told = {r.text for r in held if r.filter_name}
            assert bool(told) == bool(destination.objections(group.aggregates))


def test_identical_hosts_are_evaluated_once():
    hosts = [f'host-{number}' for number in range(100)]
    snapshot = make_snapshot(
        [make_aggregate('windows', WINDOWS, hosts[:50])],
        [
            make_compute_node(host, traits=[f'CUSTOM_{host[5:]}'])
            for host in hosts
        ],
    )
    assert [len(g.hosts) for g in judged(snapshot, PLAIN).groups] == [50, 50]


def racks(number, metadata):
    """Return a cloud whose hosts each have an aggregate of their own."""
    return make_snapshot(
        [
            make_aggregate(f'rack-{n}', metadata(n), [f'host-{n}'])
            for n in range(number)
        ],
        [make_compute_node(f'host-{n}') for n in range(number)],
    )


def test_aggregates_with_equal_locks_are_evaluated_together():
    snapshot = racks(30, lambda n: WINDOWS if n % 3 == 0 else {'rack': str(n)})
    judgement = judged(snapshot, PLAIN, KEYED)
    assert [len(g.hosts) for g in judgement.groups] == [10, 20]
    shown = columns.by_aggregate(judgement, snapshot.aggregates)
    assert [column.hosts for column in shown] == [
        (f'host-{n}',) for n in range(30)
    ]
    [plain, _] = judgement.rows
    assert [columns.access(plain, c).value for c in shown[:3]] == [
        'no', 'yes', 'yes',
    ]  # fmt: skip


def test_hosts_behind_different_locks_are_apart_even_if_all_may_use_them():
    snapshot = racks(4, lambda n: WINDOWS if n % 2 else {})
    lock = Lock('trait:', 'trait:CUSTOM_WINDOWS', snapshot.aggregates[1::2])
    judgement = judged(snapshot, PLAIN, filters={}, locks=[lock])
    assert [(c.name, c.hosts) for c in columns.by_lock(judgement, [lock])] == [
        ('trait:CUSTOM_WINDOWS', ('host-1', 'host-3')),
        ('(no lock)', ('host-0', 'host-2')),
    ]


def test_required_aggregates_keep_hosts_apart():
    snapshot = racks(4, lambda n: {})
    constraint = Require(snapshot.aggregates[:2], 'rack')
    judgement = judged(
        snapshot,
        PLAIN,
        filters={'own': FunctionFilter(lambda *_: [constraint])},
    )
    assert verdicts(judgement)['plain'] == {
        'host-0': 'yes',
        'host-1': 'yes',
        'host-2': 'no',
        'host-3': 'no',
    }


def test_each_node_of_a_bare_metal_service_is_a_host():
    nodes = [make_compute_node(name, host='ironic') for name in ('a', 'b')]
    findings = judged(make_snapshot([], nodes), PLAIN)
    assert verdicts(findings)['plain'] == {
        'ironic (a)': 'yes',
        'ironic (b)': 'yes',
    }


# Columns.


def test_hosts_with_equal_verdicts_share_a_column(snapshot):
    findings = judged(snapshot, PLAIN)
    assert columns.alike(findings) == [
        Column('leased and 2 more', ('leased', 'own', 'win'), (0, 2, 3)),
        Column('open', ('open',), (1,)),
    ]


def test_an_aggregate_can_be_partly_open():
    windows = make_aggregate('windows', WINDOWS, ['a'])
    rack = make_aggregate('rack', {}, ['a', 'b'])
    empty = make_aggregate('empty')
    nodes = [make_compute_node('a'), make_compute_node('b')]
    findings = judged(make_snapshot([windows, rack, empty], nodes), PLAIN)
    [row] = findings.rows
    shown = columns.by_aggregate(findings, [windows, rack, empty])
    assert [(c.name, columns.access(row, c).value) for c in shown] == [
        ('windows', 'no'),
        ('rack', 'some'),
        ('empty', 'no'),
    ]
    assert [c.hosts for c in shown] == [('a',), ('a', 'b'), ()]
    assert list(columns.reasons(row.objections).values()) == [[0]]
    assert findings.groups[0].hosts == ('a',)


def test_unlocked_hosts_have_their_own_column(snapshot):
    locks = [Lock('trait:', 'trait:CUSTOM_WINDOWS', snapshot.aggregates[:1])]
    findings = judged(snapshot, PLAIN, locks=locks)
    shown = columns.by_lock(findings, locks)
    assert [(c.name, c.hosts) for c in shown] == [
        ('trait:CUSTOM_WINDOWS', ('win',)),
        ('(no lock)', ('leased', 'open', 'own')),
    ]
    assert columns.by_lock(judged(make_snapshot(), PLAIN), ()) == []


def test_what_a_matrix_is_computed_with_is_freed_at_once():
    hosts = HostSets(Snapshot('test'))
    hosts.members(frozenset())
    kept = weakref.ref(hosts)
    del hosts
    assert kept() is None
