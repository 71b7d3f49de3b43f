# SPDX-License-Identifier: Apache-2.0
"""Days and peaks of a ledger are those of counting second by second."""

import collections

from audit_clouds import configuration
from hypothesis import given
from hypothesis import strategies as st
import pytest

from isolate_aggregates_tools.ledger import days, shown, sizes
from isolate_aggregates_tools.ledger.days import DAY, HostDay, HostSize, Peak
from isolate_aggregates_tools.ledger.history import History
from isolate_aggregates_tools.ledger.ledger import (
    Ledger,
    Subject,
    UsableHosts,
)
from isolate_aggregates_tools.ledger.state import (
    AggregateState,
    HostState,
    State,
)
from isolate_aggregates_tools.ledger.stays import Span, Stay, merged
from isolate_aggregates_tools.ledger.times import (
    as_day,
    as_seconds,
    as_text,
)

SIZES = {'a': HostSize(2, 32), 'b': HostSize(1, None)}
# Seconds that matter: borders of days, and what is beside them.
TIMES = sorted(
    day * DAY + second for day in range(4) for second in (-1, 0, 1, 7)
)
SINCE, UNTIL = 1, 3 * DAY


@st.composite
def lives(draw):
    """Servers that are on one host at a time."""
    stays = []
    for number in range(draw(st.integers(0, 4))):
        times = sorted(draw(st.sets(st.sampled_from(TIMES), max_size=5)))
        for start, end in zip(times, [*times[1:], None], strict=False):
            host = draw(st.sampled_from('ab '))
            if host != ' ':
                stays.append(
                    Stay(
                        start,
                        end,
                        f's{number}',
                        host,
                        cores=draw(st.sampled_from([None, 2, 4])),
                    )
                )
    return stays


def running(stays, second):
    return [stay for stay in stays if stay.overlaps(second, second + 1)]


SECONDS = sorted(
    {
        second
        for time in TIMES
        for second in (time - 1, time, time + 1)
        if SINCE <= second < UNTIL
    }
    | {SINCE}
)


@given(lives())
def test_days(stays):
    servers = collections.defaultdict(set)
    most = collections.defaultdict(int)
    for second in SECONDS:
        cores = collections.Counter()
        for stay in running(stays, second):
            place = stay.host, second - second % DAY
            servers[place].add(stay.server)
            cores[place] += stay.cores or 0
            most[place] = max(most[place], cores[place])
    assert list(days.host_days(stays, {}, [], SINCE, UNTIL)) == [
        HostDay(host, as_day(day), False, len(names), most[host, day])
        for (host, day), names in sorted(servers.items())
    ]


@given(lives())
def test_peaks(stays):
    best = dict.fromkeys(
        ('servers', 'vcpus', 'hosts', 'sockets', 'cores'), Peak()
    )
    for second in SECONDS:
        now = running(stays, second)
        hosts = [SIZES[host] for host in {stay.host for stay in now}]
        for what, amounts in {
            'servers': [1 for _ in now],
            'vcpus': [stay.cores for stay in now],
            'hosts': [1 for _ in hosts],
            'sockets': [size.sockets for size in hosts],
            'cores': [size.cores for size in hosts],
        }.items():
            number = sum(amount or 0 for amount in amounts)
            unknown = amounts.count(None)
            if (number, unknown) > (best[what].number, best[what].unknown):
                best[what] = Peak(number, as_text(second), unknown)
    assert vars(days.peaks(stays, SIZES, SINCE, UNTIL)) == best


def test_a_server_in_one_of_two_places_counts_once():
    stays = [Stay(10, 30, 's', 'a', cores=4), Stay(20, 40, 's', 'b', cores=8)]
    peaks = days.peaks(stays, SIZES, 0, 100)
    assert peaks.servers == Peak(1, as_text(10))
    assert peaks.vcpus == Peak(8, as_text(20))
    assert peaks.hosts == Peak(2, as_text(20))


def test_the_larger_size_of_a_server_in_two_places_counts():
    twice = [Stay(10, 40, 's', 'a', cores=8), Stay(20, 40, 's', 'b', cores=4)]
    peaks = days.peaks([*twice, Stay(30, 40, 't', 'c', cores=1)], SIZES, 0, 50)
    assert peaks.vcpus == Peak(9, as_text(30))


