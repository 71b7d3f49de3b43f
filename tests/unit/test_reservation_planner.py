# SPDX-License-Identifier: Apache-2.0
"""The planner against all there is to choose from, in small cases."""

from collections.abc import Iterator
import dataclasses
import datetime
import itertools
import random

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from isolate_aggregates.reservations import planner
from isolate_aggregates.reservations.planner import Claim, Room, Wish

BEGIN = datetime.datetime(2027, 3, 1, tzinfo=datetime.UTC)
LAST = 6

AFFINITIES = (None, True, False)


def at(hour: int | None) -> datetime.datetime | None:
    """Return a time; None for never."""
    if hour is None:
        return None
    return BEGIN + datetime.timedelta(hours=hour)


@st.composite
def times(
    draw: st.DrawFn,
) -> tuple[datetime.datetime, datetime.datetime | None]:
    """Draw a start and an end, or none."""
    start = draw(st.integers(0, LAST - 1))
    end = draw(st.none() | st.integers(start + 1, LAST))
    return BEGIN + datetime.timedelta(hours=start), at(end)


def amounts(least: int, most: int) -> st.SearchStrategy[dict[str, int]]:
    """Draw amounts of two resource classes."""
    return st.fixed_dictionaries(
        {
            'VCPU': st.integers(least, most),
            'MEMORY_MB': st.integers(least, most),
        }
    )


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    """Draw slots of another reservation."""
    start, end = draw(times())
    return Claim(start, end, draw(amounts(0, 3)), draw(st.integers(1, 2)))


@st.composite
def rooms(draw: st.DrawFn, host: str, may_hold: bool) -> Room:
    """Draw a host."""
    held = draw(st.integers(0, 2)) if may_hold else 0
    return Room(
        host,
        capacity=draw(amounts(0, 9)),
        ordinary=draw(amounts(0, 2)),
        claims=tuple(draw(st.lists(claims(), max_size=3))),
        held=held,
        used=draw(st.integers(0, held)),
        obstacle=draw(st.sampled_from([None, None, 'is down'])),
    )


@st.composite
def wishes(draw: st.DrawFn) -> Wish:
    """Draw what a reservation needs."""
    start, end = draw(times())
    return Wish(
        start,
        end,
        draw(amounts(1, 3)),
        draw(st.integers(1, 4)),
        draw(st.sampled_from(AFFINITIES)),
    )


@st.composite
def questions(
    draw: st.DrawFn, may_hold: bool = True
) -> tuple[Wish, list[Room]]:
    """Draw a wish and the hosts for it."""
    found = [draw(rooms(f'h{n}', may_hold)) for n in range(3)]
    return draw(wishes()), found


def fits(room: Room, wish: Wish, slots: int) -> bool:
    """Tell hour by hour whether a host has enough for some slots."""
    if not slots:
        return True
    hours = [
        BEGIN + datetime.timedelta(hours=hour) for hour in range(LAST + 1)
    ]
    for hour in hours:
        if hour < wish.start or (wish.end is not None and hour >= wish.end):
            continue
        for name, need in wish.needs.items():
            taken = room.ordinary[name] + slots * need
            for claim in room.claims:
                if claim.start <= hour and not (
                    claim.end is not None and claim.end <= hour
                ):
                    taken += claim.slots * claim.needs[name]
            if taken > room.capacity[name]:
                return False
    return True


def is_right(wish: Wish, rooms: list[Room], slots: tuple[int, ...]) -> bool:
    """Tell whether numbers of slots by host are an answer to a wish."""
    if sum(slots) != wish.amount:
        return False
    if wish.affinity is True and sum(n > 0 for n in slots) > 1:
        return False
    if wish.affinity is False and max(slots) > 1:
        return False
    return all(
        room.used <= number
        and (room.obstacle is None or number <= room.held)
        and fits(room, wish, number)
        for room, number in zip(rooms, slots, strict=True)
    )


def choices(wish: Wish, rooms: list[Room]) -> Iterator[tuple[int, ...]]:
    """Yield every answer there is."""
    for slots in itertools.product(range(wish.amount + 1), repeat=len(rooms)):
        if is_right(wish, rooms, slots):
            yield slots


@settings(max_examples=200, deadline=None)
@given(questions())
def test_slots_are_placed_just_if_there_is_a_choice(
    question: tuple[Wish, list[Room]],
) -> None:
    wish, found = question
    placing = planner.place(wish, found)
    slots = tuple(placing.slots.get(room.host, 0) for room in found)
    every = list(choices(wish, found))
    assert (placing.missing == 0) is bool(every)
    if every:
        assert slots in every


