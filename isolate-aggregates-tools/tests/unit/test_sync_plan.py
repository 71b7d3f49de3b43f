# SPDX-License-Identifier: Apache-2.0
"""What sync plans: each rule, in both directions."""

from cases import cases
import pytest

from isolate_aggregates.aggregates import (
    Aggregate,
    AggregateIndex,
    Lock,
    rollups,
)
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.operate.sync import plan as plans
from isolate_aggregates_tools.operate.sync.snapshot import SyncSnapshot
from isolate_aggregates_tools.operate.sync.target import ProviderChange, Target
from isolate_aggregates_tools.placement.provider import Provider

X, Y = 'CUSTOM_X', 'CUSTOM_Y'
MARK_X = 'CUSTOM_ISOLATE_SYNC_CUSTOM_X'
MARK_Y = 'CUSTOM_ISOLATE_SYNC_CUSTOM_Y'
ROLLUP_X = rollups.uuid_of('trait:CUSTOM_X')
MARK_ROLLUP_X = marks.of_rollup(ROLLUP_X)
STANDARD = {'HW_NIC_SRIOV', 'HW_CPU_X86_AVX2', 'COMPUTE_NODE'}

REQUIRES_X = Aggregate(
    'uuid-x', 'win', {'trait:CUSTOM_X': 'required'}, frozenset({'h1'})
)
ALSO_X = Aggregate(
    'uuid-x2', 'win-2', {'trait:CUSTOM_X': 'required'}, frozenset({'h2'})
)
PLAIN = Aggregate('uuid-plain', 'rack', {'a': 'b'}, frozenset({'h1'}))


def node(name='h1', traits=(), aggregates=(), host=None):
    return Provider(
        f'uuid-{name}',
        name,
        host=host or name,
        traits=frozenset(traits),
        aggregates=frozenset(aggregates),
    )


def made(aggregates, nodes, parts=tuple(plans.Part), more_traits=()):
    """Plan for a cloud; Placement has its traits and a few more."""
    index = AggregateIndex(aggregates)
    traits = STANDARD.union(more_traits, *(n.traits for n in nodes))
    locks = IsolateAggregates().locks(index)
    snapshot = SyncSnapshot(index, tuple(nodes), frozenset(traits))
    return plans.make(snapshot, locks, parts)


def in_short(plan):
    return [f'{c.provider}: {c.action} {c.subject}' for c in plan.changes]


def after(plan, node):
    """Return traits and aggregates of a node once the plan is done."""
    [target] = [t for t in plan.targets if t.provider == node.uuid]
    return (
        target.traits_after(node.traits),
        target.aggregates_after(node.aggregates),
    )


# Traits.

TRAITS = [plans.Part.TRAITS]


@pytest.mark.parametrize(
    ('trait', 'opposite'),
    [
        ('CUSTOM_BOOT_ENABLED_TRUE', 'CUSTOM_BOOT_ENABLED_FALSE'),
        ('CUSTOM_SGX_OFF', 'CUSTOM_SGX_ON'),
        ('CUSTOM_SGX_DISABLED', 'CUSTOM_SGX_ENABLED'),
    ],
)
def test_no_trait_is_added_beside_its_opposite(trait, opposite):
    aggregate = Aggregate(
        'uuid-a', 'a', {f'trait:{trait}': 'required'}, frozenset({'h1', 'h2'})
    )
    first, other = node('h1', [opposite]), node('h2')
    plan = made([aggregate], [first, other], TRAITS)
    assert in_short(plan) == [f'h2: add trait {trait}']
    assert plan.problems == (
        f'aggregate a: host h1 has no {trait}, and sync does not add it: '
        f'another program keeps {opposite}, which contradicts it; remove the '
        'host from the aggregate',
    )
    # One that sync has added earlier is no better.
    marked = node('h1', [opposite, trait, marks.of_trait(trait)])
    [change] = made([aggregate], [marked], TRAITS).changes
    assert (change.action, change.why) == (
        'remove trait',
        f'sync added it, and {opposite} contradicts it',
    )