def test_a_size_that_is_known_in_one_of_two_places_counts():
    twice = [Stay(10, 40, 's', 'a'), Stay(20, 40, 's', 'b', cores=1)]
    assert days.peaks(twice, SIZES, 0, 50).vcpus == Peak(1, as_text(20))


def test_days_on_which_servers_could_run_and_did_not():
    could = {'a': [Span(86_399, 86_401)], 'b': []}
    assert list(days.host_days([], could, [], 0, 3 * 86_400)) == [
        HostDay('a', '1970-01-01', True, 0, 0),
        HostDay('a', '1970-01-02', True, 0, 0),
    ]


def test_a_day_without_a_record_is_unknown():
    stays = [Stay(0, None, 's', 'a', cores=1)]
    gap = [Span(DAY, DAY + 1)]
    assert [
        day.could for day in days.host_days(stays, {}, gap, 0, 3 * DAY)
    ] == [False, None, False]


def test_spans_are_merged():
    spans = [Span(5, 7), Span(1, 3), Span(2, 5), Span(9, None), Span(20, 21)]
    assert merged(spans) == [Span(1, 7), Span(9, None)]


@pytest.mark.parametrize(
    ('most', 'said'),
    [
        (None, ['  a.', '  b.']),
        (2, ['  a.', '  b.']),
        (1, ['  a.', '  1 more; --long shows all.']),
    ],
)
def test_only_what_is_left_out_is_counted(most, said):
    subject = Subject('project', 'p', 'p')
    ledger = Ledger(subject, 0, 1, (), {}, (), {}, gaps=['a', 'b'])
    assert list(shown.gaps(ledger, most)) == ['Not known:', *said]


def test_nothing_is_said_if_all_is_known():
    subject = Subject('project', 'p', 'p')
    assert not list(shown.gaps(Ledger(subject, 0, 1, (), {}, (), {}), None))


@pytest.mark.parametrize(
    ('kind', 'could'), [('project', None), ('aggregate', False)]
)
def test_projects_have_no_hosts_of_their_own(kind, could):
    stays = [Stay(0, 1, 's', 'a')]
    ledger = Ledger(Subject(kind, 'x', 'x'), 0, 1, stays, {}, (), {})
    assert [day.could for day in ledger.days] == [could]


@pytest.mark.parametrize(
    ('host', 'cores', 'said'),
    [
        (
            'b',
            None,
            [
                'Most hosts at a time: 1, first at 1970-01-01T00:00:00Z.',
                'Most sockets at a time: 1, first at 1970-01-01T00:00:00Z.',
                'Most cores at a time: 0, first at 1970-01-01T00:00:00Z, and '
                'those of 1 host whose number is not known.',
                'Most servers at a time: 1, first at 1970-01-01T00:00:00Z.',
                'Most VCPUs at a time: 0, first at 1970-01-01T00:00:00Z, and '
                'those of 1 server whose number is not known.',
            ],
        ),
        (None, None, ['No servers ran.']),
    ],
)
def test_the_peaks_are_told(host, cores, said):
    stays = [Stay(0, 1, 's', host, cores=cores)] if host else []
    ledger = Ledger(Subject('project', 'p', 'p'), 0, 1, stays, {}, (), SIZES)
    first, *lines, last = shown.lines(ledger, list(ledger.days))
    assert first == (
        'Ledger of project p from 1970-01-01T00:00:00Z to '
        '1970-01-01T00:00:01Z.'
    )
    assert lines == said
    assert last == f'Host days: {len(stays)} on which servers ran.'


@pytest.mark.parametrize(
    ('more', 'exact'),
    [({}, 'yes'), ({'start_by': 2}, 'no'), ({'end_from': 2}, 'no')],
)
def test_a_stay_is_exact_if_both_ends_are(more, exact):
    assert shown.stay_row(Stay(1, 3, 's', 'a', **more))[-1] == exact


@pytest.mark.parametrize(
    ('kind', 'keys', 'has_key'),
    [
        ('lock', frozenset({'l'}), True),
        ('lock', None, None),
        ('project', frozenset({'l'}), None),
    ],
)
def test_only_the_ledger_of_a_lock_tells_of_keys(kind, keys, has_key):
    stay = Stay(0, None, 's', 'a', keys=keys)
    ledger = Ledger(Subject(kind, 'l', 'l'), 0, 1, [stay], {}, (), {})
    [shown_stay] = shown.document(ledger, (), None).stays
    assert shown_stay.has_key is has_key
    assert shown_stay.from_ == '1970-01-01T00:00:00Z'


