# SPDX-License-Identifier: Apache-2.0
"""The audit of aggregates and hosts: memberships, traits, tags, rollups."""

import dataclasses

from audit_clouds import (
    LICENSED,
    LOCK,
    configuration,
    findings,
    findings_of,
    first,
    kinds,
    lines,
)
from cases import cases
import pytest

from isolate_aggregates.aggregates import rollups
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.audit import Severity
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.compute.servers import ComputeService
from isolate_aggregates_tools.placement.provider import Inventory, Provider
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_provider,
    make_snapshot,
    make_tree,
)

SYNC = 'isolate-aggregates sync'
BETWEEN = 'trait:CUSTOM_CLOSED_DURING_REPAIR'
CLOSE = f'aggregate set --property {BETWEEN}=required 7'
OPEN = f'aggregate unset --property {BETWEEN} 7'
WIN = make_aggregate('win', LOCK, ['h1'], id=7)
KEYED = make_flavor('win.small', LOCK)
LICENSED_H1 = make_compute_node('h1', traits=[LICENSED])
SHARED = '3a5b7c9d-0e1f-4a2b-8c3d-4e5f6a7b8c9d'


def test_a_correct_cloud_is_clean():
    assert (
        findings(
            [WIN],
            [LICENSED_H1, make_compute_node('h2')],
            [KEYED, make_flavor()],
        )
        == []
    )


# Memberships.


@cases(
    ('metadata', 'severity'),
    {
        'locked: open to everyone': (LOCK, Severity.ERROR),
        'not locked': ({}, Severity.WARNING),
    },
)
def test_a_host_missing_from_an_aggregate_in_placement_is_found(
    metadata, severity
):
    aggregate = make_aggregate('win', metadata, ['h1', 'h2'])
    [finding] = findings(
        [aggregate],
        [
            make_compute_node('h1', traits=[LICENSED]),
            make_compute_node('h2', traits=[LICENSED], aggregates=[aggregate]),
        ],
        [KEYED],
        mirror=False,
    )
    assert (finding.kind, finding.severity) == ('not-in-placement', severity)
    assert finding.subject == 'aggregate win'
    assert finding.problem == 'does not have h1 in Placement'
    assert (first(finding), finding.safe) == (SYNC, True)


def in_spelling(spell):
    """Return a cloud whose host is in an aggregate with another spelling."""
    cloud = make_snapshot([WIN], [LICENSED_H1], flavors=[KEYED], mirror=False)
    [node] = cloud.providers
    node = dataclasses.replace(node, aggregates=frozenset({spell(WIN.uuid)}))
    return dataclasses.replace(cloud, providers=(node,))


def saved_and_read(cloud, folder):
    """Return a cloud as its file has it."""
    for _ in range(2):
        cloud_file.save(cloud, folder / 'cloud.yaml')
        cloud = cloud_file.load(folder / 'cloud.yaml')
    return cloud


@cases(
    'spell',
    {'upper case': str.upper, 'no hyphens': lambda u: u.replace('-', '')},
)
@cases('read', {'live': lambda snapshot, _: snapshot, 'saved': saved_and_read})
def test_a_membership_in_another_spelling_is_named(spell, read, tmp_path):
    cloud = read(in_spelling(spell), tmp_path)
    [finding] = findings_of(cloud)
    spelling = spell(WIN.uuid)
    assert (finding.kind, finding.severity) == (
        'not-in-placement',
        Severity.ERROR,
    )
    assert finding.problem == (
        f'does not have h1 in Placement; there its uuid is written {spelling}'
    )
    assert (first(finding), finding.safe) == (SYNC, True)
    # The database may take for one what differs in case only.
    advice = [each.text for each in finding.repairs[1:]]
    assert ['LOWER(uuid)' in each for each in advice] == (
        [True] if '-' in spelling else []
    )


