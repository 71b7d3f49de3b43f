# SPDX-License-Identifier: Apache-2.0
"""The time of slots is added up to the second."""

import dataclasses
import datetime

import pytest

from isolate_aggregates_reservations import events
from isolate_aggregates_reservations.reservation import (
    Event,
    Reservation,
    Shape,
)

NOON = datetime.datetime(2027, 3, 1, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)


def event(at, amount, is_open=None, down=()):
    """Return an event; slots are open on one host each, or none."""
    is_open = amount if is_open is None else is_open
    open_on = {f'h{number}': 1 for number in range(is_open)}
    end = NOON + 100 * HOUR
    return Event(NOON + at * HOUR, '', end, amount, (), open_on, down, None)


def reservation(*past):
    """Return a reservation of 100 hours with events."""
    return Reservation(
        id='4d17d41a-830d-47b2-91c7-4f9fc0ae611e',
        project='demo',
        start=NOON,
        end=NOON + 100 * HOUR,
        amount=past[-1].amount,
        shape=Shape(1, 512, 1),
        open=past[-1].open,
        down=past[-1].down,
        events=past,
    )


@pytest.mark.parametrize(
    ('past', 'since', 'until', 'expected'),
    [
        ([event(-5, 2, 0), event(0, 2)], -100, 100, (200, 200, 200)),
        ([event(0, 2), event(50, 4)], -100, 100, (300, 300, 300)),
        ([event(-9, 2, 0), event(-5, 4, 0)], -100, 200, (400, 0, 0)),
        ([event(0, 2), event(50, 4)], 0, 50, (100, 100, 100)),
        ([event(0, 2), event(50, 4)], 60, 70, (40, 40, 40)),
        # Open after the end, which nobody bought.
        ([event(0, 2)], 100, 200, (0, 200, 0)),
        ([event(0, 2), event(150, 9)], -100, 200, (200, 750, 200)),
        # The end was carried out in time.
        ([event(0, 2), event(100, 2, 0)], -100, 200, (200, 200, 200)),
        # Opened late.
        ([event(-5, 2, 0), event(10, 2)], -100, 100, (200, 180, 180)),
        # One of two hosts is down from hour 10 to 20.
        (
            [event(0, 2), event(10, 2, down=('h1',)), event(20, 2)],
            *(-100, 100),
            (200, 200, 190),
        ),
        # More is open than was bought.
        ([event(0, 1, 2)], 0, 10, (10, 20, 10)),
    ],
)
def test_slot_time(past, since, until, expected):
    time = events.slot_time(
        reservation(*past), NOON + since * HOUR, NOON + until * HOUR
    )
    hours = tuple(part / HOUR for part in dataclasses.astuple(time))
    assert hours == expected


def test_an_event_is_added_once():
    first = events.recorded(reservation(event(0, 2)), NOON + HOUR)
    again = events.recorded(first, NOON + 2 * HOUR)
    assert again.events == first.events
    larger = dataclasses.replace(again, amount=5)
    third = events.recorded(larger, NOON + 3 * HOUR)
    assert [e.amount for e in third.events] == [2, 5]


def test_a_clock_that_is_behind_changes_no_order():
    larger = dataclasses.replace(reservation(event(5, 2)), amount=5)
    later = events.recorded(larger, NOON + 4 * HOUR)
    assert [e.at for e in later.events] == [NOON + 5 * HOUR] * 2