@pytest.mark.parametrize(
    ('has_nova', 'kind', 'what'),
    [
        (
            True,
            'lock',
            'locks and memberships, and of servers that Nova has archived or '
            'whose actions were purged',
        ),
        (
            True,
            'project',
            'servers that Nova has archived or whose actions were purged',
        ),
        (False, 'lock', 'locks, memberships and servers'),
        (False, 'project', 'servers'),
    ],
)
def test_what_is_not_known_depends_on_what_was_read(has_nova, kind, what):
    gap = Span(0, 1)
    subject = Subject(kind, 'x', 'x')
    ledger = Ledger(subject, 0, 1, (), {}, [gap], {}, has_nova=has_nova)
    _, sentence = shown.gaps(ledger, None)
    assert sentence == (
        '  between 1970-01-01T00:00:00Z and 1970-01-01T00:00:01Z, there is '
        f'no record of {what}.'
    )


def test_only_days_on_which_servers_certainly_could_run_are_counted():
    several = [
        HostDay('h', as_day(number), could, 0, 0)
        for number, could in enumerate((True, False, None))
    ]
    ledger = Ledger(Subject('lock', 'l', 'l'), 0, 1, (), {}, (), {})
    *_, line = shown.lines(ledger, several)
    assert line == (
        'Host days: 0 on which servers ran, 1 on which they could run.'
    )


@pytest.mark.parametrize(
    ('kind', 'name', 'usable'),
    [
        ('lock', 'trait:CUSTOM_A', {'a'}),
        ('lock', 'CUSTOM_A', set()),
        ('aggregate', 'trait:CUSTOM_A', set()),
    ],
)
def test_hosts_with_the_trait_of_a_lock_are_usable(kind, name, usable):
    state = State(
        hosts={
            'a': HostState(None, None, ('CUSTOM_A',)),
            'b': HostState(None, None, ()),
        }
    )
    found = UsableHosts(configuration(), Subject(kind, name, name))
    assert found.of(state) == usable


def test_a_tag_replaces_only_the_size_that_it_gives():
    tagged = AggregateState('a', ('h', 'new'), {'ledger:sockets': '4'})
    state = State({'a': tagged}, {'h': HostState(2, 16, ())})
    assert sizes.sizes(state) == {'h': HostSize(4, 16), 'new': HostSize(4)}


@pytest.mark.parametrize(
    ('before', 'after', 'result'),
    [
        ({}, {'h': HostSize(2, 16)}, HostSize(2, 16)),
        ({'h': HostSize(2, 16)}, {}, HostSize(2, 16)),
        ({'h': HostSize(2, 16)}, {'h': HostSize(None, 8)}, HostSize(2, 8)),
        ({'h': HostSize(2, 16)}, {'h': HostSize(1, None)}, HostSize(1, 16)),
    ],
)
def test_a_size_that_is_no_longer_known_stays(before, after, result):
    assert sizes.newer(before, after) == {'h': result}


@pytest.mark.parametrize(
    ('text', 'seconds'),
    [
        ('1970-01-02', DAY),
        ('1970-01-02T00:00:00Z', DAY),
        ('1970-01-02T01:00+01:00', DAY),
    ],
)
def test_a_time_is_in_utc_unless_it_says_otherwise(text, seconds):
    assert as_seconds(text) == seconds


def test_a_file_is_named_with_its_digests():
    ledger = Ledger(Subject('lock', 'l', 'l'), 0, 1, (), {}, (), {})
    history = History(files=['f'], lines=2, digests=('a', 'b'))
    file = shown.document(ledger, (), history).file
    assert (file.names, file.lines) == (('f',), 2)
    assert (file.first, file.last) == ('a', 'b')


def test_a_peak_is_told_with_its_time():
    assert shown._peak('VCPUs', Peak()) == 'Most VCPUs at a time: not known.'
    assert shown._peak('hosts', Peak(3, as_text(DAY))) == (
        'Most hosts at a time: 3, first at 1970-01-02T00:00:00Z.'
    )