def test_a_host_that_offers_nothing_is_found():
    services = [ComputeService('h1'), ComputeService('h2')]
    empty = make_compute_node('h1', inventories={})
    [finding] = findings(
        [], [empty, make_compute_node('h2')], services=services
    )
    assert (finding.kind, finding.severity) == (
        'host-without-inventory',
        Severity.WARNING,
    )
    assert finding.about.hosts == ('h1',)
    [repair] = finding.repairs
    assert 'provider.yaml' in repair.text


@cases(
    ('providers', 'is_up'),
    {
        'a child has one': (
            [
                make_tree(
                    make_compute_node('h1', inventories={}),
                    make_provider('numa0', inventories={'VCPU': 4}),
                )
            ],
            True,
        ),
        'one of two nodes has one': (
            [
                make_compute_node('n1', host='h1', inventories={}),
                make_compute_node('n2', host='h1'),
            ],
            True,
        ),
    },
)
def test_a_host_offers_something_somewhere(providers, is_up):
    services = [ComputeService('h1', is_up=is_up)]
    assert kinds([], providers, services=services) == []


def test_a_host_that_is_down_is_not_expected_to_offer_anything():
    services = [ComputeService('h1', is_up=False)]
    empty = make_compute_node('h1', inventories={})
    assert kinds([], [empty], services=services) == ['service-down']


def test_a_host_that_shares_through_a_child_is_found():
    nfs = make_provider(
        'nfs',
        inventories={'DISK_GB': 500},
        traits=['MISC_SHARES_VIA_AGGREGATE'],
        aggregates=[SHARED],
    )
    child = make_provider(
        'numa0', inventories={'VCPU': 4}, aggregates=[SHARED]
    )
    tree = make_tree(make_compute_node('h1'), child)
    [finding] = findings([], [nfs, tree])
    assert (finding.kind, finding.severity) == (
        'shared-through-child',
        Severity.INFO,
    )
    assert finding.subject == 'host h1'
    assert finding.problem == (
        'only its provider numa0 is in an aggregate with nfs'
    )
    with_root = make_tree(make_compute_node('h1', aggregates=[SHARED]), child)
    assert findings([], [nfs, with_root]) == []
    assert findings([], [tree]) == []


@cases('name', {'of one name': 'h2', 'with a domain': 'h2.example.org'})
def test_a_host_that_is_mapped_to_no_cell(name):
    services = (ComputeService('h1'), ComputeService('h2'))
    racks = make_aggregate('racks', {}, ['h1', 'h2'])
    h1 = make_compute_node('h1', aggregates=[racks])
    h2 = make_provider(name, aggregates=[racks])
    [finding] = findings([racks], [h1, h2], mirror=False, services=services)
    assert finding.kind == 'host-not-mapped'
    assert finding.subject == 'host h2'
    assert f'resource provider {name}' in finding.problem
    assert finding.about.hosts == ('h2',)
    [repair] = finding.repairs
    assert 'cell_v2 discover_hosts' in repair.text


@cases(
    'others',
    {
        'no provider': [],
        'another name': [make_provider('h3')],
        'shared storage': [
            make_provider('h2', traits=['MISC_SHARES_VIA_AGGREGATE'])
        ],
        'two of that name': [
            make_provider('h2.example.org'),
            make_provider('h2.example.net'),
        ],
    },
)
def test_services_without_nodes_may_be_those_of_ironic(others):
    services = (ComputeService('h1'), ComputeService('h2'))
    providers = [make_compute_node('h1'), *others]
    assert kinds([], providers, services=services) == []


def test_each_node_of_a_host_must_be_in_the_aggregate():
    ironic = make_aggregate('metal', {}, ['h1'])
    nodes = [
        make_compute_node('node-1', host='h1', aggregates=[ironic]),
        make_compute_node('node-2', host='h1'),
    ]
    assert kinds([ironic], nodes, mirror=False) == ['not-in-placement']


