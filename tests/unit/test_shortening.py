# SPDX-License-Identifier: Apache-2.0
"""Queries that would be too long, and what becomes of them."""

import threading
from urllib import parse

from hypothesis import given
from hypothesis import strategies as st
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.rollups import Rollup, uuid_of
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.placement import group
from isolate_aggregates.query_limit import Shortened, Shortener, cover
from isolate_aggregates.request import Flavor, Request

LOCK = 'trait:CUSTOM_A'
ROLLUP = uuid_of(LOCK)
ROOM_FOR_FOUR = group.forbidden_length(4)


def uuid(number):
    return f'{number:08d}-0000-4000-8000-000000000000'


class Known:
    """Members as a test says they are."""

    def __init__(self, hosts=None, lagging=(), broken=False):
        self._hosts = hosts or {}
        self._lagging = frozenset(lagging)
        self.broken = broken
        self.asked = 0

    def covered(self, rollup):
        self.asked += 1
        if self.broken:
            raise exception.ServiceError('Placement', None, 'is broken.')
        return rollup.aggregates - self._lagging

    def hosts(self):
        if self.broken:
            raise exception.ServiceError('Nova', None, 'is broken.')
        return self._hosts


def locked(number):
    """Return an index of aggregates with the same lock."""
    return AggregateIndex(
        Aggregate(uuid(n), f'a{n}', {LOCK: 'required'}) for n in range(number)
    )


def forbidding(index):
    """Return a destination that forbids all aggregates of an index."""
    destination = Destination()
    destination.forbid_aggregates(a.uuid for a in index)
    return destination


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def shorten(
    number=12,
    members=None,
    limit=ROOM_FOR_FOUR,
    clock=None,
    shortener=None,
    required=(),
    beside=None,
):
    index = locked(number)
    request_filter = IsolateAggregates()
    destination = Destination()
    for found in request_filter(Request(Flavor('f')), index):
        destination.add(found, 'isolate_aggregates')
    for choice in required:
        destination.require_aggregates(choice)
    shortener = shortener or Shortener(
        limit, request_filter.locks, members or Known(), clock or Clock()
    )
    return shortener.shorten(destination, index, beside)


def test_what_fits_is_left_alone():
    assert shorten(4) is None


def test_no_limit_is_no_limit():
    assert shorten(5000, limit=0) is None


def test_a_rollup_stands_for_all():
    found = shorten(5)
    assert found.forbidden == {ROLLUP}
    assert [rollup.uuid for rollup in found.rollups] == [ROLLUP]
    assert (found.replaced, found.left_out) == (5, 0)


def test_what_a_rollup_lacks_is_forbidden_itself():
    found = shorten(members=Known(lagging=[uuid(3), uuid(5)]))
    assert found.forbidden == {ROLLUP, uuid(3), uuid(5)}


def test_what_fits_exactly_is_not_shortened_further():
    """Aggregates without hosts are left out only if there is no room."""
    lagging = [uuid(1), uuid(2), uuid(3)]
    known = Known({uuid(n): frozenset() for n in range(12)}, lagging)
    found = shorten(members=known)
    assert found.forbidden == {ROLLUP, *lagging}
    assert (found.replaced, found.left_out) == (9, 0)


def test_what_a_rollup_lacks_shares_the_room_with_it():
    lagging = [uuid(n) for n in range(4)]
    hosts = {uuid(n): frozenset(['host']) for n in range(12)}
    hosts[uuid(0)] = frozenset()
    found = shorten(members=Known(hosts, lagging))
    # One host is in all of them, but they fit.
    assert found.forbidden == {ROLLUP, uuid(1), uuid(2), uuid(3)}
    assert (found.replaced, found.left_out) == (8, 1)


def test_too_many_that_a_rollup_lacks_are_refused():
    with pytest.raises(exception.RequestRefused, match='sync --apply'):
        shorten(members=Known(lagging=[uuid(n) for n in range(4)]))


def test_empty_aggregates_are_left_out_next():
    everything = {uuid(n) for n in range(12)}
    hosts = {uuid(n): frozenset() for n in range(12)}
    hosts[uuid(7)] = frozenset(['host1'])
    hosts[uuid(8)] = frozenset(['host1', 'host2'])
    found = shorten(members=Known(hosts, everything))
    # Both have hosts, and both fit.
    assert found.forbidden == {uuid(7), uuid(8)}
    assert (found.rollups, found.left_out) == ((), 10)


def test_then_aggregates_whose_hosts_are_in_others():
    everything = {uuid(n) for n in range(12)}
    hosts = {uuid(n): frozenset([f'host{n % 3}']) for n in range(12)}
    hosts[uuid(5)] = frozenset(['host0', 'host1', 'host2', 'host9'])
    found = shorten(members=Known(hosts, everything))
    assert found.forbidden == {uuid(5)}


def test_an_aggregate_whose_hosts_are_not_known_stays():
    everything = {uuid(n) for n in range(12)}
    hosts = {uuid(n): frozenset() for n in range(11)}
    found = shorten(members=Known(hosts, everything))
    assert found.forbidden == {uuid(11)}


