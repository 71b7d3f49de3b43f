# SPDX-License-Identifier: Apache-2.0
"""Small differences between clocks do no harm; larger ones are refused."""

import datetime
import email.utils
import time

from agreement import agreed
import pytest
from reservation_world import HOUR, NOW, PROJECT, uuid

from isolate_aggregates import exception
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors
from isolate_aggregates_reservations.store import MOST_SKEW

SECOND = datetime.timedelta(seconds=1)
START, END = NOW + HOUR, NOW + 2 * HOUR


@pytest.fixture(autouse=True)
def reserved(world, one_host):
    """Reserve a slot for an hour."""
    reservation = reservations.new(
        PROJECT, 1, reservations.Shape(1, 64), START, END
    )
    world.id = reservations.create(
        world.store, reservation, NOW
    ).reservation.id


def writes(world, now):
    """Run the reconciler with another clock; return its writes."""
    world.wire.calls.clear()
    reservations.reconcile_all(world.new_store(), now)
    return [call for call in world.wire.calls if call[0] != 'GET']


def test_a_slow_run_closes_nothing_that_another_one_opened(world):
    slow, fast = START - MOST_SKEW, START + MOST_SKEW - SECOND
    assert writes(world, slow) == []
    assert writes(world, fast)
    before = world.picture()
    assert before['slots'] == {('blazar_h1', world.id): (1, 1)}
    assert world.nova.access[world.id] == {PROJECT}
    for now in (slow, fast, slow):
        assert writes(world, now) == []
    assert world.picture() == before


def test_a_slow_run_opens_nothing_that_another_one_closed(world):
    writes(world, START)
    needs = {'VCPU': 1, 'MEMORY_MB': 64}
    assert world.boot('s', 'h1', world.id, needs)
    world.nova.is_slow = True
    assert writes(world, END + MOST_SKEW)
    before = world.picture()
    assert before['slots'] == {('blazar_h1', world.id): (1, 0)}
    assert writes(world, END - MOST_SKEW) == []
    assert world.picture() == before
    assert world.nova.access[world.id] == set()
    world.nova.finish(uuid(3, 's'))


def test_a_slow_run_opens_nothing_that_was_ended_meanwhile(world, monkeypatch):
    world.nova.servers[uuid(3, 's')] = world.id
    world.nova.is_slow = True
    clock = time.monotonic
    minute = 60

    def end(method, url):
        if method == 'PUT' and 'inventories' in url:
            world.wire.meddle = None
            later = START + minute * SECOND
            reservations.end(world.new_store(), world.id, later)
            monkeypatch.setattr(time, 'monotonic', lambda: clock() + minute)

    world.wire.meddle = end
    [status] = reservations.reconcile_all(world.store, START)
    assert status.state is reservations.Phase.ENDING
    # The server holds no slot, and so keeps none.
    assert world.slots() == {}
    assert world.nova.access[world.id] == set()
    world.nova.finish(uuid(3, 's'))


def test_a_slow_run_gives_no_slots_to_what_another_one_ends(world):
    writes(world, START)

    def fault(_):
        method, url = world.wire.calls[-1]
        is_last = method == 'DELETE' and url.endswith(f'/flavors/{world.id}')
        return 'refused' if is_last else None

    world.wire.fault = fault
    with pytest.raises(exception.ServiceError):
        reservations.end(world.new_store(), world.id, START + SECOND)
    world.wire.fault = None
    assert not any('inventories' in url for _, url in writes(world, START))
    assert world.slots() == {}
    assert writes(world, START + SECOND)
    assert world.nova.flavors == world.archives()


@pytest.mark.parametrize('dry_run', [True, False])
def test_an_end_that_another_run_may_have_begun_is_not_put_off(world, dry_run):
    writes(world, START)
    needs = {'VCPU': 1, 'MEMORY_MB': 64}
    assert world.boot('s', 'h1', world.id, needs)
    world.nova.is_slow = True
    assert writes(world, END + MOST_SKEW - SECOND)
    assert world.nova.deleted == [uuid(3, 's')]
    with pytest.raises(errors.ReservationError, match='is about to end'):
        reservations.update(
            world.new_store(),
            world.id,
            END - SECOND,
            end=None,
            dry_run=dry_run,
        )
    world.nova.finish(uuid(3, 's'))
    assert writes(world, END)
    assert world.nova.flavors == world.archives()


def test_slots_that_opened_too_early_are_closed(world):
    writes(world, START)
    assert writes(world, START - 2 * MOST_SKEW - SECOND)
    assert world.slots() == {('blazar_h1', world.id): (1, 0)}
    assert world.nova.access[world.id] == set()


def tell(world, skew):
    """Make the web server in front of Placement send a wrong time."""
    told = datetime.datetime.now(datetime.UTC) + skew
    world.wire.date = email.utils.format_datetime(told, usegmt=True)


@pytest.mark.parametrize(
    ('skew', 'way'),
    [
        (12 * SECOND, 'behind'),
        (HOUR, 'behind'),
        (-13 * SECOND, 'ahead'),
        (-HOUR, 'ahead'),
    ],
)
def test_a_large_clock_difference_is_refused(world, skew, way):
    tell(world, skew)
    with pytest.raises(exception.ServiceError) as caught:
        world.store.now()
    assert f's {way}; reservations depend on the time' in str(caught.value)


@pytest.mark.parametrize('skew', [0 * SECOND, 9 * SECOND, -9 * SECOND])
def test_a_small_clock_difference_is_accepted(world, skew):
    tell(world, skew)
    before = datetime.datetime.now(datetime.UTC)
    assert before <= world.store.now() <= before + HOUR


@pytest.mark.parametrize('date', [None, 'noon', 'Sun, 22 Nov 2026 25:00:00'])
def test_a_server_without_a_date_header_is_accepted(world, date):
    world.wire.date = date
    assert world.store.now()


@pytest.mark.parametrize(
    'arguments',
    [
        ['create', '--project', PROJECT, '--vcpus', '1', '--ram', '64'],
        ['set', '--amount', '2'],
        ['end'],
        ['reconcile'],
        ['repair'],
        ['repair', '--from', 'h1'],
    ],
    ids=lambda arguments: ' '.join(arguments[:2]),
)
def test_no_command_writes_by_a_wrong_clock(world, run, operated, arguments):
    tell(world, HOUR)
    before = world.picture()
    takes_one = arguments[0] in ('set', 'end')
    result = run(*agreed(('reservation', *arguments, *[world.id][:takes_one])))
    assert result.code == 1
    assert 'behind; reservations depend on the time' in result.err
    assert world.picture() == before