def test_a_host_that_only_placement_has_in_an_aggregate():
    other = 'f7b3c2f4-6d33-4c7f-8b0a-31d0b7a1c001'
    node = make_compute_node(
        'h2', traits=[LICENSED], aggregates=[WIN, other], uuid=other
    )
    [finding] = [
        f
        for f in findings([WIN], [LICENSED_H1, node], [KEYED])
        if f.kind != 'trait-outside'
    ]
    assert finding.kind == 'not-in-nova'
    assert finding.subject == 'host h2'
    assert 'aggregate win' in finding.problem
    assert not finding.safe
    # What keeps the lock comes first.
    assert lines(finding) == [
        'openstack aggregate add host 7 h2',
        f'isolate-aggregates provider unset {other} --aggregate {WIN.uuid}',
    ]


@cases(
    'provider',
    {
        'an aggregate that Nova does not know': make_compute_node(
            'h2', aggregates=['f7b3c2f4-6d33-4c7f-8b0a-31d0b7a1c001']
        ),
        'a provider that shares with the aggregate': make_provider(
            'nfs',
            traits=['MISC_SHARES_VIA_AGGREGATE'],
            aggregates=[WIN],
        ),
    },
)
def test_memberships_of_others_are_left_alone(provider):
    assert kinds([WIN], [LICENSED_H1, provider], [KEYED]) == []


def test_a_host_without_a_compute_node():
    gone = make_aggregate('rack', {}, ['h1', 'gone'], id=3)
    node = make_compute_node('h1', aggregates=[gone])
    [finding] = findings([gone], [node], mirror=False)
    assert finding.kind == 'host-without-compute-node'
    assert 'gone' in finding.problem
    assert first(finding) == 'openstack aggregate remove host 3 gone'


def test_a_cloud_without_compute_nodes_is_not_called_clean():
    [finding] = findings([WIN], [], [KEYED], mirror=False)
    assert finding.kind == 'no-compute-nodes'
    assert finding.severity == Severity.WARNING


# Traits.


def test_a_host_without_the_trait_of_its_aggregate_is_found():
    aggregate = make_aggregate('win', LOCK, ['h1', 'h2'])
    providers = [LICENSED_H1, make_compute_node('h2')]
    [finding] = findings([aggregate], providers, [KEYED])
    assert (finding.kind, finding.severity) == (
        'trait-missing',
        Severity.ERROR,
    )
    assert finding.problem == (
        f'requires trait {LICENSED}, which is missing in Placement on h2'
    )
    assert (first(finding), finding.safe) == (SYNC, True)


TRUSTED, UNTRUSTED = 'CUSTOM_TRUSTED_TRUE', 'CUSTOM_TRUSTED_FALSE'


def test_no_sync_contradicts_a_trait_that_another_program_keeps():
    aggregate = make_aggregate(
        'trusted', {f'trait:{TRUSTED}': 'required'}, ['h1', 'h2'], id=5
    )
    nodes = [
        make_compute_node('h1', traits=[UNTRUSTED]),
        make_compute_node('h2'),
    ]
    flavor = make_flavor('f', {f'trait:{TRUSTED}': 'required'})
    found = findings([aggregate], nodes, [flavor])
    contradicted, missing = [f for f in found if f.kind == 'trait-missing']
    assert contradicted.problem == (
        f'requires trait {TRUSTED}, which is missing in Placement on h1, '
        f'where another program keeps {UNTRUSTED}'
    )
    assert lines(contradicted) == ['openstack aggregate remove host 5 h1']
    assert not contradicted.safe
    assert lines(missing) == [SYNC]


def test_a_node_of_ironic_leaves_the_aggregate_rather_than_get_a_trait():
    aggregate = make_aggregate('metal', LOCK, ['h1'], id=5)
    node = make_compute_node('node-1', host='h1', inventories={'CUSTOM_BM': 1})
    found = findings([aggregate], [node], [KEYED])
    [finding] = [f for f in found if f.kind == 'trait-missing']
    leave, add = lines(finding)
    assert leave == 'openstack aggregate remove host 5 h1'
    assert f'openstack baremetal node add trait node-1 {LICENSED}' in add