def test_what_can_not_be_read_shortens_nothing(caplog):
    with pytest.raises(exception.RequestRefused) as refused:
        shorten(members=Known(broken=True))
    [reason] = refused.value.reasons
    assert reason == (
        'the query to Placement would take 484 bytes to forbid 12 '
        'aggregates, more than [isolate_aggregates] max_query_length = 172, '
        'and the rollup aggregates that there are do not make it fit; run '
        '"isolate-aggregates sync --apply", or raise that and the limit of '
        'the web server before Placement'
    )
    assert f'Rollup aggregate {LOCK} can not be used: Placement' in caplog.text
    assert 'hosts of the aggregates can not be read: Nova' in caplog.text


def test_required_aggregates_take_room():
    one = [frozenset([uuid(99)])]
    assert shorten(4, required=one).forbidden == {ROLLUP}
    many = [frozenset(uuid(n) for n in range(50, 60))]
    with pytest.raises(exception.RequestRefused) as refused:
        shorten(1, required=many)
    [reason] = refused.value.reasons
    assert 'would take 403 bytes for 10 required aggregates' in reason
    with pytest.raises(exception.RequestRefused, match='to forbid 1 aggreg'):
        shorten(1, required=many, limit=group.required_length(many))


def test_what_is_asked_already_takes_room():
    forbids = group.RequestGroup(forbidden_aggregates={uuid(98), uuid(99)})
    assert shorten(2, beside=forbids) is None
    assert shorten(3, beside=forbids).forbidden == {ROLLUP}
    requires = group.RequestGroup(aggregates=[frozenset([uuid(99)])])
    assert shorten(3, beside=requires).forbidden == {ROLLUP}


def test_several_sets_with_the_same_aggregates_are_merged():
    index = AggregateIndex()
    destination = Destination()
    destination.forbid_aggregates([uuid(1), uuid(2), uuid(3)])
    destination.forbid_aggregates([uuid(2), uuid(3), uuid(4)])
    shortener = Shortener(ROOM_FOR_FOUR, lambda index: (), Known())
    found = shortener.shorten(destination, index)
    assert found.forbidden == {uuid(n) for n in range(1, 5)}
    assert found.left_out == 0

    destination.forbid_aggregates([uuid(5)])
    with pytest.raises(exception.RequestRefused, match='forbid 5 aggregates'):
        shortener.shorten(destination, index)


def test_sets_that_fit_once_they_are_merged_are_left_alone():
    index = locked(4)
    destination = Destination()
    for uuids in ([0, 1, 2], [1, 2, 3]):
        destination.forbid_aggregates(map(uuid, uuids))
    locks = IsolateAggregates().locks
    found = Shortener(ROOM_FOR_FOUR, locks, Known()).shorten(
        destination, index
    )
    assert found == Shortened(frozenset(map(uuid, range(4))))
    assert (found.rollups, found.replaced, found.left_out) == ((), 0, 0)


def test_it_is_worked_out_once_for_a_while():
    clock, members = Clock(), Known()
    index = locked(12)
    request_filter = IsolateAggregates()
    shortener = Shortener(ROOM_FOR_FOUR, request_filter.locks, members, clock)

    def ask():
        destination = Destination()
        for found in request_filter(Request(Flavor('f')), index):
            destination.add(found, 'isolate_aggregates')
        return shortener.shorten(destination, index)

    first = ask()
    clock.now += 29
    assert ask() is first
    assert members.asked == 1
    clock.now += 1
    ask()
    assert members.asked == 2

    members.broken = True
    clock.now += 30
    with pytest.raises(exception.RequestRefused):
        ask()
    # Somebody may have mended it.
    members.broken = False
    clock.now += 4
    with pytest.raises(exception.RequestRefused):
        ask()
    clock.now += 1
    assert ask().forbidden == {ROLLUP}


def test_what_leaves_out_aggregates_is_worked_out_again_soon():
    """A host may have been added to one that had none."""
    clock = Clock()
    hosts = {uuid(n): frozenset() for n in range(12)}
    members = Known(hosts, lagging=hosts)
    index = locked(12)
    shortener = Shortener(
        ROOM_FOR_FOUR, IsolateAggregates().locks, members, clock
    )
    destination = forbidding(index)
    assert shortener.shorten(destination, index).forbidden == set()
    hosts[uuid(7)] = frozenset(['host'])
    clock.now += 4
    assert shortener.shorten(destination, index).forbidden == set()
    clock.now += 1
    assert shortener.shorten(destination, index).forbidden == {uuid(7)}


def test_many_threads_have_it_worked_out_once():
    members = Known()
    index = locked(12)
    request_filter = IsolateAggregates()
    shortener = Shortener(ROOM_FOR_FOUR, request_filter.locks, members)
    together = threading.Barrier(8)
    found = []

    def ask():
        together.wait()
        shortened = shortener.shorten(forbidding(index), index)
        found.append(shortened.forbidden)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{ROLLUP}] * 8
    assert members.asked == 1