@cases(
    ('required', 'before', 'expected', 'changes'),
    {
        'missing: added with its mark': (
            True, [], {X, MARK_X}, ['add trait CUSTOM_X']),
        "somebody else's: left unmarked": (True, [X], {X}, []),
        'done before': (True, [X, MARK_X], {X, MARK_X}, []),
        'removed by others: added again': (
            True, [MARK_X], {X, MARK_X}, ['add trait CUSTOM_X']),
        'no longer required: removed with its mark': (
            False, [X, MARK_X], set(), ['remove trait CUSTOM_X']),
        "somebody else's: stays": (False, [X], {X}, []),
        'only the mark is left: removed': (
            False, [MARK_X], set(), [f'remove trait {MARK_X}']),
        'nothing there': (False, [], set(), []),
    },
)  # fmt: skip
def test_a_trait_is_added_and_removed_with_its_mark(
    required, before, expected, changes
):
    host = node(traits=[*before, 'HW_NIC_SRIOV'])
    plan = made([REQUIRES_X] if required else [], [host], TRAITS)
    assert after(plan, host)[0] == {*expected, 'HW_NIC_SRIOV'}
    assert in_short(plan) == [f'h1: {change}' for change in changes]
    assert [t.name for t in plan.pending] == ['h1' for _ in changes]


def test_each_trait_has_its_own_mark():
    host = node(traits=[X, MARK_X, Y])
    lab = Aggregate(
        'uuid-lab', 'lab', {'trait:CUSTOM_Y': 'required'}, frozenset({'h1'})
    )
    assert after(made([lab], [host], TRAITS), host)[0] == {Y}


def test_a_trait_stays_for_as_long_as_one_aggregate_requires_it():
    host = node(traits=[X, MARK_X])
    other = Aggregate('uuid-o', 'o', REQUIRES_X.metadata, REQUIRES_X.hosts)
    assert made([REQUIRES_X, other], [host], TRAITS).changes == ()
    assert made([other], [host], TRAITS).changes == ()


def test_all_nodes_of_a_host_get_its_traits_and_other_hosts_do_not():
    nodes = [node('n1', host='h1'), node('n2', host='h1'), node('h2')]
    plan = made([REQUIRES_X], nodes, TRAITS)
    assert in_short(plan) == [
        'n1: add trait CUSTOM_X',
        'n2: add trait CUSTOM_X',
    ]


def test_only_traits_that_placement_lacks_are_created():
    plan = made([REQUIRES_X], [node()], TRAITS)
    assert plan.new_traits == (MARK_X, X)
    plan = made([REQUIRES_X], [node()], TRAITS, more_traits=[X])
    assert plan.new_traits == (MARK_X,)
    nic = Aggregate(
        'uuid-n', 'n', {'trait:HW_NIC_SRIOV': 'required'}, frozenset({'h1'})
    )
    plan = made([nic], [node()], TRAITS)
    assert plan.new_traits == ('CUSTOM_ISOLATE_SYNC_HW_NIC_SRIOV',)


def test_unused_marks_are_deleted():
    hosts = [node('h1', [X, MARK_X]), node('h2', [Y, MARK_Y])]
    lab = Aggregate(
        'uuid-lab', 'lab', {'trait:CUSTOM_Y': 'required'}, frozenset({'h2'})
    )
    plan = made(
        [lab], hosts, TRAITS, more_traits=['CUSTOM_ISOLATE_SYNC_CUSTOM_OLD']
    )
    assert plan.old_marks == ('CUSTOM_ISOLATE_SYNC_CUSTOM_OLD', MARK_X)


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('trait:CUSTOM_X', ' required'),
        ('trait:CUSTOM_X', 'forbidden'),
        ('Trait:CUSTOM_X', 'required'),
        ('trait:custom_x', 'required'),
        ('trait:', 'required'),
        ('traits:CUSTOM_X', 'required'),
    ],
)
def test_metadata_that_requires_no_trait_adds_none(key, value):
    aggregate = Aggregate('uuid-a', 'a', {key: value}, frozenset({'h1'}))
    assert made([aggregate], [node()], TRAITS).changes == ()


def test_values_that_a_database_equates_with_required_add_the_trait():
    aggregate = Aggregate(
        'uuid-a', 'a', {'trait:CUSTOM_X': 'Required'}, frozenset({'h1'})
    )
    [change] = made([aggregate], [node()], TRAITS).changes
    assert (change.action, change.subject) == ('add trait', 'CUSTOM_X')


def test_a_tag_without_effect_is_a_problem():
    aggregate = Aggregate(
        'uuid-a', 'a', {'trait:custom_x': 'required'}, frozenset({'h1'})
    )
    [problem] = made([aggregate], [node()], TRAITS).problems
    assert problem.startswith('aggregate a: trait:custom_x=required cannot')


