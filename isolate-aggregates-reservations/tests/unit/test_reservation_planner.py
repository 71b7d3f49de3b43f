# SPDX-License-Identifier: Apache-2.0
"""The planner agrees with an exhaustive search, in small cases."""

from collections.abc import Iterator
import dataclasses
import datetime
import itertools
import random

from hypothesis import given
from hypothesis import strategies as st
import pytest
from thorough import examples

from isolate_aggregates_reservations import plan
from isolate_aggregates_reservations.plan import Claim, Demand, HostCapacity

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
def capacities(draw: st.DrawFn, host: str, may_hold: bool) -> HostCapacity:
    """Draw a host."""
    own = draw(st.integers(0, 2)) if may_hold else 0
    return HostCapacity(
        host,
        capacity=draw(amounts(-2, 9)),
        claims=tuple(draw(st.lists(claims(), max_size=3))),
        own=own,
        used=draw(st.integers(0, own)),
        obstacle=draw(st.sampled_from([None, None, 'is down'])),
        rank=draw(st.integers(0, 1)),
    )


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    """Draw what a reservation needs."""
    start, end = draw(times())
    return Demand(
        start,
        end,
        draw(amounts(1, 3)),
        draw(st.integers(1, 4)),
        draw(st.sampled_from(AFFINITIES)),
    )


@st.composite
def questions(
    draw: st.DrawFn, may_hold: bool = True
) -> tuple[Demand, list[HostCapacity]]:
    """Draw a demand and the hosts for it."""
    found = [draw(capacities(f'h{n}', may_hold)) for n in range(3)]
    return draw(demands()), found


def fits(host: HostCapacity, demand: Demand, slots: int) -> bool:
    """Tell hour by hour whether a host has enough for some slots."""
    if not slots:
        return True
    hours = [
        BEGIN + datetime.timedelta(hours=hour) for hour in range(LAST + 1)
    ]
    for hour in hours:
        if hour < demand.start or (
            demand.end is not None and hour >= demand.end
        ):
            continue
        for name, need in demand.needs.items():
            taken = slots * need
            for claim in host.claims:
                if claim.start <= hour and not (
                    claim.end is not None and claim.end <= hour
                ):
                    taken += claim.slots * claim.needs[name]
            if taken > host.capacity[name]:
                return False
    return True


def is_right(
    demand: Demand, capacities: list[HostCapacity], slots: tuple[int, ...]
) -> bool:
    """Return whether numbers of slots by host are an answer to a demand."""
    if sum(slots) != demand.amount:
        return False
    if demand.affinity is True and sum(n > 0 for n in slots) > 1:
        return False
    if demand.affinity is False and max(slots) > 1:
        return False
    return all(
        host.used <= number
        and (host.obstacle is None or number <= host.own)
        and fits(host, demand, number)
        for host, number in zip(capacities, slots, strict=True)
    )


def choices(
    demand: Demand, capacities: list[HostCapacity]
) -> Iterator[tuple[int, ...]]:
    """Yield every answer there is."""
    for slots in itertools.product(
        range(demand.amount + 1), repeat=len(capacities)
    ):
        if is_right(demand, capacities, slots):
            yield slots


@examples(60)
@given(questions())
def test_slots_are_placed_exactly_if_a_placement_exists(
    question: tuple[Demand, list[HostCapacity]],
) -> None:
    demand, found = question
    assignment = plan.assign(demand, found)
    slots = tuple(assignment.slots.get(host.host, 0) for host in found)
    every = list(choices(demand, found))
    assert (assignment.missing == 0) is bool(every)
    if every:
        assert slots in every


@examples(60)
@given(questions())
def test_as_many_slots_as_possible_stay_where_they_are(
    question: tuple[Demand, list[HostCapacity]],
) -> None:
    demand, found = question
    assignment = plan.assign(demand, found)
    every = list(choices(demand, found))
    if not every:
        return

    def stay(slots: tuple[int, ...]) -> int:
        return sum(
            min(number, host.own)
            for number, host in zip(slots, found, strict=True)
        )

    slots = tuple(assignment.slots.get(host.host, 0) for host in found)
    assert stay(slots) == max(map(stay, every))