def test_while_one_thread_asks_again_the_others_go_on():
    clock, members = Clock(), Known()
    index = locked(12)
    request_filter = IsolateAggregates()
    shortener = Shortener(ROOM_FOR_FOUR, request_filter.locks, members, clock)
    destination = forbidding(index)
    first = shortener.shorten(destination, index)

    asking, go_on = threading.Event(), threading.Event()
    covered = members.covered

    def slowly(rollup):
        asking.set()
        assert go_on.wait(120)
        return covered(rollup)

    members.covered = slowly
    clock.now += 30
    slow = threading.Thread(
        target=shortener.shorten, args=(destination, index)
    )
    slow.start()
    assert asking.wait(120)
    clock.now += 29
    assert shortener.shorten(destination, index) is first

    # An answer that is twice as old as it may be is not used.
    clock.now += 1
    late = threading.Thread(
        target=shortener.shorten, args=(destination, index)
    )
    late.start()
    late.join(0.2)
    assert late.is_alive()
    go_on.set()
    for thread in (slow, late):
        thread.join()
    assert shortener.shorten(destination, index) is not first
    # What one thread found out serves the other that waited for it.
    assert members.asked == 2


def rollup(*aggregates):
    return Rollup('name', 'uuid', frozenset(aggregates))


@pytest.mark.parametrize(
    ('rollups', 'lagging', 'chosen', 'left'),
    [
        pytest.param(['ab'], '', ['ab'], 'cde', id='two'),
        pytest.param(['abx'], '', [], 'abcde', id='forbids more'),
        pytest.param(['abc'], 'c', ['abc'], 'cde', id='lacks one'),
        pytest.param(['abc'], 'bc', [], 'abcde', id='has only one'),
        pytest.param(['abc', 'bcde'], '', ['abc', 'bcde'], '', id='overlap'),
        pytest.param(['abcd', 'de'], '', ['abcd'], 'e', id='adds only one'),
    ],
)
def test_a_rollup_replaces_two_forbidden_aggregates_or_more(
    rollups, lagging, chosen, left
):
    found = cover.with_rollups(
        frozenset('abcde'),
        [rollup(*aggregates) for aggregates in rollups],
        lambda rollup: rollup.aggregates.difference(lagging),
    )
    assert found == (
        tuple(rollup(*aggregates) for aggregates in chosen),
        frozenset(left),
    )


def test_placement_is_not_asked_about_rollups_that_are_of_no_use():
    asked = []

    def covered(rollup):
        asked.append(rollup)
        return rollup.aggregates

    cover.with_rollups(
        frozenset('abcde'),
        [rollup(*'abcd'), rollup(*'abc'), rollup(*'de'), rollup(*'ex')],
        covered,
    )
    assert asked == [rollup(*'abcd')]


@pytest.mark.parametrize(
    ('hosts', 'covered', 'chosen'),
    [
        pytest.param({'a': '123', 'b': '12'}, '', 'a', id='part of another'),
        pytest.param({'a': '123', 'b': '34'}, '', 'ab', id='overlap'),
        pytest.param({'a': '12', 'b': '12'}, '', 'a', id='same, first name'),
        pytest.param(
            {'a': '12', 'b': '34', 'x': '12', 'y': '3'},
            'xy',
            'b',
            id='covered by several others',
        ),
        pytest.param({'a': '12', 'b': ''}, '', 'a', id='empty'),
        pytest.param({'a': '12'}, '', 'ab', id='not known'),
    ],
)
def test_few_aggregates_have_all_hosts(hosts, covered, chosen):
    known = {name: frozenset(members) for name, members in hosts.items()}
    assert cover.fewest(frozenset('ab'), known, covered) == frozenset(chosen)


hosts = st.dictionaries(
    st.integers(0, 15).map(uuid),
    st.frozensets(st.integers(0, 8).map('host{}'.format)),
)


@given(
    hosts,
    st.frozensets(st.integers(0, 20).map(uuid)),
    st.sets(st.integers(0, 20).map(uuid)),
)
def test_the_fewest_have_all_the_hosts(known, aggregates, others):
    chosen = cover.fewest(aggregates, known, others)
    assert chosen <= aggregates
    # Those that are not known stay.
    assert aggregates - known.keys() <= chosen

    def of(uuids):
        return frozenset().union(*(known.get(a, frozenset()) for a in uuids))

    assert of(chosen | others) == of(aggregates | others)


@given(
    st.lists(st.frozensets(st.integers(0, 99).map(uuid), min_size=1)),
    st.sets(st.integers(0, 99).map(uuid)),
)
def test_lengths_are_those_of_the_encoded_query(choices, forbidden):
    asked = group.RequestGroup(
        aggregates=choices, forbidden_aggregates=forbidden
    )
    params = [p for p in asked.to_queryparams() if p[0] == 'member_of']
    # With the & before each parameter.
    length = len(parse.urlencode(params)) + bool(params)
    counted = group.required_length(choices) + group.forbidden_length(
        len(forbidden)
    )
    assert counted == length


@given(st.integers(0, 10_000))
def test_as_many_aggregates_fit_as_there_is_room_for(length):
    most = group.most_aggregates(length)
    assert most == 0 or group.forbidden_length(most) <= length
    assert group.forbidden_length(most + 1) > length
