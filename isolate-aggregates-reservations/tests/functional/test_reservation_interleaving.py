# SPDX-License-Identifier: Apache-2.0
"""Concurrent commands report correct results.

Before each call of one command, and after the last, another command runs
completely. In the end both have reported correct results, no host is
overbooked, and nothing is left behind.

By default there are some pairs of commands, interleaved at every twelfth call;
with ``THOROUGH=1`` there are all pairs, interleaved at each call.
"""

import contextlib
import dataclasses
import datetime
import itertools

import pytest
from reservation_world import HOUR, NOW, PROJECT
from thorough import THOROUGH, every

from isolate_aggregates import exception
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors, names
from isolate_aggregates_tools import errors as tools_errors

EVERY = every(12)

X, Y, Z, W = (f'4d17d41a-830d-47b2-91c7-4f9fc0ae611{c}' for c in 'cdef')
SHAPE = reservations.Shape(4, 1024, 10)
SLOTS_OF_A_HOST = 2
OVERSOLD = 'a host is oversold'
START = NOW + HOUR


def make(store, name, start, end, amount=1, now=NOW):
    reservation = reservations.new(
        PROJECT, amount, SHAPE, start, end, reservation_id=name
    )
    return reservations.create(store, reservation, now)


def begin(world):
    """Two hosts with room for four slots; three are about to start."""

    def play():
        world.add_host('h1')
        world.add_host('h2')
        for name in (X, Y, Z):
            make(world.store, name, START, NOW + 10 * HOUR)

    world.play_once('three that are about to start', play)


def clock(store):
    """Return the time of a process, whose clock may be wrong."""
    return START + getattr(store, 'ahead', datetime.timedelta())


def reconcile_all(store):
    reservations.reconcile_all(store, clock(store))


def repair(store):
    reservations.repair(store, clock(store))


def more(store):
    return reservations.update(store, X, clock(store), amount=2)


def longer(store):
    return reservations.update(store, X, clock(store), end=None)


def shorter(store):
    return reservations.update(store, X, clock(store), end=NOW + 5 * HOUR)


def too_many(store):
    return reservations.update(store, X, clock(store), amount=3)


def move(store):
    """Move the reservation away from its current host."""
    status = reservations.show(store, X, clock(store))
    host = min(status.hosts, default='h1')
    return reservations.move(store, X, clock(store), [host])


def end(store):
    return reservations.end(store, X, clock(store))


def give_away(store):
    """Shorten a reservation, and give its time to another one."""
    now = clock(store)
    status = reservations.update(store, X, now, end=NOW + 2 * HOUR)
    make(store, W, NOW + 2 * HOUR, NOW + 10 * HOUR, amount=2, now=now)
    return status


def create(store):
    return make(store, W, NOW, None, now=clock(store))


def create_later(store):
    """Reserve the whole capacity once the others have ended."""
    return make(store, W, NOW + 10 * HOUR, None, amount=4, now=clock(store))


# What each command guarantees about the reservation if it succeeds.
PROMISES = {
    more: {'amount': 2},
    too_many: {'amount': 3},
    longer: {'end': None},
    shorter: {'end': NOW + 5 * HOUR},
    give_away: {'end': NOW + 2 * HOUR},
    end: {'is_gone': True},
}


def attempt(command, store):
    """Run a command; return whether it succeeded, and why if it did not."""
    try:
        command(store)
    except (
        tools_errors.InvalidRequest,
        tools_errors.NotFound,
        errors.ReservationError,
    ) as exc:
        return str(exc)
    return None