@examples(40)
@given(questions(), st.randoms())
def test_the_order_of_the_hosts_does_not_matter(
    question: tuple[Demand, list[HostCapacity]], chance: random.Random
) -> None:
    demand, found = question
    shuffled = list(found)
    chance.shuffle(shuffled)
    assert plan.assign(demand, found) == plan.assign(demand, shuffled)


@examples(60)
@given(questions(), st.booleans())
def test_no_slot_with_a_server_is_removed(
    question: tuple[Demand, list[HostCapacity]], move: bool
) -> None:
    demand, found = question
    assignment = plan.assign(
        demand, found, [host.host for host in found] if move else ()
    )
    for host in found:
        number = assignment.slots.get(host.host, 0)
        assert number >= host.used
        # And no new slot is added where it does not fit.
        assert number <= host.own or fits(host, demand, number)


def shifted(demand: Demand, hours: int) -> Demand:
    """Return a demand some hours later."""
    by = datetime.timedelta(hours=hours)
    return dataclasses.replace(
        demand, start=demand.start + by, end=demand.end and demand.end + by
    )


@examples(80)
@given(questions(may_hold=False), st.integers(0, 2))
def test_the_first_fit_is_the_earliest_possible(
    question: tuple[Demand, list[HostCapacity]], cleaning: int
) -> None:
    demand, found = question
    hours = datetime.timedelta(hours=cleaning)
    assignment = plan.first_fit(
        dataclasses.replace(demand, cleaning_time=hours), found
    )
    # With the cleaning time it is as if it ended later.
    longer = dataclasses.replace(demand, end=demand.end and demand.end + hours)
    # From the last hour on nothing changes any more.
    hour = datetime.timedelta(hours=1)
    last = (BEGIN + LAST * hour - demand.start) // hour
    every = (shifted(longer, by) for by in range(last + 1))
    expected = next(
        (
            (later.start, list(choices(later, found)))
            for later in every
            if any(choices(later, found))
        ),
        None,
    )
    assert (assignment.missing == 0) is (expected is not None)
    if expected:
        start, answers = expected
        assert assignment.demand.start == start
        slots = tuple(assignment.slots.get(host.host, 0) for host in found)
        assert slots in answers


@examples(60)
@given(capacities('h1', False), st.integers(0, LAST - 1))
def test_free_room_equals_the_unused_room_of_each_hour(
    host: HostCapacity, first: int
) -> None:
    hour = datetime.timedelta(hours=1)
    start, end = BEGIN + first * hour, BEGIN + LAST * hour
    periods = plan.periods(host, start, end)
    assert [periods[0].start, *(period.end for period in periods)] == (
        [*(period.start for period in periods), end]
    )
    for before, after in itertools.pairwise(periods):
        assert (before.slots, before.free) != (after.slots, after.free)
    for number in range(first, LAST):
        time = BEGIN + number * hour
        [period] = [p for p in periods if p.start <= time < p.end]
        claims = [
            claim
            for claim in host.claims
            if claim.start <= time and (claim.end is None or time < claim.end)
        ]
        assert period.slots == sum(claim.slots for claim in claims)
        for name in ('VCPU', 'MEMORY_MB'):
            taken = sum(claim.slots * claim.needs[name] for claim in claims)
            assert period.free[name] == max(0, host.capacity[name] - taken)


def test_free_room_includes_devices_and_ends_between_hours() -> None:
    half = NOW + datetime.timedelta(minutes=30)
    host = HostCapacity(
        'h1',
        {**TEN, 'VCPU': 9},
        below=({'VGPU': 2}, {'VGPU': 3}),
        claims=(Claim(NOW, half, {'VCPU': 4, 'VGPU': 1}, 2),),
    )
    assert plan.periods(host, NOW, LATER) == [
        plan.FreePeriod(NOW, half, 2, {'VCPU': 1, 'VGPU': 3}),
        plan.FreePeriod(half, LATER, 0, {'VCPU': 9, 'VGPU': 5}),
    ]


def test_a_demand_beyond_the_last_time_does_not_fit() -> None:
    last = datetime.datetime.max.replace(tzinfo=datetime.UTC)
    hour = datetime.timedelta(hours=1)
    busy = HostCapacity(
        'h1', TEN, claims=(Claim(NOW, last - hour, {'VCPU': 9}, 1),)
    )
    assert plan.first_fit(demand(1), [busy]).missing == 0
    cleaned = dataclasses.replace(demand(1), cleaning_time=hour)
    assert plan.first_fit(cleaned, [busy]).missing == 1


