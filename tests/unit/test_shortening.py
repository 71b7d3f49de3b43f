# SPDX-License-Identifier: Apache-2.0
"""Queries that are too long are shortened or refused."""

import itertools
from urllib import parse

from hypothesis import given
from hypothesis import strategies as st
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.rollups import Rollup, uuid_of
from isolate_aggregates.filters.destination import ExplainedDestination
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.placement import group
from isolate_aggregates.query_limit import Shortener
from isolate_aggregates.query_limit.cover import Cover
from isolate_aggregates.query_limit.members import AnswersAtOnce, Coverage

LOCK = 'trait:CUSTOM_A'
ROLLUP = uuid_of(LOCK)
REST = 100
ROOM_FOR_FOUR = REST + group.forbidden_length(4)


def uuid(number):
    return f'{number:08d}-0000-4000-8000-000000000000'


class Known(AnswersAtOnce):
    """Members with a coverage that the test sets."""

    def __init__(self, lagging=(), unknown=()):
        self.lagging = frozenset(lagging)
        self.unknown = frozenset(unknown)
        self.broken = False
        self.asked = 0
        self.used = []
        # What is known after each time that it is waited for.
        self.to_come = []

    def coverage(self, rollup):
        self.asked += 1
        if self.broken:
            raise exception.ServiceError('Placement', None, 'is broken.')
        possible = rollup.aggregates - self.lagging
        return Coverage(possible - self.unknown, possible)

    def use(self, rollups):
        self.used.append([rollup.uuid for rollup in rollups])
        return 7

    def wait(self, since):
        assert since == 7
        if not self.to_come:
            return False
        self.unknown, self.lagging = map(frozenset, self.to_come.pop(0))
        return True


def locked(number):
    """Return an index of aggregates with the same lock."""
    return AggregateIndex(
        Aggregate(uuid(n), f'a{n}', {LOCK: 'required'}) for n in range(number)
    )


def forbidding(*sets):
    """Return a destination that forbids sets of aggregates."""
    destination = ExplainedDestination()
    for each in sets:
        destination.forbid_aggregates(map(uuid, each))
    return destination


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def shortening(members=None, limit=ROOM_FOR_FOUR, clock=None):
    return Shortener(
        limit, IsolateAggregates().locks, members or Known(), clock or Clock()
    )


def shorten(number=12, members=None, limit=ROOM_FOR_FOUR, rest=REST):
    return shortening(members, limit).shorten(
        forbidding(range(number)), locked(number), rest
    )


def refusal(*args, **kwargs):
    with pytest.raises(exception.QueryNotShortened) as refused:
        shorten(*args, **kwargs)
    [reason] = refused.value.reasons
    return reason


def test_a_query_that_fits_is_not_changed():
    assert shorten(4) is None


def test_a_limit_of_zero_means_no_limit():
    assert shorten(5000, limit=0) is None


def test_one_rollup_replaces_all_aggregates():
    replacement = shorten(5)
    assert replacement.forbidden == {ROLLUP}
    assert [rollup.uuid for rollup in replacement.rollups] == [ROLLUP]
    assert len(replacement.replaced) == 5


def test_aggregates_missing_in_a_rollup_are_forbidden_directly():
    replacement = shorten(members=Known(lagging=[uuid(3), uuid(5)]))
    assert replacement.forbidden == {ROLLUP, uuid(3), uuid(5)}
    assert len(replacement.replaced) == 10


def test_aggregates_missing_in_a_rollup_take_space():
    lagging = [uuid(n) for n in range(3)]
    replacement = shorten(members=Known(lagging))
    assert replacement.forbidden == {ROLLUP, *lagging}
    lagging.append(uuid(3))
    assert refusal(members=Known(lagging)) == (
        'the query to Placement would take 584 bytes to forbid 12 aggregates, '
        'more than [isolate_aggregates] max_query_length = 272, and the '
        'existing rollup aggregates do not shorten it enough; run '
        '"isolate-aggregates sync", or raise max_query_length and the limit '
        'of the web server in front of Placement'
    )


def test_aggregates_without_hosts_are_not_omitted():
    """Nova's lists of hosts are not Placement's."""
    index = locked(12)
    everything = [aggregate.uuid for aggregate in index]
    assert not any(aggregate.hosts for aggregate in index)
    assert '"isolate-aggregates sync"' in refusal(members=Known(everything))