@pytest.mark.parametrize(
    ('trait', 'reason'),
    [
        pytest.param(
            trait, 'nova-compute reports it, or it has a special meaning; '
            'require a CUSTOM_ trait instead', id=trait,
        )
        for trait in (
            'HW_CPU_X86_AVX2',
            'COMPUTE_TRUSTED_CERTS',
            'HW_ARCH_X86_64',
            'HW_NUMA_ROOT',
            'MISC_SHARES_VIA_AGGREGATE',
            'OWNER_NOVA',
        )
    ]
    + [
        pytest.param(
            MARK_X, 'such names are reserved for sync; choose another',
            id='a mark',
        ),
        pytest.param(
            MARK_ROLLUP_X, 'such names are reserved for sync; choose another',
            id='the mark of a rollup',
        ),
        pytest.param(
            'CUSTOM_' + 'X' * 229,
            'its name is too long to be marked; choose a shorter one',
            id='too long',
        ),
    ],
)  # fmt: skip
def test_a_missing_standard_trait_is_a_problem(trait, reason):
    aggregate = Aggregate(
        'uuid-a', 'a', {f'trait:{trait}': 'required'},
        frozenset({'h1', 'h2', 'h3'}),
    )  # fmt: skip
    nodes = [node('h1'), node('h2'), node('h3', [trait])]
    plan = made([aggregate], nodes, TRAITS)
    assert [c for c in plan.changes if c.action == 'add trait'] == []
    assert plan.problems[-1] == (
        f'aggregate a: hosts h1, h2 have no {trait}, and sync does not add '
        f'it: {reason}'
    )
    with_it = [node(name, [trait]) for name in ('h1', 'h2', 'h3')]
    problems = made([aggregate], with_it, TRAITS).problems
    assert not [p for p in problems if 'sync does not' in p]


def test_the_trait_of_reservation_providers_is_never_put_on_a_host():
    pool = Aggregate(
        'uuid-pool',
        'freepool',
        {'trait:CUSTOM_RESERVATION_HOST': 'required'},
        frozenset({'h1'}),
    )
    host = node()
    plan = made([pool], [host], TRAITS)
    assert after(plan, host)[0] == frozenset()
    assert (plan.changes, plan.new_traits, plan.problems) == ((), (), ())


def test_a_standard_trait_unknown_to_placement_is_a_problem():
    aggregate = Aggregate(
        'uuid-a', 'a', {'trait:HW_NEW': 'required'}, frozenset({'h1'})
    )
    plan = made([aggregate], [node()], TRAITS)
    assert plan.changes == ()
    assert plan.problems[-1] == (
        'aggregate a: host h1 has no HW_NEW, and sync does not add it: this '
        'Placement does not know it; traits that are not standard must start '
        'with CUSTOM_'
    )
    plan = made([aggregate], [node()], TRAITS, more_traits=['HW_NEW'])
    assert in_short(plan) == ['h1: add trait HW_NEW']


def test_the_longest_trait_name_with_a_valid_mark_is_added():
    trait = 'CUSTOM_' + 'X' * 228
    aggregate = Aggregate(
        'uuid-a', 'a', {f'trait:{trait}': 'required'}, frozenset({'h1'})
    )
    plan = made([aggregate], [node()], TRAITS)
    assert in_short(plan) == [f'h1: add trait {trait}']
    assert max(map(len, plan.new_traits)) == 255


# Mirror.

MIRROR = [plans.Part.MIRROR]


def test_providers_become_members_of_the_aggregates_of_their_host():
    host = node(aggregates=['uuid-others', 'uuid-x'])
    plan = made([REQUIRES_X, PLAIN], [host, node('h2')], MIRROR)
    assert in_short(plan) == ['h1: add aggregate rack']
    assert after(plan, host)[1] == {'uuid-others', 'uuid-x', 'uuid-plain'}


def test_a_membership_that_nova_does_not_have_is_left_alone():
    host = node('h2', aggregates=['uuid-x'])
    assert made([REQUIRES_X], [host, node()], MIRROR).pending[0].name == 'h1'
    assert after(made([REQUIRES_X], [host], MIRROR), host)[1] == {'uuid-x'}


# Rollups.

ROLLUPS = [plans.Part.ROLLUPS]


