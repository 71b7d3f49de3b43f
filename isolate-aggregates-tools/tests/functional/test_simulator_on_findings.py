# SPDX-License-Identifier: Apache-2.0
"""The simulator and the mock answer what few expect of Placement, as it does.

These are the inputs of the programs in ``findings`` about Placement, and of
the table "Answers that few expect" in the documentation.
"""

from collections import Counter
import dataclasses
import pathlib
from urllib import parse

from cases import cases
from mocked_answers import comparable
import placement_repairs
import random_clouds
import test_simulator_differential as differential

from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement.provider import Inventory
from isolate_aggregates_tools.testing.service import MockedService

PROGRAMS = pathlib.Path(__file__).parents[3] / 'findings'

real = differential.real
placement = differential.placement
both = differential.both

HEADERS = {'OpenStack-API-Version': 'placement 1.39'}
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
ANOTHER = differential.provider(8, {'VCPU': 1}, aggregates=differential.HERE)
BARE = differential.provider(9, {})
NUMA = [differential.provider(n, {'VCPU': 4}, BARE) for n in (10, 11)]
GROUPS = [('resources1', 'VCPU:1'), ('required2', GPU)]


INPUTS = {
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
}
# What Placement answers otherwise than documented, by its known bugs.
BUGS = {
    'shared disk only in the first group': (
        [HOST, ANOTHER, STORAGE],
        [('resources', 'DISK_GB:5'), ('resources1', 'VCPU:1')],
        2,
    ),
    'a class in two groups, on two NUMA nodes': (
        [BARE, *NUMA],
        [('resources', 'VCPU:1'), ('resources1', 'VCPU:2')],
        4,
    ),
}
UNKNOWN = '5dde4b13-764a-5a81-93fd-8ecdac212f2f'
# Which inputs each program has, of the cases and tests here.
OF_PROGRAMS = {
    'placement-added-amounts': 'a class in two groups, on two NUMA nodes',
    'placement-class-named-twice': 'a class named twice',
    'placement-in-tree-shared-storage': 'a shared disk and in_tree',
    'placement-lost-anchors': 'shared disk only in the first group',
    'placement-min-above-max': 'min_unit above max_unit',
    'placement-ratio-rounds-down': 'one more, which is the product on paper',
    'placement-same-again': f'/resource_providers?name={HOST.name}',
    'placement-summaries-whole-tree': 'a class of the children only',
    'placement-unknown-consumer': f'/allocations/{UNKNOWN}',
}


def mocked_answer(providers, path):
    """Return what the mocked Placement answers over the same cloud."""
    service = MockedService(
        Snapshot(
            'test',
            providers=tuple(providers),
            traits=frozenset(random_clouds.CUSTOM_TRAITS),
            resource_classes=frozenset(random_clouds.CUSTOM_CLASSES),
        ),
        '1.39',
        '/placement',
    )
    bare, _, query = path.partition('?')
    answer = service.answer(
        'GET', bare, query, {**HEADERS, 'X-Auth-Token': 'admin'}
    )
    return comparable(answer.status, answer.headers, answer.document)


def real_answer(real, path):
    """Return what Placement answers."""
    answer = real.get(path, headers=HEADERS, raise_exc=False)
    return comparable(answer.status_code, answer.headers, answer.json())


def path_of(query):
    """Return a question about candidates."""
    return f'/allocation_candidates?{parse.urlencode(query)}'


@cases(('providers', 'query', 'offered'), INPUTS)
def test_the_simulator_and_the_mock_offer_what_placement_offers(
    both, real, providers, query, offered
):
    both = both(providers)
    ours, summaries = both.ours(query)
    theirs = both.theirs(query)
    assert (Counter(theirs[0]), theirs[1]) == (Counter(ours), summaries)
    assert len(ours) == offered
    path = path_of(query)
    assert mocked_answer(providers, path) == real_answer(real, path)


@cases(('providers', 'query', 'offered'), BUGS)
def test_both_offer_what_a_placement_without_its_bugs_offers(
    both, real, providers, query, offered
):
    both = both(providers)
    ours, summaries = both.ours(query)
    path = path_of(query)
    assert real_answer(real, path) != mocked_answer(providers, path)
    with placement_repairs.repaired():
        theirs = both.theirs(query)
        assert mocked_answer(providers, path) == real_answer(real, path)
    assert (Counter(theirs[0]), theirs[1]) == (Counter(ours), summaries)
    assert len(ours) == offered


def test_the_mock_knows_an_unknown_consumer_as_placement_does(both, real):
    both([HOST])
    path = f'/allocations/{UNKNOWN}'
    answer = real_answer(real, path)
    assert answer.status == 200
    assert mocked_answer([HOST], path) == answer


def test_the_mock_has_what_was_written_again(both, real):
    """Placement raises the generation then, which the mock does not have."""
    both([HOST])
    path = OF_PROGRAMS['placement-same-again']
    [before] = real.get(path, headers=HEADERS).json()['resource_providers']
    aggregates = f'/resource_providers/{HOST.uuid}/aggregates'
    real.put(
        aggregates,
        headers=HEADERS,
        json=real.get(aggregates, headers=HEADERS).json(),
    )
    [after] = real.get(path, headers=HEADERS).json()['resource_providers']
    assert after == {**before, 'generation': before['generation'] + 1}
    assert mocked_answer([HOST], path) == real_answer(real, path)


def test_the_input_of_each_program_about_placement_is_here():
    programs = {path.stem for path in PROGRAMS.glob('placement-*.sh')}
    assert programs == OF_PROGRAMS.keys()
    paths = {
        f'/allocations/{UNKNOWN}',
        f'/resource_providers?name={HOST.name}',
    }
    known = {*INPUTS, *BUGS, *paths}
    assert {*OF_PROGRAMS.values()} <= known