NOW, LATER = BEGIN, BEGIN + datetime.timedelta(hours=1)
TEN = {'VCPU': 10}


def demand(amount: int, affinity: bool | None = None) -> Demand:
    """Return a demand for slots of four VCPUs."""
    return Demand(NOW, LATER, {'VCPU': 4}, amount, affinity)


def test_every_slot_of_an_overlapping_reservation_counts() -> None:
    claim = Claim(NOW, None, {'VCPU': 4}, 2)
    host = HostCapacity('h1', TEN, claims=(claim,))
    assert plan.free_slots(host, demand(1)) == 0
    one = dataclasses.replace(claim, slots=1)
    assert (
        plan.free_slots(HostCapacity('h1', TEN, claims=(one,)), demand(1)) == 1
    )


def test_a_reservation_frees_its_room_at_its_end() -> None:
    before = Claim(BEGIN - datetime.timedelta(hours=1), NOW, {'VCPU': 9}, 1)
    after = Claim(LATER, None, {'VCPU': 9}, 1)
    host = HostCapacity('h1', TEN, claims=(before, after))
    assert plan.free_slots(host, demand(1)) == 2


def test_reservations_that_do_not_overlap_count_one_at_a_time() -> None:
    half = NOW + datetime.timedelta(minutes=30)
    host = HostCapacity(
        'h1',
        TEN,
        claims=(
            Claim(NOW, half, {'VCPU': 6}, 1),
            Claim(half, None, {'VCPU': 6}, 1),
        ),
    )
    assert plan.free_slots(host, demand(1)) == 1


@pytest.mark.parametrize(
    ('affinity', 'slots'),
    [
        pytest.param(None, {'h3': 3}, id='few hosts'),
        pytest.param(True, {'h3': 3}, id='one host'),
        pytest.param(False, {'h1': 1, 'h2': 1, 'h3': 1}, id='each its own'),
    ],
)
def test_affinity_selects_the_hosts(
    affinity: bool | None, slots: dict[str, int]
) -> None:
    found = [
        HostCapacity('h1', TEN),
        HostCapacity('h2', TEN),
        HostCapacity('h3', {'VCPU': 12}),
    ]
    assert plan.assign(demand(3, affinity), found).slots == slots


@pytest.mark.parametrize(
    ('affinity', 'slots'),
    [
        (None, {'h2': 1, 'h3': 2}),
        (True, {'h3': 3}),
        (False, {'h2': 1, 'h3': 1, 'h1': 1}),
    ],
)
def test_hosts_of_a_lower_rank_come_first(
    affinity: bool | None, slots: dict[str, int]
) -> None:
    hosts = [
        HostCapacity('h1', {'VCPU': 90}, rank=2),
        HostCapacity('h2', {'VCPU': 7}, own=1, rank=2),
        HostCapacity('h3', {'VCPU': 30}, rank=1),
    ]
    assert plan.assign(demand(3, affinity), hosts).slots == slots


def test_slots_without_servers_leave_a_failed_host_where_they_fit() -> None:
    failed = HostCapacity('h1', TEN, own=2, used=1, obstacle='is down')
    one, two = HostCapacity('h2', TEN), HostCapacity('h3', {'VCPU': 3})
    assert plan.assign(demand(2), [failed, one]).slots == {'h1': 2}
    moved = plan.assign(demand(2), [failed, one], ['h1'])
    assert moved.slots == {'h1': 1, 'h2': 1}
    # Slots that fit nowhere else are kept.
    assert plan.assign(demand(2), [failed, two], ['h1']).slots == {'h1': 2}


def test_servers_on_two_hosts_do_not_meet_affinity() -> None:
    split = [HostCapacity(host, TEN, own=1, used=1) for host in ('h1', 'h2')]
    assignment = plan.assign(demand(2, affinity=True), split)
    # Where servers are slots stay, but it is not what was demanded.
    assert (assignment.slots, assignment.missing) == ({'h1': 1, 'h2': 1}, 1)


