# SPDX-License-Identifier: Apache-2.0
"""Queries that are too long are shortened or refused."""

from concurrent import futures
import threading

from cases import cases
from hypothesis import given
from hypothesis import strategies as st
import pytest

from isolate_aggregates import exception, query_limit
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.aggregates.rollups import uuid_of
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.query_limit import OUR_HOST_FILTER, Shortener
from isolate_aggregates.query_limit import shortener as algorithm

LOCK = 'trait:CUSTOM_A'
ROLLUP = uuid_of(LOCK)
REST = 100
ROOM_FOR_FOUR = REST + query_limit.forbidden_length(4)


def uuid(number):
    return f'{number:08d}-0000-4000-8000-000000000000'


def locked(number):
    """Return an index of aggregates with the same lock."""
    return AggregateIndex(
        Aggregate(uuid(n), f'a{n}', {LOCK: 'required'}) for n in range(number)
    )


def forbidding(*sets):
    """Return a destination that forbids sets of aggregates."""
    destination = Destination()
    for each in sets:
        destination.forbid_aggregates(map(uuid, each))
    return destination


def shortening(limit=ROOM_FOR_FOUR):
    return Shortener(limit, IsolateAggregates().locks, [OUR_HOST_FILTER])


def shorten(number=12, limit=ROOM_FOR_FOUR, rest=REST):
    return algorithm.shorten(
        shortening(limit), forbidding(range(number)), locked(number), rest
    )


def test_a_query_that_fits_is_not_changed():
    assert shorten(4) is None


def test_a_limit_of_zero_means_no_limit():
    assert shorten(5000, limit=0) is None


def test_a_rollup_stands_for_its_aggregates():
    replacement = shorten(5)
    # It may lack hosts, so what room is left goes to its aggregates.
    assert replacement.forbidden == {ROLLUP, uuid(0), uuid(1), uuid(2)}
    assert [rollup.uuid for rollup in replacement.rollups] == [ROLLUP]
    assert replacement.left_out == {uuid(3), uuid(4)}


def test_other_parameters_take_space():
    assert len(shorten(4, rest=REST + 1).forbidden) == 3
    rest = ROOM_FOR_FOUR - query_limit.forbidden_length(1)
    assert shorten(12, rest=rest).forbidden == {ROLLUP}


def test_without_any_space_all_is_left_to_the_host_filter():
    replacement = shorten(12, rest=ROOM_FOR_FOUR)
    assert replacement.forbidden == frozenset()
    assert replacement.left_out == frozenset(map(uuid, range(12)))


def test_a_query_without_space_for_its_requirements_is_refused():
    destination = Destination()
    destination.require_aggregates(map(uuid, range(50, 60)))
    shortener = shortening()
    assert (
        algorithm.shorten(shortener, destination, locked(1), ROOM_FOR_FOUR)
        is None
    )
    with pytest.raises(exception.QueryNotShortened) as refused:
        algorithm.shorten(shortener, destination, locked(1), ROOM_FOR_FOUR + 1)
    assert refused.value.reasons == (
        'the query to Placement would take 273 bytes for 10 required '
        'aggregates and the resources, more than [isolate_aggregates] '
        'max_query_length = 272; raise max_query_length, and the limit of the '
        'web server in front of Placement',
    )


def test_without_our_host_filter_nothing_is_shortened():
    shortener = Shortener(ROOM_FOR_FOUR, IsolateAggregates().locks)
    destination, index = forbidding(range(5)), locked(5)
    assert (
        algorithm.shorten(shortener, forbidding(range(4)), index, REST) is None
    )
    with pytest.raises(exception.QueryNotShortened) as refused:
        algorithm.shorten(shortener, destination, index, REST)
    assert refused.value.reasons == (
        'the query to Placement would take 311 bytes to forbid 5 aggregates, '
        'more than [isolate_aggregates] max_query_length = 272, and queries '
        'are not shortened without IsolatedAggregatesFilter in '
        '[filter_scheduler] enabled_filters; add it, or raise '
        'max_query_length and the limit of the web server in front of '
        'Placement',
    )


def test_several_sets_with_the_same_aggregates_are_merged():
    shortener = shortening()
    both = forbidding([0, 1, 2], [1, 2, 3])
    assert algorithm.shorten(shortener, both, locked(4), REST) is None
    more = forbidding([0, 1, 2], [1, 2, 3], [4])
    assert (
        ROLLUP in algorithm.shorten(shortener, more, locked(5), REST).forbidden
    )


def replacement(locks, forbidden, most, sizes=None):
    """Return what a query for single letters forbids.

    :param locks: The aggregates of each lock.
    """
    index = AggregateIndex(Aggregate(a, a) for a in sorted(forbidden))
    destination = Destination()
    destination.forbid_aggregates(forbidden)
    made = [
        Lock('', name, tuple(Aggregate(a, a) for a in sorted(name)))
        for name in locks
    ]
    shortener = Shortener(
        1 + query_limit.forbidden_length(most),
        lambda index: made,
        [OUR_HOST_FILTER],
        sizes and (lambda: sizes),
    )
    return algorithm.shorten(shortener, destination, index, 1)