def test_what_another_node_of_the_service_has_is_not_given_by_sync():
    """Ironic keeps the traits of each, also of one that takes no servers."""
    aggregate = make_aggregate('metal', LOCK, ['bm', 'kvm'], id=5)
    nodes = [
        make_compute_node('node-1', host='bm', traits=[LICENSED]),
        make_compute_node('node-2', host='bm', inventories={}),
        make_compute_node('kvm'),
    ]
    found = findings([aggregate], nodes, [KEYED])
    of_ironic, other = [f for f in found if f.kind == 'trait-missing']
    assert 'is missing in Placement on bm (node-2)' in of_ironic.problem
    leave, _ = lines(of_ironic)
    assert leave == 'openstack aggregate remove host 5 bm'
    assert not of_ironic.safe
    assert 'is missing in Placement on kvm' in other.problem
    assert lines(other) == [SYNC]


GPU = make_tree(
    make_compute_node('h1'),
    make_provider('gpu', inventories={'VGPU': 4}, traits=[LICENSED]),
)
ASKING = make_flavor('gpu.small', {**LOCK, 'resources:VGPU': '1'})


def test_a_trait_below_a_host_counts_if_a_flavor_asks_for_its_resources():
    # Without these resources, the trait is not found.
    assert kinds([WIN], [GPU], [ASKING, KEYED]) == ['no-host']
    assert kinds([WIN], [GPU], [ASKING]) == []


def test_a_trait_below_a_host_needs_a_flavor_with_its_resources():
    finding, other = findings([WIN], [GPU], [KEYED])
    assert other.kind == 'no-host'
    assert (finding.kind, finding.severity) == (
        'trait-out-of-reach',
        Severity.ERROR,
    )
    assert finding.problem == (
        'on h1, only provider gpu has it, and no flavor that requires it also '
        'requests any of their resources'
    )


def test_a_trait_on_host_and_child_provider_is_no_problem():
    tree = make_tree(
        LICENSED_H1,
        make_provider('gpu', inventories={'VGPU': 4}, traits=[LICENSED]),
    )
    assert kinds([WIN], [tree], [KEYED]) == []


def test_hosts_in_the_reservation_pool_should_be_enabled():
    lock = {'trait:CUSTOM_RESERVATION_HOST': 'required'}
    pool = make_aggregate('freepool', lock, ['h1', 'h 2'])
    child = make_provider('blazar_h1', traits=['CUSTOM_RESERVATION_HOST'])
    providers = [
        make_tree(make_compute_node('h1'), child),
        make_compute_node('h 2'),
    ]
    [finding, *others] = findings(
        [pool], providers, [make_flavor('reserved', lock)]
    )
    assert [each.kind for each in others] == ['no-host']
    assert finding.kind == 'trait-missing'
    # The tag, without which the pool is open to all, stays.
    assert (first(finding), finding.safe) == (
        "isolate-aggregates reservation host set --enable 'h 2'",
        False,
    )


def test_a_missing_standard_trait_has_no_safe_repair():
    trait = 'HW_CPU_X86_AVX512F'
    aggregate = make_aggregate('avx', {f'trait:{trait}': 'required'}, ['h1'])
    aggregate = dataclasses.replace(aggregate, id=5)
    problems = findings(
        [aggregate],
        [make_compute_node('h1'), make_compute_node('h2', traits=[trait])],
        [make_flavor('avx', aggregate.metadata)],
    )
    repair = {f.kind: (first(f), f.safe) for f in problems}
    assert repair['trait-missing'] == (
        'openstack aggregate remove host 5 h1',
        False,
    )
    # nova-compute would report it anew.
    assert repair['trait-outside'] == (
        'openstack aggregate add host 5 h2',
        False,
    )


