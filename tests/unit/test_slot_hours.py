# SPDX-License-Identifier: Apache-2.0
"""The hours of slots are added up exactly."""

import dataclasses
import datetime

from hypothesis import strategies as st
import pytest

from isolate_aggregates.reservations import changes
from isolate_aggregates.reservations.reservation import (
    Change,
    Reservation,
    Shape,
)

NOON = datetime.datetime(2027, 3, 1, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)

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


def test_a_change_is_added_once():
    first = changes.recorded(reservation((0, 2)), NOON + HOUR)
    again = changes.recorded(first, NOON + 2 * HOUR)
    assert again.changes == first.changes
    larger = dataclasses.replace(again, amount=5)
    third = changes.recorded(larger, NOON + 3 * HOUR)
    assert [change.amount for change in third.changes][-1] == 5
    assert len(third.changes) == len(first.changes) + 1
