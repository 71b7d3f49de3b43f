# SPDX-License-Identifier: Apache-2.0
"""Rollup aggregates: which exist, and what they stand for."""

import uuid

from cases import cases
from hypothesis import given
from hypothesis import strategies as st
import pytest

from isolate_aggregates import query_limit
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.aggregates import rollups as ru
from isolate_aggregates.filters.blazar_reservation import BlazarReservation
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.filters.reservation_prefix import ReservationPrefix
from isolate_aggregates.query_limit import OUR_HOST_FILTER, Shortener
from isolate_aggregates.query_limit import shortener as algorithm


def lock(name, *numbers, family='trait:'):
    aggregates = tuple(Aggregate(f'{n}', f'aggregate-{n}') for n in numbers)
    return Lock(family, f'{family}{name}', aggregates)


def many(number, each=2):
    """Return locks with one aggregate each."""
    return [
        lock(f'CUSTOM_{i}', *range(i * each, (i + 1) * each))
        for i in range(number)
    ]


def test_the_uuid_of_a_rollup_never_changes():
    # Providers of real clouds are members of it.
    assert (
        ru.uuid_of('trait:CUSTOM_LICENSED_WINDOWS')
        == '83ca0d6e-045c-5aa0-9606-6899d1a7a8d9'
    )


@given(st.text(st.characters(codec='utf-8')))
def test_uuids_are_of_version_5(name):
    namespace = uuid.UUID('153806e1-479f-4e0f-b498-639fa4a6e00a')
    assert ru.uuid_of(name) == str(uuid.uuid5(namespace, name))


def test_any_text_may_name_a_lock():
    assert uuid.UUID(ru.uuid_of('trait:\ud800')).version == 5


def test_a_lock_of_several_aggregates_has_a_rollup():
    [all_rollups] = ru.rollups([lock('CUSTOM_A', 1, 2), lock('CUSTOM_B', 3)])
    assert all_rollups.name == 'trait:CUSTOM_A'
    assert all_rollups.uuid == ru.uuid_of('trait:CUSTOM_A')
    assert all_rollups.aggregates == {'1', '2'}


def numbered(*starts):
    """Return locks whose uuids start with these digits."""
    found, number = [], 1
    for start in starts:
        while not ru.uuid_of(f'trait:CUSTOM_{number}').startswith(start):
            number += 1
        found.append(lock(f'CUSTOM_{number}', number, -number))
        number += 1
    return found


def branches(locks):
    """Return the digits of the branches, each with how many locks it has."""
    return {
        rollup.name.partition('*')[2]: len(rollup.aggregates) // 2
        for rollup in ru.rollups(locks)
        if '*' in rollup.name
    }


@cases(
    ('starts', 'expected'),
    {
        'sixteen need none': (['0'] * 16, {}),
        'none for a single lock': (
            ['0'] * 14 + ['1', '1', '2'],
            {'': 17, '0': 14, '1': 2},
        ),
        'a full branch': (['0'] * 16 + ['1'], {'': 17, '0': 16}),
        'a branch that is split again': (
            ['00'] * 15 + ['01', '01', '2'],
            {'': 18, '0': 17, '00': 15, '01': 2},
        ),
    },
)
def test_more_than_sixteen_locks_are_split_by_a_digit(starts, expected):
    assert branches(numbered(*starts)) == expected


def test_families_do_not_share_branches():
    others = [lock('x', i, -i, family='other:') for i in range(20, 40)]
    all_rollups = ru.rollups([*many(20), *others])
    branches = {r.name: r.uuid for r in all_rollups if r.name.endswith('*')}
    assert set(branches) == {'trait:*', 'other:*'}
    assert len(set(branches.values())) == 2


def test_a_branch_differs_from_a_lock_with_the_same_name():
    # Metadata keys can be any text.
    all_rollups = ru.rollups([*many(17), lock('*', 1, 2)])
    assert [r.name for r in all_rollups].count('trait:*') == 2
    assert len({r.uuid for r in all_rollups}) == len(all_rollups)


@pytest.mark.parametrize('number', [1000, 5000])
def test_all_locks_but_one_are_few_rollups(number):
    locks = many(number)
    destination = Destination()
    destination.forbid_aggregates(
        a.uuid for lk in locks[1:] for a in lk.aggregates
    )
    shortener = Shortener(
        1 + query_limit.forbidden_length(84),
        lambda index: locks,
        [OUR_HOST_FILTER],
    )
    replacement = algorithm.shorten(
        shortener, destination, AggregateIndex(), 1
    )
    assert len(replacement.forbidden) == 84
    stood_for = frozenset().union(
        *(rollup.aggregates for rollup in replacement.rollups)
    )
    assert replacement.left_out <= stood_for


TAGGED = [
    Aggregate('a', 'a', {'trait:CUSTOM_A': 'required'}),
    Aggregate(
        'ab', 'ab', {f'trait:CUSTOM_{x}': 'required' for x in ('A', 'B')}
    ),
    Aggregate('no', 'no', {'trait:CUSTOM_A': 'preferred'}),
    Aggregate('r', 'r', {'reservation:1': ''}),
    Aggregate('p', 'p', {'filter_tenant_id': 'p2,p1'}),
    Aggregate(
        'q', 'q', {'filter_tenant_id_x': 'p1', 'filter_tenant_id': 'p2'}
    ),
    Aggregate('z', 'z', availability_zone='blazar_1'),
    Aggregate('f', 'freepool'),
]


@pytest.mark.parametrize(
    ('request_filter', 'locks'),
    [
        (
            IsolateAggregates(),
            {'trait:CUSTOM_A': ['a', 'ab'], 'trait:CUSTOM_B': ['ab']},
        ),
        (
            ReservationPrefix(forbidden_prefixes=('reservation:', 'none:')),
            {'reservation:': ['r']},
        ),
        (IsolateTenants(), {'filter_tenant_id=p1,p2': ['p', 'q']}),
        (BlazarReservation(), {'availability_zone=blazar_': ['z']}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_filters_name_their_locks(request_filter, locks):
    all_locks = request_filter.locks(AggregateIndex(TAGGED))
    assert {
        one.name: [a.uuid for a in one.aggregates] for one in all_locks
    } == locks