def test_a_standard_trait_on_many_hosts_is_one_finding():
    trait = 'HW_CPU_X86_VMX'
    vmx = make_aggregate('vmx', {f'trait:{trait}': 'required'}, ['h0'])
    nodes = [make_compute_node(f'h{n}', traits=[trait]) for n in range(9)]
    [finding] = findings([vmx], nodes, [make_flavor('f', vmx.metadata)])
    assert finding.subject == f'trait {trait}'
    assert 'h1, h2, h3, h4, h5 and 3 more' in finding.problem
    assert first(finding) is None


def test_a_trait_on_a_host_outside_every_aggregate_that_requires_it():
    leak = make_compute_node('h2', traits=[LICENSED, 'CUSTOM_B', 'CUSTOM_A'])
    [finding] = findings([WIN], [LICENSED_H1, leak], [KEYED])
    assert (finding.kind, finding.subject) == ('trait-outside', 'host h2')
    assert not finding.safe
    assert first(finding) == (
        f'isolate-aggregates provider unset {leak.uuid} --trait {LICENSED}'
    )


def test_a_trait_on_a_host_in_another_aggregate_that_requires_it():
    other = make_aggregate('win-2', LOCK, ['h2'])
    nodes = [LICENSED_H1, make_compute_node('h2', traits=[LICENSED])]
    assert kinds([WIN, other], nodes, [KEYED]) == []


def test_the_child_provider_with_the_trait_is_named():
    child = make_provider('gpu-0', traits=[LICENSED])
    tree = make_tree(make_compute_node('h2'), child)
    [finding] = findings([WIN], [LICENSED_H1, tree], [KEYED])
    assert 'gpu-0' in finding.problem
    assert child.uuid in first(finding)


@cases(
    ('tagged', 'kind'),
    {
        'another host still needs it': (True, 'trait-outside'),
        'no longer needed': (False, 'trait-left'),
    },
)
def test_sync_removes_traits_that_it_left_behind(tagged, kind):
    left = make_compute_node('h2', traits=[LICENSED, marks.of_trait(LICENSED)])
    aggregates = [WIN] if tagged else []
    [finding] = findings(aggregates, [LICENSED_H1, left], [KEYED])
    assert (finding.kind, first(finding), finding.safe) == (kind, SYNC, True)


# Tags.


@pytest.mark.parametrize('node', [LICENSED_H1, make_compute_node('h1')])
@pytest.mark.parametrize(
    ('key', 'value', 'kind', 'commands'),
    [
        (
            f'trait:{LICENSED}',
            'Required ',
            'tag-depends-on-database',
            [f'aggregate set --property trait:{LICENSED}=required 7'],
        ),
        (
            f'traits:{LICENSED}',
            'required',
            'tag-without-effect',
            [
                f'aggregate set --property trait:{LICENSED}=required 7',
                f'aggregate unset --property traits:{LICENSED} 7',
            ],
        ),
        # The wrong tag locks, so the right one has to be there before.
        (
            f'trait: {LICENSED}',
            'required',
            'tag-that-nothing-opens',
            [
                f'aggregate set --property trait:{LICENSED}=required 7',
                f"aggregate unset --property 'trait: {LICENSED}' 7",
            ],
        ),
        # MySQL takes these keys for the right one, and cannot have both. A
        # third one locks in between.
        (
            f'trait:{LICENSED.lower()}',
            'required',
            'tag-that-nothing-opens',
            [
                CLOSE,
                f'aggregate unset --property trait:{LICENSED.lower()} 7',
                f'aggregate set --property trait:{LICENSED}=required 7',
                OPEN,
            ],
        ),
        (
            f'trait:{LICENSED} ',
            'required',
            'tag-that-nothing-opens',
            [
                CLOSE,
                f"aggregate unset --property 'trait:{LICENSED} ' 7",
                f'aggregate set --property trait:{LICENSED}=required 7',
                OPEN,
            ],
        ),
        (
            f'Trait:{LICENSED}',
            'required',
            'tag-that-nothing-opens',
            [
                CLOSE,
                f'aggregate unset --property Trait:{LICENSED} 7',
                f'aggregate set --property trait:{LICENSED}=required 7',
                OPEN,
            ],
        ),
        (
            'trait:HW_NO_SUCH',
            'required',
            'tag-that-nothing-opens',
            ['aggregate unset --property trait:HW_NO_SUCH 7'],
        ),
        (
            'trait:',
            'required',
            'tag-that-nothing-opens',
            ['aggregate unset --property trait: 7'],
        ),
        (
            f'trait:{LICENSED}',
            'requíred',
            'tag-depends-on-database',
            [f'aggregate set --property trait:{LICENSED}=required 7'],
        ),
        (
            f'trait:{LICENSED}',
            'preferred',
            'tag-without-effect',
            [f'aggregate unset --property trait:{LICENSED} 7'],
        ),
    ],
)
def test_a_tag_without_effect_is_found(key, value, kind, commands, node):
    aggregate = make_aggregate('win', {key: value}, id=7)
    [finding] = [
        f for f in findings([aggregate], [node]) if f.kind.startswith('tag-')
    ]
    assert finding.kind == kind
    assert f'{key}={value}' in finding.problem
    assert not finding.safe
    assert first(finding) == ' && '.join(f'openstack {c}' for c in commands)


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('availability_zone', 'required'),
        ('filter_tenant_id', 'x'),
        ('traitor', 'required'),
        ('trait:HW_NOT_IN_OS_TRAITS_YET', 'required'),
    ],
)
def test_correct_and_foreign_tags_are_accepted(key, value):
    trait = key.removeprefix('trait:')
    aggregate = make_aggregate('win', {key: value}, ['h1'])
    # That of another os-traits than ours among them.
    node = dataclasses.replace(
        make_compute_node('h1'), traits=frozenset({trait} - {key})
    )
    assert kinds([aggregate], [node]) == []