def test_other_parameters_take_space():
    assert shorten(4, rest=REST + 1).forbidden == {ROLLUP}
    rest = ROOM_FOR_FOUR - group.forbidden_length(1)
    assert shorten(12, rest=rest).forbidden == {ROLLUP}
    assert 'to forbid 12 aggregates' in refusal(12, rest=rest + 1)


def test_a_query_without_space_for_its_requirements_is_refused():
    destination = ExplainedDestination()
    destination.require_aggregates(map(uuid, range(50, 60)))
    shortener = shortening()
    assert shortener.shorten(destination, locked(1), ROOM_FOR_FOUR) is None
    with pytest.raises(exception.QueryNotShortened) as refused:
        shortener.shorten(destination, locked(1), ROOM_FOR_FOUR + 1)
    assert refused.value.reasons == (
        'the query to Placement would take 273 bytes for 10 required '
        'aggregates and the resources, more than [isolate_aggregates] '
        'max_query_length = 272; raise max_query_length, and the limit of the '
        'web server in front of Placement',
    )


def test_without_members_nothing_is_shortened():
    shortener = Shortener(ROOM_FOR_FOUR, IsolateAggregates().locks, None)
    shortener.stop()
    destination, index = forbidding(range(5)), locked(5)
    assert shortener.shorten(forbidding(range(4)), index, REST) is None
    with pytest.raises(exception.QueryNotShortened) as refused:
        shortener.shorten(destination, index, REST)
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
    assert shortener.shorten(both, locked(4), REST) is None
    more = forbidding([0, 1, 2], [1, 2, 3], [4])
    assert shortener.shorten(more, locked(5), REST).forbidden == {ROLLUP}


# What is not verified is not used.


def test_a_request_that_needs_unverified_rollups_is_refused():
    members = Known(unknown=map(uuid, range(12)))
    assert refusal(members=members) == (
        'the query to Placement would take 584 bytes to forbid 12 aggregates, '
        'more than [isolate_aggregates] max_query_length = 272, and the '
        'rollup aggregates that may shorten it enough have not been verified '
        'yet; try again, and check the log of nova-scheduler if this '
        'persists, or raise max_query_length and the limit of the web server '
        'in front of Placement'
    )
    assert members.used == [[ROLLUP]]


def test_unverified_aggregates_are_forbidden_directly_if_they_fit():
    new = uuid(11)
    replacement = shorten(members=Known(unknown=[new]))
    assert replacement.forbidden == {ROLLUP, new}


def test_as_soon_as_enough_is_verified_the_query_is_sent():
    members = Known(unknown=map(uuid, range(12)))
    members.to_come = [
        (map(uuid, range(6, 12)), ()),
        (map(uuid, range(9, 12)), ()),
        ((), ()),
    ]
    replacement = shorten(members=members)
    assert replacement.forbidden == {ROLLUP, uuid(9), uuid(10), uuid(11)}
    assert len(members.to_come) == 1


def test_a_request_is_refused_early_if_no_rollup_can_suffice():
    members = Known(unknown=map(uuid, range(12)))
    members.to_come = [(map(uuid, range(6, 12)), map(uuid, range(6)))]
    assert '"isolate-aggregates sync"' in refusal(members=members)


def test_a_result_is_reused_for_a_second():
    clock, members = Clock(), Known()
    index, destination = locked(12), forbidding(range(12))
    shortener = shortening(members, clock=clock)
    first = shortener.shorten(destination, index, REST)
    asked = members.asked
    clock.now += 0.99
    assert shortener.shorten(destination, index, REST) is first
    # The thread learns that it is in use.
    assert (members.asked, members.used[-1]) == (asked, [ROLLUP])
    clock.now += 0.01
    members.lagging = {uuid(1)}
    replacement = shortener.shorten(destination, index, REST)
    assert replacement.forbidden == {ROLLUP, uuid(1)}


def test_a_failed_verification_is_not_hidden():
    members = Known()
    members.broken = True
    with pytest.raises(exception.ServiceError):
        shorten(members=members)


def rollup(*aggregates):
    return Rollup('name', ''.join(aggregates).upper(), frozenset(aggregates))