def may_strand(shares: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Return whether servers may come so that one of them finds no place."""
    for size in set(sizes):
        rest = list(sizes)
        rest.remove(size)
        places = [at for at, share in enumerate(shares) if share >= size]
        if not places or any(
            may_strand(
                (*shares[:at], shares[at] - size, *shares[at + 1 :]),
                tuple(rest),
            )
            for at in places
        ):
            return True
    return False


@examples(80)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2)), max_size=2),
)
def test_a_slot_is_free_only_if_a_device_always_has_room(
    shares: list[int], size: int, others: list[tuple[int, int]]
) -> None:
    big_demand = dataclasses.replace(demand(1), needs={'VGPU': size})
    host = HostCapacity(
        'h1',
        TEN,
        below=tuple({'VGPU': share} for share in shares),
        claims=tuple(Claim(NOW, None, {'VGPU': n}, k) for n, k in others),
    )
    number = plan.free_slots(host, big_demand)
    taken = tuple(n for n, k in others for _ in range(k))
    if number:
        assert not may_strand(tuple(shares), taken + number * (size,))
    if not others:
        assert may_strand(tuple(shares), (number + 1) * (size,))


def test_a_demand_without_resources_has_no_slots() -> None:
    nothing = dataclasses.replace(demand(1), needs={'VCPU': 0})
    assert plan.free_slots(HostCapacity('h1', TEN), nothing) == 0


@pytest.mark.parametrize(
    ('hosts', 'expected'),
    [
        (0, 'room for none on the 0 hosts'),
        (1, 'room for none on the 1 host'),
        (2, 'room for none on any of the 2 hosts'),
    ],
)
def test_a_refusal_counts_hosts(hosts: int, expected: str) -> None:
    full = [plan.HostCapacity(host=f'h{n}') for n in range(hosts)]
    demand = plan.Demand(NOW, None, {'VCPU': 1}, amount=1)
    assert plan.assign(demand, full).refusal.endswith(expected)


@pytest.mark.parametrize(
    ('affinity', 'amount', 'slots'),
    [
        pytest.param(True, 2, {'h1': 2}, id='together'),
        pytest.param(False, 2, {'h1': 1, 'h2': 1}, id='apart'),
        pytest.param(None, 3, {'h1': 2, 'h2': 1}, id='anywhere'),
        pytest.param(True, 3, None, id='too many together'),
        pytest.param(False, 3, None, id='too many apart'),
        pytest.param(None, 4, None, id='too many'),
    ],
)
def test_the_first_fit_uses_hosts_to_the_last_slot(
    affinity: bool | None, amount: int, slots: dict[str, int] | None
) -> None:
    hosts = [
        HostCapacity('h1', capacity={'VCPU': 2}),
        HostCapacity('h2', capacity={'VCPU': 1}),
    ]
    demand = Demand(BEGIN, at(1), {'VCPU': 1}, amount, affinity=affinity)
    free = plan._FreeSlots(demand, hosts)
    free.move_to(demand)
    assert free.is_enough is (slots is not None)
    assignment = plan.first_fit(demand, hosts)
    assert (assignment.missing == 0) is (slots is not None)
    if slots:
        assert {k: n for k, n in assignment.slots.items() if n} == slots


def test_a_refusal_tells_which_hosts_cannot_take_slots_and_why() -> None:
    hosts = [
        plan.HostCapacity('h1', obstacle='is down'),
        plan.HostCapacity('h2', obstacle='lacks CUSTOM_FAST'),
        plan.HostCapacity('h3', obstacle='is down'),
        plan.HostCapacity('h4', {'VCPU': 1}),
    ]
    demand = plan.Demand(NOW, None, {'VCPU': 1}, amount=2)
    assert plan.assign(demand, hosts).refusal.endswith(
        'but there is room for 1 on h4; no slots can be added on h[1,3] '
        '(down), h2 (lacks CUSTOM_FAST)'
    )


@pytest.mark.parametrize(
    ('affinity', 'offer'), [(None, 4), (True, 3), (False, 2)]
)
def test_a_refusal_offers_the_most_slots_that_fit(affinity, offer):
    hosts = [
        plan.HostCapacity('h1', {'VCPU': 3}),
        plan.HostCapacity('h2', {'VCPU': 1}),
    ]
    demand = plan.Demand(NOW, None, {'VCPU': 1}, amount=5, affinity=affinity)
    refused = plan.assign(demand, hosts)
    assert refused.offer == offer
    assert f' on h1, 1 on h2; {offer} slots would fit' in refused.refusal