@pytest.mark.parametrize(
    'name', ['$(reboot)', "it's; rm -rf /", '-f', 'a\nb', '<script>']
)
def test_names_are_quoted_for_the_shell(name):
    key = f'traits:{name}'
    aggregate = make_aggregate(name, {key: 'required'}, ['h1'])
    problems = findings([aggregate], [make_compute_node('h1')])
    [tag] = [f for f in problems if f.kind == 'tag-without-effect']
    guard = ('--',) if name.startswith('-') else ()
    words = ('openstack', 'aggregate', 'unset', '--property', key)
    assert tag.repairs[0].commands == ((*words, *guard, name),)
    assert first(tag) == commands.shown(tag.repairs[0].commands)


# Rollups.

TWO = [make_aggregate(f'win-{n}', LOCK, [f'h{n}']) for n in (1, 2)]
ROLLUP = rollups.uuid_of(f'trait:{LICENSED}')


def node(name, *memberships, traits=(LICENSED,)):
    """Return the compute node of a host with some traits."""
    return make_compute_node(name, traits=traits, aggregates=memberships)


def test_missing_rollups_are_ignored_if_there_are_none():
    assert kinds(TWO, [node('h1'), node('h2')], [KEYED]) == []


def test_a_lagging_rollup_is_reported_as_information():
    [finding] = findings(TWO, [node('h1', ROLLUP), node('h2')], [KEYED])
    assert (finding.kind, finding.severity) == (
        'rollup-lagging',
        Severity.INFO,
    )
    assert finding.subject == f'rollup trait:{LICENSED}'
    assert 'h2' in finding.problem
    assert (first(finding), finding.safe) == (SYNC, True)


def test_a_host_that_left_a_rollup_is_kept_out_until_the_next_sync():
    nodes = [node('h1', ROLLUP), node('h2', ROLLUP)]
    stale = node('h3', ROLLUP, traits=())
    [finding] = findings(TWO, [*nodes, stale], [KEYED])
    assert (finding.kind, finding.severity) == (
        'rollup-stale',
        Severity.WARNING,
    )
    assert 'h3' in finding.problem
    assert 'h1' not in finding.problem
    assert (first(finding), finding.safe) == (SYNC, True)


