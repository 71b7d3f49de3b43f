# SPDX-License-Identifier: Apache-2.0
"""What was reserved and changed can be told, also after the end."""

import contextlib
import csv
import dataclasses
import io
import json

import pytest
import reservation_world
from reservation_world import HOUR, NOW, PROJECT

from isolate_aggregates import exception
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import (
    errors,
    events,
    history,
    names,
    record,
)
from isolate_aggregates_reservations.commands import times
from isolate_aggregates_tools import errors as tools_errors

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
OTHER = '2e1dfa7c-0000-4000-8000-000000000001'
SHAPE = reservations.Shape(4, 1024, 10)
DAY = 24 * HOUR

pytestmark = pytest.mark.usefixtures('two_hosts')


def reserve(
    world, amount=1, start=NOW, end=NOW + 10 * HOUR, name=ID, at=NOW, gpus=0
):
    extra_specs = {'resources:VGPU': str(gpus)} if gpus else {}
    reservation = reservations.new(
        PROJECT,
        amount,
        dataclasses.replace(SHAPE, extra_specs=extra_specs),
        start,
        end,
        reservation_id=name,
    )
    return reservations.create(world.store, reservation, at)


def past(world, now, **settings):
    return history.read_history(world.new_store(), now, **settings)


def events_of(entry):
    """Return the events with full hours: a command may take seconds."""
    return [
        ((event.at - NOW) // HOUR * HOUR, what)
        for event, what in events.sentences(entry.reservation.events)
    ]


def sold(entry):
    return entry.time.sold / HOUR


def finish(world, now):
    reservations.reconcile_all(world.store, now)
    assert ID not in world.nova.flavors


def test_the_events_of_a_reservation_are_told(world):
    reserve(world, 2, start=NOW + HOUR)
    reservations.update(world.store, ID, NOW, end=NOW + 12 * HOUR)
    reservations.reconcile_all(world.store, NOW + HOUR)
    reservations.update(world.store, ID, NOW + 2 * HOUR, amount=1)
    [status] = reservations.list_reservations(world.store, NOW)
    [host] = status.hosts
    [other] = {'h1', 'h2'} - {host}
    reservations.move(world.store, ID, NOW + 3 * HOUR, [host])
    reservations.update(world.store, ID, NOW + 4 * HOUR, name='x')
    reservations.end(world.store, ID, NOW + 5 * HOUR)
    [entry] = past(world, NOW + 6 * HOUR)
    assert entry.state is reservations.Phase.ENDED
    assert entry.reservation.name == 'x'
    assert events_of(entry) == [
        (0 * HOUR, 'created with 2 slots'),
        (0 * HOUR, 'extended to 2027-03-02T00:00:00+00:00'),
        (1 * HOUR, f'opened slots: 2 on {host}'),
        (2 * HOUR, 'resized from 2 to 1 slots'),
        (2 * HOUR, f'closed slots: 1 on {host}'),
        (3 * HOUR, f'moved from host {host}'),
        (3 * HOUR, f'no longer leaving host {host}'),
        (3 * HOUR, f'closed slots: 1 on {host}, opened slots: 1 on {other}'),
        (5 * HOUR, 'ended'),
        (5 * HOUR, f'closed slots: 1 on {other}'),
    ]
    # 2 slots for an hour, then 1 for 3 hours.
    assert sold(entry) == 5


def test_the_user_who_asked_is_told(world, monkeypatch):
    monkeypatch.setattr(reservations.ReservationStore, 'user', 'operator')
    reserve(world, start=NOW + HOUR)
    monkeypatch.setattr(reservations.ReservationStore, 'user', 'service')
    reservations.reconcile_all(world.store, NOW + HOUR)
    monkeypatch.setattr(reservations.ReservationStore, 'user', 'other')
    with pytest.raises(errors.ReservationError):
        reservations.update(world.store, ID, NOW + HOUR, amount=99)
    monkeypatch.setattr(reservations.ReservationStore, 'user', 'third')
    reservations.update(world.store, ID, NOW + HOUR, amount=2)
    monkeypatch.setattr(reservations.ReservationStore, 'user', 'service')
    finish(world, NOW + 10 * HOUR)
    [entry] = past(world, NOW + 11 * HOUR)
    assert [
        (event.by, what)
        for event, what in events.sentences(entry.reservation.events)
    ] == [
        ('operator', 'created with 1 slot'),
        ('', 'opened slots: 1 on h1'),
        ('third', 'resized from 1 to 2 slots'),
        ('', 'opened slots: 1 on h1'),
        ('', 'closed slots: 2 on h1'),
    ]


def test_only_the_hours_of_the_period_count(world):
    midnight = NOW + 12 * HOUR
    reserve(world, 2, end=midnight + 24 * HOUR)
    finish(world, NOW + 3 * DAY)
    for since, until, hours in (
        (None, midnight, 12),
        (midnight, None, 24),
        (midnight - 6 * HOUR, midnight + 12 * HOUR, 18),
    ):
        [entry] = past(world, NOW + 4 * DAY, since=since, until=until)
        assert sold(entry) == 2 * hours
    assert past(world, NOW + 4 * DAY, until=NOW) == []
    # Its slots were closed late; nobody had reserved them any more.
    [entry] = past(world, NOW + 4 * DAY, since=midnight + DAY)
    assert sold(entry) == 0
    assert past(world, NOW + 4 * DAY, since=NOW + 3 * DAY) == []
    with pytest.raises(tools_errors.InvalidRequest, match='is empty'):
        past(world, NOW, since=NOW, until=NOW)


def test_one_that_was_refused_has_no_history(world):
    with pytest.raises(errors.ReservationError):
        reserve(world, 99)
    assert world.nova.flavors == {}
    assert past(world, NOW) == []


def test_one_that_was_ended_before_its_start_is_told(world):
    reserve(world, start=NOW + DAY, end=NOW + 2 * DAY)
    reservations.end(world.store, ID, NOW + HOUR)
    [entry] = past(world, NOW + 3 * DAY)
    assert entry.time == events.SlotTime()
    assert entry.reservation.end == NOW + HOUR
    assert past(world, NOW + 3 * DAY, since=NOW + DAY) == []


def test_each_reservation_with_the_same_id_has_its_history(world):
    reserve(world, 1)
    reservations.end(world.store, ID, NOW + HOUR)
    reserve(world, 2, start=NOW + 2 * HOUR, at=NOW + HOUR)
    entries = past(world, NOW + 3 * HOUR, reservation=ID)
    assert [(entry.state.value, sold(entry)) for entry in entries] == [
        ('ended', 1),
        ('active', 2),
    ]


def test_an_interrupted_end_is_told_once(world):
    reserve(world)
    deletion = f'/flavors/{ID}'

    def fail(method, url):
        if method == 'DELETE' and url.endswith(deletion):
            raise KeyboardInterrupt

    world.wire.meddle = fail
    with pytest.raises(KeyboardInterrupt):
        reservations.end(world.store, ID, NOW + HOUR)
    assert len(world.archives()) == 1
    [entry] = past(world, NOW + 2 * HOUR)
    assert entry.state is reservations.Phase.ENDING
    world.wire.meddle = None
    finish(world, NOW + 2 * HOUR)
    [entry] = past(world, NOW + 2 * HOUR)
    assert (entry.state, sold(entry)) == (reservations.Phase.ENDED, 1)


def test_old_archives_are_deleted(world):
    pool = world.set_pool()
    for number, name in enumerate((ID, OTHER)):
        reserve(world, name=name, end=NOW + (number + 1) * DAY)
    reservations.reconcile_all(world.store, NOW + DAY)
    reservations.reconcile_all(world.store, NOW + 2 * DAY)
    now = NOW + (history.DEFAULT_DAYS + 1) * DAY
    reservations.reconcile_all(world.new_store(), now)
    assert len(past(world, now)) == 2
    reservations.reconcile_all(world.new_store(), now + HOUR)
    [entry] = past(world, now)
    assert entry.reservation.id == OTHER
    pool['metadata'][names.HISTORY_KEY] = '500'
    reservations.reconcile_all(world.new_store(), now + 50 * DAY)
    assert past(world, now)
    pool['metadata'][names.HISTORY_KEY] = '7'
    reservations.reconcile_all(world.new_store(), NOW + 9 * DAY + HOUR)
    assert world.nova.flavors == {}


def test_archives_are_kept_for_400_days_unless_the_pool_says_otherwise(world):
    reserve(world, end=NOW + DAY)
    reservations.reconcile_all(world.store, NOW + DAY)
    for now, number in (
        (NOW + 401 * DAY, 1),
        (NOW + 401 * DAY + HOUR, 0),
    ):
        reservations.reconcile_all(world.new_store(), now)
        assert len(past(world, now)) == number
    # The pool may be deleted after its last reservation.
    assert history.days_kept(None) == 400


def test_an_invalid_number_of_days_deletes_nothing(world, caplog):
    reserve(world)
    finish(world, NOW + DAY)
    world.set_pool()['metadata'][names.HISTORY_KEY] = 'a year'
    reservations.reconcile_all(world.new_store(), NOW + 9999 * DAY)
    assert 'must be a number of days from 0 to' in caplog.text
    assert len(world.archives()) == 1


@pytest.mark.parametrize('description', ['', '{}', '[]', 'mine'])
def test_what_only_has_the_name_of_an_archive_is_not_deleted(
    world, description
):
    reserve(world)
    finish(world, NOW + DAY)
    [flavor] = world.archives().values()
    flavor['description'] = description
    reservations.reconcile_all(world.new_store(), NOW + 9999 * DAY)
    assert len(world.archives()) == 1
    problems = []
    assert past(world, NOW + DAY, on_unreadable=problems.append) == []
    [problem] = problems
    assert str(problem).startswith(f'Reservation {ID} has an archive')


def test_archives_are_neither_records_nor_flavors(world):
    reserve(world)
    finish(world, NOW + DAY)
    [name] = world.archives()
    assert reservations.list_reservations(world.store, NOW) == []
    assert world.store.read().records.foreign == {}
    assert world.store.compute.flavors() == []
    assert world.nova.access[name] == set()


def test_records_are_read_without_the_pages_of_archives(world):
    for number in range(3):
        reserve(world, end=NOW + (number + 1) * HOUR, at=NOW)
        reservations.end(world.store, ID, NOW + number * HOUR)
    reserve(world)
    world.nova.page = 2
    world.wire.calls.clear()
    records = world.store.records()
    assert list(records.reservations) == [ID]
    assert 1 <= len(records.archives) < 3
    listings = [url for _, url in world.wire.calls if '/flavors/detail' in url]
    assert len(listings) == 2
    assert len(past(world, NOW + DAY)) == 4


def many_events(world, number):
    """Write a record as often as if it were resized each hour."""
    store = world.store
    reservation = store.read().reservation(ID)
    for hour in range(1, number + 1):
        reservation = store.compute.write_record(
            dataclasses.replace(reservation, amount=1 + hour % 2),
            NOW + hour * HOUR,
        )


def pages(world):
    return [key for key in world.nova.flavors if names.page_of(key)]


def test_the_events_of_a_record_become_pages(world):
    reserve(world, end=NOW + 9999 * DAY)
    many_events(world, 420)
    assert len(pages(world)) == 2
    assert all(
        len(flavor['description']) < 20_000
        for flavor in world.nova.flavors.values()
    )
    assert [flavor.id for flavor in world.store.compute.flavors()] == [ID]
    [entry] = past(world, NOW + 420 * HOUR)
    assert sold(entry) == 630
    assert len(entry.reservation.events) == 422


def test_pages_are_kept_as_long_as_the_archive(world):
    reserve(world, end=NOW + 300 * HOUR)
    many_events(world, 250)
    assert len(pages(world)) == 1
    finish(world, NOW + 300 * HOUR)
    [entry] = past(world, NOW + DAY)
    assert sold(entry) == 24 * 1.5
    now = NOW + (history.DEFAULT_DAYS + 20) * DAY
    reservations.reconcile_all(world.new_store(), now)
    assert world.nova.flavors == {}


def test_two_that_write_the_same_revision_write_the_same_page(world):
    reserve(world, end=NOW + 300 * HOUR)
    hours = 0
    while not record.is_full(before := world.store.read().reservation(ID)):
        hours += 1
        world.store.compute.write_record(
            dataclasses.replace(before, amount=1 + hours % 2),
            NOW + hours * HOUR,
        )
    for amount in (7, 9):
        with contextlib.suppress(exception.ServiceConflict):
            world.store.compute.write_record(
                dataclasses.replace(before, amount=amount),
                NOW + (hours + 1) * HOUR,
            )
    assert len(pages(world)) == 1
    [entry] = past(world, NOW + (hours + 2) * HOUR)
    assert sold(entry) == hours + 1 + (hours + 1) // 2 + 7


@pytest.fixture
def command(world, operated, run):
    """Run ``reservation history list``, two hours after NOW."""

    def run_it(*arguments):
        return reservation_world.typed(
            run, 'reservation', 'history', 'list', *arguments
        )

    return run_it


@pytest.fixture
def told(world, two_hosts, monkeypatch):
    """One reservation that has ended, and one that goes on."""
    world.add_device('h1', 'gpu', VGPU=2)
    reserve(world, 2, gpus=1)
    reservations.end(world.store, ID, NOW + 2 * HOUR)
    reserve(world, start=NOW + HOUR, end=None, name=OTHER)
    reservations.reconcile_all(world.store, NOW + HOUR)
    monkeypatch.setattr(times, 'now', lambda: NOW + 4 * HOUR)


@pytest.mark.usefixtures('told')
def test_a_bill_has_everything_as_csv(command):
    result = command('-f', 'csv')
    assert (result.code, result.err) == (0, '')
    first, second = csv.DictReader(io.StringIO(result.out))
    assert first == {
        'Id': ID,
        'Name': '',
        'Note': '',
        'Project': PROJECT,
        'State': 'ended',
        'Created': '2027-03-01T12:00:00+00:00',
        'Created By': '',
        'Start': '2027-03-01T12:00:00+00:00',
        'End': '2027-03-01T14:00:00+00:00',
        'Slots': '2',
        'VCPUs': '4',
        'RAM': '1024',
        'Disk': '10',
        'Ephemeral': '0',
        'Swap': '0',
        'Resources': 'DISK_GB=10 MEMORY_MB=1024 VCPU=4 VGPU=1',
        'Properties': 'resources:VGPU=1',
        'Slot Hours': '4.0',
        'Open': '4.0',
        'Usable': '4.0',
        'Events': '2027-03-01T12:00:00+00:00 created with 2 slots; '
        '2027-03-01T12:00:00+00:00 opened slots: 2 on h1; '
        '2027-03-01T14:00:00+00:00 ended; '
        '2027-03-01T14:00:00+00:00 closed slots: 2 on h1',
    }
    assert (second['State'], second['Slot Hours']) == ('active', '3.0')


@pytest.mark.usefixtures('told')
def test_the_document_has_all_events(command):
    result = command('--until', '1h', '--reservation', ID, '-f', 'json')
    [entry] = json.loads(result.out)['reservations']
    assert entry['slot_hours'] == {'sold': 4, 'open': 4, 'usable': 4}
    assert entry['properties'] == {'resources:VGPU': '1'}
    assert entry['resources'] == {
        'DISK_GB': 10,
        'MEMORY_MB': 1024,
        'VCPU': 4,
        'VGPU': 1,
    }
    assert [event['amount'] for event in entry['events']] == [2, 2, 2, 2]
    assert entry['events'][-2] == {
        'at': '2027-03-01T14:00:00+00:00',
        'by': None,
        'event': 'ended',
        'end': '2027-03-01T14:00:00+00:00',
        'amount': 2,
        'leaving': [],
        'open': {'h1': 2},
        'down': [],
        'boot_until': None,
    }


@pytest.mark.usefixtures('told')
def test_a_reservation_may_be_named(command, world):
    reservations.update(world.store, OTHER, NOW + 2 * HOUR, name='Kurs')
    result = command('--reservation', 'Kurs', '-f', 'csv')
    [one] = csv.DictReader(io.StringIO(result.out))
    assert (one['Id'], one['Name']) == (OTHER, 'Kurs')
    unknown = command('--reservation', 'kurs')
    assert unknown.out == 'No reservation was found for that time.\n'


@pytest.mark.usefixtures('told')
def test_a_duration_counts_back_from_now(command):
    result = command('--since', '1h', '-f', 'value', '-c', 'Slot Hours')
    assert result.out == '1.0\n'
    result = command('--until', '2027-03-01T00:00Z', '--project', PROJECT)
    assert result.out == 'No reservation was found for that time.\n'


@pytest.mark.usefixtures('told')
def test_the_exit_status_tells_that_a_bill_lacks_something(command, world):
    [flavor] = world.archives().values()
    flavor['description'] = '{}'
    result = command('-f', 'value', '-c', 'Id')
    assert (result.code, result.out) == (1, f'{OTHER}\n')
    assert 'whose description is broken' in result.err