@cases(
    ('locks', 'sizes', 'forbidden'),
    {
        'a rollup first': (['ab'], {}, ['ab', 'c', 'd']),
        'none that forbids more': (['abx'], {}, 'abc'),
        'none twice': (['abc', 'ab'], {}, ['abc', 'd', 'e']),
        'largest': (['ab', 'cd', 'def', 'fg'], {}, ['def', 'ab', 'cd']),
        'those with most hosts': ([], {'b': 2, 'd': 9, 'f': 1}, 'dbf'),
        'others first': (['ab'], {'a': 9, 'd': 2}, ['ab', 'd', 'c']),
    },
)
def test_what_excludes_most_hosts_is_forbidden(locks, sizes, forbidden):
    names = {uuid_of(name): name for name in locks}
    result = replacement(locks, {*'abcdefg'}, 3, sizes)
    assert {names.get(u, u) for u in result.forbidden} == {*forbidden}


def test_the_sizes_in_the_index_count_if_there_are_no_others():
    index = AggregateIndex(
        Aggregate(uuid(n), f'a{n}', {}, {f'h{i}' for i in range(n)})
        for n in range(12)
    )
    assert algorithm.shorten(
        shortening(), forbidding(range(12)), index, REST
    ).forbidden == {uuid(n) for n in (8, 9, 10, 11)}


def test_sizes_are_read_once_per_index():
    reads = []

    def sizes():
        reads.append(1)
        return {}

    shortener = Shortener(
        ROOM_FOR_FOUR, IsolateAggregates().locks, [OUR_HOST_FILTER], sizes
    )
    index = locked(12)
    assert (
        algorithm.shorten(shortener, forbidding(range(4)), index, REST) is None
    )
    assert reads == []
    for number in (8, 12):
        algorithm.shorten(shortener, forbidding(range(number)), index, REST)
    assert len(reads) == 1


@pytest.mark.parametrize(
    'error',
    [
        exception.ServiceError("Nova's API database", None, 'is gone'),
        # A driver may raise its own errors while rows are fetched.
        OSError('disk'),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_to_read_sizes_refuses_nothing(error):
    """They only tell which aggregates are better to forbid."""
    answers = [error]

    def sizes():
        if answers:
            raise answers.pop()
        return {uuid(11): 2}

    shortener = Shortener(
        ROOM_FOR_FOUR, IsolateAggregates().locks, [OUR_HOST_FILTER], sizes
    )
    index, destination = locked(12), forbidding(range(12))
    without, then = (
        algorithm.shorten(shortener, destination, index, REST).forbidden
        for _ in range(2)
    )
    assert without == {ROLLUP, uuid(0), uuid(1), uuid(2)}
    # The failure is not remembered.
    assert then == {ROLLUP, uuid(11), uuid(0), uuid(1)}


def test_sizes_that_are_read_slowly_hold_up_no_other_request():
    is_first, others_pass = threading.Event(), threading.Event()

    def sizes():
        if is_first.is_set():
            return {}
        is_first.set()
        assert others_pass.wait(60)
        return {}

    shortener = Shortener(
        ROOM_FOR_FOUR, IsolateAggregates().locks, [OUR_HOST_FILTER], sizes
    )
    index, destination = locked(12), forbidding(range(12))
    with futures.ThreadPoolExecutor() as pool:
        slow = pool.submit(
            algorithm.shorten, shortener, destination, index, REST
        )
        assert is_first.wait(60)
        quick = pool.submit(
            algorithm.shorten, shortener, destination, index, REST
        )
        try:
            assert ROLLUP in quick.result(60).forbidden
        finally:
            others_pass.set()
        assert slow.result(60) == quick.result()


sets = st.frozensets(st.sampled_from('abcdefgh'), min_size=1)


@given(sets, st.lists(sets, max_size=6, unique=True), st.integers(0, 8))
def test_what_is_not_forbidden_is_left_out(forbidden, locks, most):
    result = replacement(map(''.join, map(sorted, locks)), forbidden, most)
    if len(forbidden) <= most:
        assert result is None
        return
    assert len(result.forbidden) <= most
    assert all(rollup.aggregates <= forbidden for rollup in result.rollups)
    named = result.forbidden - {rollup.uuid for rollup in result.rollups}
    assert named <= forbidden
    assert result.left_out == forbidden - named
    # Of the forbidden aggregates, no room is wasted.
    assert len(result.forbidden) == most or not result.left_out


@given(st.integers(0, 10_000))
def test_the_number_of_aggregates_that_fit_is_right(length):
    most = query_limit.most_aggregates(length)
    assert most == 0 or query_limit.forbidden_length(most) <= length
    assert query_limit.forbidden_length(most + 1) > length
