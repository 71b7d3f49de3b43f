# SPDX-License-Identifier: Apache-2.0
"""The index gives what a plain look at all aggregates gives."""

from hypothesis import given
from hypothesis import strategies as st

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.index import closed, lock_groups

keys = st.sampled_from(
    ['trait:A', 'trait:B', 'Trait:A', 'reservation:1', 'reservation:', 'zone']
)
clouds = st.lists(
    st.dictionaries(keys, st.sampled_from(['required', 'Required ', 'x']))
).map(
    lambda metadatas: [
        Aggregate(f'uuid-{n}', f'name-{n}', metadata)
        for n, metadata in enumerate(metadatas)
    ]
)


@given(clouds, keys)
def test_with_key_and_with_prefix_equal_a_plain_search(aggregates, key):
    index = AggregateIndex(aggregates)
    assert index.with_key(key) == tuple(
        a for a in aggregates if key in a.metadata
    )
    for _ in range(2):  # The second answer comes from memory.
        assert index.with_prefix(key) == tuple(
            a
            for a in aggregates
            if any(held.startswith(key) for held in a.metadata)
        )
        assert index.with_prefix_like(key) == tuple(
            a
            for a in aggregates
            if any(held.lower().startswith(key.lower()) for held in a.metadata)
        )


@given(clouds)
def test_lock_groups_hold_each_locked_aggregate_once(aggregates):
    groups = lock_groups(AggregateIndex(aggregates), 'trait:', 'required')
    assert len({group.keys for group in groups}) == len(groups)
    found = {a.uuid: group.keys for group in groups for a in group.aggregates}
    assert found == {
        a.uuid: locks
        for a in aggregates
        if (
            locks := {
                key
                for key, value in a.metadata.items()
                if key.lower().startswith('trait:') and value != 'x'
            }
        )
    }
    assert sum(len(group.aggregates) for group in groups) == len(found)


def test_prefix_and_value_of_a_lock_ignore_case():
    index = AggregateIndex([Aggregate('a', 'a', {'trait:A': 'required'})])
    [group] = lock_groups(index, 'Trait:', 'REQUIRED')
    assert group.keys == {'trait:A'}


def test_an_empty_cloud_has_no_aggregates():
    index = AggregateIndex()
    assert (len(index), list(index), lock_groups(index, 'trait:', 'x')) == (
        0,
        [],
        (),
    )


locked = st.lists(
    st.sets(st.sampled_from(['trait:A', 'trait:B', 'trait:C']), max_size=3),
    max_size=10,
)
held_keys = st.sets(
    st.sampled_from(['trait:A', 'trait:B', 'trait:C', 'trait:X', 'other'])
)


@given(locked, st.lists(held_keys, max_size=4))
def test_closed_aggregates_match_the_definition(cloud, requests):
    index = AggregateIndex(
        Aggregate(f'{n}', f'a{n}', dict.fromkeys(keys, 'required'))
        for n, keys in enumerate(cloud)
    )
    # What one request left in memory must not answer another.
    for held in requests:
        shut = closed(index, 'trait:', 'required', held)
        assert shut.uuids == {
            f'{n}' for n, keys in enumerate(cloud) if not keys <= held
        }
        assert shut.uuids == {
            a.uuid for group in shut.groups for a in group.aggregates
        }


def test_equal_calls_return_one_object():
    index = AggregateIndex([Aggregate('a', 'a', {'trait:A': 'required'})])
    first = closed(index, 'trait:', 'required', {'trait:B', 'other'})
    assert closed(index, 'trait:', 'required', {'trait:C'}) is first


def test_the_cache_is_bounded():
    """There is room for 128 answers; the next replaces the one least used."""
    index = AggregateIndex()
    worked_out = []

    def ask(number):
        return index.remember(number, lambda: worked_out.append(number))

    for number in [*range(128), *range(128)]:
        ask(number)
    assert worked_out == list(range(128))
    ask(0)
    for number in (128, 0, *range(2, 128), 1):
        ask(number)
    assert worked_out == [*range(129), 1]


def test_hosts_and_aggregates_are_indexed_both_ways():
    index = AggregateIndex(
        [
            Aggregate('a', 'a', hosts=frozenset(['h1', 'h2'])),
            Aggregate('b', 'b', hosts=frozenset(['h2'])),
            Aggregate('c', 'c'),
        ]
    )
    assert index.aggregates_of == {'h1': {'a'}, 'h2': {'a', 'b'}}