def check(world, *promises, now=START):
    """No host is overbooked, nothing is left, and results are correct.

    :param promises: The final states with which both results are correct; one
        of them must hold.
    """
    for _ in range(2):
        reservations.reconcile_all(world.store, now)
    statuses = {
        status.reservation.id: status
        for status in reservations.list_reservations(world.store, now)
    }
    one = statuses[X].reservation if X in statuses else None
    assert any(
        one is None
        if kept.get('is_gone')
        else one
        and all(getattr(one, name) == value for name, value in kept.items())
        for kept in promises
    ), (one, promises)
    for status in statuses.values():
        assert status.problems == ()
        assert status.reservation.pending is None
        assert status.slots == status.reservation.amount
        has_started = status.reservation.start <= now
        assert {slots.open for slots in status.hosts.values()} <= (
            {slots.total for slots in status.hosts.values()}
            if has_started
            else {0}
        )
        access = world.nova.access[status.reservation.id]
        assert access == (
            {status.reservation.project} if has_started else set()
        )
    for moment in {status.reservation.start for status in statuses.values()}:
        taken = {}
        for status in statuses.values():
            one = status.reservation
            if one.start <= moment and (one.end is None or moment < one.end):
                for host, slots in status.hosts.items():
                    taken[host] = taken.get(host, 0) + slots.total
        assert max(taken.values()) <= SLOTS_OF_A_HOST, OVERSOLD
    assert {name for _, name in world.slots()} <= set(statuses)
    assert len(world.classes()) == len(statuses)
    assert set(world.records()) == set(statuses)
    assert world.litter() == []


PAIRS = [
    (reconcile_all, more),
    (reconcile_all, move),
    *(
        pytest.param(*pair, marks=pytest.mark.slow)
        for pair in (
            (reconcile_all, end),
            (create_later, longer),
            (reconcile_all, shorter),
            (reconcile_all, give_away),
            (more, end),
            (more, longer),
            (longer, create_later),
            (too_many, more),
            (end, more),
            (move, end),
            (move, more),
        )
    ),
]
if THOROUGH:
    PAIRS = itertools.product(
        [
            *(reconcile_all, more, longer, too_many, end, repair),
            *(create_later, move),
        ],
        [
            *(more, longer, shorter, end, give_away, create, reconcile_all),
            move,
        ],
    )


@pytest.mark.parametrize(
    ('command', 'other'), PAIRS, ids=lambda command: command.__name__
)
def test_both_commands_report_the_true_outcome(world, command, other):
    for number in numbers(world, command):
        was_granted, answer, refusal = interleave(
            world, number, command, other
        )
        first = PROMISES.get(other, {}) if answer is None else {}
        second = PROMISES.get(command, {}) if refusal is None else {}
        # The later command wins, unless the other one ends the reservation.
        promises = [first if 'is_gone' in first else first | second]
        if was_granted:
            # It may have read the state before the other one changed it.
            promises.append(second | first)
        try:
            check(world, *promises)
        except AssertionError as exc:
            raise AssertionError((number, answer, refusal)) from exc


def numbers(world, command, every=EVERY):
    """Set up the scene for each call to interleave at, and after the last."""
    begin(world)
    world.wire.calls.clear()
    scene = world.keep()
    attempt(command, world.store)
    last = len(world.wire.calls) + 1
    for number in [*range(1, last, every), last]:
        world.put_back(scene)
        yield number


def interleave(world, number, command, other):
    """Run a command, and another one before or after one of its calls.

    :returns: Whether the promises of the first one held before the other one
        ran; the error of the other one, and that of the first one, if any.
    """
    world.wire.calls.clear()
    found = []

    def meddle(method, url):
        if not found and (not url or len(world.wire.calls) >= number):
            world.wire.meddle = None
            was_granted = is_granted(world, PROMISES.get(command, {}))
            found.extend((was_granted, attempt(other, world.new_store())))

    world.wire.meddle = meddle
    refusal = attempt(command, world.store)
    meddle(None, None)
    return *found, refusal


def is_granted(world, promises):
    """Return whether promises about a reservation are kept at the moment."""
    reservation = world.new_store().read().records.reservations.get(X)
    if reservation is None or reservation.pending or 'is_gone' in promises:
        return False
    return all(
        getattr(reservation, name) == promises[name] for name in promises
    )


def end_new(store):
    return reservations.end(store, W, START)


@pytest.mark.parametrize(
    'other',
    [
        end_new,
        *(
            pytest.param(other, marks=pytest.mark.slow)
            for other in (create, reconcile_all)
        ),
    ],
    ids=lambda command: command.__name__,
)
def test_a_reservation_ended_during_its_creation_stays_ended(world, other):
    for number in numbers(world, create):
        _, answer, refusal = interleave(world, number, create, other)
        if other is end_new and answer is None:
            statuses = reservations.list_reservations(world.store, START)
            assert W not in {status.reservation.id for status in statuses}
        else:
            assert refusal is None
            reservations.end(world.store, W, START)
        check(world, {})