@settings(max_examples=200, deadline=None)
@given(questions())
def test_as_many_slots_as_possible_stay_where_they_are(
    question: tuple[Wish, list[Room]],
) -> None:
    wish, found = question
    placing = planner.place(wish, found)
    every = list(choices(wish, found))
    if not every:
        return

    def stay(slots: tuple[int, ...]) -> int:
        return sum(
            min(number, room.held)
            for number, room in zip(slots, found, strict=True)
        )

    slots = tuple(placing.slots.get(room.host, 0) for room in found)
    assert stay(slots) == max(map(stay, every))


@settings(max_examples=100, deadline=None)
@given(questions(), st.randoms())
def test_the_order_of_the_hosts_does_not_matter(
    question: tuple[Wish, list[Room]], chance: random.Random
) -> None:
    wish, found = question
    shuffled = list(found)
    chance.shuffle(shuffled)
    assert planner.place(wish, found) == planner.place(wish, shuffled)


@settings(max_examples=200, deadline=None)
@given(questions(), st.booleans())
def test_no_slot_with_a_server_is_ever_taken_away(
    question: tuple[Wish, list[Room]], move: bool
) -> None:
    wish, found = question
    placing = planner.place(wish, found, move)
    for room in found:
        number = placing.slots.get(room.host, 0)
        assert number >= room.used
        # And no new one is put where there is no room.
        assert number <= room.used or fits(room, wish, number)


NOW, LATER = BEGIN, BEGIN + datetime.timedelta(hours=1)
TEN = {'VCPU': 10}


def wish(amount: int, affinity: bool | None = None) -> Wish:
    """Return a wish for slots of four VCPUs."""
    return Wish(NOW, LATER, {'VCPU': 4}, amount, affinity)


def test_every_slot_of_an_overlapping_reservation_counts() -> None:
    claim = Claim(NOW, None, {'VCPU': 4}, 2)
    room = Room('h1', TEN, claims=(claim,))
    assert planner.free_slots(room, wish(1)) == 0
    one = dataclasses.replace(claim, slots=1)
    assert planner.free_slots(Room('h1', TEN, claims=(one,)), wish(1)) == 1


def test_what_ends_when_another_starts_leaves_its_room() -> None:
    before = Claim(BEGIN - datetime.timedelta(hours=1), NOW, {'VCPU': 9}, 1)
    after = Claim(LATER, None, {'VCPU': 9}, 1)
    room = Room('h1', TEN, claims=(before, after))
    assert planner.free_slots(room, wish(1)) == 2


def test_two_that_do_not_overlap_each_other_count_one_at_a_time() -> None:
    half = NOW + datetime.timedelta(minutes=30)
    room = Room(
        'h1',
        TEN,
        claims=(
            Claim(NOW, half, {'VCPU': 6}, 1),
            Claim(half, None, {'VCPU': 6}, 1),
        ),
    )
    assert planner.free_slots(room, wish(1)) == 1


@pytest.mark.parametrize(
    ('affinity', 'slots'),
    [
        pytest.param(None, {'h3': 3}, id='few hosts'),
        pytest.param(True, {'h3': 3}, id='one host'),
        pytest.param(False, {'h1': 1, 'h2': 1, 'h3': 1}, id='each its own'),
    ],
)
def test_affinity_decides_over_the_hosts(
    affinity: bool | None, slots: dict[str, int]
) -> None:
    found = [Room('h1', TEN), Room('h2', TEN), Room('h3', {'VCPU': 12})]
    assert planner.place(wish(3, affinity), found).slots == slots


def test_slots_without_servers_leave_a_failed_host_where_they_fit() -> None:
    failed = Room('h1', TEN, held=2, used=1, obstacle='is down')
    one, two = Room('h2', TEN), Room('h3', {'VCPU': 3})
    assert planner.place(wish(2), [failed, one]).slots == {'h1': 2}
    moved = planner.place(wish(2), [failed, one], move=True)
    assert moved.slots == {'h1': 1, 'h2': 1}
    # Not dropped where there is no other place.
    assert planner.place(wish(2), [failed, two], move=True).slots == {'h1': 2}


def test_servers_on_two_hosts_are_no_affinity() -> None:
    split = [Room(host, TEN, held=1, used=1) for host in ('h1', 'h2')]
    placing = planner.place(wish(2, affinity=True), split)
    # Where servers are slots stay, but it is not what was wished for.
    assert (placing.slots, placing.missing) == ({'h1': 1, 'h2': 1}, 1)


def test_no_slots_without_a_need() -> None:
    nothing = dataclasses.replace(wish(1), needs={'VCPU': 0})
    assert planner.free_slots(Room('h1', TEN), nothing) == 0