def test_storage_in_a_rollup_serves_hosts_that_do_not_reach_it():
    nodes = [node('h1', ROLLUP), node('h2', ROLLUP)]
    storage = make_provider(
        'nfs',
        traits=['MISC_SHARES_VIA_AGGREGATE'],
        aggregates=[TWO[0].uuid, ROLLUP],
    )
    [finding] = findings(TWO, [*nodes, storage], [KEYED])
    assert (finding.kind, finding.severity) == (
        'rollup-shared',
        Severity.ERROR,
    )
    assert finding.subject == 'resource provider nfs'
    assert f'is in rollup trait:{LICENSED};' in finding.problem
    assert (first(finding), finding.safe) == (SYNC, True)


def test_a_rollup_of_a_removed_lock_is_recognized_by_its_mark():
    gone = rollups.uuid_of('trait:CUSTOM_GONE')
    known = {LICENSED, marks.of_rollup(gone)}
    [finding] = findings(
        [WIN], [node('h1', gone)], [KEYED], traits=frozenset(known)
    )
    assert (finding.kind, finding.subject) == (
        'rollup-stale',
        f'rollup {gone}',
    )


def test_unused_marks_are_reported():
    idle = marks.of_rollup(ROLLUP)
    [finding] = findings(
        [WIN], [LICENSED_H1], [KEYED], traits=frozenset({LICENSED, idle})
    )
    assert (finding.kind, finding.severity) == ('marks-left', Severity.INFO)
    assert (first(finding), finding.safe) == (SYNC, True)


# The worst comes first.


def test_the_worst_findings_come_first():
    aggregates = [
        make_aggregate('a', {'trait:CUSTOM_X': 'preferred'}),
        make_aggregate('b', {'traits:CUSTOM_X': 'required'}),
    ]
    problems = findings(aggregates, [make_compute_node('h1')])
    assert [f.subject for f in problems] == ['aggregate b', 'aggregate a']


def test_locks_of_a_disabled_filter_are_audited():
    conf = configuration(enable_isolated_aggregate_filtering=False)
    assert kinds(
        [make_aggregate('win', LOCK, ['h1'])],
        [make_compute_node('h1')],
        [KEYED],
        conf=conf,
    ) == ['isolation-off', 'trait-missing', 'no-host']


@pytest.mark.parametrize(
    'options',
    [
        {'enable_isolated_aggregate_filtering': False},
        {'request_filters': ['isolate_tenants']},
    ],
)
def test_a_missing_trait_keeps_nobody_out_while_no_filter_locks(options):
    off, missing = findings(
        [WIN],
        [make_compute_node('h1')],
        conf=configuration(**options),
    )
    assert 'any server may land there' in off.consequence
    [repair] = off.repairs
    assert next(iter(options)) in repair.text
    assert '--config-file' in repair.text
    assert missing.consequence == (
        'servers that require the trait do not find it; no enabled filter '
        'keeps others out'
    )
    [missing] = findings([WIN], [make_compute_node('h1')])
    assert missing.consequence.startswith('no server can land on it: ')


def test_what_is_oversold_is_a_note_and_slots_are_not_in_it():
    slots = 'CUSTOM_RESERVATION_A'
    found = findings(
        providers=[
            Provider(
                uuid,
                uuid,
                host=uuid,
                inventories={
                    'VCPU': Inventory(8, reserved=2, allocation_ratio=1.5),
                    'DISK_GB': Inventory(10),
                    # Closed for a reservation that has ended.
                    slots: Inventory(2, reserved=2),
                },
                usages={'VCPU': vcpus, 'DISK_GB': 10, slots: 1},
            )
            for uuid, vcpus in (('h1', 10), ('h2', 9))
        ]
    )
    [note] = [f for f in found if f.kind == 'resource-oversold']
    assert note.severity is Severity.INFO
    assert note.subject == 'resource class VCPU'
    assert note.problem == 'more of it is used than there is on h1'
    assert note.about.hosts == ('h1',)