def test_a_class_that_a_crash_left_behind_is_deleted(world):
    """A run created it after the reservation ended, and was interrupted."""
    begin(world)
    theirs = names.resource_class(W)
    world.direct.send('PUT', f'/resource_classes/{theirs}')
    before = world.picture()
    reservation = reservations.new(PROJECT, 1, SHAPE, START)

    def end_it(method, url):
        if method == 'PUT' and '/resource_classes/' in url:
            world.wire.meddle = None
            reservations.end(world.new_store(), reservation.id, START)
            late = len(world.wire.calls)
            world.wire.fault = lambda number: number > late and 'refused'

    world.wire.meddle = end_it
    with pytest.raises(exception.ServiceError):
        reservations.create(world.store, reservation, START)
    world.wire.fault = None
    assert set(world.classes()) == {
        *before['classes'],
        reservation.resource_class,
    }
    repair(world.new_store())
    # An id that was given may belong to Blazar.
    assert world.picture()['classes'] == before['classes']
    assert theirs in before['classes']


def test_a_command_that_is_too_late_changes_nothing(world):
    """It writes a revision that other commands have created and deleted."""
    begin(world)
    late = world.store.read().reservation(X)
    for _ in range(2):
        more(world.store)
        reservations.update(world.store, X, START, amount=1)
    store = world.new_store()
    written = store.compute.write_record(
        dataclasses.replace(late, end=NOW + 2 * HOUR), START
    )
    assert [written.revision] == [
        names.revision_of(flavor).number for flavor in world.litter()
    ]
    check(world, {'amount': 1, 'end': NOW + 10 * HOUR})


def test_of_two_that_read_the_same_record_one_writes_the_next(world):
    begin(world)
    seen = world.store.read().reservation(X)
    first, second = (world.new_store().compute for _ in range(2))
    first.write_record(dataclasses.replace(seen, note='first'), START)
    with pytest.raises(exception.ServiceConflict):
        second.write_record(dataclasses.replace(seen, note='second'), START)
    check(world, {'note': 'first'})


def test_a_refusal_that_is_too_late_is_not_told(world):
    """Meanwhile there is room, and others change the reservation twice."""
    begin(world)
    revisions = []

    def make_room(method, url):
        revisions.extend([url] * is_revision(method, url))
        if len(revisions) == 2:
            world.wire.meddle = None
            reservations.end(world.new_store(), Z, START)
            reconcile_all(world.new_store())
            for hours in (8, 9):
                reservations.update(
                    world.new_store(), X, START, end=NOW + hours * HOUR
                )

    world.wire.meddle = make_room
    assert attempt(too_many, world.store) is None
    check(world, {'amount': 3, 'end': NOW + 9 * HOUR})


def test_a_note_that_is_written_too_late_is_written_again(world):
    begin(world)

    def change(method, url):
        if is_revision(method, url):
            world.wire.meddle = None
            more(world.new_store())
            longer(world.new_store())

    world.wire.meddle = change
    reservations.update(world.store, X, START, note='of a slow command')
    check(world, {'amount': 2, 'end': None, 'note': 'of a slow command'})


def test_a_command_about_an_earlier_reservation_changes_nothing(world):
    begin(world)
    late = world.store.read().reservation(X)
    end(world.store)
    make(world.store, X, START, NOW + 9 * HOUR)
    world.new_store().compute.write_record(
        dataclasses.replace(late, end=NOW + 2 * HOUR), START
    )
    check(world, {'end': NOW + 9 * HOUR})


def test_a_run_does_not_end_a_later_reservation_with_the_same_id(world):
    """Several runs find an ended reservation; one of them is slow."""
    begin(world)
    over = NOW + 10 * HOUR

    def overtake(method, url):
        if f'/flavors/{X}' in url:
            world.wire.meddle = None
            store = world.new_store()
            reservations.reconcile_all(store, over)
            reservation = reservations.new(
                PROJECT, 1, SHAPE, over, reservation_id=X
            )
            [host] = reservations.create(store, reservation, over).hosts
            assert world.boot('s', host, X)

    world.wire.meddle = overtake
    reservations.reconcile_all(world.store, over)

    assert world.wire.meddle is None
    assert world.nova.deleted == []
    [statuses] = reservations.list_reservations(world.store, over)
    assert (statuses.slots, statuses.used, statuses.problems) == (1, 1, ())


