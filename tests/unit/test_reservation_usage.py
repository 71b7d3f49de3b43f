# SPDX-License-Identifier: Apache-2.0
"""The hours of slots and of servers are added up exactly."""

import dataclasses
import datetime
import itertools

from hypothesis import given
from hypothesis import strategies as st
import pytest
from thorough import examples

from isolate_aggregates.reservations import changes, usage
from isolate_aggregates.reservations.compute import ServerTime
from isolate_aggregates.reservations.reservation import (
    Change,
    Reservation,
    Shape,
)

NOON = datetime.datetime(2027, 3, 1, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
ALL = (NOON - 10_000 * HOUR, NOON + 10_000 * HOUR)

hours = st.integers(0, 100)


def reservation(*amounts):
    """Return a reservation of 100 hours with amounts from hours on."""
    return Reservation(
        id='4d17d41a-830d-47b2-91c7-4f9fc0ae611e',
        project='demo',
        start=NOON,
        end=NOON + 100 * HOUR,
        amount=amounts[-1][1],
        shape=Shape(1, 512, 1),
        changes=tuple(
            Change(NOON + at * HOUR, '', None, amount, (), True)
            for at, amount in amounts
        ),
    )


@pytest.mark.parametrize(
    ('amounts', 'since', 'until', 'expected'),
    [
        ([(-5, 2)], -100, 200, 200),
        ([(0, 2), (50, 4)], -100, 200, 300),
        ([(-9, 2), (-5, 4)], -100, 200, 400),
        ([(0, 2), (50, 4)], 0, 50, 100),
        ([(0, 2), (50, 4)], 60, 70, 40),
        ([(0, 2)], 100, 200, 0),
        # A change after the end counts for nothing.
        ([(0, 2), (150, 9)], -100, 200, 200),
    ],
)
def test_slot_hours(amounts, since, until, expected):
    assert expected == changes.slot_hours(
        reservation(*amounts), NOON + since * HOUR, NOON + until * HOUR
    )


@given(st.lists(st.tuples(hours, hours), max_size=6), hours, hours)
@examples(200)
def test_server_hours_of_parts_add_up(pairs, one, other):
    times = [
        ServerTime(
            NOON + begin * HOUR,
            None if end > 90 else NOON + max(begin, end) * HOUR,
        )
        for begin, end in pairs
    ]
    end = NOON + 100 * HOUR
    whole = usage.usage_of(times, NOON, end)
    expected = sum(
        ((time.end or end) - time.start) / HOUR
        for time in times
        if (time.end or end) > time.start
    )
    assert whole.within(*ALL) == pytest.approx(expected)
    first, second = sorted((one, other))
    cuts = (ALL[0], NOON + first * HOUR, NOON + second * HOUR, ALL[1])
    parts = [
        whole.within(begin, finish)
        for begin, finish in itertools.pairwise(cuts)
    ]
    assert sum(parts) == pytest.approx(expected)
    assert usage.parse(whole.document) == dataclasses.replace(
        whole, hours=tuple(round(each, 4) for each in whole.hours)
    )


def test_servers_one_after_another_are_not_there_at_the_same_time():
    times = [
        ServerTime(NOON, NOON + HOUR),
        ServerTime(NOON + HOUR, NOON + 2 * HOUR),
    ]
    whole = usage.usage_of(times, NOON, NOON + 9 * HOUR)
    assert (whole.servers, whole.most) == (2, 1)
    none = usage.usage_of([], NOON, NOON + 9 * HOUR)
    assert (none.servers, none.most) == (0, 0)


@pytest.mark.parametrize(('days', 'each'), [(500, 1), (501, 2)])
def test_a_long_time_has_sums_of_several_days(days, each):
    """At most 500, which fit into the description of an archive."""
    start = NOON.replace(hour=0)
    whole = usage.usage_of([], start, start + days * 24 * HOUR)
    assert (whole.days, len(whole.hours)) == (each, -(-days // each))


def test_a_change_is_added_once():
    first = changes.recorded(reservation((0, 2)), NOON + HOUR)
    again = changes.recorded(first, NOON + 2 * HOUR)
    assert again.changes == first.changes
    larger = dataclasses.replace(again, amount=5)
    third = changes.recorded(larger, NOON + 3 * HOUR)
    assert [change.amount for change in third.changes][-1] == 5
    assert len(third.changes) == len(first.changes) + 1
