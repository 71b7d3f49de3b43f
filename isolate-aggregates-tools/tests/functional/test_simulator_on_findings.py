# SPDX-License-Identifier: Apache-2.0
"""The simulator answers what few expect of Placement, as Placement does.

These are the inputs of the programs in ``findings`` about candidates, and of
the table "Answers that few expect" in the documentation.
"""

from collections import Counter
import dataclasses

from cases import cases
import test_simulator_differential as differential

from isolate_aggregates_tools.placement.provider import Inventory

real = differential.real
placement = differential.placement
both = differential.both

GPU = 'CUSTOM_A'
HOST = differential.provider(0, {'VCPU': 8}, aggregates=differential.HERE)
STORAGE = differential.provider(
    1,
    {'DISK_GB': 100},
    aggregates=differential.HERE,
    traits=differential.SHARES,
)
ALONE = differential.provider(2, {'VCPU': 8})
CHILDREN = [
    differential.provider(3, {'SRIOV_NET_VF': 1}, ALONE),
    differential.provider(
        4, {'SRIOV_NET_VF': 1}, ALONE, aggregates=differential.HERE
    ),
]
NARROW = dataclasses.replace(
    differential.provider(5, {}),
    inventories={'VCPU': Inventory(8, min_unit=4, max_unit=2)},
)
FRACTION = dataclasses.replace(
    differential.provider(7, {}),
    inventories={'VCPU': Inventory(100, allocation_ratio=1.15)},
)
WITH_TRAIT = differential.provider(6, {'VCPU': 8}, traits=frozenset([GPU]))
GROUPS = [('resources1', 'VCPU:1'), ('required2', GPU)]


@cases(
    ('providers', 'query', 'offered'),
    {
        'a shared disk': (
            [HOST, STORAGE],
            [('resources', 'VCPU:1,DISK_GB:5')],
            1,
        ),
        'a shared disk and in_tree': (
            [HOST, STORAGE],
            [('resources', 'VCPU:1,DISK_GB:5'), ('in_tree', HOST.uuid)],
            0,
        ),
        'a shared disk in a group, and in_tree': (
            [HOST, STORAGE],
            [
                ('resources', 'VCPU:1'),
                ('in_tree', HOST.uuid),
                ('resources1', 'DISK_GB:5'),
            ],
            1,
        ),
        'a child in the aggregate of storage': (
            [ALONE, *CHILDREN, STORAGE],
            [('resources', 'VCPU:1,DISK_GB:5')],
            1,
        ),
        'in_tree with one child, and a device of either': (
            [ALONE, *CHILDREN, STORAGE],
            [
                ('resources', 'VCPU:1,DISK_GB:5'),
                ('resources1', 'SRIOV_NET_VF:1'),
                ('in_tree1', CHILDREN[0].uuid),
                ('group_policy', 'none'),
            ],
            2,
        ),
        'min_unit above max_unit': ([NARROW], [('resources', 'VCPU:4')], 0),
        'all that a ratio with a fraction leaves': (
            [FRACTION],
            [('resources', 'VCPU:114')],
            1,
        ),
        'one more, which is the product on paper': (
            [FRACTION],
            [('resources', 'VCPU:115')],
            0,
        ),
        # The summaries, compared below, have both classes of the whole tree.
        'a class of the children only': (
            [ALONE, *CHILDREN],
            [('resources', 'SRIOV_NET_VF:1')],
            2,
        ),
        'a class named twice': (
            [HOST],
            [('resources', 'VCPU:9,VCPU:1')],
            1,
        ),
        'two lists of resources': (
            [HOST],
            [('resources', 'VCPU:9'), ('resources', 'VCPU:1')],
            1,
        ),
        'a group with traits only': (
            [WITH_TRAIT],
            [*GROUPS, ('same_subtree', '1,2'), ('group_policy', 'none')],
            1,
        ),
        'a group with traits only, which isolate counts': (
            [WITH_TRAIT],
            [*GROUPS, ('same_subtree', '1,2'), ('group_policy', 'isolate')],
            0,
        ),
    },
)
def test_the_simulator_offers_what_placement_offers(
    both, providers, query, offered
):
    both = both(providers)
    ours, summaries = both.ours(query)
    theirs = both.theirs(query)
    assert (Counter(theirs[0]), theirs[1]) == (Counter(ours), summaries)
    assert len(ours) == offered
