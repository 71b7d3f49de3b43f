# SPDX-License-Identifier: Apache-2.0
"""Cleaning times, and hosts that are down for some time."""

import datetime
import zoneinfo

import pytest
from reservation_world import HOUR, NOW, PROJECT, told, uuid

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors
from isolate_aggregates_reservations.state import ReservationHost
from isolate_aggregates_tools import errors as tools_errors

NEEDS = {'VCPU': 8, 'MEMORY_MB': 64}
HALF = HOUR / 2


@pytest.fixture(autouse=True)
def cleaned(world, one_host):
    """Clean each slot for half an hour."""
    clean(world, '1800')


def clean(world, seconds):
    """Set the cleaning time, for all processes."""
    [pool] = world.nova.aggregates.values()
    pool['metadata']['reservation_cleaning_time'] = seconds


def reserve(world, start, end=None):
    """Reserve a slot, with start and end in hours from now."""
    reservation = reservations.new(
        PROJECT,
        1,
        reservations.Shape(8, 64),
        NOW + start * HOUR,
        None if end is None else NOW + end * HOUR,
    )
    return reservations.create(world.store, reservation, NOW).reservation


def refused(world, *args):
    """Reserve in vain, and return why."""
    with pytest.raises(errors.ReservationError) as caught:
        reserve(world, *args)
    return str(caught.value)


def test_the_next_reservation_starts_after_the_cleaning_time(world):
    reserve(world, 1, 2)
    assert 'room for none' in refused(world, 2, 3)
    assert 'until 2027-03-01T13:00:00+00:00' in refused(world, 0, 1)
    assert reserve(world, 0, 0.5)
    assert reserve(world, 2.5)


def test_another_process_does_not_sell_the_cleaning_time(world):
    reserve(world, 1, 2)
    world.store = world.new_store()
    assert 'room for none' in refused(world, 2, 3)


@pytest.mark.parametrize('seconds', ['5m', '-1', '', '604801', '1e3', '²'])
def test_an_invalid_cleaning_time_is_named(world, seconds):
    clean(world, seconds)
    with pytest.raises(errors.PoolError) as caught:
        reserve(world, 1, 2)
    assert str(caught.value) == (
        f'Aggregate freepool has reservation_cleaning_time="{seconds}", which '
        'must be a number of seconds from 0 to 604800; run openstack '
        'aggregate set --property reservation_cleaning_time=600 freepool.'
    )
    # What exists goes on.
    assert reservations.list_reservations(world.store, NOW) == []


def test_a_later_end_leaves_the_cleaning_time_as_well(world):
    reservation = reserve(world, 0, 1)
    reserve(world, 2, 3)
    late = NOW + 2 * HOUR
    with pytest.raises(errors.ReservationError):
        reservations.update(world.store, reservation.id, NOW, end=late)
    late -= HALF
    status = reservations.update(world.store, reservation.id, NOW, end=late)
    assert status.reservation.end == late


def test_a_longer_cleaning_time_keeps_existing_reservations(world):
    clean(world, '0')
    first, second = reserve(world, 0, 1), reserve(world, 1)
    clean(world, '1800')
    before = world.picture()
    statuses = reservations.repair(world.store, NOW)
    assert [status.problems for status in statuses] == [(), ()]
    assert world.picture() == before
    assert {first.id, second.id} == set(world.records())


def test_slots_still_in_use_by_an_earlier_reservation_are_reported(world):
    found, _ = reserve(world, 0, 1), reserve(world, 1.5)
    assert world.boot('s', 'h1', found.id, NEEDS)
    world.nova.is_slow = True
    late = NOW + 1.5 * HOUR
    [_, status] = reservations.reconcile_all(world.store, late)
    assert told(status) == (
        'host h1 has room for 8 of the 16 VCPU that the slots there need',
    )
    world.nova.finish(uuid(3, 's'))
    [_, status] = reservations.reconcile_all(world.store, late)
    assert status.problems == ()


@pytest.mark.parametrize('year', [1, 9999])
def test_times_that_utc_does_not_have_are_refused(year):
    offset = datetime.timedelta(hours=1 if year == 1 else -1)
    time = datetime.datetime(
        *((1, 1, 1) if year == 1 else (9999, 12, 31, 23, 59)),
        tzinfo=datetime.timezone(offset),
    )
    shape = reservations.Shape(8, 64)
    start, end = (time, None) if year == 1 else (NOW, time)
    with pytest.raises(tools_errors.InvalidRequest, match='between the years'):
        reservations.new(PROJECT, 1, shape, start, end)