def test_a_run_does_not_refuse_a_later_reservation_with_the_same_id(world):
    """Another run refuses it first."""
    begin(world)
    revisions = []

    def overtake(method, url):
        revisions.extend([url] * is_revision(method, url))
        if len(revisions) == 2:
            world.wire.meddle = None
            reconcile_all(world.new_store())
            make(world.new_store(), W, START, NOW + 10 * HOUR)

    world.wire.meddle = overtake
    make(world.store, W, START, NOW + 10 * HOUR, amount=2)

    assert world.wire.meddle is None
    status = reservations.show(world.store, W, START)
    assert (status.slots, status.problems) == (1, ())


def test_slots_taken_back_by_another_command_are_not_granted(world):
    """The other command took slots from shrunk hosts and was interrupted."""
    begin(world)
    revisions = []
    taken = []

    def shrink(method, url):
        revisions.extend([url] * is_revision(method, url))
        if len(revisions) == 2:
            # The change fits and is about to be granted.
            world.wire.meddle = None
            for host in ('h1', 'h2'):
                world.set_vcpus(host, 4)
            world.wire.fault = interrupt
            reconcile_all(world.new_store())
            world.wire.fault = None

    def interrupt(number):
        method, url = world.wire.calls[number - 1]
        taken.extend([url] * (method == 'PUT' and 'inventories' in url))
        return 'refused' if taken and is_revision(method, url) else None

    world.wire.meddle = shrink
    refusal = attempt(more, world.store)
    assert taken
    assert 'room for' in refusal
    assert world.store.read().reservation(X).amount == 1


def is_revision(method, url):
    return method == 'POST' and url.endswith('/flavors')


def too_large(store):
    """Reserve more than there is room for."""
    return make(store, W, START, NOW + 10 * HOUR, amount=2)


def stops():
    """Yield where reconciling stops, as functions of its calls so far."""
    yield lambda calls: any(is_revision(*call) for call in calls[:-1])
    if THOROUGH:
        for most in range(1, 40):
            yield lambda calls, most=most: len(calls) > most


@pytest.mark.parametrize('stop', stops())
def test_a_refused_reservation_is_not_reported_as_created(world, stop):
    """Another run refuses it, and is interrupted before it removes it."""
    for number in numbers(world, too_large, every=EVERY // 2 or 1):
        refusal = interrupted(world, number, too_large, reconcile_all, stop)
        assert refusal is not None, number
        assert 'room for' in refusal or 'while it was created' in refusal
        check(world, {})


def test_a_reservation_that_is_ended_is_not_reported_as_moved(world):
    """The command that ends it is interrupted once that is recorded."""
    states = []

    def moved(store):
        states.append(move(store).state)

    for number in numbers(world, move, every=EVERY // 2 or 1):
        refusal = interrupted(
            world,
            number,
            moved,
            end,
            lambda calls: any(is_revision(*call) for call in calls[:-1]),
        )
        assert refusal is None or 'ended' in refusal, (number, refusal)
        check(world, {'is_gone': True}, {})
    assert set(states) == {reservations.Phase.ACTIVE}


def interrupted(world, number, command, other, stop):
    """Run a command; before one of its calls, another one is interrupted.

    :param stop: Takes the calls of the other command so far, the next one
        included; returns whether that one and all later ones fail.
    :returns: The error of the first command, if any.
    """
    world.wire.calls.clear()

    def meddle(method, url):
        if len(world.wire.calls) < number:
            return
        world.wire.meddle = None
        first = len(world.wire.calls)
        world.wire.fault = lambda _: (
            stop(world.wire.calls[first:]) and 'refused'
        )
        with contextlib.suppress(exception.IsolateAggregatesError):
            other(world.new_store())
        world.wire.fault = None

    world.wire.meddle = meddle
    refusal = attempt(command, world.store)
    world.wire.meddle = None
    return refusal