@pytest.mark.parametrize(
    ('rollups', 'lagging', 'forbidden'),
    [
        pytest.param(['ab'], '', ['AB', *'cde'], id='two'),
        pytest.param(['abx'], '', [*'abcde'], id='forbids more'),
        pytest.param(['abc'], 'c', ['ABC', *'cde'], id='lacks one'),
        pytest.param(['abc'], 'bc', [*'abcde'], id='has only one'),
        pytest.param(['abc', 'bcde'], '', ['ABC', 'BCDE'], id='overlap'),
        pytest.param(['abcd', 'de'], '', ['ABCD', 'e'], id='adds only one'),
    ],
)
def test_a_rollup_replaces_two_forbidden_aggregates_or_more(
    rollups, lagging, forbidden
):
    cover = Cover(
        frozenset('abcde'),
        [rollup(*aggregates) for aggregates in rollups],
        lambda rollup: rollup.aggregates.difference(lagging),
    )
    assert cover.within(len(forbidden)).forbidden == frozenset(forbidden)
    assert cover.within(len(forbidden) - 1) is None


def test_the_fewest_sufficient_rollups_are_used():
    cover = Cover(
        frozenset('abcdefgh'),
        [rollup(*'abc'), rollup(*'de'), rollup(*'fg')],
        lambda rollup: rollup.aggregates,
    )
    numbers = [len(cover.within(most).rollups) for most in (8, 7, 6, 5, 4)]
    assert numbers == [0, 1, 1, 2, 3]
    assert cover.within(3) is None


def test_useless_rollups_are_not_verified():
    asked = []

    def covered(rollup):
        asked.append(rollup.uuid)
        return rollup.aggregates

    Cover(
        frozenset('abcde'),
        [rollup(*'abcd'), rollup(*'abc'), rollup(*'de'), rollup(*'ex')],
        covered,
    )
    assert asked == ['ABCD']


def test_a_combination_is_found_without_the_largest_rollup():
    cover = Cover(
        frozenset('abcdef'),
        [rollup(*'abcd'), rollup(*'abe'), rollup(*'cdf')],
        lambda rollup: rollup.aggregates,
    )
    assert cover.within(2).forbidden == {'ABE', 'CDF'}
    assert cover.within(1) is None
    assert cover.is_complete


def test_not_all_combinations_of_many_rollups_are_tried():
    """Each rollup has an aggregate that no other one has."""
    many = [rollup(f'a{n}', 'b', f'c{n // 2}') for n in range(40)]
    cover = Cover(
        frozenset().union(*(one.aggregates for one in many)),
        many,
        lambda rollup: rollup.aggregates,
    )
    assert cover.within(40) is not None
    assert cover.within(1) is None
    assert not cover.is_complete


sets = st.frozensets(st.sampled_from('abcdefgh'))


@given(sets, st.lists(sets, max_size=6), sets, st.integers(0, 8))
def test_each_aggregate_is_forbidden_directly_or_by_its_rollup(
    forbidden, rollups, lagging, most
):
    cover = Cover(
        forbidden,
        [rollup(*sorted(each)) for each in rollups],
        lambda rollup: rollup.aggregates - lagging,
    )
    replacement = cover.within(most)
    numbers = [
        number + len(forbidden.difference(*(c - lagging for c in some)))
        for number in range(len(rollups) + 1)
        for some in itertools.combinations(
            [c for c in rollups if c <= forbidden], number
        )
    ]
    assert (replacement is not None) == (min(numbers) <= most)
    if replacement is None:
        assert cover.is_complete
        return
    assert len(replacement.forbidden) <= most
    assert all(
        rollup.aggregates <= forbidden for rollup in replacement.rollups
    )
    left = replacement.forbidden - {
        rollup.uuid for rollup in replacement.rollups
    }
    stood_for = frozenset().union(
        *(rollup.aggregates - lagging for rollup in replacement.rollups)
    )
    assert left | stood_for >= forbidden
    assert left <= forbidden
    assert replacement.replaced == forbidden - left


@given(st.sets(st.integers(0, 99).map(uuid)))
def test_lengths_are_those_of_the_encoded_query(forbidden):
    request = group.RequestGroup(forbidden_aggregates=forbidden)
    params = [p for p in request.to_queryparams() if p[0] == 'member_of']
    # With the & before the parameter.
    length = len(parse.urlencode(params)) + bool(params)
    assert group.forbidden_length(len(forbidden)) == length


@given(st.integers(0, 10_000))
def test_the_number_of_aggregates_that_fit_is_right(length):
    most = group.most_aggregates(length)
    assert most == 0 or group.forbidden_length(most) <= length
    assert group.forbidden_length(most + 1) > length