def test_providers_become_members_of_the_rollups_of_their_aggregates():
    nodes = [node('h1'), node('h2'), node('h3')]
    plan = made([REQUIRES_X, ALSO_X, PLAIN], nodes, ROLLUPS)
    assert in_short(plan) == [
        'h1: add rollup trait:CUSTOM_X',
        'h2: add rollup trait:CUSTOM_X',
    ]
    assert after(plan, nodes[1])[1] == {ROLLUP_X}
    assert plan.new_traits == (MARK_ROLLUP_X,)


def test_members_known_only_to_placement_are_in_the_rollup():
    # Forbidding the aggregate itself excludes it, no matter what Nova has.
    left = node('h3', aggregates=['uuid-x'])
    plan = made([REQUIRES_X, ALSO_X], [left], ROLLUPS)
    assert in_short(plan) == ['h3: add rollup trait:CUSTOM_X']
    assert after(plan, left)[1] == {'uuid-x', ROLLUP_X}


def other(*aggregates, traits=()):
    """Return a plan, and a root provider without compute service in it."""
    root = Provider(
        'uuid-other',
        'other',
        traits=frozenset(traits),
        aggregates=frozenset(aggregates),
    )
    index = AggregateIndex([REQUIRES_X, ALSO_X])
    snapshot = SyncSnapshot(index, (), frozenset(STANDARD), others=(root,))
    return plans.make(snapshot, IsolateAggregates().locks(index)), root


SHARING = {'MISC_SHARES_VIA_AGGREGATE', X, MARK_X}


def test_a_provider_that_shares_is_in_no_rollup():
    plan, pool = other('uuid-x', traits=SHARING)
    assert in_short(plan) == []
    assert after(plan, pool) == (pool.traits, {'uuid-x'})


def test_a_provider_that_shares_is_taken_out_of_rollups():
    plan, pool = other('uuid-x', ROLLUP_X, traits=SHARING)
    assert in_short(plan) == ['other: remove rollup trait:CUSTOM_X']
    # Other traits belong to other programs.
    assert after(plan, pool) == (pool.traits, {'uuid-x'})


@pytest.mark.parametrize('rollup', [(), (ROLLUP_X,)])
def test_a_node_of_a_cell_that_is_down_stays_where_it_is(rollup):
    plan, lost = other('uuid-x', *rollup)
    assert in_short(plan) == []
    assert after(plan, lost)[1] == {'uuid-x', *rollup}


def test_a_provider_leaves_a_rollup_of_other_aggregates():
    host = node('h3', aggregates=[ROLLUP_X, 'uuid-others'])
    plan = made([REQUIRES_X, ALSO_X], [host], ROLLUPS)
    assert in_short(plan) == ['h3: remove rollup trait:CUSTOM_X']
    assert after(plan, host)[1] == {'uuid-others'}


def test_an_obsolete_rollup_is_recognized_by_its_mark():
    host = node(aggregates=[ROLLUP_X, 'uuid-others'])
    plan = made([REQUIRES_X], [host], ROLLUPS, more_traits=[MARK_ROLLUP_X])
    assert in_short(plan) == [f'h1: remove rollup {ROLLUP_X}']
    assert after(plan, host)[1] == {'uuid-others'}
    assert plan.old_marks == (MARK_ROLLUP_X,)


def test_an_obsolete_rollup_is_named_after_a_marked_trait():
    hosts = [node(aggregates=[ROLLUP_X]), node('h2', [X, MARK_X])]
    plan = made([], hosts, ROLLUPS, more_traits=[MARK_ROLLUP_X])
    assert in_short(plan) == ['h1: remove rollup trait:CUSTOM_X']


def test_an_unmarked_rollup_is_left_alone():
    host = node(aggregates=[ROLLUP_X])
    assert made([REQUIRES_X], [host], ROLLUPS).changes == ()


def test_a_rollup_with_members_gets_its_mark_again():
    nodes = [node(name, aggregates=[ROLLUP_X]) for name in ('h1', 'h2')]
    plan = made([REQUIRES_X, ALSO_X], nodes, ROLLUPS)
    assert plan.changes == ()
    assert plan.new_traits == (MARK_ROLLUP_X,)
    assert plan.old_marks == ()


def test_locks_of_any_family_have_rollups():
    index = AggregateIndex([REQUIRES_X, ALSO_X])
    lock = Lock('reservation:', 'reservation:', (REQUIRES_X, ALSO_X))
    snapshot = SyncSnapshot(index, (node('h2'),), frozenset())
    plan = plans.make(snapshot, [lock], ROLLUPS)
    assert in_short(plan) == ['h2: add rollup reservation:']