@pytest.mark.parametrize('end_fold', [0, 1])
def test_an_hour_that_the_clock_shows_twice_has_two_halves(world, end_fold):
    """When summer time ends, 02:15 comes once more after 02:30."""
    berlin = zoneinfo.ZoneInfo('Europe/Berlin')
    start = datetime.datetime(2027, 10, 31, 2, 30, tzinfo=berlin)
    end = start.replace(minute=15, fold=end_fold)
    shape = reservations.Shape(8, 64)
    if end_fold:
        reservation = reservations.new(PROJECT, 1, shape, start, end)
        assert reservation.end - reservation.start == datetime.timedelta(
            minutes=45
        )
        reservations.calendar(world.store, NOW, start, end)
        return
    with pytest.raises(tools_errors.InvalidRequest, match='cannot end at'):
        reservations.new(PROJECT, 1, shape, start, end)
    with pytest.raises(tools_errors.InvalidRequest, match='cannot end at'):
        reservations.calendar(world.store, NOW, start, end)


def test_the_latest_possible_end_leaves_no_cleaning_time(world):
    end = datetime.datetime.max.replace(tzinfo=datetime.UTC)
    reservation = reservations.new(
        PROJECT, 1, reservations.Shape(8, 64), NOW, end
    )
    reservations.create(world.store, reservation, NOW)
    assert 'room for none' in refused(world, 5, 6)


class Clock:
    """A clock for tests."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_a_start_or_an_end_that_nobody_carries_out_is_a_problem(world):
    def problems(hours):
        now = NOW + hours * HOUR
        [status] = reservations.list_reservations(world.store, now)
        shown = reservations.show(world.store, status.reservation.id, now)
        assert shown.problems == status.problems
        return [problem.partition(' it ')[2] for problem in status.problems]

    reserve(world, 1, 2)
    advice = '; let reservation reconcile run regularly'
    assert problems(1.1) == []
    assert problems(1.2) == [
        f'started, and its slots are still closed{advice}'
    ]
    reservations.reconcile_all(world.store, NOW + 1.2 * HOUR)
    assert problems(1.3) == problems(2.1) == []
    assert problems(2.2) == [f'ended, and its slots are still open{advice}']
    reservations.reconcile_all(world.store, NOW + 2.2 * HOUR)
    assert reservations.list_reservations(world.store, NOW + 3 * HOUR) == []


def test_slots_leave_a_host_that_has_failed_for_long_enough(world):
    reservation = reserve(world, 0)
    world.add_host('h2')
    clock = Clock()
    heals = reservations.FailedHosts(datetime.timedelta(seconds=60), clock)

    def hosts():
        [status] = reservations.reconcile_all(world.store, NOW, heals)
        return list(status.hosts)

    # One that has failed and one that was only disabled.
    for state, leaves in (('down', True), ('up', False)):
        [before] = hosts()
        world.fail_host(before, state, status='disabled')
        assert hosts() == [before]
        clock.now += 59
        assert hosts() == [before]
        clock.now += 1
        assert (hosts() != [before]) is leaves
    assert reservation.id in world.records()


def test_a_recovered_host_restarts_the_waiting_time(world):
    reserve(world, 0)
    world.add_host('h2')
    clock = Clock()
    heals = reservations.FailedHosts(datetime.timedelta(seconds=60), clock)
    for state in ('down', 'up', 'down'):
        world.fail_host('h1', state)
        [status] = reservations.reconcile_all(world.store, NOW, heals)
        assert list(status.hosts) == ['h1']
        clock.now += 60
    [status] = reservations.reconcile_all(world.store, NOW, heals)
    assert list(status.hosts) == ['h2']


def test_a_host_that_is_gone_is_forgotten():
    clock = Clock()
    heals = reservations.FailedHosts(datetime.timedelta(seconds=60), clock)

    def host(name):
        return ReservationHost(name, 'root', 0, None, 'down', True, True)

    for number in range(1000):
        heals(host(f'gone-{number}'))
        clock.now += 3600
    assert len(heals._failed) <= 25
    # One that is found failed each time is not.
    assert heals(host('gone-999'))