# All of it.


def test_disabled_parts_change_nothing():
    host = node(traits=[Y, MARK_Y], aggregates=[ROLLUP_X])
    more_traits = [MARK_ROLLUP_X]
    cloud = [REQUIRES_X], [host]
    assert in_short(made(*cloud, TRAITS, more_traits)) == [
        'h1: add trait CUSTOM_X',
        'h1: remove trait CUSTOM_Y',
    ]
    assert in_short(made(*cloud, MIRROR, more_traits)) == [
        'h1: add aggregate win'
    ]
    assert in_short(made(*cloud, ROLLUPS, more_traits)) == [
        f'h1: remove rollup {ROLLUP_X}'
    ]
    assert made(*cloud, [], more_traits).changes == ()
    assert made(*cloud, MIRROR, more_traits).old_marks == ()
    assert made(*cloud, ROLLUPS, more_traits).old_marks == (MARK_ROLLUP_X,)
    assert made(*cloud, TRAITS, more_traits).old_marks == (MARK_Y,)


def test_changes_name_the_provider_the_action_and_the_reason():
    nodes = [node('n1', host='h1'), node('h2', [Y, MARK_Y], [ROLLUP_X])]
    other = Aggregate('uuid-o', 'o', REQUIRES_X.metadata, REQUIRES_X.hosts)
    assert made([REQUIRES_X, other], nodes).changes == (
        ProviderChange(
            'h1', 'n1', 'add aggregate', 'win',
            'the host is in it, but its resource provider is not',
        ),
        ProviderChange(
            'h1', 'n1', 'add aggregate', 'o',
            'the host is in it, but its resource provider is not',
        ),
        ProviderChange(
            'h1', 'n1', 'add rollup', 'trait:CUSTOM_X',
            'it stands for aggregates o, win',
        ),
        ProviderChange(
            'h1', 'n1', 'add trait', 'CUSTOM_X',
            'aggregates o, win require it',
        ),
        ProviderChange(
            'h2', 'h2', 'remove rollup', 'trait:CUSTOM_X',
            'it no longer stands for any aggregate of the host',
        ),
        ProviderChange(
            'h2', 'h2', 'remove trait', 'CUSTOM_Y',
            'sync added it, and no aggregate of the host requires it any '
            'longer',
        ),
    )  # fmt: skip


def test_a_host_without_a_compute_node_is_a_problem():
    many = Aggregate(
        'uuid-m', 'many', hosts=frozenset(f'h{n}' for n in range(8))
    )
    assert made([REQUIRES_X, many], [node('h0')]).problems == (
        'aggregate win: host h1 has no compute node with a resource provider; '
        'check that nova-compute runs there, or remove it from the aggregate',
        'aggregate many: hosts h1, h2, h3, h4, h5 and 2 more have no compute '
        'node with a resource provider; check that nova-compute runs there, '
        'or remove it from the aggregate',
    )


def test_problems_found_while_reading_are_reported():
    snapshot = SyncSnapshot(
        AggregateIndex(), (), frozenset(), ('something is odd',)
    )
    assert plans.make(snapshot, []).problems == ('something is odd',)


# Marks.


def test_marks_can_be_parsed():
    uuid = 'f461ca9d-484f-55e4-86a3-4e8052e6eec1'
    mark = marks.of_rollup(uuid)
    assert mark == 'CUSTOM_ISOLATE_ROLLUP_F461CA9D_484F_55E4_86A3_4E8052E6EEC1'
    assert marks.marked_rollups([mark, X, MARK_X]) == {uuid}
    assert marks.marked_traits([mark, X, MARK_X]) == {X}
    assert [marks.is_mark(t) for t in (mark, MARK_X, X)] == [True, True, False]


@pytest.mark.parametrize(
    ('member', 'change'),
    [
        (
            True,
            'h1, p1: add aggregate win: the host came back to it meanwhile',
        ),
        (False, 'h1, p1: remove aggregate win: the host left it meanwhile'),
    ],
)
def test_a_correction_says_what_happened_in_nova(member, change):
    corrected = Target('u1', 'p1', 'h1').correction(
        Aggregate('a', 'win'), member
    )
    assert change == (
        f'{corrected.host}, {corrected.provider}: {corrected.action} '
        f'{corrected.subject}: {corrected.why}'
    )
